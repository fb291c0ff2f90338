"""The array form answers as the scalar form does, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest

from builders.decoders import deepseek_v3, gpt_oss, llama_70b, qwen3_moe
from clusterwright.model.decoders import Decoder
from clusterwright.physics.caches_by_layer import bytes_per_token
from clusterwright.physics.engines.arrays import CacheTable, VllmTable
from clusterwright.physics.engines.results import Gpu
from clusterwright.physics.engines.vllm import VllmSettings, plan_memory
from clusterwright.physics.layouts import Layout

GPU = Gpu("H200", 139.72)


@pytest.mark.parametrize("version", [(0, 11), (0, 22)])
@pytest.mark.parametrize("decoder", [deepseek_v3(), gpt_oss(), llama_70b(), qwen3_moe()], ids=lambda d: d.name)
def test_plans_are_equal_exactly(decoder: Decoder, version: tuple[int, int]) -> None:
    layouts = [Layout(tp=tp, pp=pp) for tp in (1, 4, 8) for pp in (1, 3)] + [Layout(tp=8, dp=2, ep=16)]
    settings = VllmSettings(version=version)
    rng = np.random.default_rng(5)
    n = 60
    rows = {
        "layout": rng.integers(0, len(layouts), n),
        "reported_gib": rng.choice([79.1, 139.72, 191.45], n),
        "share": rng.choice([0.8, 0.9, 0.95], n),
        "length": rng.integers(1, 131072, n),
        "sequences": rng.integers(1, 1025, n),
        "tokens": rng.integers(64, 20000, n),
    }
    found = VllmTable(decoder, layouts, GPU, settings).evaluate(**rows)
    for i in range(n):
        layout, gpu = layouts[rows["layout"][i]], replace(GPU, reported_gib=float(rows["reported_gib"][i]))
        asked = replace(
            settings,
            max_num_seqs=int(rows["sequences"][i]),
            max_num_batched_tokens=int(rows["tokens"][i]),
            max_model_len=int(rows["length"][i]),
            memory_share=float(rows["share"][i]),
        )
        plan = plan_memory(decoder, layout, gpu, asked)
        assert plan.kv_pool_gib == found.kv_pool_gib[i]
        assert plan.kv_tokens == found.kv_tokens[i]
        assert plan.max_concurrency == found.max_concurrency[i]
        assert found.fits[i] == (plan.kv_pool_gib > 0 and plan.max_concurrency >= layout.dp)


def test_a_layout_that_the_engine_refuses_fits_nowhere() -> None:
    layouts = [Layout(tp=tp) for tp in (1, 3, 8)]
    table = VllmTable(llama_70b(), layouts, replace(GPU, reported_gib=400.0), VllmSettings())
    n = len(layouts)
    found = table.evaluate(
        np.arange(n), np.full(n, 400.0), np.full(n, 0.9), np.full(n, 8192), np.full(n, 64), np.full(n, 2048)
    )
    assert found.fits.tolist() == [True, False, True]


def test_bytes_per_token_are_equal_exactly() -> None:
    tp, pp = np.array([1, 2, 8, 64, 8]), np.array([1, 3, 2, 1, 2])
    for decoder in (deepseek_v3(), qwen3_moe(), gpt_oss()):
        found = CacheTable(decoder, "fp8").kv_bytes_per_token(tp, pp)
        want = [bytes_per_token(decoder, Layout(tp=int(t), pp=int(p)), "fp8") for t, p in zip(tp, pp, strict=True)]
        assert found.tolist() == want


def test_an_evaluation_of_nothing_is_empty() -> None:
    none, zero = np.zeros(0), np.zeros(0, dtype=np.int64)
    table = VllmTable(qwen3_moe(), [Layout(tp=8)], GPU, VllmSettings())
    assert table.evaluate(zero, none, none, zero, zero, zero).blocks.size == 0
