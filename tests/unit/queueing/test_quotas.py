"""The quota algebra against the check table of the queue model (Kueue's clusterqueue tests)."""

from __future__ import annotations

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.queueing.quotas import Balance, Queue, QueueTree, Quota

F = "h100"


def queue(name: str, guarantee: float, parent: str | None = "group", **limits: float) -> Queue:
    return Queue(name, parent, {F: Quota(guarantee, **limits)})


def balance(used: dict[str, float], *queues: Queue) -> Balance:
    return Balance(QueueTree(queues), F, used)


ROOT = queue("group", 10, None)

ROWS = [
    (
        "lend keeps one",
        balance({"q1": 1, "q2": 0.5}, ROOT, queue("q1", 10), queue("q2", 10, lend=9)),
        {"q1": (28, 29), "q2": (28.5, 30)},
    ),
    ("over its guarantee", balance({"q1": 11}, ROOT, queue("q1", 10)), {"q1": (9, 20)}),
    (
        "over everything",
        balance({"q1": 31}, ROOT, queue("q1", 10), queue("q2", 10, borrow=0, lend=0)),
        {"q1": (0, 20), "q2": (0, 10)},
    ),
    (
        "three with limits",
        balance(
            {"q1": 20, "q2": 10, "q3": 6},
            ROOT,
            queue("q1", 10),
            queue("q2", 10, borrow=2),
            queue("q3", 10, lend=5),
        ),
        {"q1": (4, 35), "q2": (2, 12), "q3": (4, 40)},
    ),
    (
        "two branches",
        balance(
            {"q1": 10, "q2": 5},
            queue("group", 0, None),
            queue("left", 10),
            queue("right", 10),
            queue("q1", 10, "left"),
            queue("q2", 10, "right", lend=0),
        ),
        {"q1": (20, 30), "q2": (25, 40)},
    ),
]


@pytest.mark.parametrize(("tree", "expected"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_available_and_potential(tree: Balance, expected: dict[str, tuple[float, float]]) -> None:
    assert {q: (tree.available(q), tree.potential(q)) for q in expected} == expected


def test_what_is_missing_after_a_cut_is_negative_before_it_is_shown_as_zero() -> None:
    tree = ROWS[2][1]
    assert isinstance(tree, Balance)
    assert (tree.raw_available("q1"), tree.raw_available("q2")) == (-11, -1)


def test_potential_with_a_borrow_limit_on_a_group() -> None:
    tree = balance(
        {},
        queue("group", 0, None),
        queue("left", 10, borrow=5),
        queue("right", 10),
        queue("a", 10, "left"),
        queue("b", 10, "left", borrow=5),
        queue("c", 10, "right"),
    )
    assert [tree.potential(q) for q in "abc"] == [35, 15, 50]


def test_potential_with_a_lend_limit_on_a_group() -> None:
    tree = balance(
        {},
        queue("group", 0, None),
        queue("left", 0, lend=5),
        queue("right", 0),
        queue("a", 10, "left", lend=5),
        queue("b", 10, "left"),
        queue("c", 0, "right"),
        queue("d", 0),
    )
    assert [tree.potential(q) for q in "abcd"] == [20, 15, 5, 5]


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ([Queue("a"), Queue("a")], "queue 'a' is declared twice"),
        ([Queue("a", "x")], "parent 'x' does not exist (queues: a)"),
        ([Queue("a", "b"), Queue("b", "a")], "queue 'a' is its own ancestor"),
    ],
)
def test_an_impossible_tree_is_refused(queues: list[Queue], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        QueueTree(tuple(queues))
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan")])
def test_an_impossible_quota_is_refused(value: float) -> None:
    with pytest.raises(InvalidInput):
        Quota(value)
