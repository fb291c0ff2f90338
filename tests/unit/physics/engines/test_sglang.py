"""SGLang's budget against logs, its defaults and its command line."""

import math
from dataclasses import replace

import pytest

from builders.decoders import deepseek_v3, llama, llama_70b
from clusterwright.model.decoders import Attention, CompressedAttention, Decoder, Index, Layer, Mlp, StateMixer
from clusterwright.physics.engines.advice import Case
from clusterwright.physics.engines.results import Gpu
from clusterwright.physics.engines.sglang import (
    Available,
    SglangSettings,
    default_batch,
    default_fraction,
    default_requests,
    plan_memory,
    request_table_gib,
    rest_gib,
)
from clusterwright.physics.layouts import Layout

H200 = Gpu("H200", 139.81)
H100 = Gpu("H100", 79.1)


def test_rest_is_what_loading_left_above_the_reserve() -> None:
    """sgl-project/sglang#6753: 871,371 tokens of Llama-3-8B in 106.36 GiB."""
    available = Available(139.2, 124.23)
    assert rest_gib(available, 0.8717961) == pytest.approx(106.36, abs=0.03)
    settings = SglangSettings(version=(0, 4), memory_share=0.8717961, max_model_len=8192, eager=True)
    plan = plan_memory(llama(), Layout(), H200, settings, available=available)
    assert plan.kv_tokens == pytest.approx(871_371, rel=5e-4)
    assert plan.fits


def test_request_table_is_requests_times_context() -> None:
    """sgl-project/sglang#3451: 2,049 × 163,844 × 4 B = 1.25 GiB."""
    assert request_table_gib(2049, 163840) == pytest.approx(1.25, abs=0.001)


def test_hybrids_divide_the_rest_between_states_and_cache() -> None:
    """SGLang on Qwen3.5-9B, two ranks: of 9.49 GiB states get 4.48 (186 slots), cache 5.00 (327,310 tokens)."""
    state = StateMixer("gated-delta", 32, 32 * 128 * 128, 3 * 8192)
    full = Attention(16, 4, 256, 256)
    layers = tuple(Layer(full if i % 4 == 3 else state, Mlp(8), ()) for i in range(32))
    hybrid = Decoder("h", "", 4096, 248320, 262144, layers, (), tied=False)
    settings = SglangSettings(memory_share=0.8)
    plan = plan_memory(hybrid, Layout(tp=2), Gpu("4090", 23.5), settings, available=Available(22.93, 14.08))
    assert plan.term("states") == pytest.approx(4.5, abs=0.02)
    assert plan.kv_tokens == pytest.approx(327_310, rel=0.002)
    assert plan.max_concurrency == pytest.approx(327_310 / 262144, rel=0.01)


def test_terms_sum_to_the_gpu_exactly() -> None:
    plan = plan_memory(llama_70b(), Layout(tp=4), H100)
    assert math.fsum(gib for _, gib in plan.terms) == plan.reported_gib


def test_draft_layers_have_a_pool_of_their_own() -> None:
    settings = SglangSettings(speculative_tokens=3, memory_share=0.85)
    plan = plan_memory(deepseek_v3(), Layout(tp=8), H200, settings)
    plain = plan_memory(deepseek_v3(), Layout(tp=8), H200, SglangSettings(memory_share=0.85))
    assert plan.kv_tokens == plain.kv_tokens
    assert plan.term("draft pool") == pytest.approx(plan.kv_tokens * 576 * 2 / 2**30)
    assert plan.term("draft weights") > 1


def test_attention_groups_multiply_the_pool() -> None:
    settings = SglangSettings(memory_share=0.85)
    one = plan_memory(deepseek_v3(), Layout(tp=8), H200, settings)
    eight = plan_memory(deepseek_v3(), Layout(tp=8, attention_dp=8, ep=8), H200, settings)
    assert eight.kv_tokens > 4 * one.kv_tokens
    assert "--enable-dp-attention" in eight.flags


def test_starts_with_fewer_tokens_than_one_sequence() -> None:
    settings = SglangSettings(version=(0, 4), memory_share=0.85, max_model_len=131072, eager=True)
    plan = plan_memory(llama(), Layout(), Gpu("x", 22.0), settings)
    assert plan.fits
    assert plan.max_context < 131072
    assert "no request may be longer" in plan.notes[0]


def test_a_pool_below_the_longest_sequence_is_too_small_where_one_must_be_served() -> None:
    settings = SglangSettings(version=(0, 4), memory_share=0.85, max_model_len=131072, eager=True, serves_longest=True)
    plan = plan_memory(llama(), Layout(), Gpu("x", 22.0), settings)
    assert not plan.fits
    assert f"{plan.max_context:,} tokens" in plan.why[0]
    shorter = next(change for change in plan.advice if change.what.startswith("at most"))
    assert shorter.fits
    assert shorter.max_context == plan.max_context


def test_a_negative_rest_is_refused_with_advice() -> None:
    plan = plan_memory(llama_70b(), Layout(), H100, larger=(H200,))
    assert "no cache is left" in plan.why[0]
    assert any(change.fits for change in plan.advice)


def test_a_reserve_that_holds_no_graphs_is_refused() -> None:
    plan = plan_memory(llama(), Layout(), H100, SglangSettings(memory_share=0.998))
    assert "the reserve is" in plan.why[0]


@pytest.mark.parametrize(
    ("gpu", "tp", "version", "fraction"),
    [  # SGLang server_args: by ranks before; (total − reserve) ÷ total since
        (79.1, 1, (0, 4), 0.88),
        (79.1, 8, (0, 4), 0.81),
        (79.1, 16, (0, 4), 0.79),
        (80.0, 1, (0, 5), round((80 - 0.5 - 12 - 0.5 - 0.125) / 80, 3)),
        (23.5, 1, (0, 5), round((23.5 - 0.5 - 3 - 48 / 1024 - 0.125) / 23.5, 3)),
    ],
)
def test_default_fraction(gpu: float, tp: int, version: tuple[int, int], fraction: float) -> None:
    assert default_fraction(Case(llama(), Layout(tp=tp), Gpu("x", gpu), SglangSettings(version=version))) == fraction


def test_default_batches_and_requests() -> None:
    assert default_batch(22.0, 4) == (2048, 80)
    assert default_batch(139.8, 8) == (8192, 512)
    assert default_batch(191.0, 1) == (16384, 512)
    assert default_requests(1_000_000, 8192) == 4096
    assert default_requests(10_000, 8192) == 2048


def test_command_line_realises_the_plan() -> None:
    settings = SglangSettings(memory_share=0.85, max_model_len=8192, kv_format="fp8", model="m", block_tokens=64)
    plan = plan_memory(llama(), Layout(tp=2), H100, settings)
    assert " ".join(plan.flags) == (
        "python -m sglang.launch_server --model-path m --tp-size 2 --context-length 8192 --mem-fraction-static 0.85 "
        "--chunked-prefill-size 8192 --kv-cache-dtype fp8_e4m3 --page-size 64"
    )


def test_windows_beside_compressed_entries_take_a_share_of_tokens() -> None:
    mixer = CompressedAttention(64, 512, 64, 4, 128, Index(64, 128, 512))
    base = llama()
    decoder = replace(base, layers=tuple(replace(x, mixer=mixer) for x in base.layers))
    plan = plan_memory(decoder, Layout(), H200)
    assert plan.kv_bytes_per_token == pytest.approx(32 * ((584 + 132) / 4 + 0.8 * 584))


def test_old_releases_switch_expert_groups_on() -> None:
    settings = SglangSettings(version=(0, 4), memory_share=0.85)
    assert "--enable-ep-moe" in plan_memory(deepseek_v3(), Layout(tp=8, ep=8), H200, settings).flags
