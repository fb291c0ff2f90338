"""How layers share vLLM's pool, against logs and the code's own examples."""

import pytest

from builders.decoders import deepseek_sparse, gpt_oss, llama
from clusterwright.model.decoders import Attention, CompressedAttention, Index, StateMixer
from clusterwright.physics.caches_by_layer import Kept, StateFormats, kept_by, layer_keeps
from clusterwright.physics.engines.blocks import Pool, share_blocks
from clusterwright.physics.layouts import Layout

GIB = 2**30


def pool_of(mixers: list, tp: int = 1, kv_format: str = "bf16", drafted: int = 0, **options) -> Pool:
    states = StateFormats(drafted=drafted)
    return share_blocks([(0, k) for m in mixers for k in layer_keeps(m, tp, kv_format, states)], 1, **options)


def gated_delta(layers: int, values: int, kv_heads: int) -> list:
    """Three gated delta nets to one full attention layer, as in Qwen3.5 (config.json)."""
    state = StateMixer("gated-delta", values, values * 128 * 128, 3 * (2 * 16 * 128 + values * 128))
    full = Attention(2 * kv_heads, kv_heads, 256, 256)
    return [full if i % 4 == 3 else state for i in range(layers)]


def v4(ratios: list[int]) -> list:
    return [CompressedAttention(64, 512, 64, r, 128, Index(64, 128, 512) if r == 4 else None) for r in ratios]


def test_layers_that_keep_everything_are_one_group() -> None:
    pool = share_blocks([(0, k) for k in kept_by(llama().layers, Layout(), "bf16")], 1)
    assert pool.uniform
    assert pool.block_bytes == (16 * 131072,)
    assert pool.request_blocks(100, 8192) == 7


def test_latents_and_index_keys_share_one_group() -> None:
    pool = share_blocks([(0, k) for k in kept_by(deepseek_sparse().layers, Layout(), "fp8_ds_mla")], 1, block_tokens=64)
    assert pool.uniform
    assert pool.block_bytes == (64 * 61 * (656 + 132),)


def test_gemma_27b_takes_70_slots_for_62_layers() -> None:
    full, window = Attention(32, 16, 128, 128), Attention(32, 16, 128, 128, window=1024)
    pool = pool_of([full if i % 6 == 5 else window for i in range(62)])
    page = 16 * 2 * 16 * 128 * 2
    assert pool.block_bytes == (10 * page,)
    assert sum(g.count for g in pool.groups) * 10 == 70
    assert pool.request_blocks(65536, 8192) == 65536 // 16 + 6 * (-(-(1023 + 8192) // 16) + 1)


def test_gpt_oss_has_two_groups() -> None:
    pool = share_blocks([(0, k) for k in kept_by(gpt_oss().layers, Layout(), "bf16")], 1)
    assert [(g.kind, g.count) for g in pool.groups] == [("window", 1), ("full", 1)]


def test_a_draft_layer_more_makes_the_larger_count_the_group() -> None:
    """Source: comment in vLLM `_get_kv_cache_groups_uniform_page_size`: 12 windowed and 13 full layers."""
    full, window = Attention(8, 8, 64, 64), Attention(8, 8, 64, 64, window=128)
    pool = pool_of([full, window] * 12 + [full])
    assert [(g.kind, g.count) for g in pool.groups] == [("full", 1), ("window", 1)]
    assert pool.block_bytes == (13 * 16 * 2 * 8 * 64 * 2,)


def test_without_window_awareness_every_layer_keeps_everything() -> None:
    pool = pool_of([Attention(8, 8, 64, 64, window=128)] * 4, window_aware=False)
    assert pool.uniform


def test_attention_blocks_grow_to_hold_a_state() -> None:
    """vLLM on Qwen3.5-9B, two ranks, 15.06 GiB: block 528, 1,868 blocks, concurrency 169.82 at 4,096 tokens."""
    pool = pool_of(gated_delta(32, 32, 4), tp=2)
    assert pool.block_tokens == 528
    needed = pool.request_blocks(4096, 8192)
    assert needed == 11
    assert pool.blocks([15.06 * GIB]) / needed == pytest.approx(169.82, abs=0.1)


@pytest.mark.parametrize(("tp", "gib", "concurrency"), [(2, 6.35, 1.768), (4, 5.61, 3.130)])
def test_states_of_drafts_and_prefixes_take_blocks(tp: int, gib: float, concurrency: float) -> None:
    """vLLM 0.20 on Qwen3.6-27B, MTP 3, fp8 cache, 196,608 tokens."""
    mixers = [*gated_delta(64, 48, 4), Attention(8, 4, 256, 256)]
    pool = pool_of(mixers, tp=tp, kv_format="fp8", drafted=3, state_blocks=2 + 3)
    assert pool.block_tokens == 1600
    assert pool.blocks([gib * GIB]) / pool.request_blocks(196608, 4096) == pytest.approx(concurrency, abs=0.001)


def test_fp8_gains_less_than_two_where_states_share_the_pool() -> None:
    """Measured gain on hybrids: 1.72 to 1.84."""
    mixers = gated_delta(32, 32, 4)
    pools = [pool_of(mixers, kv_format=f) for f in ("bf16", "fp8")]
    held = [p.blocks([20 * GIB]) / p.request_blocks(131072, 8192) for p in pools]
    assert 1.7 < held[1] / held[0] < 2.0


def test_compressed_layers_match_a_log_of_vllm_0_22() -> None:
    """DeepSeek-V4-Flash, 30,000 tokens, 16,384 in flight: 6.66 GiB needed; 5.44 GiB hold 13,528."""
    pool = pool_of(v4([0, 0, *[4, 128] * 20, 4]), kv_format="fp8", packed=False)
    needed = pool.request_blocks(30000, 16384) * pool.block_bytes[0]
    assert needed / GIB == pytest.approx(6.66, abs=0.005)
    longest = pool.longest(pool.blocks([5.44 * GIB]), 1_048_576, 16384)
    assert longest == pytest.approx(13528, abs=16)


def test_packed_compressed_layers_match_the_code() -> None:
    """Source: vLLM `_get_packed_kv_cache_layout` for 30 + 31 layers: 1,435,968 B."""
    assert pool_of(v4([4] * 30 + [128] * 31), kv_format="fp8").block_bytes == (1_435_968,)


def test_blocks_are_the_fewest_over_stages() -> None:
    pool = share_blocks([(0, Kept("full", 100))] * 3 + [(1, Kept("full", 100))] * 2, 2)
    assert pool.block_bytes == (4800, 3200)
    assert pool.blocks([48_000, 48_000]) == 10


def test_longest_is_the_last_length_that_fits() -> None:
    pool = share_blocks([(0, Kept("full", 100))], 1)
    assert pool.longest(10, 10**6, 0) == 160
    assert pool.longest(0, 10**6, 0) == 0
    assert pool.longest(10, 100, 0) == 100
