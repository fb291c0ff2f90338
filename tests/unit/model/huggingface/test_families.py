"""Every family gives the count of its reference implementation.

`reference_counts.json` holds facts (defaults of configuration classes) and the size of the state that
huggingface/transformers 5.24 builds from them, tied tensors once.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusterwright.model.decoders import Attention, Experts, LatentAttention, StateMixer
from clusterwright.model.huggingface import known_architectures, parse_config

REFERENCE = json.loads((Path(__file__).parent / "reference_counts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("architecture", REFERENCE)
def test_a_family_counts_what_its_reference_builds(architecture: str) -> None:
    assert parse_config(REFERENCE[architecture]["config"]).parameters == REFERENCE[architecture]["parameters"]


def test_most_architectures_have_a_reference() -> None:
    assert set(REFERENCE) <= set(known_architectures())
    assert len(REFERENCE) >= 45


QWEN_HYBRID = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "text_config": {
        "attention_bias": False, "attn_output_gate": True, "full_attention_interval": 4, "head_dim": 256,
        "hidden_size": 5120, "intermediate_size": 17408, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
        "linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_value_head_dim": 128,
        "max_position_embeddings": 262144, "mtp_num_hidden_layers": 1, "num_attention_heads": 24,
        "num_hidden_layers": 64, "num_key_value_heads": 4, "vocab_size": 248320, "tie_word_embeddings": False,
    },
    "vision_config": {
        "deepstack_visual_indexes": [], "depth": 27, "hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304,
        "num_position_embeddings": 2304, "out_hidden_size": 5120, "patch_size": 16, "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    },
}  # fmt: skip


def test_a_hybrid_has_states_attention_draft_layers_and_a_tower() -> None:
    """Qwen3.5-27B; 27,781,427,952 is the total of Qwen3.8-27B's safetensors metadata, the same shape."""
    decoder = parse_config(QWEN_HYBRID)
    assert decoder.parameters + sum(layer.parameters for layer in decoder.drafts) == 27_781_427_952
    state = decoder.layers[0].mixer
    assert isinstance(state, StateMixer)
    assert (state.kind, state.heads, state.state_elements) == ("gated-delta", 48, 48 * 128 * 128)
    assert state.conv_elements == (2 * 16 * 128 + 48 * 128) * 3
    assert [i for i, layer in enumerate(decoder.layers) if isinstance(layer.mixer, Attention)][:3] == [3, 7, 11]
    assert decoder.towers
    assert len(decoder.drafts) == 1


NEMOTRON = {
    "architectures": ["NemotronHForCausalLM"], "hidden_size": 4480, "vocab_size": 131072, "num_attention_heads": 40,
    "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-", "num_key_value_heads": 8,
    "head_dim": 128, "intermediate_size": 15680, "mamba_num_heads": 128, "mamba_head_dim": 80, "ssm_state_size": 128,
    "n_groups": 8, "conv_kernel": 4, "max_position_embeddings": 131072, "tie_word_embeddings": False,
}  # fmt: skip


def test_a_pattern_gives_layers_of_one_thing_each() -> None:
    """NVIDIA-Nemotron-Nano-9B-v2: 8,888,227,328 in its safetensors metadata."""
    decoder = parse_config(NEMOTRON)
    assert decoder.parameters == 8_888_227_328
    assert len(decoder.layers) == 56
    assert all((layer.mixer is None) != (layer.feed is None) for layer in decoder.layers)
    assert sum(isinstance(layer.mixer, Attention) for layer in decoder.layers) == 4


SEARCHED = {
    "architectures": ["DeciLMForCausalLM"], "hidden_size": 1024, "num_attention_heads": 8, "num_hidden_layers": 3,
    "vocab_size": 1000, "max_position_embeddings": 4096, "tie_word_embeddings": False,
    "block_configs": [
        {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.625}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.3125}},
        {"attention": {"no_op": True}, "ffn": {"no_op": True}},
    ],
}  # fmt: skip


def test_searched_layers_have_their_own_sizes_or_nothing() -> None:
    first, second, third = parse_config(SEARCHED).layers
    assert isinstance(first.mixer, Attention)
    assert first.mixer.kv_heads == 2
    assert first.parameters == 2 * 1024**2 + 2 * 1024 * 256 + 3 * 1024 * 1792 + 2 * 1024
    assert second.mixer is None
    assert second.parameters == 3 * 1024 * 1024 + 1024
    assert third.parameters == 0


KIMI_LINEAR = {
    "architectures": ["KimiLinearForCausalLM"], "hidden_size": 2304, "num_hidden_layers": 27, "vocab_size": 163840,
    "num_attention_heads": 32, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "intermediate_size": 9216, "moe_intermediate_size": 1024, "num_experts": 256, "num_experts_per_token": 8,
    "num_shared_experts": 1, "first_k_dense_replace": 1, "moe_layer_freq": 1, "tie_word_embeddings": False,
    "linear_attn_config": {
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4,
    },
}  # fmt: skip


def test_layers_counted_from_one_are_latent_attention() -> None:
    """Kimi-Linear-48B-A3B: 49,122,681,728 in its safetensors metadata."""
    decoder = parse_config(KIMI_LINEAR)
    assert decoder.parameters == 49_122_681_728
    attending = [i for i, layer in enumerate(decoder.layers) if isinstance(layer.mixer, LatentAttention)]
    assert attending == [3, 7, 11, 15, 19, 23, 26]
    assert isinstance(decoder.layers[1].feed, Experts)
