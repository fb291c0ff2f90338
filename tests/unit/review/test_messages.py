"""What a finding says: both numbers, one finding for one cause, remedies that help, words that agree."""

from __future__ import annotations

import re

import pytest

from builders.reviews import findings, review
from clusterwright.model.findings import Finding, Severity
from clusterwright.review.subjects import counted

BOTH_NODES = ("workloads.finetune.train.gpus=16", "workloads.finetune.train.parallel={dp: 16}", "workloads.chat=")


def only(rule: str, *changes: str) -> Finding:
    (found,) = findings(rule, *changes)
    return found


def new_errors(*changes: str) -> set[str]:
    """Rules whose errors or undecided errors the changes bring."""
    return {f.rule for f in review(*changes).findings if f.severity is Severity.ERROR}


@pytest.mark.parametrize(
    ("target", "limit", "says", "helps"),
    [
        ("ttft_p95", "100 ms", "prefill", "shorter or cached prompts"),
        ("tpot_p95", "5 ms", "decode step", "memory bandwidth"),
    ],
)
def test_a_latency_that_one_request_misses_is_one_error_with_its_cause(
    target: str, limit: str, says: str, helps: str
) -> None:
    claim = f"acceptance.requirements.chat-{target[:4]}.at_most={limit}"
    changes = (f"workloads.chat.target.{target}={limit}", claim)
    assert new_errors(*changes) == {"latency-unreachable"}
    found = only("latency-unreachable", *changes)
    assert found.path == f"workloads.chat.target.{target}"
    assert found.message.startswith("one request of chat alone takes ")
    assert says in found.message
    assert f"target {target} is {limit}" in found.message
    assert "times as long, at any load" in found.message
    assert helps in found.action
    assert "more replicas do not help" in found.action
    assert not [f for f in review(*changes).findings if "add replicas" in f.action]


def test_a_latency_that_only_the_load_misses_is_a_warning() -> None:
    found = only(
        "latency-unreachable", "workloads.chat.target.tpot_p95=15 ms", "workloads.chat.serve.replica_rate=9 req/s"
    )
    assert found.severity is Severity.WARNING
    assert "at its load; target tpot_p95 is 15 ms" in found.message
    assert "more replicas" in found.action


def test_a_pool_of_spares_is_called_unusable_and_its_consequences_are_not_repeated() -> None:
    found = only("spares-cover-pool", "pools.gpu.spares=9")
    assert found.message == "pool gpu keeps 9 of 2 nodes spare: no usable node is left, nothing is placed on it"
    assert new_errors("pools.gpu.spares=9") == {"spares-cover-pool", "guarantees-exceed-capacity"}
    assert "16 − 16 GPUs kept spare" in only("guarantees-exceed-capacity", "pools.gpu.spares=9").message


def test_a_payload_below_the_weights_names_both() -> None:
    found = only("payload-below-weights", "workloads.chat.payload.size=1 GB")
    assert found.severity is Severity.ERROR
    assert "payload of chat is 1 GB" in found.message
    assert "are 72.66 GB" in found.message


@pytest.mark.parametrize(
    ("price", "severity", "says"),
    [
        ("$3/h", Severity.WARNING, "$3/h for h100-sxm-80 is $0.188/GPU-h"),
        ("$3000/GPU-h", Severity.WARNING, "300 times beyond"),
        ("$4/node-h", Severity.WARNING, "is $0.5/GPU-h"),
        ("$0.80/GPU-h", Severity.NOTE, "2.49 times beyond"),
        ("$0/h", Severity.WARNING, "is $0/GPU-h"),
    ],
)
def test_a_price_of_any_form_is_held_against_the_published_range(price: str, severity: Severity, says: str) -> None:
    found = only("price-off-market", f"pools.gpu.price={price}")
    assert found.severity is severity
    assert says in found.message
    assert "published are $1.99 to $10.00/GPU-h" in found.message


@pytest.mark.parametrize(
    ("ratio", "severity", "says"),
    [
        ("8", Severity.ERROR, "at 8:1 oversubscription is bound by 94"),
        ("2", Severity.WARNING, "a flat ring over 16 GPUs at 2:1 oversubscription gives 200"),
    ],
)
def test_a_floor_is_held_against_what_the_oversubscription_leaves(ratio: str, severity: Severity, says: str) -> None:
    changes = (f"fabric.networks.ib.oversubscription={ratio}",)
    floor, network = only("floor-unattainable", *changes), only("compute-oversubscribed", *changes)
    assert floor.severity is severity
    assert "all-reduce-both-nodes asks 350 GB/s busbw" in floor.message
    assert says in floor.message
    assert "under one leaf switch" in floor.action
    assert f"at {ratio}:1 leaves {400 // int(ratio)} Gb/s of 400 Gb/s per port" in network.message
    assert "all-reduce-both-nodes asks 350 GB/s over 2 nodes" in network.message


def test_in_network_reduction_does_not_lift_a_floor_over_an_oversubscribed_network() -> None:
    changes = ("fabric.networks.ib.oversubscription=8", "fabric.networks.ib.in_network_reduction=true")
    assert "is bound by 100" in only("floor-unattainable", *changes).message


def test_a_workload_over_several_nodes_needs_the_oversubscribed_network() -> None:
    changes = (*BOTH_NODES, "fabric.networks.ib.oversubscription=2", "acceptance.requirements.all-reduce-both-nodes=")
    assert "finetune spans nodes" in only("compute-oversubscribed", *changes).message


def test_a_slow_network_is_held_against_nic_and_training_step() -> None:
    found = only("network-below-nic", "fabric.networks.ib.rate=25 Gb/s")
    assert "ports of 25 Gb/s; connectx-7-400 of pool gpu carries 400 Gb/s (6% of it is used)" in found.message
    slow = only("training-network-slow", *BOTH_NODES, "fabric.networks.ib.rate=25 Gb/s")
    assert "moving its bytes takes at least" in slow.message
    upper = only("training-network-slow", *BOTH_NODES, "fabric.networks.ib.oversubscription=2")
    assert "has no band" in upper.message


def test_a_network_that_takes_most_of_the_step_is_said_to() -> None:
    slow = only("training-network-slow", *BOTH_NODES, "fabric.networks.ib.rate=100 Mb/s")
    assert "exchanges among GPUs take" in slow.message
    assert "beside computation" in slow.message


def test_money_is_compared_at_the_costlier_useful_share() -> None:
    changes = ("economics.utilisation=90%", "economics.shares.idle=5%")
    cheaper = next(f for f in findings("api-cheaper", *changes) if f.message.startswith("chat costs"))
    used = re.search(r"at (\d+)% useful time, from api", cheaper.message)
    assert used
    assert 0 < int(used[1]) < 90
    even = next(f for f in findings("break-even-above-plan", *changes) if f.message.startswith("chat: api"))
    assert f"at the {used[1]}% useful time that the declared load uses" in even.message
    low = [
        f.message for f in findings("break-even-above-plan", "economics.utilisation=10%") if "chat: api" in f.message
    ]
    assert "at the 10% useful time declared" in low[0]


def test_break_even_above_all_time_is_said_as_the_plan_says_it() -> None:
    price = ("economics.alternatives.api.input_price=$0.01/Mtok", "economics.alternatives.api.output_price=$0.01/Mtok")
    said = [f.message for f in findings("break-even-above-plan", *price) if "chat: api" in f.message]
    assert "useful time, which never is" in said[0]
    assert "even at " in said[0]


@pytest.mark.parametrize(("price", "cheaper"), [("$0.10/GPU-h", True), ("$90/GPU-h", False)])
def test_bought_machines_that_are_as_busy_as_ours_have_an_even_price_instead(price: str, cheaper: bool) -> None:
    own = f"economics.alternatives.own={{kind: on-premises, price: {price}, denominator: accepted Mtok}}"
    said = [f.message for f in findings("break-even-above-plan", own) if "chat: own" in f.message]
    assert bool(said) == cheaper
    assert all("GPU-h there, whatever the useful time" in message for message in said)


@pytest.mark.parametrize("field", ["idle", "retries", "failed"])
def test_a_share_that_leaves_nothing_useful_is_an_error_at_its_place(field: str) -> None:
    found = only("nothing-useful", f"economics.shares.{field}=100%")
    assert found.path == f"economics.shares.{field}"
    assert found.severity is Severity.ERROR


def test_an_unlisted_cuda_release_is_undecided() -> None:
    found = only("cuda-above-driver", "software.profiles.gpu-node.cuda='13.9'")
    assert found.undecided
    assert "driver that CUDA 13.9 came with (known: 13.3, 13.2" in found.message


def test_a_reference_to_nothing_offers_no_empty_choice() -> None:
    found = only("queue-unknown", "workloads.chat=", "scheduling.queues=", "workloads.finetune.queue=training")
    assert found.message == "no queue 'training'; declared under scheduling.queues: nothing"
    assert found.action == "declare it under scheduling.queues"
    one = only(
        "priority-unknown", "scheduling.priorities={high: 5}", "workloads.chat=", "workloads.finetune.priority=low"
    )
    assert one.action == "declare it under scheduling.priorities, or use high"


def test_one_is_not_many() -> None:
    assert [counted(n, "node") for n in (0, 1, 2, 1.0, 2.5)] == ["0 nodes", "1 node", "2 nodes", "1 node", "2.5 nodes"]
    assert "its pools have 1 node" in only("survive-above-pool", "pools.gpu.nodes=gpu-001").message
