"""TensorRT-LLM's budget against its documentation and logs."""

import math
from dataclasses import replace

import pytest

from builders.decoders import deepseek_v3, llama
from clusterwright.model.decoders import CompressedAttention, Decoder, Index
from clusterwright.physics.engines.results import Gpu
from clusterwright.physics.engines.tensorrt_llm import TrtllmSettings, plan_memory
from clusterwright.physics.layouts import Layout


def llama2_7b() -> Decoder:
    return llama(hidden_size=4096, num_key_value_heads=32, intermediate_size=11008, vocab_size=32000)


def test_blocks_are_a_fraction_of_what_is_free() -> None:
    """Documentation, Memory Usage: 70.48 GiB available × 0.9 → 63.44 GiB, 4,060 blocks of 64 tokens, fp8."""
    settings = TrtllmSettings(version=(0, 16), kv_format="fp8", max_model_len=4096)
    plan = plan_memory(llama2_7b(), Layout(), Gpu("A100", 79.1), settings, free_after_load_gib=70.48)
    assert plan.kv_pool_gib == pytest.approx(63.44, abs=0.02)
    assert plan.kv_tokens // 64 == pytest.approx(4060, abs=2)


def test_terms_sum_to_the_gpu_exactly() -> None:
    plan = plan_memory(deepseek_v3(), Layout(tp=8), Gpu("H200", 139.81))
    assert math.fsum(gib for _, gib in plan.terms) == plan.reported_gib
    assert plan.fits


def test_a_pool_below_the_wanted_length_is_refused() -> None:
    plan = plan_memory(llama2_7b(), Layout(), Gpu("x", 16.5), TrtllmSettings(max_model_len=16384, max_num_seqs=64))
    assert plan.why
    assert any(change.what == "KV cache in fp8" for change in plan.advice)


def test_graphs_do_not_take_more_than_the_cache_leaves() -> None:
    model, settings = llama(), TrtllmSettings(max_model_len=2048, memory_share=0.98)
    plans = [plan_memory(model, Layout(), Gpu("x", gib), settings, advise=False) for gib in (22.0, 23.5, 44.5, 79.1)]
    assert any("CUDA graphs" in reason for plan in plans for reason in plan.why)
    assert all(plan.term("not used") >= 0 for plan in plans if plan.fits)
    assert plans[-1].fits


def test_tokens_are_limited_where_asked() -> None:
    plan = plan_memory(llama2_7b(), Layout(), Gpu("H100", 79.1), TrtllmSettings(max_tokens=10_000, max_model_len=4096))
    assert plan.kv_tokens == 10_000 // 32 * 32


def test_command_line_and_yaml_realise_the_plan() -> None:
    settings = TrtllmSettings(version=(1, 0), kv_format="fp8", max_model_len=8192, speculative_tokens=3, model="m")
    plan = plan_memory(deepseek_v3(), Layout(tp=8, attention_dp=8, ep=8), Gpu("H200", 139.81), settings)
    assert " ".join(plan.flags) == (
        "trtllm-serve m --backend pytorch --tp_size 8 --ep_size 8 --max_seq_len 8192 --max_batch_size 2048 "
        "--max_num_tokens 8192 --extra_llm_api_options extra.yaml"
    )
    assert plan.extra_config == (
        "kv_cache_config:\n  free_gpu_memory_fraction: 0.9\n  tokens_per_block: 32\n  dtype: fp8\n"
        "enable_attention_dp: true\nspeculative_config:\n  decoding_type: MTP\n  num_nextn_predict_layers: 3\n"
    )


def test_windows_beside_compressed_entries_are_per_request() -> None:
    mixer = CompressedAttention(64, 512, 64, 4, 128, Index(64, 128, 512))
    base = llama()
    decoder = replace(base, layers=tuple(replace(x, mixer=mixer) for x in base.layers))
    plan = plan_memory(decoder, Layout(), Gpu("H200", 139.81), TrtllmSettings(max_model_len=4096, max_num_seqs=4096))
    assert plan.kv_bytes_per_token == 32 * (584 + 132) / 4
    assert plan.max_concurrency < plan.kv_tokens / 4096
