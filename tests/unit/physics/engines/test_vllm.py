"""vLLM's budget, what it says when a model does not fit, and its command line."""

import math
from dataclasses import replace

import pytest

from builders.decoders import deepseek_sparse, deepseek_v3, gpt_oss, llama, llama_70b, qwen3_moe
from clusterwright.model.decoders import Decoder
from clusterwright.physics.engines.results import Gpu, Measured
from clusterwright.physics.engines.vllm import VllmSettings, plan_memory
from clusterwright.physics.layouts import Layout

H100 = Gpu("H100 80GB", 79.1)
H200 = Gpu("H200", 139.72)
SMALL = Gpu("RTX 3090", 23.58)


def test_terms_sum_to_the_gpu_exactly() -> None:
    plan = plan_memory(llama(), Layout(), H100)
    assert math.fsum(gib for _, gib in plan.terms) == plan.reported_gib
    assert [name for name, _ in plan.terms] == [
        "weights",
        "activations",
        "outside PyTorch",
        "CUDA graphs",
        "KV cache",
        "not used",
    ]


def test_pool_is_the_identity_of_the_log() -> None:
    """vllm-project/vllm#10517: 23.58 GiB × 0.9 − 14.9888 − 2.07 − 0.35 → 3.81 GiB, 1,952 blocks."""
    log = Measured(weights_gib=14.9888, activation_gib=2.07, non_torch_gib=0.35)
    settings = VllmSettings(version=(0, 6), max_model_len=20000)
    plan = plan_memory(llama(), Layout(), SMALL, settings, measured=log)
    assert plan.kv_pool_gib == pytest.approx(3.81, abs=0.01)
    assert plan.kv_tokens == pytest.approx(1952 * 16, abs=48)
    assert plan.max_concurrency == pytest.approx(1.56, abs=0.01)


def test_v0_profiles_a_whole_prompt_until_chunks_switch_on() -> None:
    """vllm-project/vllm#10517: the same card starts at 35,000 tokens and not at 29,000."""
    whole = plan_memory(llama(), Layout(), SMALL, VllmSettings(version=(0, 6), max_model_len=29000))
    chunked = plan_memory(llama(), Layout(), SMALL, VllmSettings(version=(0, 6), max_model_len=35000))
    assert not whole.fits
    assert chunked.kv_pool_gib > whole.kv_pool_gib


def test_graphs_are_inside_the_share_from_0_21_on() -> None:
    before, after = (
        plan_memory(llama(), Layout(), H100, VllmSettings(version=v, memory_share=0.9)) for v in ((0, 20), (0, 21))
    )
    assert before.kv_pool_gib - after.kv_pool_gib == pytest.approx(after.term("CUDA graphs"), abs=1e-5)


def test_default_share_and_sampler_follow_the_release() -> None:
    old, late = (plan_memory(llama(), Layout(), H100, VllmSettings(version=v)) for v in ((0, 11), (0, 22)))
    assert (old.memory_share, late.memory_share) == (0.90, 0.92)
    assert late.term("activations") < old.term("activations")


def test_stage_with_the_fewest_blocks_binds() -> None:
    plan = plan_memory(deepseek_v3(), Layout(tp=8, pp=2), H100)
    one = plan_memory(deepseek_v3(), Layout(tp=8, pp=2, dcp=8), H100)
    assert plan.kv_bytes_per_token == 31 * 576 * 2
    assert one.kv_tokens > 7 * plan.kv_tokens


def test_data_parallel_ranks_add_their_pools() -> None:
    decoder = deepseek_v3()
    eight = plan_memory(decoder, Layout(tp=1, dp=8, ep=8), H200)
    assert eight.kv_tokens % 8 == 0
    assert eight.kv_tokens > 4 * plan_memory(decoder, Layout(tp=8), H200).kv_tokens


def test_own_draft_layers_join_the_pool() -> None:
    plain = plan_memory(deepseek_v3(), Layout(tp=8), H200)
    drafting = plan_memory(deepseek_v3(), Layout(tp=8), H200, VllmSettings(speculative_tokens=1))
    assert drafting.kv_bytes_per_token == 62 * 576 * 2
    assert drafting.term("weights") > plain.term("weights")
    assert drafting.kv_tokens < plain.kv_tokens


def test_a_draft_model_joins_the_pool() -> None:
    settings = VllmSettings(speculative_tokens=3)
    plan = plan_memory(llama_70b(), Layout(tp=4), H100, settings, draft=llama(num_hidden_layers=1))
    plain = plan_memory(llama_70b(), Layout(tp=4), H100)
    assert plan.kv_tokens < plain.kv_tokens
    assert plan.kv_bytes_per_token == plain.kv_bytes_per_token * 81 / 80
    assert '"eagle3"' in plan.flags[-1]


def test_windows_raise_concurrency() -> None:
    aware = plan_memory(gpt_oss(), Layout(tp=2), H100)
    blind = plan_memory(gpt_oss(), Layout(tp=2), H100, VllmSettings(windows=False))
    assert aware.max_concurrency > 1.5 * blind.max_concurrency


def test_sparse_attention_takes_its_own_fp8_entries_by_default() -> None:
    assert plan_memory(deepseek_sparse(), Layout(tp=8), H200).kv_bytes_per_token == 61 * 788


def test_a_busy_gpu_is_refused_at_start() -> None:
    plan = plan_memory(llama(), Layout(), replace(H100, free_gib=60.0), VllmSettings(version=(0, 11)))
    assert plan.why == ("the engine wants 71.19 GiB of the GPU, 60.00 GiB are free when it starts",)
    assert plan_memory(llama(), Layout(), replace(H100, free_gib=60.0), VllmSettings(version=(0, 6))).fits


def test_no_pool_says_how_much_is_missing_and_ranks_what_helps() -> None:
    plan = plan_memory(llama_70b(), Layout(), H100, VllmSettings(max_model_len=8192), larger=(H200, SMALL))
    assert "no KV cache is left" in plan.why[0]
    assert plan.kv_tokens == 0
    assert plan.advice[0].fits
    assert plan.advice[0].extra_gpus == 0
    words = [change.what for change in plan.advice]
    assert words.index("weights in int4 (group 128)") < words.index("TP2")
    assert "RTX 3090 (23.58 GiB)" not in words
    assert [c.fits for c in plan.advice] == sorted((c.fits for c in plan.advice), reverse=True)


def test_advice_is_what_planning_the_change_says() -> None:
    settings = VllmSettings(max_model_len=131072, max_num_seqs=64)
    plan = plan_memory(llama(), Layout(), SMALL, settings)
    shorter = next(c for c in plan.advice if "tokens per sequence" in c.what)
    assert plan_memory(llama(), Layout(), SMALL, replace(settings, max_model_len=plan.max_context)).fits
    assert shorter.fits
    assert shorter.max_context == plan.max_context


def test_graphs_that_do_not_fit_outside_the_share_are_named() -> None:
    settings = VllmSettings(version=(0, 10), memory_share=0.988, max_num_batched_tokens=256, max_num_seqs=64)
    plan = plan_memory(llama(max_position_embeddings=8192), Layout(), Gpu("x", 40.0), settings)
    assert len(plan.why) == 1
    assert "outside the engine's share" in plan.why[0]
    eager = replace(settings, eager=True)
    assert plan_memory(llama(max_position_embeddings=8192), Layout(), Gpu("x", 40.0), eager).fits


def test_longest_context_is_bounded_by_the_model() -> None:
    assert plan_memory(llama(max_position_embeddings=8192), Layout(), H100).max_context == 8192


def test_command_line_realises_the_plan() -> None:
    settings = VllmSettings(version=(0, 11), max_model_len=32768, kv_format="fp8", speculative_tokens=1, model="m")
    plan = plan_memory(deepseek_v3(), Layout(tp=8, pp=2, ep=8), H200, settings)
    assert plan.flags == (
        "vllm", "serve", "m", "--tensor-parallel-size", "8", "--pipeline-parallel-size", "2",
        "--enable-expert-parallel", "--max-model-len", "32768", "--gpu-memory-utilization", "0.9",
        "--max-num-seqs", "1024", "--max-num-batched-tokens", "8192", "--kv-cache-dtype", "fp8",
        "--speculative-config", '{"method": "mtp", "num_speculative_tokens": 1}',
    )  # fmt: skip


def test_old_releases_start_the_api_server_module() -> None:
    plan = plan_memory(qwen3_moe(), Layout(tp=8), H100, VllmSettings(version=(0, 5), model="m"))
    assert plan.flags[:5] == ("python", "-m", "vllm.entrypoints.openai.api_server", "--model", "m")


@pytest.mark.parametrize(
    ("decoder", "tp", "words"),
    [
        (llama(), 3, "32 attention heads do not divide over 3 ranks"),
        (llama(num_key_value_heads=12, num_attention_heads=96, head_dim=128), 8, "12 KV heads neither divide over 8"),
    ],
)
def test_layouts_that_heads_do_not_divide_over_are_refused(decoder: Decoder, tp: int, words: str) -> None:
    assert words in plan_memory(decoder, Layout(tp=tp), H200).why[0]


def test_partial_expert_groups_are_pointed_out() -> None:
    plan = plan_memory(qwen3_moe(), Layout(tp=8, ep=4), H200)
    assert "it has no EP4" in plan.notes[-1]


def test_parallelism_that_vllm_lacks_is_refused() -> None:
    plan = plan_memory(deepseek_v3(), Layout(tp=8, attention_dp=8), H200)
    assert plan.why[0] == "the engine has no attention_dp = 8"
