"""The check table of the queue model: trees in use, and what Kueue's own tests say is available and possible on them.

Source: Kueue, pkg/cache/scheduler/clusterqueue_test.go (v0.11 and later).
"""

from __future__ import annotations

from typing import NamedTuple

from clusterwright.queueing.quotas import Queue, QueueTree, Quota

FLAVOR = "h100"


class Row(NamedTuple):
    """One tree at one use; figures by queue."""

    name: str
    tree: QueueTree
    used: dict[str, float]
    available: dict[str, float]
    raw: dict[str, float]
    potential: dict[str, float]


def queue(name: str, guarantee: float, parent: str | None = "group", **limits: float) -> Queue:
    return Queue(name, parent, {FLAVOR: Quota(guarantee, **limits)})


def _row(
    name: str,
    queues: list[Queue],
    used: dict[str, float],
    figures: dict[str, tuple[float, float]],
    raw: dict[str, float] | None = None,
) -> Row:
    """Figures are (available, potential); what is available without a floor at 0 differs only where `raw` says so."""
    available = {name: figure[0] for name, figure in figures.items()}
    potential = {name: figure[1] for name, figure in figures.items()}
    return Row(name, QueueTree(tuple(queues)), used, available, {**available, **(raw or {})}, potential)


_GROUP = queue("group", 10, None)

TABLE = [
    _row(
        "q2 keeps one",
        [_GROUP, queue("q1", 10), queue("q2", 10, lend=9)],
        {"q1": 1, "q2": 0.5},
        {"q1": (28, 29), "q2": (28.5, 30)},
    ),
    _row("q1 over its guarantee", [_GROUP, queue("q1", 10)], {"q1": 11}, {"q1": (9, 20)}),
    _row(
        "q1 over everything",
        [_GROUP, queue("q1", 10), queue("q2", 10, borrow=0, lend=0)],
        {"q1": 31},
        {"q1": (0, 20), "q2": (0, 10)},
        {"q1": -11, "q2": -1},
    ),
    _row(
        "borrowing and lending limits",
        [_GROUP, queue("q1", 10), queue("q2", 10, borrow=2), queue("q3", 10, lend=5)],
        {"q1": 20, "q2": 10, "q3": 6},
        {"q1": (4, 35), "q2": (2, 12), "q3": (4, 40)},
    ),
    _row(
        "two branches",
        [
            queue("root", 0, None),
            queue("left", 10, "root"),
            queue("right", 10, "root"),
            queue("q1", 10, "left"),
            queue("q2", 10, "right", lend=0),
        ],
        {"q1": 10, "q2": 5},
        {"q1": (20, 30), "q2": (25, 40)},
    ),
    _row(
        "a branch that borrows little",
        [
            queue("root", 0, None),
            queue("left", 10, "root", borrow=5),
            queue("right", 10, "root"),
            queue("a", 10, "left"),
            queue("b", 10, "left", borrow=5),
            queue("c", 10, "right"),
        ],
        {},
        {"a": (35, 35), "b": (15, 15), "c": (50, 50)},
    ),
    _row(
        "a branch that lends little",
        [
            queue("root", 0, None),
            queue("left", 0, "root", lend=5),
            queue("right", 0, "root"),
            queue("a", 10, "left", lend=5),
            queue("b", 10, "left"),
            queue("c", 0, "right"),
            queue("d", 0, "root"),
        ],
        {},
        {"a": (20, 20), "b": (15, 15), "c": (5, 5), "d": (5, 5)},
    ),
]
