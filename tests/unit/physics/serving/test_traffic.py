"""What serving moves follows from the layers alone."""

from __future__ import annotations

import math

import pytest

from builders.decoders import deepseek_sparse, deepseek_v3, gpt_oss, llama_70b, qwen3_moe, windowed
from builders.serving import H100, worker
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.sides import side
from clusterwright.physics.serving.traffic import traffic

GIB = 1024**3


def cache_bytes(model, context):
    """B of one sequence's cache."""
    return sum(p.bytes * min(context, p.limit) for p in model.pieces)


def test_a_70b_caches_the_published_bytes_per_token():
    assert cache_bytes(traffic(llama_70b()), 131072) / GIB == pytest.approx(40.0)


def test_latent_attention_caches_the_published_bytes_per_token():
    assert cache_bytes(traffic(deepseek_v3()), 131072) / GIB == pytest.approx(8.578, abs=1e-3)


def test_a_window_bounds_what_is_read():
    few, all_seen = traffic(windowed(1024)), traffic(windowed(8192))
    assert cache_bytes(few, 1024) == cache_bytes(all_seen, 1024)
    assert cache_bytes(few, 8192) < cache_bytes(all_seen, 8192)


def test_half_of_gpt_oss_layers_read_a_window_only():
    long, short = (cache_bytes(traffic(gpt_oss()), c) for c in (131072, 65536))
    assert long / short == pytest.approx(2.0, rel=0.01)
    assert min(p.limit for p in traffic(gpt_oss()).pieces) == 128


def test_sparse_attention_reads_index_keys_for_all_and_values_for_the_chosen():
    pieces = traffic(deepseek_sparse()).pieces
    assert {p.limit for p in pieces} == {2048.0, math.inf}
    assert next(p for p in pieces if p.limit == math.inf).bytes % 132 == 0


def test_narrow_weights_keep_tables_and_attention_as_the_recipes_do():
    plain, narrow = traffic(qwen3_moe()), traffic(qwen3_moe(), weights="nvfp4")
    assert sum(w.bytes for w in narrow.experts) == pytest.approx(sum(w.bytes for w in plain.experts) * 0.5625 / 2)
    assert {w.format for w in narrow.weights} == {"bf16"}


def test_heads_beyond_the_cache_heads_save_no_cache():
    eight, sixteen = (worker(layout=Layout(tp=tp)) for tp in (8, 16))
    assert sum(sixteen.piece_read) == sum(eight.piece_read)
    assert sixteen.dense_read < eight.dense_read


def test_latent_cache_is_whole_on_each_tensor_rank_and_split_by_data_parallel_attention():
    model = traffic(deepseek_v3(), weights="fp8")
    tensor, data = (side(model, Layout(tp=8, ep=8, attention_dp=d), H100) for d in (1, 8))
    assert tensor.piece_read == data.piece_read
    assert (tensor.groups, data.groups) == (1.0, 8.0)
    assert tensor.exchanges == 0
    assert data.exchanges > 0


def test_a_device_without_the_format_multiplies_in_bf16():
    assert H100.rate("nvfp4") == H100.flops_s["bf16"]
    assert H100.rate("fp8") == H100.flops_s["fp8"]
