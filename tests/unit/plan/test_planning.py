import math

import pytest

from builders.plans import CATALOGUE, document, gaps, planned, subjects, value
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.figures import Origin, evaluate
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.speed import step_time
from clusterwright.physics.training.systems import system_of
from clusterwright.physics.training.work import training_work
from clusterwright.plan.models import decoder_of
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.payloads import PayloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.trainings import CheckpointPlan

PLAN = planned()
CHAT, TUNE = PLAN.workload("chat"), PLAN.workload("finetune")


def test_the_base_architecture_is_planned_whole_and_holds():
    assert PLAN.fits
    assert PLAN.unplanned == ()


def test_two_replicas_on_two_nodes_and_the_job_on_one():
    assert (CHAT.replicas_wanted, CHAT.replicas_placed) == (2, 2)
    assert {a.node for a in CHAT.placement} == {"gpu-1", "gpu-2"}
    assert len({a.node for a in TUNE.placement}) == 1
    assert PLAN.pools[0].used == 12


def test_one_replica_carries_the_load_and_all_is_placeable_without_a_node():
    assert CHAT.service.replicas_for_load == 1
    assert CHAT.service.replicas_for_failures == 2
    assert [(x.surviving, x.placeable, x.carries) for x in CHAT.service.losses] == [(1, 1, True)]
    assert [(x.placeable, x.carries) for x in TUNE.training.losses] == [(1, True)]


# What cannot be planned


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("workloads.chat.model=deepseek", "mla attention"),
        ("workloads.chat.model=nobody/knows-it", "no model 'nobody/knows-it'"),
        ("pools.gpu.shape=", "names no node shape"),
        ("pools.gpu.shape=hgx-h10", "no node shape 'hgx-h10'; did you mean hgx-h100?"),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_made_up(change, words):
    plan = planned(change)
    assert any(words in u.reason for u in plan.unplanned)
    assert not isinstance(plan.workload("chat").memory, MemoryPlan)


def test_a_model_without_formula_is_placed_by_its_declared_layout():
    chat = planned("workloads.chat.model=deepseek").workload("chat")
    assert chat.replicas_placed == 2
    assert isinstance(chat.payload, Unplanned)


def test_a_declared_size_makes_the_payload_of_an_unknown_model():
    plan = planned("workloads.chat.model=deepseek", "workloads.chat.payload.size=700 GB")
    assert plan.workload("chat").payload.required_rate.value == pytest.approx(2 * 700 / 90)


def test_memory_that_no_source_gives_is_not_derived_from_the_label():
    plan = planned("pools.gpu.hardware={gpu: mystery, gpus: 8}")
    assert isinstance(plan.workload("chat").memory, Unplanned)
    assert "pools.gpu.gpu.reported_memory" in gaps(plan)


def test_pipelined_inference_has_memory_and_a_rate():
    plan = planned("workloads.chat.serve.parallel={tp: 4, pp: 2}", "workloads.chat.serve.replicas=1")
    chat = plan.workload("chat")
    assert chat.memory.fits
    assert chat.service.replica_rate.value > CHAT.service.replica_rate.value


def test_latent_attention_and_other_engines_have_a_rate():
    for engine in ("vllm 0.11", "sglang 0.5", "tensorrt-llm 1.0"):
        plan = planned(
            "workloads.chat.model=deepseek-like",
            "workloads.chat.serve.parallel={tp: 1, dp: 8, ep: 8}",
            f"workloads.chat.serve.engine={engine}",
        )
        service = plan.workload("chat").service
        assert service.replica_rate.value > 0, engine
        assert service.ttft.value > 0


def test_no_workload_and_no_pool_is_an_empty_plan():
    plan = planned(text="apiVersion: clusterwright/v1alpha1\ncluster: bare\n")
    assert plan.workloads == ()
    assert plan.payload_rate is None
    assert isinstance(plan.economics, Unplanned)


# Layouts


def test_the_cheapest_layout_that_carries_the_load_is_taken_when_none_is_declared():
    plan = planned("workloads.chat.serve.parallel=")
    chat = plan.workload("chat")
    assert chat.layout.tp in (2, 4)
    assert not chat.layout.declared
    reasons = {c.level: c for c in chat.choices}
    assert not reasons["gpu"].feasible
    assert "exceed the budget by" in reasons["gpu"].reason
    assert "takes the replica" in reasons["node"].failure_domain


def test_tensor_parallelism_does_not_leave_the_nvlink_domain():
    plan = planned("pools.gpu.shape=one-h100", "workloads.chat.serve.parallel={tp: 2}")
    assert any("leaves the domain" in m.message for m in plan.misfits)


def test_gpus_that_the_workload_does_not_accept():
    plan = planned("workloads.chat.gpus=[mystery]")
    assert any("accepts mystery" in m.message for m in plan.misfits)


# Placement together


def test_workloads_compete_for_the_same_gpus():
    plan = planned("workloads.finetune.train.gpus=16", "workloads.finetune.train.parallel={dp: 16}")
    assert subjects(plan) & {"workloads.finetune.placement", "workloads.chat.placement"}


def test_spares_carry_nothing_until_a_node_is_lost():
    plan = planned("pools.gpu.nodes=gpu-[1-3]", "pools.gpu.spares=1")
    assert {a.node for w in plan.workloads for a in w.placement} == {"gpu-1", "gpu-2"}
    assert plan.workload("finetune").training.losses[0].carries


def test_two_replicas_that_both_need_their_full_capacity_fail():
    plan = planned("workloads.chat.serve.rate=16 req/s")
    assert plan.workload("chat").service.replicas_for_load == 2
    loss = next(m for m in plan.misfits if m.subject == "workloads.chat.service.losses")
    assert "1 replica runs on, 2 carry the load" in loss.message


def test_more_load_than_the_placed_replicas_carry():
    assert "workloads.chat.service.capacity" in subjects(planned("workloads.chat.serve.rate=60 req/s"))


def test_a_target_that_no_rate_meets():
    plan = planned("workloads.chat.target.tpot_p95=5 ms")
    assert any("at no rate" in m.message for m in plan.misfits)


def test_a_declared_replica_rate_beats_the_estimate():
    plan = planned("workloads.chat.serve.replica_rate=3 req/s")
    assert value(plan, "workloads.chat.service.replica_rate") == 3
    assert plan.figures["workloads.chat.service.replica_rate"].origin is Origin.DECLARED
    assert plan.workload("chat").service.replicas_for_load == 3


def test_more_load_never_makes_answers_faster():
    steps = [planned(f"workloads.chat.serve.rate={rate} req/s").workload("chat").service for rate in (1, 4, 8, 16)]
    assert [s.tpot.value for s in steps] == sorted(s.tpot.value for s in steps)
    assert [s.ttft.value for s in steps] == sorted(s.ttft.value for s in steps)


def test_estimates_print_their_band_and_what_it_was_validated_on():
    service = CHAT.service
    assert (service.tpot.band, service.ttft.band) == ((0.8, 1.25), (0.67, 1.5))
    assert "mean error 50 % for TTFT and 25 % for TPOT on runs held out (model by model)" in service.tpot.basis
    assert PLAN.figures["published.calibration.vllm-h100.math_share"].value == 0.5
    longer = planned("workloads.chat.serve.in=6000 tokens", "workloads.chat.serve.in_p95=7000 tokens")
    assert any("prompt 6,000 outside 10 to 5,000" in text for text in longer.limits)


def test_without_a_calibration_of_the_gpu_nothing_is_said_to_be_validated():
    plan = plan_architecture(document(), Catalogue({**CATALOGUE.raw, "calibrations": {}}))
    service = plan.workload("chat").service
    assert service.tpot.band is None
    assert "not validated" in service.tpot.basis
    assert "assumed.serving.vllm.math_share" in {a.leaf.name for a in plan.assumptions}


# Payload


def test_eight_replicas_of_120_gb_in_90_seconds_need_10_7_gb_s():
    plan = planned("workloads.chat.payload={source: object, within: 90 s, size: 120 GB, readers: 8}")
    payload = plan.workload("chat").payload
    assert payload.required_rate.value == pytest.approx(10.6667, abs=1e-4)
    assert payload.required_rate.origin is Origin.DECLARED
    assert payload.meets_rate


def test_source_network_and_cache_are_held_against_the_payload():
    payload = CHAT.payload
    rates = {k.kind: k.rate.value for k in payload.links}
    inside = {kind: rates.pop(kind) for kind in ("pcie", "loader")}
    assert rates == {"source": 20, "network": 2 * 2 * 200 / 8, "cache": 2 * 25}
    assert inside["pcie"] == pytest.approx(8 * 0.8 * 63.015, rel=1e-3)  # PCIe 5.0 x16 of each placed GPU
    assert inside["loader"] == pytest.approx(8 * 15 / 4.88)  # GB/s of the fastest published loader per GPU
    assert payload.binding.kind == "source"
    assert payload.cold_start.value == pytest.approx(payload.size.value * 2 / 20 + 60)
    assert payload.cold_start.band is None
    assert payload.cold_start_cached.value < payload.cold_start.value


def test_without_a_stated_loader_the_engines_own_is_assumed_and_the_band_reaches_to_the_fastest():
    payload = planned("workloads.chat.payload.loader=").workload("chat").payload
    assert payload.binding.kind == "loader"
    assert payload.meets_rate  # a faster loader can be taken
    loading = payload.size.value * 2 / (8 * 15 / 47.99)
    assert payload.cold_start.value == pytest.approx(60 + loading)
    assert payload.cold_start.origin is Origin.ASSUMED
    fastest = 60 + payload.size.value * 2 / 20  # then the source binds
    assert payload.cold_start.band == (pytest.approx(fastest / (60 + loading), abs=0.005), 1.0)


def test_the_command_line_loads_as_the_payload_declares():
    flags = PLAN.workload("chat").memory.flags
    assert flags[flags.index("--load-format") + 1] == "runai_streamer"
    assert "--load-format" not in planned("workloads.chat.payload.loader=").workload("chat").memory.flags
    other = planned("workloads.chat.serve.engine=sglang 0.5")
    assert any("not known to load weights with runai-streamer" in limit for limit in other.limits)


def test_a_missed_cold_start_says_which_rate_would_do():
    plan = planned("storage.stores.object.read=0.4 GB/s", "workloads.chat.target.cold_start=2 min")
    payload = plan.workload("chat").payload
    assert payload.meets_target is False
    assert payload.rate_for_target.value == pytest.approx(payload.size.value * 2 / 60)
    assert any("would have to give" in m.message for m in plan.misfits)
    hopeless = planned("workloads.chat.target.cold_start=30 s")
    assert any("start alone take longer" in m.message for m in hopeless.misfits)


def test_a_service_without_place_is_not_loaded_by_one_gpu():
    payload = planned("pools.gpu.spares=9").workload("chat").payload
    assert {k.kind: k.rate.value for k in payload.links}["loader"] == pytest.approx(8 * 15 / 4.88)


def test_an_oversubscribed_network_binds():
    plan = planned("fabric.networks.eth.oversubscription=16", "fabric.networks.eth.ports=1")
    payload = plan.workload("chat").payload
    assert payload.binding.kind == "network"
    assert payload.binding.rate.value == pytest.approx(2 * 25 / 16)


def test_a_rate_that_is_not_stated_is_unknown_not_enough():
    plan = planned("storage.stores.object.read=")
    payload = plan.workload("chat").payload
    assert payload.meets_rate is None
    assert payload.cold_start is None
    assert "storage.stores.object.read" in {m for u in plan.unplanned for m in u.missing}


def test_a_slow_source_and_a_missed_cold_start():
    plan = planned("storage.stores.object.read=0.4 GB/s")
    assert "workloads.chat.payload_plan" in subjects(plan)
    assert plan.workload("chat").payload.meets_target is False


def test_all_workloads_at_once():
    both = [w.payload.required_rate.value for w in PLAN.workloads if isinstance(w.payload, PayloadPlan)]
    assert PLAN.payload_rate.value == pytest.approx(sum(both))


# Checkpoints and training


def test_checkpoint_of_an_8b_model():
    checkpoint = TUNE.checkpoint
    assert isinstance(checkpoint, CheckpointPlan)
    assert checkpoint.size.value == pytest.approx(14 * 8.030261248)
    assert checkpoint.write_time.value == pytest.approx(checkpoint.size.value / 10)
    assert checkpoint.restore.value == pytest.approx(checkpoint.size.value / 20)
    pcie = 32e9 * 128 / 130 * 16 / 8 / 1e9
    assert checkpoint.stall.value == pytest.approx(checkpoint.size.value / 4 / (pcie * 0.8))
    assert checkpoint.lost_work.value == pytest.approx(1500 + checkpoint.write_time.value)


def test_a_synchronous_checkpoint_stalls_for_its_write():
    plan = planned("workloads.finetune.train.checkpoint.mode=sync", "storage.stores.object.write=1 GB/s")
    checkpoint = plan.workload("finetune").checkpoint
    assert checkpoint.stall.value == checkpoint.write_time.value
    assert any("stalls training" in m.message for m in plan.misfits)


def test_an_interval_shorter_than_the_write():
    plan = planned("workloads.finetune.train.checkpoint.every=10 s")
    assert any("longer than the interval" in m.message for m in plan.misfits)


def test_work_lost_beyond_the_target():
    assert any("may lose" in m.message for m in planned("workloads.finetune.train.checkpoint.every=30 min").misfits)


def test_time_to_target_and_a_missed_deadline():
    training = TUNE.training
    speed = 64 * 4096 / value(PLAN, "workloads.finetune.training.computed_step_time")
    assert training.tokens_per_s.value == pytest.approx(speed)
    assert training.tokens_per_s.band == (0.70, 1.35)
    assert training.time_to_target.value == pytest.approx(200e6 / speed / training.goodput.value / 3600)
    assert 0.99 < training.goodput.value < 1
    assert any("deadline" in m.message for m in planned("workloads.finetune.train.deadline=1 h").misfits)


def test_the_terms_of_a_step_are_those_of_the_estimator_and_add_up():
    step = PLAN.figures["workloads.finetune.training.computed_step_time"]
    assert sum(f.value for f in step.inputs) == pytest.approx(step.value)
    entry = CATALOGUE.model("llama-8b")
    system = system_of(CATALOGUE.gpu("h100"), domain=8, link_bytes_s=450e9, nic_bytes_s=math.inf)
    recipe = Recipe(
        framework="torchtitan", sharding="fsdp", sequence=4096, micro_batch=1, global_batch=64, recompute="full"
    )
    estimate = step_time(decoder_of(CATALOGUE, entry), Layout(dp=4), recipe, system)
    assert step.value == pytest.approx(estimate.step_s, rel=1e-9)
    assert {f.name.rpartition("step_")[2].replace("_", " ") for f in step.inputs} == {n for n, v in estimate.terms if v}


def test_a_declared_utilisation_gives_the_speed():
    plan = planned("workloads.finetune.train.mfu=40%")
    work = training_work(decoder_of(CATALOGUE, CATALOGUE.model("llama-8b")), 4096).total
    assert plan.workload("finetune").training.tokens_per_s.value == pytest.approx(4 * 989e12 * 0.4 / work)


def test_without_checkpoints_nothing_is_promised_of_a_run_without_an_end():
    plan = planned("workloads.finetune.train.checkpoint=", "workloads.finetune.train.tokens=")
    training = plan.workload("finetune").training
    assert training.goodput is None
    assert training.time_to_target is None


def test_a_declared_step_time_gives_the_speed():
    plan = planned("workloads.finetune.train.step_time=10 s")
    assert plan.workload("finetune").training.tokens_per_s.value == 64 * 4096 / 10


def test_a_layout_that_contradicts_the_gpus():
    assert any("gpus says 4" in m.message for m in planned("workloads.finetune.train.parallel.dp=8").misfits)


# Network


def test_bounds_over_two_nodes():
    over = {c.operation: c for c in PLAN.network.collectives if c.nodes == 2}
    assert over["all-reduce"].bound.value == 750
    assert over["all-reduce"].reference.value == 400
    assert over["all-to-all"].bound.value == 93.75
    assert over["all-to-all"].reference.value == 93.75
    inside = {c.operation: c for c in PLAN.network.collectives if c.nodes == 1}
    assert inside["all-gather"].bound.value == 450
    assert inside["all-reduce"].bound.value == 700


def test_in_network_reduction_lifts_the_bound_of_all_reduce_only():
    plan = planned("fabric.networks.ib.in_network_reduction=true")
    over = {c.operation: c for c in plan.network.collectives if c.nodes == 2}
    assert math.isinf(over["all-reduce"].bound.value)
    assert over["all-gather"].bound.value == 750
    assert any("no bound" in text for text in plan.limits)


def test_no_compute_network_no_bound():
    plan = planned("fabric.networks.ib.roles=[in-band]")
    assert "pools.gpu.nic_rate" in gaps(plan)


# Figures


def test_leaves_say_where_they_come_from():
    for name, figure in PLAN.figures.items():
        assert figure.basis, name
        if figure.own_origin is Origin.CATALOGUE:
            assert "20" in figure.basis or "arXiv" in figure.basis, f"{name} has no date"
        if figure.own_origin is Origin.DECLARED and not name.startswith(("workloads.", "economics.", "pools.")):
            assert "cluster.yaml" in figure.basis, name


def test_every_declared_leaf_has_its_place_in_the_file():
    assert PLAN.figures["workloads.chat.serve.rate"].basis == "cluster.yaml:13:13"


def test_assumptions_are_ranked_by_effect():
    effects = [a.effect for a in PLAN.assumptions]
    assert effects == sorted(effects, reverse=True)
    assert all(a.leaf.own_origin is Origin.ASSUMED and a.on in PLAN.figures for a in PLAN.assumptions)
    assert "assumed.kv_bytes" in {a.leaf.name for a in PLAN.assumptions}


def test_every_figure_can_be_computed_again_from_its_leaves():
    for figure in PLAN.figures.values():
        assert evaluate(figure, {}) == pytest.approx(figure.value) or math.isinf(figure.value)


def test_the_same_input_gives_the_same_plan():
    again = planned()
    assert {n: f.value for n, f in again.figures.items()} == {n: f.value for n, f in PLAN.figures.items()}


def test_a_mixture_of_experts_is_planned():
    plan = planned("workloads.chat.model=qwen-235b", "workloads.chat.serve.parallel={tp: 4}")
    chat = plan.workload("chat")
    assert chat.memory.fits
    assert chat.memory.kv_bytes_per_token.value == 2 * 94 * 1 * 128 * 2 / 1024
    assert chat.service.replica_rate.value > 0


def test_a_gpu_that_the_catalogue_does_not_know_is_named_not_ignored():
    plan = planned("workloads.chat.gpus=[h100, h1000]")
    assert any("no GPU 'h1000'" in u.reason for u in plan.unplanned)
    assert plan.workload("chat").replicas_placed == 2


def test_shared_and_mixed_pools_are_told():
    plan = planned("pools.gpu.sharing=mig", "pools.gpu.mixed=true")
    assert {"pool gpu shares GPUs by mig; it is planned as whole GPUs"} < set(plan.limits)


def test_megatron_zero1_is_its_distributed_optimizer():
    plan = planned(
        "workloads.finetune.train.framework=megatron-core 0.14",
        "workloads.finetune.train.sharding=zero1",
        "workloads.finetune.train.parallel={dp: 4}",
    )
    parts = dict(plan.workload("finetune").memory.parts)
    states = sum(parts[k].value for k in ("weights", "gradients", "optimizer"))
    assert states == pytest.approx((6 + 12 / 4) * 8_030_261_248 / 2**30)
