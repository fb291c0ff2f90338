"""FLOP per token, time of a step, fitting constants, a run to its end."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from validation.training_systems import SYSTEMS

from builders.decoders import DEEPSEEK_V3, GPT_OSS, LLAMA, QWEN3_MOE, decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.calibration import CALIBRATED
from clusterwright.physics.training.fitting import Measured, fit_constants
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.runs import Checkpointing, plan_run
from clusterwright.physics.training.speed import TERMS, step_time, step_time_arrays
from clusterwright.physics.training.work import seen, training_work

LLAMA_405B = {"num_hidden_layers": 126, "hidden_size": 16384, "num_attention_heads": 128, "intermediate_size": 53248}


@pytest.mark.parametrize(
    ("facts", "changed", "sequence", "drafts", "tokens_per_s", "tflops"),
    [
        (LLAMA, {}, 8192, False, 37556, 1933),
        (LLAMA, LLAMA_405B, 8192, False, 1048, 2646),
        (QWEN3_MOE, {}, 4096, False, 9015, 1335),
        (DEEPSEEK_V3, {}, 4096, True, 6304, 1640),
        (DEEPSEEK_V3, {}, 4096, False, 4357, 1088),
        (GPT_OSS, {"layer_types": ["sliding_attention", "full_attention"] * 18}, 4096, False, 33166, 1081),
    ],
)
def test_flop_per_token_matches_published_tflops(facts, changed, sequence, drafts, tokens_per_s, tflops) -> None:
    """NVIDIA Megatron-Bridge performance summary, releases 25.11 and 26.06: tokens/s and TFLOP/s of one row."""
    work = training_work(decoder(facts, **changed), sequence, drafts=drafts)
    assert work.total * tokens_per_s / 1e12 == pytest.approx(tflops, rel=0.003)


@pytest.mark.parametrize(("tokens_per_s", "tflops"), [(7481, 2086), (6206, 1731), (2643, 735)])
def test_frozen_weights_take_four_flop_a_parameter(tokens_per_s, tflops) -> None:
    """NVIDIA Megatron-Bridge performance archive, 26.06, LoRA of Llama 3 70B: tokens/s and TFLOP/s, no attention in."""
    large = {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 28672}
    work = training_work(decoder(LLAMA, **large), 4096, frozen=True)
    assert (work.dense + work.head) * tokens_per_s / 1e12 == pytest.approx(tflops, rel=0.005)


def test_adapters_are_faster_than_full_training_and_a_four_bit_base_costs_its_conversion() -> None:
    model, layout = decoder(LLAMA), Layout(dp=8)

    def seconds(**how) -> dict[str, float]:
        recipe = Recipe(framework="torchtitan", sharding="fsdp", recompute="full", **how)
        return dict(step_time(model, layout, recipe, SYSTEMS["DGX-H100"]).terms)

    full, lora, qlora = seconds(), seconds(adapter_rank=16), seconds(adapter_rank=16, base="nf4")
    # Adapters of rank 16 add 42 M parameters' work to 7 G frozen ones'.
    assert lora["dense products"] == pytest.approx(full["dense products"] * (2 / 3 + 41.9e6 / 6.98e9), rel=1e-3)
    # The forward pass that runs again is as long as before: half of what is left.
    whole = full["recomputation"] - full["dense products"] / 3
    assert lora["recomputation"] == pytest.approx(whole + lora["dense products"] / 2)
    assert lora["dequantisation"] == 0
    # Google's Model Garden page on tuning (2024): LoRA is about 66 % faster than QLoRA.
    assert 1.1 < sum(qlora.values()) / sum(lora.values()) < 1.7
    assert qlora["gradients and weights"] < lora["gradients and weights"]
    assert lora["optimizer"] == 0


def test_a_window_cuts_what_a_query_sees() -> None:
    assert seen(4096) == 2048
    assert seen(4096, 4096) == 2048
    assert seen(4096, 128) == sum(min(i, 128) for i in range(1, 4097)) / 4096 - 0.5 * (128 / 4096)


def test_terms_add_up_and_arrays_equal_the_scalar_form() -> None:
    model = decoder(QWEN3_MOE)
    system = SYSTEMS["DGX-GB200"]
    layouts = [Layout(dp=64, ep=8), Layout(tp=2, pp=4, dp=8, ep=16, vp=3), Layout(tp=4, cp=2, dp=8), Layout(pp=8, dp=8)]
    recipe = Recipe(global_batch=512, precision="mxfp8", recompute="full")
    names = ("tp", "pp", "dp", "cp", "vp", "ep")
    arrays = {n: np.array([getattr(layout, n) for layout in layouts]) for n in names}
    micro = np.array([1, 2, 4, 1])
    found = step_time_arrays(model, arrays, recipe, system, micro_batch=micro)
    for layout, batch, seconds in zip(layouts, micro, found, strict=True):
        step = step_time(model, layout, replace(recipe, micro_batch=int(batch)), system)
        assert tuple(name for name, _ in step.terms) == TERMS
        assert step.step_s == math.fsum(v for _, v in step.terms)
        assert seconds == pytest.approx(step.step_s, rel=1e-12)
        assert 0 < step.mfu < 1


def test_the_bubble_is_its_share_of_a_step_of_products_only() -> None:
    model, recipe = decoder(LLAMA), Recipe(global_batch=32, sequence=8192)
    step = step_time(model, Layout(pp=8), recipe, SYSTEMS["DGX-H100"])
    found = dict(step.terms)
    outside = ("gradients and weights", "optimizer", "host transfers")
    inside = step.step_s - sum(found[name] for name in outside)
    assert found["pipeline bubble"] / inside == pytest.approx(7 / (32 + 7))


def test_ranks_that_keep_shares_of_gradients_reduce_them_with_every_micro_batch() -> None:
    found = {}
    for sharding in ("zero1", "zero2", "zero3"):
        recipe = Recipe(framework="deepspeed", sharding=sharding, global_batch=32)
        step = step_time(decoder(LLAMA), Layout(dp=8), recipe, SYSTEMS["DGX-H100"])
        found[sharding] = dict(step.terms)["gradients and weights"]
    assert found["zero2"] / found["zero1"] == pytest.approx((4 * 2 + 2) / (2 + 2))
    assert found["zero3"] / found["zero1"] == pytest.approx(4 * (2 * 2 + 2) / (2 + 2))


def test_context_ranks_launch_attention_once_for_the_keys_of_each() -> None:
    model = decoder(LLAMA)
    launches = [
        dict(step_time(model, Layout(cp=cp, dp=8), Recipe(global_batch=64), SYSTEMS["DGX-H100"]).terms)["launches"]
        for cp in (1, 4)
    ]
    assert launches[1] / launches[0] == pytest.approx((2 + 0.4 * 3) / 2)


def test_recomputing_whole_layers_adds_a_forward_pass() -> None:
    model, layout = decoder(LLAMA), Layout(dp=8)
    plain, again = (
        dict(step_time(model, layout, Recipe(recompute=how), SYSTEMS["DGX-H100"]).terms) for how in ("none", "full")
    )
    layers = ("dense products", "attention", "elementwise passes", "launches")
    assert again["recomputation"] == pytest.approx(sum(plain[name] for name in layers) / 3)
    assert plain["recomputation"] == 0


def test_offload_moves_gradients_and_weights_and_lets_the_host_step() -> None:
    system, model = SYSTEMS["DGX-H100"], decoder(LLAMA)
    recipe = Recipe(framework="deepspeed", sharding="zero3", offload="optimizer", global_batch=8)
    found = dict(step_time(model, Layout(dp=8), recipe, system).terms)
    share = (model.parameters - 0) / 8
    assert found["optimizer"] == 0
    assert found["host transfers"] == pytest.approx(share * (6 / system.host_bytes_s + 28 / system.host_memory_bytes_s))


def test_fit_recovers_constants_that_made_the_runs() -> None:
    dense, moe = decoder(LLAMA), decoder(QWEN3_MOE)
    truth = replace(CALIBRATED, compute={}, host={}, formats={}, software={"26.06": 1.0})
    runs = []
    for model, layout in (
        (dense, Layout(dp=8)),
        (dense, Layout(tp=4, dp=8)),
        (moe, Layout(dp=64, ep=8)),
        (moe, Layout(pp=4, dp=16, ep=16)),
    ):
        for batch in (1, 2, 8):
            for sequence in (2048, 8192):
                recipe = Recipe(micro_batch=batch, global_batch=1024, sequence=sequence, precision="fp8", graphs=True)
                step = step_time(
                    model, layout, recipe, SYSTEMS["DGX-GB200"], truth.constants("DGX-GB200", "fp8", "26.06")
                )
                runs.append(Measured(model, layout, recipe, SYSTEMS["DGX-GB200"], "26.06", step.step_s))
    fitted = fit_constants(runs, "made up", "2026-11-30")
    assert fitted.error[0] < 0.02
    unseen = Recipe(micro_batch=4, global_batch=512, sequence=4096, precision="fp8", graphs=True)
    layout = Layout(tp=2, pp=2, dp=16, ep=8)
    seconds = [
        step_time(moe, layout, unseen, SYSTEMS["DGX-GB200"], c.constants("DGX-GB200", "fp8", "26.06")).step_s
        for c in (truth, fitted)
    ]
    assert seconds[1] == pytest.approx(seconds[0], rel=0.1)
    with pytest.raises(ValueError, match="no run"):
        fit_constants([], "", "")


def test_releases_are_looked_up_by_age() -> None:
    known = CALIBRATED.software
    oldest, newest = min(known), max(known)
    for release, expected in (("", newest), ("99.01", newest), ("20.01", oldest), (oldest, oldest)):
        launch = CALIBRATED.constants("DGX-GB200", "fp8", release).launch_s
        assert launch == pytest.approx(CALIBRATED.base["launch_s"] * known[expected])


def test_a_run_loses_checkpoints_and_failures() -> None:
    """Llama 3 405B: 15.6 T tokens on 16,384 GPUs at 3.79 failures per 1,000 node-days (arXiv:2407.21783)."""
    facts = (15.6e12, 16384 * 165.0, 405.85e9, 16384, 2048, 3.79, 600.0)
    slow = plan_run(*facts, Checkpointing(write_bytes_s=100e9))
    fast = plan_run(*facts, Checkpointing(write_bytes_s=100e9, asynchronous=True))
    assert slow.checkpoint_bytes == pytest.approx(5.6819e12)
    assert slow.stall_s == pytest.approx(56.819)
    assert fast.stall_s == pytest.approx(5.6819e12 / 16384 / 55e9)
    assert fast.interval_s >= fast.write_s
    assert slow.ideal_days < fast.days < slow.days
    assert slow.goodput == pytest.approx(slow.ideal_days / slow.days)


def test_experts_without_graphs_wait_for_the_host_and_dense_layers_do_not() -> None:
    system, eager = SYSTEMS["DGX-GB200"], CALIBRATED.base["eager"]
    for facts, factor in ((QWEN3_MOE, eager), (LLAMA, 1.0)):
        model, layout = decoder(facts), Layout(dp=8)
        launches = [
            dict(step_time(model, layout, Recipe(graphs=graphs), system).terms)["launches"] for graphs in (True, False)
        ]
        assert launches[1] / launches[0] == pytest.approx(factor)
    assert eager > 1
    plain = CALIBRATED.constants("DGX-GB200", "bf16", framework="deepspeed").launch_s
    assert plain == CALIBRATED.constants("DGX-GB200", "bf16", framework="deepspeed", graphs=False).launch_s
