"""What latencies prove, what binds a replica, and what the network takes of a training step."""

from __future__ import annotations

import pytest

from builders.plans import BASE, gaps, planned, subjects, value
from clusterwright.lib.figures import Figure
from clusterwright.plan.results.refusals import Unplanned

CHAT = planned().workload("chat").service


def test_latencies_are_those_at_the_percentile_of_their_target() -> None:
    assert (CHAT.tpot_is, CHAT.tpot_met) == ("p95", True)
    mean = planned("workloads.chat.target={ttft_p95: 1 s, tpot: 50 ms}").workload("chat").service
    assert mean.tpot_is == "mean"
    assert mean.tpot.value < CHAT.tpot.value
    slow = planned("workloads.chat.target.tpot_p95=10 ms", "workloads.chat.serve.replica_rate=9 req/s")
    assert slow.workload("chat").service.tpot_met is False
    assert "workloads.chat.service.latency" in subjects(slow)


def test_a_mean_meets_a_target_without_percentile() -> None:
    service = planned("workloads.chat.target={tpot: 50 ms, ttft: 1 s}").workload("chat").service
    assert (service.tpot_met, service.ttft_met, service.ttft_is) == (True, True, "mean")


def test_ttft_is_computed_at_the_percentile_of_its_target() -> None:
    assert (CHAT.ttft_is, CHAT.ttft_met) == ("p95", True)


def test_a_target_that_a_request_alone_misses_is_a_misfit_not_a_lack_of_replicas() -> None:
    plan = planned("workloads.chat.target.ttft_p95=100 ms")
    service = plan.workload("chat").service
    assert service.unreachable
    assert service.capacity is None
    assert service.ttft_met is False
    assert subjects(plan) == {"workloads.chat.service.replica_rate"}
    assert "ttft_p95 0.1 s (alone 0.2" in plan.misfits[0].message
    assert "at no rate are the latency targets met" in service.losses[0].reason
    assert not service.losses[0].carries
    assert plan.economics.implied_utilisation is None
    assert all(isinstance(u, Unplanned) for u in plan.economics.units if "chat" in str(u))


@pytest.mark.parametrize(
    ("change", "binds"),
    [
        ("workloads.chat.target.tpot_p95=30 ms", "tpot_p95"),
        ("workloads.chat.target={ttft_p95: 300 ms}", "ttft_p95"),
        ("workloads.chat.target={ttft_p95: 1000 s}", "the cache or the engine's limit"),
    ],
)
def test_what_binds_a_replica_is_named(change: str, binds: str) -> None:
    plan = planned(change)
    assert plan.workload("chat").service.binds == binds
    assert f"{binds} binds" in plan.figures["workloads.chat.service.batch"].basis


def test_the_rate_of_a_replica_can_be_redone_by_hand() -> None:
    plan = planned()
    at = {n: value(plan, f"workloads.chat.service.{n}") for n in ("batch", "step", "prefill", "replica_rate")}
    assert at["replica_rate"] == pytest.approx(at["batch"] / (250 * at["step"] / 1e3), rel=1e-6)
    step = plan.figures["workloads.chat.service.step"]
    assert at["step"] == pytest.approx(sum(f.value for f in step.inputs))
    assert value(plan, "workloads.chat.service.step_layers") == pytest.approx(80 * 0.020)  # 20 µs each
    names = {f.name for f in plan.figures["workloads.chat.service.replica_rate"].inputs}
    assert {"workloads.chat.service.batch", "workloads.chat.service.step"} <= names


# Layouts and engines


@pytest.mark.parametrize(
    ("model", "layout", "words"),
    [
        ("qwen-235b", "{tp: 8, ep: 3}", "128 experts do not divide among 3 expert ranks"),
        ("qwen-235b", "{tp: 4, ep: 8}", "8 expert ranks do not divide the 4 ranks"),
        ("llama-70b", "{tp: 4, ep: 4}", "has no experts"),
        ("llama-70b", "{tp: 3}", "64 attention heads do not divide among 3"),
    ],
)
def test_an_impossible_layout_is_a_misfit_and_takes_no_gpus(model: str, layout: str, words: str) -> None:
    plan = planned(f"workloads.chat.model={model}", f"workloads.chat.serve.parallel={layout}")
    chat = plan.workload("chat")
    assert any(words in m.message and m.path == "workloads.chat.serve.parallel" for m in plan.misfits)
    assert (chat.replicas_wanted, chat.replicas_placed, chat.placement) == (2, 0, ())
    assert isinstance(chat.service.replica_rate, Unplanned)
    assert plan.pools[0].used == 4


def test_what_does_not_fit_its_memory_is_not_placed() -> None:
    chat = planned("workloads.chat.serve.parallel={tp: 1}").workload("chat")
    assert not chat.memory.fits
    assert (chat.replicas_wanted, chat.replicas_placed) == (2, 0)


def test_a_misspelt_engine_is_told_once_with_what_was_meant() -> None:
    plan = planned("workloads.chat.serve.engine=vlm 0.11")
    told = [u for u in plan.unplanned if "vlm" in u.reason]
    assert [u.subject for u in told] == ["workloads.chat.memory"]
    assert "did you mean vllm?" in told[0].reason
    assert told[0].missing == ()
    assert plan.workload("chat").replicas_placed == 2
    assert not plan.misfits


def test_a_known_engine_without_rules_keeps_its_declared_rate() -> None:
    plan = planned("workloads.chat.serve.engine=lmdeploy 0.9", "workloads.chat.serve.replica_rate=9 req/s")
    service = plan.workload("chat").service
    assert service.replica_rate.value == 9
    assert service.losses[0].carries
    assert [u.subject for u in plan.unplanned if "lmdeploy" in u.reason] == ["workloads.chat.memory"]


def test_a_payload_that_nobody_states_is_a_gap() -> None:
    assert "workloads.chat.payload_plan" in gaps(planned("workloads.chat.payload="))


# Network


def test_oversubscription_lowers_references_and_leaves_bounds() -> None:
    plan = planned("fabric.networks.ib.oversubscription=8")
    over = {c.operation: c for c in plan.network.collectives if c.nodes == 2}
    assert (over["all-reduce"].bound.value, over["all-reduce"].reference.value) == (750, 50)
    assert (over["all-to-all"].bound.value, over["all-to-all"].reference.value) == (93.75, 93.75 / 8)
    assert any("oversubscribed 8:1" in text and "leaf of its own" in text for text in plan.limits)
    assert not any("oversubscribed" in text for text in planned().limits)


WIDE = (
    "workloads.finetune.train.gpus=16",
    "workloads.finetune.train.parallel={dp: 16}",
    "workloads.chat=",
    "pools.gpu.nodes=gpu-[1-2]",
)


def job(*changes: str):  # type: ignore[no-untyped-def]
    plan = planned(*WIDE, *changes, text=BASE)
    return plan, plan.workload("finetune").training


def test_a_job_in_one_node_needs_no_network() -> None:
    training = planned().workload("finetune").training
    assert training.network_time is None
    assert not training.upper_limit


def test_fsdp_over_two_nodes_moves_half_the_weights_three_times() -> None:
    plan, training = job()
    moved = 8_030_261_248 * (2 * 2 + 2) / 2
    assert value(plan, "workloads.finetune.training.network_bytes") == pytest.approx(moved / 1e9)
    assert training.network_time.value == pytest.approx(moved / (8 * 50e9))
    assert not training.upper_limit
    assert isinstance(training.tokens_per_s, Figure)
    assert training.tokens_per_s.band == (0.7, 1.35)
    assert not plan.limits


def test_a_slow_network_bounds_the_speed_and_is_no_estimate_any_more() -> None:
    fast, slow = job()[1], job("fabric.networks.ib.rate=1 Gb/s")
    plan, training = slow
    assert training.tokens_per_s.value < fast.tokens_per_s.value / 2
    assert training.tokens_per_s.value <= 64 * 4096 / training.network_time.value
    assert training.tokens_per_s.band is None
    assert any("here it is 1 Gb/s" in text for text in plan.limits)


def test_oversubscription_and_a_missing_network_qualify_the_speed() -> None:
    plan, training = job("fabric.networks.ib.oversubscription=8")
    assert training.tokens_per_s.band is None
    assert training.tokens_per_s.value < job()[1].tokens_per_s.value
    assert training.network_time.value == pytest.approx(8 * job()[1].network_time.value)
    plan, training = job("fabric.networks.ib.roles=[in-band]")
    assert training.network_time is None
    assert training.upper_limit
    assert any("no network is declared" in text for text in plan.limits)


def test_declared_tensor_ranks_over_two_nodes_are_placed_and_timed_with_what_they_cost() -> None:
    plan, training = job("workloads.finetune.train.parallel={tp: 16}")
    assert plan.workload("finetune").replicas_placed == 1
    assert not plan.misfits
    assert training.tokens_per_s.band is None
    assert training.tokens_per_s.value < job("workloads.finetune.train.parallel={tp: 8, dp: 2}")[1].tokens_per_s.value
    exchange = plan.figures["workloads.finetune.training.step_tensor_exchange"]
    told = next(text for text in plan.limits if "16 ranks cross domains of 8" in text)
    assert f"their exchange takes {exchange} of the" in told
