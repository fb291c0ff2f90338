"""Replicas survive losses where they lie, also beside other workloads."""

from __future__ import annotations

from builders.plans import planned

OPEN = ("workloads.chat.serve.replicas=", "workloads.chat.serve.spread=", "pools.gpu.nodes=gpu-[1-3]")
#: A job on a whole node of three leaves two for the service.
BESIDE = (*OPEN, "workloads.finetune.train.gpus=8", "workloads.finetune.train.parallel={dp: 8}")
RATE = "workloads.chat.serve.rate=14 req/s"


def test_a_service_beside_a_job_has_the_replicas_that_survive_on_the_nodes_left():
    alone = planned(*OPEN, RATE, "workloads.finetune=").workload("chat")
    beside = planned(*BESIDE, RATE)
    chat = beside.workload("chat")
    assert alone.service.replicas_for_load == chat.service.replicas_for_load
    assert chat.replicas_wanted > alone.replicas_wanted
    assert chat.replicas_placed == chat.replicas_wanted == chat.service.replicas_for_failures
    assert all(loss.carries for loss in chat.service.losses)
    assert beside.misfits == ()


def test_declared_replicas_are_never_added_to():
    few = planned(*BESIDE, RATE, "workloads.chat.serve.replicas=3")
    assert few.workload("chat").replicas_wanted == 3
    assert any(m.path == "workloads.chat.target.survive" for m in few.misfits)


def test_where_no_place_is_left_the_loss_does_not_hold():
    full = planned(*BESIDE, RATE, "pools.gpu.nodes=gpu-[1-2]")
    assert {m.path for m in full.misfits} & {"workloads.chat.target.survive", "workloads.chat.serve.replicas"}
