"""Who may be sent back into the queue, by the declared policy."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.model.jobs import JobId, TaskPlacement
from clusterwright.model.scheduling import Preemption
from clusterwright.queueing.preempting import Running, find_victims
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.states import Holding, NodeView, QueueState, Waiting

from .builders import group, node, waiting

WITHIN = Preemption(within_queue="lower-priority")
RECLAIM = Preemption(reclaim="any")
TREE = QueueTree(
    (
        Queue("all"),
        Queue("a", "all", {"h100": Quota(8)}),
        Queue("b", "all", {"h100": Quota(8)}),
        Queue("apart", None, {"h100": Quota(8)}),
    )
)


def held(number: int, on: NodeView, gpus: slice = slice(None), queue: str = "default", **more: Any) -> Running:
    fields: dict[str, Any] = {"priority": 0, "queued_at_s": float(number)} | more
    return Running(
        JobId(str(number)), queue, fields["priority"], fields["queued_at_s"], on.flavor,
        (TaskPlacement("main", 0, on.name, on.devices[gpus]),),
    )  # fmt: skip


def victims(job: Waiting, *running: Running, policy: Preemption | None = WITHIN, **more: Any) -> tuple[str, ...]:
    names = dict.fromkeys(t.node for r in running for t in r.tasks)
    nodes = more.pop("nodes", tuple(node(n, free=0) for n in names))
    holdings = tuple(Holding(r.id, r.queue, r.flavor, sum(len(t.devices) for t in r.tasks)) for r in running)
    return find_victims(job, running, QueueState(nodes, (job,), holdings, **more), policy)


N1, N2 = node("n1"), node("n2")
HIGH = waiting(9, priority=5)


def test_lower_priority_gives_way_and_equal_does_not() -> None:
    assert victims(HIGH, held(1, N1)) == ("1",)
    assert victims(HIGH, held(1, N1, priority=5)) == ()
    assert victims(HIGH, held(1, N1), policy=Preemption()) == ()
    assert victims(HIGH, held(1, N1), policy=None) == ()


def test_newer_of_equal_priority_gives_way_where_that_is_declared() -> None:
    policy = Preemption(within_queue="lower-or-newer-equal")
    assert victims(HIGH, held(10, N1, priority=5), policy=policy) == ("10",)
    assert victims(HIGH, held(1, N1, priority=5), policy=policy) == ()


def test_the_lowest_priority_goes_first_then_the_newest() -> None:
    assert victims(HIGH, held(1, N1, priority=2), held(2, N2, priority=1)) == ("2",)
    assert victims(HIGH, held(1, N1), held(2, N2)) == ("2",)


def test_nobody_ends_where_it_would_not_help() -> None:
    wide = waiting(9, group(2), priority=5)
    assert victims(wide, held(1, N1), held(2, N2, priority=5)) == ()


def test_nobody_ends_where_there_is_room() -> None:
    assert victims(HIGH, held(1, N1), nodes=(node("n1", free=0), node("n2"))) == ()


def test_a_job_that_is_not_needed_after_all_is_spared() -> None:
    one = waiting(9, group(1, 8), priority=5)
    assert victims(one, held(1, N1, priority=1), held(2, N2, slice(4)), held(3, N1, slice(0), priority=0)) == ("1",)


def test_a_lent_guarantee_is_taken_back_from_who_borrows() -> None:
    low, first, second = waiting(9, queue="b"), held(1, N1, queue="a", priority=7), held(2, N2, queue="a", priority=7)
    assert victims(low, first, second, policy=RECLAIM, tree=TREE) == ("2",)
    assert victims(low, first, second, policy=Preemption(reclaim="lower-priority"), tree=TREE) == ()
    assert victims(low, first, second, policy=WITHIN, tree=TREE) == ()


def test_a_queue_within_its_guarantee_gives_nothing_and_a_strange_tree_neither() -> None:
    job = waiting(9, queue="b", priority=9)
    assert victims(job, held(1, N1, queue="a"), policy=RECLAIM, tree=TREE) == ()
    assert victims(job, held(1, N1, queue="apart"), held(2, N2, queue="apart"), policy=RECLAIM, tree=TREE) == ()


@pytest.mark.parametrize(("borrow", "found"), [("never", ()), ("lower-priority", ("2",))])
def test_who_borrows_itself_takes_from_borrowers_of_lower_priority_only(borrow: Any, found: tuple[str, ...]) -> None:
    tree = QueueTree(
        (Queue("all", None, {"h100": Quota(16)}), *(Queue(q, "all", {"h100": Quota(0)}) for q in ("a", "b")))
    )
    policy = Preemption(reclaim="any", borrow_and_preempt=borrow)
    job = waiting(9, queue="b", priority=3)
    running = (held(1, N1, queue="a", priority=3), held(2, N2, queue="a", priority=1))
    assert victims(job, *running, policy=policy, tree=tree) == found
