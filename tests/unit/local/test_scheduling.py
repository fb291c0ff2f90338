"""Jobs and nodes of the engine as the queue's memory, and decisions as tasks on devices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from clusterwright.engines.local.configs import ClusterConfig, read_config, write_config
from clusterwright.engines.local.deciding import Decided, decide, outlook_of
from clusterwright.engines.local.layout import Layout
from clusterwright.engines.local.lifecycles import LONG_FENCE_S
from clusterwright.engines.local.scheduling import STUCK_S, queue_state
from clusterwright.model.jobs import (
    Attempt,
    AttemptState,
    GpuClaim,
    Job,
    JobId,
    JobSpec,
    JobState,
    Node,
    NodeSpec,
    NodeState,
    TaskGroup,
    TaskPlacement,
)
from clusterwright.model.outlooks import BlockerKind
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.policies import (
    Backfill,
    FairShare,
    NodeTie,
    Packing,
    Policy,
    PreemptionPolicy,
    Reclaim,
    WithinQueue,
)
from clusterwright.queueing.quotas import Queue, QueueTree, Quota

EASY = Policy(backfill=Backfill.EASY)
PREEMPT = Policy(preemption=PreemptionPolicy(within_queue=WithinQueue.LOWER))


def node(name: str, gpus: int = 2, state: NodeState = NodeState.IDLE, *topology: str, reason: str = "") -> Node:
    devices = tuple(f"G{i}" for i in range(gpus))
    return Node(NodeSpec(name, gpus, "h100", topology=topology), state, devices, reason=reason)


def job(number: int, count: int = 1, gpus: int = 1, *, groups: Sequence[TaskGroup] = (), **more: Any) -> Job:
    rest = {name: more.pop(name) for name in ("attempts", "state", "claim", "held") if name in more}
    spec = JobSpec(f"j{number}", tuple(groups) or (TaskGroup(("p",), count, gpus),), **more)
    job_id, state = JobId(str(number)), rest.pop("state", JobState.PENDING)
    return Job(job_id, spec, state, f"/c{number}", float(number), float(number), **rest)


def attempt(node: str, *devices: str, state: AttemptState = AttemptState.RUNNING, **more: Any) -> Attempt:
    tasks = (TaskPlacement("main", 0, node, devices),)
    fields: dict[str, Any] = {"admitted_at_s": 100.0, "started_at_s": 110.0, "opened": True} | more
    return Attempt(1, 1, state, tasks, (), (), "h100", 4000, **fields)


def runs(number: int, where: str, *devices: str, **more: Any) -> Job:
    tried = {n: more.pop(n) for n in ("stop_by_s", "fencing_at_s", "preempted_by") if n in more}
    kind = more.pop("attempt_state", AttemptState.RUNNING)
    state = JobState.RUNNING if kind is AttemptState.RUNNING else JobState.PREEMPTING
    return job(number, 1, len(devices), attempts=(attempt(where, *devices, state=kind, **tried),), state=state, **more)


def config(tree: QueueTree | None = None, **more: Any) -> ClusterConfig:
    return ClusterConfig("c", (), tree or QueueTree(), **more)


def run(
    jobs: Sequence[Job], nodes: Sequence[Node], now_s: float = 200.0, tree: QueueTree | None = None, **more: Any
) -> Decided:
    return decide({j.id: j for j in jobs}, nodes, config(tree, **more), now_s)


def kinds(decided: Decided, number: int) -> list[BlockerKind]:
    return [b.kind for b in decided.blockers(JobId(str(number)))]


def test_tasks_get_the_first_free_devices_in_rank_order() -> None:
    groups = (TaskGroup(("p",), 1, 1, "head"), TaskGroup(("p",), 2, 2, "worker"))
    found = run([runs(1, "n1", "G1"), job(2, groups=groups)], [node("n1", 4), node("n2", 2)])
    (begin,) = found.begins
    tasks = [(t.group, t.index, t.node, t.devices) for t in begin.tasks]
    assert sorted(t[:2] for t in tasks) == [("head", 0), ("worker", 0), ("worker", 1)]
    assert [t[0] for t in tasks] == ["head", "worker", "worker"]
    taken = [(n, d) for _, _, n, devices in tasks for d in devices]
    assert len(set(taken)) == len(taken) == 5
    assert ("n1", "G1") not in taken


def test_two_jobs_of_one_decision_get_different_devices() -> None:
    found = run([job(1), job(2)], [node("n1", 2)])
    assert [b.tasks[0].devices for b in found.begins] == [("G0",), ("G1",)]


def test_an_attempt_holds_its_gpus_until_every_process_is_gone() -> None:
    stopping = runs(1, "n1", "G0", "G1", attempt_state=AttemptState.FENCING, fencing_at_s=199.0)
    found = run([stopping, job(2)], [node("n1", 2)])
    assert found.begins == ()
    assert kinds(found, 2) == [BlockerKind.HARDWARE_WAIT]


def test_what_is_told_to_leave_leaves_when_its_grace_is_over_and_what_cannot_be_killed_is_not_counted_on() -> None:
    def leaves(now_s: float, **more: Any) -> float | None:
        state = queue_state([runs(1, "n1", "G0", "G1", **more)], [node("n1")], config(), now_s)
        return state.running[JobId("1")].leaving_at_s

    assert leaves(200.0) is None
    assert leaves(200.0, attempt_state=AttemptState.STOPPING, stop_by_s=230.0) == 230.0
    fencing = {"attempt_state": AttemptState.FENCING, "fencing_at_s": 200.0}
    assert leaves(201.0, **fencing) == 201.0 + LONG_FENCE_S
    assert leaves(200.0 + STUCK_S, **fencing) is None


def test_a_limit_counts_from_the_moment_all_ranks_run() -> None:
    state = queue_state([runs(1, "n1", "G0", time_limit_s=50.0)], [node("n1")], config(), 120.0)
    assert state.running[JobId("1")].ends_by_s == pytest.approx(160.0)


def test_a_promise_is_the_same_in_every_state_that_is_built_anew() -> None:
    jobs = [runs(1, "n1", "G0", time_limit_s=500.0), job(2, 1, 2, time_limit_s=60.0), job(3, 1, 1)]
    for now_s in (200.0, 300.0, 600.0):
        found = run(jobs, [node("n1")], now_s, policy=EASY)
        assert found.begins == ()
        promise = outlook_of(JobId("2"), found, now_s).promise
        assert promise is not None
        assert (promise.at_s, promise.basis, promise.jobs) == (610.0, "if job 1 runs to its limit", ("1",))
        assert outlook_of(JobId("3"), found, now_s).promise is None
        assert kinds(found, 3) == [BlockerKind.ORDER]


def test_without_backfill_or_limits_nothing_is_promised() -> None:
    jobs = [runs(1, "n1", "G0", time_limit_s=500.0), job(2, 1, 2)]
    assert outlook_of(JobId("2"), run(jobs, [node("n1")]), 200.0).promise is None
    found = run([runs(1, "n1", "G0"), job(2, 1, 2)], [node("n1")], policy=EASY)
    assert outlook_of(JobId("2"), found, 200.0).promise is None


def test_a_recorded_claim_keeps_what_is_free_for_the_winner_and_its_victims_leave_once() -> None:
    low = runs(1, "n1", "G0", attempt_state=AttemptState.STOPPING, stop_by_s=230.0, preempted_by=JobId("2"))
    claim = GpuClaim("h100", ((0, "n1", 1),), 2, (JobId("1"),))
    high, other = job(2, 1, 2, priority=5, claim=claim), job(3, priority=9)
    found = run([low, high, other], [node("n1")], policy=PREEMPT)
    assert (found.begins, found.preemptions) == ((), ())
    assert kinds(found, 2) == [BlockerKind.PREEMPTING]
    left = replace(low, state=JobState.PENDING, attempts=(replace(low.attempts[0], state=AttemptState.ENDED),))
    found = run([left, high, other], [node("n1")], policy=PREEMPT)
    assert [(b.job, b.reason) for b in found.begins] == [("2", "2 GPUs on 1 node, after preemption")]


def test_a_claim_on_nodes_that_are_no_longer_declared_or_of_a_held_job_is_void() -> None:
    claim = GpuClaim("h100", ((0, "n9", 1),), 2)
    assert not queue_state([job(1, claim=claim)], [node("n1")], config(), 200.0).claims
    claim = GpuClaim("h100", ((0, "n1", 1),), 2)
    assert not queue_state([job(1, claim=claim, held=True)], [node("n1")], config(), 200.0).claims
    assert set(queue_state([job(1, claim=claim)], [node("n1")], config(), 200.0).claims) == {"1"}


def test_what_runs_on_nodes_or_in_queues_that_are_declared_no_longer_is_nobodys() -> None:
    tree = QueueTree((Queue("a", None, {"h100": Quota(1)}),))
    jobs = [runs(1, "gone", "G0", "G1"), runs(2, "n1", "G0", queue="old"), job(3, 1, 2, queue="a")]
    found = run([*jobs, job(4, queue="a")], [node("n1")], tree=tree)
    assert [b.job for b in found.begins] == ["4"]
    assert kinds(found, 3) == [BlockerKind.NEVER_FITS]


def test_topology_paths_are_levels_without_names_and_the_tightest_domain_is_used() -> None:
    nodes = [node(n, 2, NodeState.IDLE, "row", rack) for n, rack in (("a", "r1"), ("b", "r2"), ("c", "r2"))]
    found = run([job(1, 2, 2)], nodes)
    assert found.state.cluster.levels == ("level-1", "level-2")
    assert [t.node for t in found.begins[0].tasks] == ["b", "c"]


def test_why_names_the_nodes_that_are_down_and_why_they_are() -> None:
    nodes = [node("n1"), node("n2", 2, NodeState.DOWN, reason="its agent's process is gone")]
    (blocker,) = run([job(1, 2, 2)], nodes).blockers(JobId("1"))
    assert blocker.message.endswith("1 node takes no jobs (n2); n2 is down: its agent's process is gone")


def test_a_budget_remembers_the_attempts_that_are_over() -> None:
    tree = QueueTree((Queue("a", None, {"h100": Quota(8)}),))
    ended = attempt("n1", "G0", "G1", state=AttemptState.ENDED, admitted_at_s=0.0, ended_at_s=1800.0)
    old = job(1, 1, 2, queue="a", state=JobState.SUCCEEDED, attempts=(ended,))
    new = job(2, 1, 1, queue="a", time_limit_s=3600.0)
    for hours, begins in ((1.5, []), (2.0, ["2"])):
        found = run([old, new], [node("n1")], 2000.0, tree, budgets={"a": Budget(hours)})
        assert [b.job for b in found.begins] == begins
    found = run([old, new], [node("n1")], 2000.0, tree, budgets={"a": Budget(1.5)})
    (blocker,) = found.blockers(JobId("2"))
    assert (blocker.kind, blocker.numbers["used_gpu_hours"]) == (BlockerKind.BUDGET, 1.0)


def test_a_budget_of_a_new_period_forgets_the_old_one_and_time_alone_brings_a_decision() -> None:
    tree = QueueTree((Queue("a", None, {"h100": Quota(8)}),))
    ended = attempt("n1", "G0", state=AttemptState.ENDED, admitted_at_s=0.0, ended_at_s=3500.0)
    jobs = [job(1, queue="a", state=JobState.SUCCEEDED, attempts=(ended,)), job(2, queue="a", time_limit_s=600.0)]
    budgets = {"a": Budget(1.0, every_s=86400.0)}
    found = run(jobs, [node("n1")], 4000.0, tree, budgets=budgets)
    assert (found.begins, found.wake_s) == ((), 86400.0)
    assert [b.job for b in run(jobs, [node("n1")], 86400.0, tree, budgets=budgets).begins] == ["2"]


def test_usage_over_time_is_remembered_too() -> None:
    tree = QueueTree(
        (Queue("all", None, {"h100": Quota(1)}), *(Queue(q, "all", {"h100": Quota(0)}) for q in ("a", "b")))
    )
    ended = attempt("n1", "G0", state=AttemptState.ENDED, admitted_at_s=0.0, ended_at_s=100.0)
    used = job(1, queue="a", state=JobState.SUCCEEDED, attempts=(ended,))
    policy = Policy(fair=FairShare(half_life_s=1000.0))
    found = run([used, job(2, queue="a"), job(3, queue="b")], [node("n1", 1)], tree=tree, policy=policy)
    assert [b.job for b in found.begins] == ["3"]


def test_a_minimum_run_time_keeps_a_victim_and_the_queue_wakes_when_it_is_over() -> None:
    policy = Policy(preemption=PreemptionPolicy(WithinQueue.LOWER, minimum_runtime_s=300.0))
    jobs = [runs(1, "n1", "G0", "G1"), job(2, 1, 2, priority=5)]
    found = run(jobs, [node("n1")], 200.0, policy=policy)
    assert (found.preemptions, found.wake_s) == ((), 400.0)
    assert [p.victims for p in run(jobs, [node("n1")], 400.0, policy=policy).preemptions] == [("1",)]


def test_sharing_survives_being_written_and_read_and_an_older_file_has_none(tmp_path: Path) -> None:
    preemption = PreemptionPolicy(WithinQueue.LOWER_OR_NEWER, Reclaim.ANY, float("inf"), 60.0, 5.0)
    policy = Policy(
        Backfill.EASY, 7, preemption, FairShare(True, 60.0, True), True, NodeTie.DECLARED, Packing.EMPTIEST, {"a": 2.0}
    )
    tree = QueueTree((Queue("a", None, {"h100": Quota(2)}, True, {"cpu": {"h100": Quota(8)}}, slack=True),))
    written = ClusterConfig(
        "id", (NodeSpec("n1", 2),), tree, policy=policy, budgets={"a": Budget(1.5, 86400.0, 5.0, None)}
    )
    layout = Layout(tmp_path)
    write_config(layout, written)
    assert read_config(layout) == written
    older = {name: value for name, value in asdict(written).items() if name not in ("policy", "budgets")}
    for queue in older["tree"]["queues"]:
        del queue["others"], queue["slack"]
    layout.config.write_text(json.dumps(older), encoding="utf-8")
    found = read_config(layout)
    assert (found.policy, found.budgets, found.tree.queues[0].slack) == (Policy(), {}, False)
