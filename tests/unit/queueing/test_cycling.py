"""Cycles of small clusters, worked out by hand."""

from __future__ import annotations

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.jobs import JobId
from clusterwright.model.outlooks import BlockerKind
from clusterwright.queueing.asking import what_if_gone, what_if_job, what_if_nodes, what_if_quota
from clusterwright.queueing.blockers import why
from clusterwright.queueing.budgets import Budget, Budgets
from clusterwright.queueing.clusters import NodeInfo
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.policies import Backfill, FairShare, Policy, PreemptionPolicy, Reclaim, WithinQueue
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.requests import Demand, Request, Shape, TopologyWish
from clusterwright.queueing.state import State
from clusterwright.queueing.windows import Window

EASY = Policy(backfill=Backfill.EASY)


def cluster(nodes: int = 2, policy: Policy | None = None, queues: tuple[Queue, ...] = (), **more) -> State:
    infos = [NodeInfo(f"n{i}", "h100", 8, (f"rack{i // 2}",)) for i in range(nodes)]
    return State(infos, levels=("rack",), tree=QueueTree(queues), policy=policy, **more)


def job(name: str, gpus: int, *, tasks: int = 1, at_s: float = 0.0, queue: str = "default", **more) -> Request:
    wish = more.pop("topology", None)
    least = more.pop("least", None)
    return Request(JobId(name), Demand((Shape(tasks, gpus, least=least),), topology=wish), at_s, queue, **more)


def cycle(state: State, now_s: float, *requests: Request) -> list[str]:
    for request in requests:
        state.submit(request)
    return [s.request.id for s in run_cycle(state, now_s).starts]


def kinds(state: State, name: str, now_s: float = 0.0) -> list[BlockerKind]:
    return [b.kind for b in why(JobId(name), state, now_s)]


def two_queues(**more) -> tuple[Queue, ...]:
    return (
        Queue("all", None, {}),
        Queue("a", "all", {"h100": Quota(8)}, **more),
        Queue("b", "all", {"h100": Quota(8)}, **more),
    )


def test_a_strict_queue_blocks_behind_its_head_and_a_best_effort_queue_does_not():
    strict = (Queue("default", None, {"h100": Quota(16)}, strict=True),)
    big, small = job("big", 8, tasks=2, at_s=1), job("small", 1, at_s=2)
    state = cluster(queues=strict)
    assert cycle(state, 0, job("first", 4)) == ["first"]
    assert cycle(state, 2, big, small) == []
    assert [b.holders for b in why(JobId("small"), state, 2)] == [("big",)]
    state = cluster()
    assert cycle(state, 0, job("first", 4)) == ["first"]
    assert cycle(state, 2, big, small) == ["small"]


def test_easy_starts_what_ends_before_the_promise_or_runs_beside_it():
    state = cluster(policy=EASY)
    assert cycle(state, 0, job("a", 8, limit_s=100), job("b", 4, limit_s=50)) == ["a", "b"]
    # Both nodes are needed: promised at 100 s, when a ends.
    assert cycle(state, 1, job("head", 8, tasks=2, at_s=1, limit_s=10)) == []
    assert state.promise is not None
    assert state.promise.at_s == 100
    assert state.promise.basis == "a"
    assert cycle(state, 2, job("long", 2, at_s=2, limit_s=200), job("short", 2, at_s=2, limit_s=98)) == ["short"]
    assert kinds(state, "long", 2) == [BlockerKind.ORDER]
    state.release(JobId("b"), 50)
    assert cycle(state, 50) == []
    state.release(JobId("a"), 100)
    state.release(JobId("short"), 100)
    assert cycle(state, 100) == ["head"]


def test_a_promise_moves_forward_when_a_job_ends_early():
    state = cluster(nodes=1, policy=EASY)
    cycle(state, 0, job("a", 8, limit_s=100), job("head", 8, at_s=1))
    assert state.promise is not None
    state.release(JobId("a"), 30)
    assert cycle(state, 30) == ["head"]


def test_a_promise_covers_quota():
    queues = (Queue("default", None, {"h100": Quota(8)}),)
    state = cluster(nodes=2, policy=EASY, queues=queues)
    assert cycle(state, 0, job("a", 6, limit_s=100)) == ["a"]
    cycle(state, 1, job("head", 8, at_s=1, limit_s=10))
    assert state.promise is not None
    assert state.promise.at_s == 100
    assert cycle(state, 2, job("long", 2, at_s=2, limit_s=500)) == [], "its quota would be missing at the promised time"
    assert cycle(state, 3, job("short", 2, at_s=3, limit_s=97)) == ["short"]


def test_a_promise_covers_cpu_and_memory_that_come_free_and_that_others_may_not_take():
    host = (("cpu", 16.0), ("memory", 100.0))
    state = State([NodeInfo(f"n{i}", "h100", 8, resources=host) for i in range(2)], policy=EASY)

    def needing(name: str, gpus: int, cpu: float, at_s: float, limit_s: float, tasks: int = 1) -> Request:
        shape = Shape(tasks, gpus, resources=(("cpu", cpu), ("memory", 10.0)))
        return Request(JobId(name), Demand((shape,)), at_s, limit_s=limit_s)

    assert cycle(state, 0, needing("a", 4, 12, 0, 100)) == ["a"]
    assert cycle(state, 1, needing("head", 4, 12, 1, 10, tasks=2)) == []
    assert state.promise is not None
    assert state.promise.at_s == 100
    assert state.promise.spare["cpu"].tolist() == [4000, 4000]
    late = needing("late", 2, 5, 2, 500)
    assert cycle(state, 2, late) == [], "its GPUs would be left, its cores would not"
    assert cycle(state, 3, needing("few", 2, 4, 3, 500), needing("short", 2, 5, 3, 90)) == ["few", "short"]
    for name in ("a", "short"):
        state.release(JobId(name), 100)
    assert cycle(state, 100) == ["head"]


def test_guaranteed_before_borrowed_then_priority_then_age():
    state = cluster(queues=two_queues())
    first = job("old", 8, queue="a", at_s=0), job("older-but-borrows", 8, queue="a", at_s=1)
    assert cycle(state, 9, *first, job("own", 8, queue="b", at_s=5)) == ["old", "own"]
    state = cluster()
    assert cycle(state, 9, job("low", 8, at_s=0), job("high", 8, tasks=2, at_s=5, priority=3)) == ["high"]


def test_a_guarantee_is_reclaimed_from_a_borrower_and_the_gpus_are_kept_for_the_winner():
    policy = Policy(preemption=PreemptionPolicy(reclaim=Reclaim.ANY, grace_s=20))
    state = cluster(policy=policy, queues=two_queues())
    assert cycle(state, 0, job("b1", 8, queue="b"), job("b2", 8, queue="b")) == ["b1", "b2"]
    state.submit(job("mine", 8, queue="a", at_s=10))
    decisions = run_cycle(state, 10)
    assert [(p.victims, p.leaving_at_s) for p in decisions.preemptions] == [(("b2",), (30,))]
    assert kinds(state, "mine", 10) == [BlockerKind.PREEMPTING]
    state.release(JobId("b2"), 25)
    assert cycle(state, 25, job("thief", 8, queue="b", at_s=11, priority=9)) == ["mine"]


def test_the_victim_loses_the_least_work():
    policy = Policy(preemption=PreemptionPolicy(within_queue=WithinQueue.LOWER))
    state = cluster(policy=policy)
    assert cycle(state, 0, job("saved", 8), job("unsaved", 8)) == ["saved", "unsaved"]
    state.saved(JobId("saved"), 90)
    state.submit(job("urgent", 8, at_s=100, priority=1))
    assert [p.victims for p in run_cycle(state, 100).preemptions] == [("saved",)]


def test_nobody_is_a_victim_for_nothing_nor_before_the_minimum_run_time():
    policy = Policy(preemption=PreemptionPolicy(within_queue=WithinQueue.LOWER, minimum_runtime_s=60))
    state = cluster(policy=policy)
    cycle(state, 0, job("a", 4), job("b", 8))
    state.submit(job("urgent", 8, tasks=3, at_s=1, priority=1))
    assert not run_cycle(state, 100).preemptions, "three nodes there will never be"
    state.submit(job("soon", 8, at_s=50, priority=1))
    assert not run_cycle(state, 50).preemptions
    assert state.next_wake_s(50) == 60
    state.wake()
    assert [p.victims for p in run_cycle(state, 60).preemptions] == [("a",)], "a has less to lose, and it is enough"


def test_fair_share_admits_the_queue_that_borrows_least():
    queues = (
        Queue("all", None, {"h100": Quota(16)}),
        Queue("a", "all", {"h100": Quota(0)}),
        Queue("b", "all", {"h100": Quota(0)}),
    )
    jobs = [job(f"a{i}", 4, queue="a", at_s=i) for i in range(4)] + [
        job(f"b{i}", 4, queue="b", at_s=9) for i in range(4)
    ]
    assert cycle(cluster(queues=queues, policy=Policy(fair=FairShare(now=True))), 9, *jobs) == ["a0", "b0", "a1", "b1"]
    assert cycle(cluster(queues=queues), 9, *jobs) == ["a0", "a1", "a2", "a3"]


def test_usage_over_time_orders_jobs_of_equal_priority():
    policy = Policy(fair=FairShare(half_life_s=3600, by_user=True))
    state = cluster(nodes=1, policy=policy)
    cycle(state, 0, job("x", 8, user="ada"))
    state.release(JobId("x"), 1000)
    both = job("again", 8, at_s=1000, user="ada"), job("fresh", 8, at_s=1001, user="bob")
    assert cycle(state, 1001, *both) == ["fresh"]


def test_budgets_stop_admission_and_stand_in_nobodys_way():
    queues = (Queue("default", None, {"h100": Quota(16)}, strict=True),)
    state = cluster(queues=queues, budgets=Budgets(QueueTree(queues), {"default": Budget(10)}))
    assert cycle(state, 0, job("dear", 8, limit_s=7200), job("cheap", 8, at_s=1, limit_s=3600)) == ["cheap"]
    (blocker,) = why(JobId("dear"), state, 0)
    assert blocker.kind is BlockerKind.BUDGET
    assert (blocker.numbers["needed_gpu_hours"], blocker.numbers["budget_gpu_hours"]) == (16, 10)


def test_a_maintenance_window_keeps_out_what_would_reach_into_it():
    window = Window("firmware", 100, 200, frozenset({"n0", "n1"}), maintenance=True)
    state = cluster(windows=[window])
    assert cycle(state, 0, job("long", 8, limit_s=150), job("endless", 8), job("short", 8, limit_s=100)) == ["short"]
    assert kinds(state, "long") == [BlockerKind.HARDWARE_WAIT]
    assert "maintenance 'firmware' holds 2 nodes" in why(JobId("long"), state, 0)[0].message
    assert state.next_wake_s(0) == 200
    state.wake()
    assert cycle(state, 200) == ["long"], "short never gave its node back"


def test_a_required_level_waits_and_says_how_much_the_best_domain_holds():
    state = cluster(nodes=4)
    cycle(state, 0, job("a", 8, topology=TopologyWish("rack")), job("b", 8, tasks=1))
    cycle(state, 0, job("c", 2))
    wish = TopologyWish("rack")
    assert cycle(state, 1, job("gang", 8, tasks=2, at_s=1, topology=wish)) == []
    (blocker,) = why(JobId("gang"), state, 1)
    assert blocker.kind in (BlockerKind.TOPOLOGY, BlockerKind.HARDWARE_WAIT)


def test_never_fits_names_the_largest_that_would():
    state = cluster()
    cycle(state, 0, job("huge", 8, tasks=3))
    (blocker,) = why(JobId("huge"), state, 0)
    assert blocker.kind is BlockerKind.NEVER_FITS
    assert blocker.numbers["largest_main_tasks"] == 2


def test_fragmented_says_what_would_have_to_move():
    state = cluster()
    cycle(state, 0, job("a", 5), job("b", 5))
    assert cycle(state, 1, job("c", 4, at_s=1)) == []
    (blocker,) = why(JobId("c"), state, 1)
    assert blocker.kind is BlockerKind.FRAGMENTED
    assert blocker.numbers["gpus_to_move"] == 1


def test_an_elastic_gang_takes_what_there_is():
    state = cluster()
    cycle(state, 0, job("a", 8))
    assert cycle(state, 1, job("gang", 2, tasks=8, least=2, at_s=1)) == ["gang"]
    assert state.running[JobId("gang")].placement.gpus == 8


def test_held_and_gated_jobs_and_those_in_back_off_wait_apart():
    state = cluster()
    waiting = (
        job("held", 1, hold="by its owner"),
        job("gated", 1, gates={"data": "not there"}),
        job("late", 1, not_before_s=9),
    )
    assert cycle(state, 0, *waiting) == []
    assert [kinds(state, n) for n in ("held", "gated", "late")] == [
        [BlockerKind.HELD], [BlockerKind.GATED], [BlockerKind.BACKOFF]
    ]  # fmt: skip
    assert state.next_wake_s(0) == 9
    assert cycle(state, 9) == ["late"]


def test_a_second_job_of_the_same_id_is_refused():
    state = cluster()
    cycle(state, 0, job("a", 1))
    with pytest.raises(InvalidInput, match="already"):
        state.submit(job("a", 1))


def test_what_if_answers_and_changes_nothing():
    state = cluster(queues=(Queue("default", None, {"h100": Quota(8)}),))
    cycle(state, 0, job("a", 8, limit_s=60), job("b", 8, at_s=1))
    asked = what_if_job(job("c", 8, at_s=2, limit_s=5), state, 2)
    assert not asked.decisions
    assert [b.kind for b in asked.blockers] == [BlockerKind.QUOTA_WAIT]
    assert asked.promise is not None
    assert asked.promise.at_s == 60
    more = what_if_quota({("default", "h100"): Quota(16)}, state, 2)
    assert [s.request.id for s in more.decisions.starts] == ["b"]
    assert [s.request.id for s in what_if_gone([JobId("a")], state, 2).decisions.starts] == ["b"]
    assert not what_if_nodes(state, 2, gone=["n1"]).decisions
    assert (set(state.waiting), set(state.running)) == ({"b"}, {"a"})
    assert state.cluster.floors["h100"].free.tolist() == [0, 8]
