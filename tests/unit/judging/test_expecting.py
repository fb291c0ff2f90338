"""What must run at once, and the ceilings above which a reading is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clusterwright.judging.ceilings import limits_of
from clusterwright.judging.expecting import ExpectedTask, Promise, expect_jobs, promise_of
from clusterwright.judging.requirements import Claim
from clusterwright.lib.figures import Origin, leaf
from clusterwright.model.acceptance import Requirement
from clusterwright.model.architecture import Architecture
from clusterwright.plan.results.clusters import CollectivePlan, NetworkPlan
from clusterwright.plan.results.layouts import Assignment, Layout
from clusterwright.plan.results.losses import LossPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.trainings import TrainingPlan

SERVE = {"engine": "vllm 0.11", "precision": "fp8", "in": "9 tokens", "out": "9 tokens", "rate": "1 req/s"}
TRAIN = {
    "framework": "torchtitan 0.2", "precision": "bf16", "sequence": "9 tokens", "global_batch": 8, "gpus": 4,
    "data": "lustre", "checkpoint": {"to": "lustre", "every": "1 h"},
}  # fmt: skip
ARCHITECTURE = Architecture.model_validate(
    {
        "apiVersion": "clusterwright/v1alpha1",
        "cluster": "small",
        "workloads": {
            "chat": {
                "model": "m", "serve": SERVE, "queue": "online", "priority": "high",
                "payload": {"source": "s3", "cache": "disk", "within": "90 s"},
            },
            "tune": {"model": "m", "train": TRAIN},
        },
        "scheduling": {"engine": "slurm", "priorities": {"high": 7}},
        "storage": {
            "stores": {
                "s3": {"kind": "object", "durable": True},
                "lustre": {"kind": "file", "durable": True},
                "disk": {"kind": "local-nvme", "durable": False},
                "unused": {"kind": "file", "durable": True},
            },
            "uses": {"outputs": "s3", "logs": "gone"},
        },
    }
)  # fmt: skip

PAIR = Layout(tp=2)


def planned(name: str, wanted: int, *places: tuple[int, str, int], layout: Layout | None = PAIR) -> WorkloadPlan:
    placement = tuple(Assignment(name, replica, "gpu", node, tuple(range(n))) for replica, node, n in places)
    nothing = Unplanned(name, "not the question")
    return WorkloadPlan(name, "unknown", "m", "gpu", "g", layout, wanted, 0, nothing, (), placement)


def plan(*workloads: WorkloadPlan, collectives: tuple[CollectivePlan, ...] = ()) -> Plan:
    return Plan("small", workloads, (), NetworkPlan(collectives), None, Unplanned("economics", "not the question"))


def test_every_replica_is_a_job_and_a_gang_is_one() -> None:
    found = expect_jobs(
        ARCHITECTURE,
        plan(planned("chat", 2, (0, "n1", 2), (1, "n2", 2)), planned("tune", 1, (0, "n1", 2), (0, "n2", 2))),
    )
    assert [j.name for j in found.jobs] == ["chat-0", "chat-1", "tune"]
    assert found.missing == ()
    assert found.ranks == 8
    chat, _, tune = found.jobs
    assert (chat.queue, chat.priority) == ("online", 7)
    assert (chat.shared_stores, chat.node_stores) == (("s3",), ("disk",))
    assert (tune.shared_stores, tune.node_stores) == (("s3", "lustre"), ())
    assert tune.tasks == (ExpectedTask("gpu", "n1", 2), ExpectedTask("gpu", "n2", 2))


def test_replicas_without_a_place_are_counted() -> None:
    found = expect_jobs(ARCHITECTURE, plan(planned("chat", 3, (0, "n1", 2)), planned("tune", 1, (0, "n2", 4))))
    (missing,) = found.missing
    assert (missing.workload, missing.ranks) == ("chat", 4)
    assert "1 of 3 replicas have a place" in missing.reason
    assert found.ranks == 10


def test_a_workload_without_layout_or_plan_is_missing_by_an_unknown_number() -> None:
    found = expect_jobs(ARCHITECTURE, plan(planned("chat", 2, layout=None)))
    assert [(m.workload, m.ranks) for m in found.missing] == [("chat", None), ("tune", None)]
    assert all(m.reason for m in found.missing)


def test_replicas_are_apart_only_where_the_file_requires_it() -> None:
    placed = plan(planned("chat", 1, (0, "n1", 2)), planned("tune", 1, (0, "n2", 4)))
    assert [j.apart for j in expect_jobs(ARCHITECTURE, placed).jobs] == [False, False]
    serve = ARCHITECTURE.workloads["chat"].serve
    assert serve is not None
    chat = ARCHITECTURE.workloads["chat"].model_copy(update={"serve": serve.model_copy(update={"spread": "required"})})
    required = ARCHITECTURE.model_copy(update={"workloads": dict(ARCHITECTURE.workloads) | {"chat": chat}})
    assert [j.apart for j in expect_jobs(required, placed).jobs] == [True, False]


def test_the_plan_promises_something_only_where_it_thought_a_loss_through() -> None:
    nothing = Unplanned("x", "not the question")
    loss = LossPlan(1, ("n1",), 0, 1, 1, None, True, "without n1 the job finds GPUs again")
    training = TrainingPlan(nothing, None, None, None, None, None, None, None, (loss,))
    tune = replace(planned("tune", 1, (0, "n1", 4)), training=training)
    assert promise_of(plan(tune), "tune") == Promise("tune", "n1", 1, 1, 1, "without n1 the job finds GPUs again")
    assert promise_of(plan(planned("tune", 1)), "tune") is None
    assert promise_of(plan(), "tune") is None
    two = replace(tune, training=replace(training, losses=(replace(loss, nodes_lost=2, worst=("n1", "n2")),)))
    assert promise_of(plan(two), "tune") is None


def collective(nodes: int) -> CollectivePlan:
    bound = leaf("bound", 480.0 * nodes, "GB/s", Origin.CATALOGUE, "a source")
    return CollectivePlan("gpu", "all-reduce", nodes, bound, bound)


@pytest.mark.parametrize(
    ("scope", "operation", "limit"),
    [
        ({"of": "pool", "pool": "gpu", "nodes": 2}, "all-reduce", 960e9),
        ({"of": "node", "pool": "gpu", "nodes": 2}, "all-reduce", 480e9),
        ({"of": "pool", "pool": "gpu", "nodes": 4}, "all-reduce", None),
        ({"of": "pool", "pool": "other", "nodes": 2}, "all-reduce", None),
        ({"of": "pool", "pool": "gpu", "nodes": 2}, "all-to-all", None),
        ({"of": "pool", "pool": "gpu", "nodes": 2}, None, None),
    ],
)
def test_a_ceiling_is_that_of_the_same_collective_over_the_same_nodes(
    scope: dict[str, Any], operation: str | None, limit: float | None
) -> None:
    conditions = {"operation": operation} if operation else {}
    body = {"metric": "busbw", "at_least": "1 GB/s", "scope": scope, "conditions": conditions}
    claim = Claim("it", Requirement.model_validate(body), "acceptance.x")
    found = limits_of([claim], plan(collectives=(collective(1), collective(2)))).get("it")
    assert (found.value if found else None) == limit
