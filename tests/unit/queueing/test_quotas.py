"""The quota algebra against the check table of the queue model (Kueue's own tests)."""

from __future__ import annotations

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.queueing.quotas import Balance, Queue, QueueTree, Quota

from .quota_table import FLAVOR, TABLE, Row


@pytest.mark.parametrize("row", TABLE, ids=[r.name for r in TABLE])
def test_available_and_potential_are_those_of_the_table(row: Row) -> None:
    balance = Balance(row.tree, FLAVOR, row.used)
    assert {q: balance.available(q) for q in row.available} == row.available
    assert {q: balance.raw_available(q) for q in row.raw} == row.raw
    assert {q: balance.potential(q) for q in row.potential} == row.potential


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


def test_groups_and_slack_queues_take_no_jobs() -> None:
    tree = QueueTree((Queue("group"), Queue("a", "group"), Queue("spare", "group", slack=True)))
    assert tree.leaves == {"a"}
