"""Who must leave for whom, by the policy."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.evicting import find_victims
from clusterwright.queueing.policies import Policy, PreemptionPolicy, Reclaim, WithinQueue
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.requests import Request

from .builders import group, held, node, nodes, state_of, waiting

WITHIN = PreemptionPolicy(within_queue=WithinQueue.LOWER)
RECLAIM = PreemptionPolicy(reclaim=Reclaim.ANY)
TREE = QueueTree(
    (
        Queue("all"),
        Queue("a", "all", {"h100": Quota(8)}),
        Queue("b", "all", {"h100": Quota(8)}),
        Queue("apart", None, {"h100": Quota(8)}),
    )
)
HIGH = waiting(9, priority=5)


def victims(
    job: Request,
    *running: tuple[str, int, float, Request],
    policy: PreemptionPolicy = WITHIN,
    count: int | None = None,
    **more: Any,
) -> tuple[str, ...]:
    state = state_of(
        nodes(count or len({r[0] for r in running})), job, running=running, policy=Policy(preemption=policy), **more
    )
    found = find_victims(job, state, 100.0)
    return () if found is None else found[1]


def test_lower_priority_gives_way_and_equal_does_not() -> None:
    assert victims(HIGH, held(1, "n1")) == ("1",)
    assert victims(HIGH, held(1, "n1", priority=5)) == ()
    assert victims(HIGH, held(1, "n1"), policy=PreemptionPolicy()) == ()


def test_newer_of_equal_priority_gives_way_where_that_is_declared() -> None:
    policy = PreemptionPolicy(within_queue=WithinQueue.LOWER_OR_NEWER)
    assert victims(HIGH, held(10, "n1", priority=5), policy=policy) == ("10",)
    assert victims(HIGH, held(1, "n1", priority=5), policy=policy) == ()


def test_the_lowest_priority_goes_first_then_who_loses_least_then_the_last_to_start() -> None:
    assert victims(HIGH, held(1, "n1", priority=2), held(2, "n2", priority=1)) == ("2",)
    assert victims(HIGH, held(1, "n1", since_s=50), held(2, "n2", since_s=10)) == ("1",)


def test_nobody_ends_where_it_would_not_help() -> None:
    wide = waiting(9, group(2), priority=5)
    assert victims(wide, held(1, "n1"), held(2, "n2", priority=5)) == ()


def test_a_job_that_is_not_needed_after_all_is_spared() -> None:
    running = (held(1, "n1", priority=1), held(2, "n2", 4), held(3, "n2", 4, priority=6))
    assert victims(HIGH, *running) == ("1",)


def test_a_lent_guarantee_is_taken_back_from_who_borrows() -> None:
    low, running = waiting(9, queue="b"), (held(1, "n1", queue="a", priority=7), held(2, "n2", queue="a", priority=7))
    assert len(victims(low, *running, policy=RECLAIM, tree=TREE)) == 1
    assert victims(low, *running, policy=PreemptionPolicy(reclaim=Reclaim.LOWER), tree=TREE) == ()
    assert victims(low, *running, policy=WITHIN, tree=TREE) == ()


def test_a_queue_within_its_guarantee_gives_nothing_and_a_strange_tree_neither() -> None:
    job = waiting(9, queue="b", priority=9)
    assert victims(job, held(1, "n1", queue="a"), policy=RECLAIM, tree=TREE) == ()
    running = (held(1, "n1", queue="apart"), held(2, "n2", queue="apart"))
    assert victims(job, *running, policy=RECLAIM, tree=TREE) == ()


@pytest.mark.parametrize(("below", "found"), [(None, ()), (float("inf"), ("2",)), (0.0, ())])
def test_who_borrows_itself_takes_from_borrowers_of_lower_priority_only(
    below: float | None, found: tuple[str, ...]
) -> None:
    tree = QueueTree(
        (Queue("all", None, {"h100": Quota(16)}), *(Queue(q, "all", {"h100": Quota(0)}) for q in ("a", "b")))
    )
    policy = PreemptionPolicy(reclaim=Reclaim.ANY, borrow_below=below)
    job = waiting(9, queue="b", priority=3)
    running = (held(1, "n1", queue="a", priority=3), held(2, "n2", queue="a", priority=1))
    assert victims(job, *running, policy=policy, tree=tree) == found


def test_who_leaves_gives_back_cpu_and_memory_too():
    def needing(cpu: float):
        return group(1, 8, resources=(("cpu", cpu),))

    infos = [node(f"n{i}", resources=(("cpu", 16.0),)) for i in (1, 2)]
    state = state_of(
        infos, waiting(1, needing(16), priority=4), waiting(2, needing(16)), policy=Policy(preemption=WITHIN)
    )
    assert [s.request.id for s in run_cycle(state, 10.0).starts] == ["1", "2"]
    asks = waiting(3, needing(12), at_s=20.0, priority=3)
    state.submit(asks)
    found = find_victims(asks, state, 20.0)
    assert found is not None
    assert found[1] == ("2",)
