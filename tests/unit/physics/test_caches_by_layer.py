"""What layers keep per token and sequence, against published vectors."""

import pytest

from builders.decoders import deepseek_sparse, deepseek_v3, gpt_oss, llama, llama_70b, qwen3_moe
from clusterwright.model.decoders import Attention, CompressedAttention, Decoder, Index, Layer, Mlp, StateMixer
from clusterwright.physics.caches_by_layer import (
    StateFormats,
    bytes_per_token,
    layer_keeps,
    sequence_bytes,
    stage_bounds,
    stages,
    state_bytes,
)
from clusterwright.physics.layouts import Layout

GIB = 2**30
ONE = Layout()


@pytest.mark.parametrize(
    ("decoder", "gib"),
    [  # 131,072 tokens in bf16 on one GPU
        (llama_70b(), 40.0),
        (qwen3_moe(), 23.5),
        (deepseek_v3(), 8.578125),
        (gpt_oss(), 4.50439453125),
    ],
    ids=["llama-70b", "qwen3-235b", "deepseek-v3", "gpt-oss-120b"],
)
def test_cache_of_a_long_sequence_matches_the_vectors(decoder: Decoder, gib: float) -> None:
    assert sequence_bytes(decoder, ONE, "bf16", 131072) / GIB == gib


def test_windows_counted_whole_double_gpt_oss() -> None:
    assert bytes_per_token(gpt_oss(), ONE, windows=True) * 131072 / GIB == 9.0


def test_latents_are_on_every_rank_and_kv_heads_are_not() -> None:
    assert bytes_per_token(deepseek_v3(), Layout(tp=8)) == bytes_per_token(deepseek_v3(), ONE) == 61 * 576 * 2
    assert bytes_per_token(llama_70b(), Layout(tp=8)) == bytes_per_token(llama_70b(), ONE) / 8


def test_heads_are_copied_beyond_their_number() -> None:
    assert bytes_per_token(qwen3_moe(), Layout(tp=8)) == bytes_per_token(qwen3_moe(), Layout(tp=4))


def test_attention_groups_keep_all_heads_of_fewer_ranks() -> None:
    assert bytes_per_token(llama(), Layout(tp=8, attention_dp=8)) == bytes_per_token(llama(), ONE)


def test_context_ranks_share_a_sequence() -> None:
    """Source: vLLM recipe of Kimi-K2-Thinking, decode context parallel 8 on MLA: 70,272 ÷ 8 B."""
    assert bytes_per_token(deepseek_v3(), Layout(tp=8, dcp=8)) == 70272 / 8


def test_sparse_attention_keeps_scaled_latents_and_index_keys() -> None:
    """Source: vLLM MLAAttentionSpec: 656 B; DeepSeek-V3.2 indexer: 128 fp8 + one fp32 scale."""
    assert bytes_per_token(deepseek_sparse(), ONE, "fp8_ds_mla") == 61 * (656 + 132)


def test_index_keys_only_where_a_layer_owns_them() -> None:
    sparse = deepseek_sparse().layers[0].mixer
    shared = Index(64, 128, 2048, owns_cache=False)
    kept = layer_keeps(sparse, 1, "bf16")
    assert [k.role for k in kept] == ["kv", "index"]
    assert [k.role for k in layer_keeps(type(sparse)(128, 1536, 512, 64, 128, 128, shared), 1, "bf16")] == ["kv"]


def test_compressed_layers_keep_entries_windows_and_partial_sums() -> None:
    """Source: vLLM DeepSeek-V4: 584 B entries, fp32 states of 2 · 2 · 512 and 2 · 2 · 128 elements."""
    kept = layer_keeps(CompressedAttention(64, 512, 64, 4, 128, Index(64, 128, 512)), 8, "fp8")
    assert [(k.kind, k.entry_bytes, k.ratio) for k in kept] == [
        ("window", 584, 1),
        ("full", 584, 4),
        ("window", 8192, 1),
        ("full", 132, 4),
        ("window", 2048, 1),
    ]


def test_a_reader_of_an_earlier_cache_keeps_nothing() -> None:
    assert layer_keeps(Attention(8, 4, 128, 128, owns_cache=False), 1, "bf16") == ()


def test_nvfp4_cache_carries_its_scales() -> None:
    """Source: vLLM nvfp4_kv_cache_full_dim: head_dim/2 + head_dim/16 B for keys and for values."""
    assert layer_keeps(Attention(32, 8, 128, 128), 1, "nvfp4")[0].entry_bytes == 8 * 2 * (64 + 8)


def test_states_divide_over_ranks_and_grow_with_drafts() -> None:
    """Qwen3.5-9B: 32 heads of 128 × 128 in fp32, convolution over 8,192 channels in bf16 (config.json)."""
    mixer = StateMixer("gated-delta", 32, 32 * 128 * 128, 3 * 8192)
    hybrid = Decoder("h", "", 4096, 1000, 4096, (Layer(mixer, Mlp(8), ()),), (), tied=True)
    assert state_bytes(hybrid, ONE) == 2_097_152 + 49_152
    assert state_bytes(hybrid, Layout(tp=2)) == (2_097_152 + 49_152) // 2
    assert state_bytes(hybrid, ONE, StateFormats(drafted=3)) == 2_097_152 + 98_304


def test_layers_that_do_not_divide_go_to_the_stages_before_the_last() -> None:
    """Source: vLLM get_pp_indices."""
    assert stage_bounds(61, 2) == ((0, 31), (31, 61))
    assert [end - first for first, end in stage_bounds(62, 4)] == [15, 16, 16, 15]


def test_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="exceeds the 32 layers"):
        stages(llama(), 33)


def test_attention_that_chooses_blocks_keeps_index_keys_beside_its_cache() -> None:
    kept = layer_keeps(Attention(64, 4, 128, 128, index=Index(4, 128, 16)), 4, "bf16")
    assert [(k.role, k.entry_bytes) for k in kept] == [("kv", 512), ("index", 256)]
