"""Rehearsals that pass, fail and do not take place, with real processes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clusterwright.app.judging import judge_document
from clusterwright.app.rehearsing import MAX_NODES, NAMES, rehearse
from clusterwright.model.documents import Document
from clusterwright.model.evidence import Outcome, Rehearsal, RehearsalOutcome
from clusterwright.model.parsing import Source, parse_architecture
from clusterwright.plan.results.clusters import NetworkPlan, PoolPlan
from clusterwright.plan.results.layouts import Assignment, Layout
from clusterwright.plan.results.losses import LossPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.trainings import TrainingPlan

pytestmark = pytest.mark.local

SERVE = "{engine: vllm 0.11, precision: fp8, in: 100 tokens, out: 100 tokens, rate: 1 req/s}"
TRAIN = "{framework: torchtitan 0.2, precision: bf16, sequence: 100 tokens, global_batch: 8, gpus: 2}"
EXECUTION, LOSS = NAMES


def document(workloads: str, nodes: str = "n[1-2]", queues: str = "{}", retries: int = 0, more: str = "") -> Document:
    return parse_architecture(
        Source(
            "small.yaml",
            f"""
apiVersion: clusterwright/v1alpha1
cluster: small
pools: {{gpu: {{nodes: "{nodes}"}}}}
workloads: {workloads}
scheduling: {{engine: slurm, queues: {queues}, retries: {{limit: {retries}}}, priorities: {{high: 9}}{more}}}
storage: {{stores: {{lustre: {{kind: file, durable: true}}}}, uses: {{outputs: lustre}}}}
acceptance:
  requirements:
    lands: {{metric: tasks_as_expected, at_least: 100%, scope: {{of: pool, pool: gpu}}}}
""",
        )
    )


def planned(
    name: str, *places: tuple[int, str, int], wanted: int | None = None, kind: Any = "training"
) -> WorkloadPlan:
    """A workload with `gpus` GPUs of `node` for each (replica, node, gpus)."""
    replicas = len({p[0] for p in places})
    layout = Layout(dp=sum(g for r, _, g in places if r == 0) or 1)
    placement = tuple(Assignment(name, r, "gpu", node, tuple(range(gpus))) for r, node, gpus in places)
    nothing = Unplanned(f"workloads.{name}", "not the question")
    return WorkloadPlan(name, kind, "m", "gpu", "g", layout, wanted or replicas, replicas, nothing, (), placement)


def plan(*workloads: WorkloadPlan, nodes: tuple[str, ...] = ("n1", "n2"), gpus: int = 2) -> Plan:
    pool = PoolPlan("gpu", nodes, "g", gpus, gpus, 0)
    return Plan("small", workloads, (pool,), NetworkPlan(), None, Unplanned("economics", "not the question"))


def run(name: str, of: Document, by: Plan, directory: Path) -> tuple[Rehearsal, list[str]]:
    told: list[str] = []
    return rehearse(name, of.architecture, by, directory / name, told.append), told


def test_a_gang_over_both_nodes_is_scheduled_as_planned(tmp_path: Path) -> None:
    made = document(f"{{tune: {{model: m, train: {TRAIN}}}}}")
    found, told = run(EXECUTION, made, plan(planned("tune", (0, "n1", 2), (0, "n2", 2))), tmp_path)
    assert found.outcome is RehearsalOutcome.PASSED, found
    assert {c.name for c in found.checks} >= {"tune: mounts", "tune: membership", "no process left"}
    assert all(c.holds for c in found.checks)
    assert any("4 of 4 ranks report from n1, n2" in t for t in told)
    assert found.devices == "virtual"


def test_a_gang_that_needs_every_node_does_not_survive_one(tmp_path: Path) -> None:
    made = document(f"{{tune: {{model: m, train: {TRAIN}}}}}")
    found, _ = run(LOSS, made, plan(planned("tune", (0, "n1", 2), (0, "n2", 2))), tmp_path)
    assert found.outcome is RehearsalOutcome.FAILED
    said = "without n2 tune waits: 2 gpu GPUs free, the job needs 2 × 2 GPUs; 1 node takes no jobs (n2); n2 is down: "
    assert found.reason.startswith(said)
    assert "job restarted" in {c.name for c in found.checks if not c.holds}
    assert {r.metric for r in found.readings} == {"detection_time"}, "there is no recovery to time"


@pytest.mark.parametrize(("retries", "outcome"), [(1, RehearsalOutcome.PASSED), (0, RehearsalOutcome.FAILED)])
def test_where_there_is_one_node_a_process_is_taken(tmp_path: Path, retries: int, outcome: RehearsalOutcome) -> None:
    made = document(f"{{tune: {{model: m, train: {TRAIN}}}}}", nodes="n1", retries=retries)
    found, _ = run(LOSS, made, plan(planned("tune", (0, "n1", 2)), nodes=("n1",)), tmp_path)
    assert found.outcome is outcome, found
    if outcome is RehearsalOutcome.PASSED:
        assert "a process was taken and not the node" in found.reason
        assert "lost node excluded" not in {c.name for c in found.checks}
    else:
        assert "FAILED" in found.reason
        assert "signal 9" in found.reason


def test_a_service_stands_in_where_nothing_trains(tmp_path: Path) -> None:
    made = document(f"{{chat: {{model: m, serve: {SERVE}}}}}", nodes="n[1-3]")
    placed = plan(planned("chat", (0, "n1", 2), (1, "n2", 2), kind="inference"), nodes=("n1", "n2", "n3"))
    found, _ = run(LOSS, made, placed, tmp_path)
    assert found.outcome is RehearsalOutcome.PASSED, found
    assert found.workload == "chat"
    assert {r.metric for r in found.readings} == {"detection_time", "recovery_time"}
    assert "no workload trains" in found.reason


CHAT_AND_TUNE = "{{chat: {{model: m, priority: high, serve: {serve}}}, tune: {{model: m, train: {train}}}}}"


def both(spread: str = "preferred", **more: Any) -> Document:
    serve = SERVE.replace("{", f"{{spread: {spread}, ", 1)
    return document(CHAT_AND_TUNE.format(serve=serve, train=TRAIN), **more)


def promised(text: str, *, again: int) -> TrainingPlan:
    nothing = Unplanned("speed", "not the question")
    loss = LossPlan(1, ("n1",), 0, again, 1, None, bool(again), text)
    return TrainingPlan(nothing, None, None, None, None, None, None, None, (loss,))


def test_without_room_the_reason_names_who_holds_the_gpus(tmp_path: Path) -> None:
    placed = plan(planned("chat", (0, "n2", 2), kind="inference"), planned("tune", (0, "n1", 2)))
    found, told = run(LOSS, both(), placed, tmp_path)
    assert "1 neighbour holds 2 GPUs as planned" in told
    assert found.outcome is RehearsalOutcome.FAILED
    assert found.reason.startswith("without n1 tune waits for 2 GPUs held by chat-0 (2 GPUs on n2, priority 9): 0 gpu")
    assert {r.metric for r in found.readings} == {"detection_time"}
    assert next(c for c in found.checks if c.name == "no process left").holds


@pytest.mark.parametrize(
    ("spread", "outcome", "said"),
    [
        ("required", RehearsalOutcome.PASSED, "chat-0 finds no place"),
        ("preferred", RehearsalOutcome.FAILED, "held by chat-0 (2 GPUs on n2, priority 9), chat-1 (2 GPUs on n2, pri"),
    ],
)
def test_a_replica_that_must_not_share_a_node_leaves_its_place_to_others(
    tmp_path: Path, spread: str, outcome: RehearsalOutcome, said: str
) -> None:
    chat = planned("chat", (0, "n1", 2), (1, "n2", 2), kind="inference")
    tune = replace(planned("tune", (0, "n1", 2)), training=promised("it is placed again on n2", again=1))
    found, _ = run(LOSS, both(spread), plan(chat, tune, gpus=4), tmp_path)
    assert found.outcome is outcome, found
    assert said in found.reason
    agrees = next(c for c in found.checks if c.name == "agrees with the plan")
    assert agrees.expected == "it is placed again on n2"
    assert agrees.holds is (outcome is RehearsalOutcome.PASSED)
    apart = [c for c in found.checks if c.name == "chat: replicas apart"]
    assert [c.holds for c in apart] == ([True] if spread == "required" else [])
    assert ("recovery_time" in {r.metric for r in found.readings}) is (outcome is RehearsalOutcome.PASSED)


def test_a_plan_that_saw_no_room_where_there_is_some_is_contradicted(tmp_path: Path) -> None:
    tune = replace(planned("tune", (0, "n1", 2)), training=promised("without n1 the job waits", again=0))
    found, _ = run(LOSS, both(), plan(tune), tmp_path)
    assert found.outcome is RehearsalOutcome.FAILED
    assert found.reason.startswith(
        "agrees with the plan: expected without n1 the job waits, seen without n1 tune works"
    )


@pytest.mark.parametrize(("preempt", "outcome"), [("lower-priority", "passed"), ("never", "failed")])
def test_lower_priority_gives_way_only_where_the_file_declares_it(tmp_path: Path, preempt: str, outcome: str) -> None:
    made = document(
        f"{{chat: {{model: m, serve: {SERVE}}}, tune: {{model: m, priority: high, train: {TRAIN}}}}}",
        more=f", preemption: {{within_queue: {preempt}, grace: 1 s}}",
    )
    placed = plan(planned("chat", (0, "n2", 2), kind="inference"), planned("tune", (0, "n1", 2)))
    found, _ = run(LOSS, made, placed, tmp_path)
    assert found.outcome == outcome, found
    if outcome == "passed":
        assert "chat-0 gave way by the declared preemption" in found.reason
        assert any("chat-0 to give way to tune" in m.what for m in found.timeline)
    else:
        assert "the declared preemption lets it take nothing from lower priority" in found.reason


def test_neighbours_that_cannot_be_placed_as_planned_are_the_reason(tmp_path: Path) -> None:
    queues = "{online: {guarantee: {gpu: 2}, borrow: {gpu: 0}}, rest: {guarantee: {gpu: 4}}}"
    made = document(
        f"{{chat: {{model: m, queue: online, serve: {SERVE}}}, tune: {{model: m, queue: rest, train: {TRAIN}}}}}",
        queues=queues,
    )
    placed = plan(planned("chat", (0, "n1", 2), (1, "n2", 2), kind="inference"), planned("tune", (0, "n1", 2)), gpus=4)
    found, _ = run(LOSS, made, placed, tmp_path)
    assert found.outcome is RehearsalOutcome.FAILED
    assert found.reason.startswith("not as planned before the loss: chat-1 is PENDING")
    assert "online" in found.reason


def test_a_quota_that_keeps_a_replica_out_refutes_the_claim(tmp_path: Path) -> None:
    queues = "{online: {guarantee: {gpu: 2}, borrow: {gpu: 0}}}"
    made = document(f"{{chat: {{model: m, queue: online, serve: {SERVE}}}}}", queues=queues)
    placed = plan(planned("chat", (0, "n1", 2), (1, "n2", 2), kind="inference"))
    found, _ = run(EXECUTION, made, placed, tmp_path)
    assert found.outcome is RehearsalOutcome.FAILED
    assert "chat-1: every rank reports" in found.reason
    assert any("online" in c.seen for c in found.checks if not c.holds), "the queue's own reason is shown"
    verdicts, coverage = judge_document(made, placed, [found], now=datetime.now(UTC))
    lands = next(v for v in verdicts if v.id == "lands")
    assert lands.outcome is Outcome.NOT_MET
    assert "50.0%" in lands.reason
    assert coverage.not_met == 1


def test_a_queue_that_takes_no_jobs_is_said(tmp_path: Path) -> None:
    made = document(f"{{chat: {{model: m, queue: other, serve: {SERVE}}}}}", queues="{online: {guarantee: {gpu: 2}}}")
    placed = plan(planned("chat", (0, "n1", 2), kind="inference"))
    for name in NAMES:
        found, _ = run(name, made, placed, tmp_path)
        assert found.outcome is RehearsalOutcome.FAILED
        assert any("other" in text for text in (found.reason, *(c.seen for c in found.checks)))


#: Escaped as in a double-quoted YAML scalar.
HOSTILE = r"""../../a b=c; $(touch x) 'q' \"d\" {node} *"""


def test_hostile_names_of_workloads_stores_queues_and_pools_stay_names(tmp_path: Path) -> None:
    made = parse_architecture(
        Source(
            "hostile.yaml",
            f"""
apiVersion: clusterwright/v1alpha1
cluster: small
pools: {{"{HOSTILE}": {{nodes: n1}}}}
workloads: {{"{HOSTILE}": {{model: m, queue: "{HOSTILE}", train: {TRAIN}}}}}
scheduling:
  engine: slurm
  queues: {{"{HOSTILE}": {{guarantee: {{"{HOSTILE}": 2}}}}}}
  retries: {{limit: 1}}
storage: {{stores: {{"{HOSTILE}": {{kind: file, durable: true}}}}, uses: {{outputs: "{HOSTILE}"}}}}
""",
        )
    )
    (name,) = made.architecture.workloads
    assert "$(touch x)" in name
    workload = replace(planned(name, (0, "n1", 2)), placement=(Assignment(name, 0, name, "n1", (0, 1)),))
    placed = replace(plan(workload, nodes=("n1",)), pools=(PoolPlan(name, ("n1",), "g", 2, 2, 2),))
    before = sorted(p.name for p in tmp_path.parent.iterdir())
    for rehearsal in NAMES:
        found, _ = run(rehearsal, made, placed, tmp_path)
        assert found.outcome is RehearsalOutcome.PASSED, found
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(NAMES)
    assert sorted(p.name for p in tmp_path.parent.iterdir()) == before


def test_queues_that_cannot_be_built_are_a_reason_not_to_rehearse(tmp_path: Path) -> None:
    made = document(f"{{tune: {{model: m, train: {TRAIN}}}}}", queues="{a: {parent: nobody}}")
    found, _ = run(EXECUTION, made, plan(planned("tune", (0, "n1", 2))), tmp_path)
    assert found.outcome is RehearsalOutcome.NOT_RUN
    assert "nobody" in found.reason


def test_what_the_plan_cannot_place_is_not_rehearsed_as_if_it_were_there(tmp_path: Path) -> None:
    made = document(f"{{chat: {{model: m, serve: {SERVE}}}}}")
    found, _ = run(EXECUTION, made, plan(planned("chat", (0, "n1", 2), wanted=2, kind="inference")), tmp_path)
    assert found.outcome is RehearsalOutcome.FAILED
    assert "1 of 2 replicas have a place" in found.reason


@pytest.mark.parametrize("name", NAMES)
def test_a_cluster_too_large_for_one_machine_is_not_rehearsed(tmp_path: Path, name: str) -> None:
    nodes = tuple(f"n{i}" for i in range(1, MAX_NODES + 2))
    made = document(f"{{tune: {{model: m, train: {TRAIN}}}}}", nodes=f"n[1-{MAX_NODES + 1}]")
    found, _ = run(name, made, plan(planned("tune", (0, "n1", 2)), nodes=nodes), tmp_path)
    assert found.outcome is RehearsalOutcome.NOT_RUN
    assert found.reason.startswith("scope too small")


def test_a_file_without_workloads_has_nothing_to_rehearse(tmp_path: Path) -> None:
    found, _ = run(EXECUTION, document("{}"), plan(), tmp_path)
    assert found.outcome is RehearsalOutcome.NOT_RUN
    assert "no workload" in found.reason


def test_an_engine_that_cannot_start_refutes_nothing(tmp_path: Path) -> None:
    made = document(f"{{tune: {{model: m, train: {TRAIN}}}}}")
    (tmp_path / EXECUTION).write_text("a file where the state should be")
    found, _ = run(EXECUTION, made, plan(planned("tune", (0, "n1", 2))), tmp_path)
    assert found.outcome is RehearsalOutcome.NOT_RUN
    assert "could not rehearse" in found.reason
