"""Traps of config.json: the same fact under several names, names that mislead, facts that are missing."""

from __future__ import annotations

import pytest

from builders import decoders
from clusterwright.model.decoders import Attention, Experts, Index, LatentAttention
from clusterwright.model.huggingface import UnknownArchitecture, parse_config

GIB = 2**30


def test_a_nested_text_model_is_the_same_model() -> None:
    inner = {k: v for k, v in decoders.QWEN3_MOE.items() if k != "architectures"}
    nested = {"architectures": decoders.QWEN3_MOE["architectures"], "text_config": inner}
    assert parse_config(nested, name="qwen3-moe").layers == decoders.qwen3_moe().layers


@pytest.mark.parametrize("key", ["num_experts", "n_routed_experts", "num_local_experts"])
def test_experts_have_three_names(key: str) -> None:
    facts = {k: v for k, v in decoders.QWEN3_MOE.items() if k != "num_experts"} | {key: 128}
    assert parse_config(facts).parameters == decoders.qwen3_moe().parameters


def test_a_missing_head_width_is_the_hidden_width_divided() -> None:
    mixer = decoders.llama().layers[0].mixer
    assert isinstance(mixer, Attention)
    assert mixer.key_dim == 4096 // 32
    wider = decoders.llama(head_dim=256).layers[0].mixer
    assert isinstance(wider, Attention)
    assert wider.key_dim == 256


def test_latent_attention_does_not_follow_head_dim() -> None:
    assert decoders.deepseek_v3(head_dim=64).parameters == decoders.deepseek_v3().parameters


def test_gpt_oss_writes_an_experts_width_as_intermediate_size() -> None:
    feed = decoders.gpt_oss().layers[0].feed
    assert isinstance(feed, Experts)
    assert (feed.width, feed.experts, feed.active) == (2880, 128, 4)
    assert decoders.gpt_oss().parameters == 116_829_156_672


def test_dense_layers_lead() -> None:
    kinds = [isinstance(layer.feed, Experts) for layer in decoders.deepseek_v3().layers]
    assert kinds == [False] * 3 + [True] * 58


def test_listed_layers_stay_dense_and_steps_skip() -> None:
    sparse = [isinstance(x.feed, Experts) for x in decoders.qwen3_moe(num_hidden_layers=4, mlp_only_layers=[1]).layers]
    assert sparse == [True, False, True, True]
    sparse = [
        isinstance(x.feed, Experts) for x in decoders.qwen3_moe(num_hidden_layers=4, decoder_sparse_step=2).layers
    ]
    assert sparse == [False, True, False, True]


def test_a_list_says_which_layers_have_experts() -> None:
    decoder = decoders.deepseek_v3(num_hidden_layers=3, moe_layer_freq=[0, 1, 1])
    assert [isinstance(layer.feed, Experts) for layer in decoder.layers] == [False, True, True]


def test_an_index_may_be_an_earlier_layers() -> None:
    changed = {"num_hidden_layers": 4, "indexer_types": ["full", "shared", "shared", "full"]}
    decoder = decoders.deepseek_sparse(**changed)
    owners = []
    for layer in decoder.layers:
        assert isinstance(layer.mixer, LatentAttention)
        assert layer.mixer.index is not None
        owners.append(layer.mixer.index.owns_cache)
    assert owners == [True, False, False, True]
    assert decoder.layers[0].mixer.index == Index(64, 128, 2048)  # type: ignore[union-attr]
    assert sum(p.parameters for p in decoder.layers[1].parts if p.role == "indexer") == 0


def test_windows_follow_the_list() -> None:
    windows = [x.mixer.window for x in decoders.windowed(num_hidden_layers=6).layers]  # type: ignore[union-attr]
    assert windows == [4096] * 5 + [None]


def test_a_window_that_is_switched_off_is_none() -> None:
    facts = {**decoders.LLAMA, "architectures": ["Qwen2ForCausalLM"], "sliding_window": 4096}
    off = parse_config(facts | {"use_sliding_window": False})
    assert all(isinstance(x.mixer, Attention) and x.mixer.window is None for x in off.layers)
    late = parse_config(facts | {"use_sliding_window": True, "max_window_layers": 30})
    assert [isinstance(x.mixer, Attention) and x.mixer.window for x in late.layers] == [None] * 30 + [4096] * 2


def test_a_config_without_a_limit_has_the_context_that_engines_take() -> None:
    facts = {k: v for k, v in decoders.LLAMA.items() if k != "max_position_embeddings"}
    assert parse_config(facts, name="llama").max_context == 2048


def test_tied_tables_count_once() -> None:
    tied, own = decoders.llama(tie_word_embeddings=True), decoders.llama()
    assert own.parameters - tied.parameters == 128256 * 4096
    assert tied.multiplied == own.multiplied


def test_draft_layers_are_apart() -> None:
    """DeepSeek-V3's safetensors metadata: bf16 3,918,786,560, fp8 680,571,043,840, fp32 41,555,600 (with scales)."""
    decoder = decoders.deepseek_v3()
    assert decoder.parameters == 671_026_419_200
    totals = {"bf16": 0, "fp8": 0, "fp32": 0}
    scales = 0
    for part, count in decoder.parts(drafts=True):
        totals[part.stored] += part.parameters * count
        scales += part.scale_bytes // 4 * count
    assert totals["bf16"] == 3_918_786_560
    assert totals["fp8"] == 680_571_043_840
    assert totals["fp32"] + scales == 41_555_600


def test_vectors_of_plain_formats() -> None:
    """Llama-3.1-70B: 131.42 GiB in bf16, 65.71 in fp8, 36.96 in nvfp4 with a scale per 16."""
    decoder = decoders.llama_70b()
    assert decoder.parameters == 70_553_706_496
    assert round(decoder.checkpoint_bytes / GIB, 2) == 131.42
    assert round(decoder.parameters / GIB, 2) == 65.71
    assert round(decoder.parameters * 0.5625 / GIB, 2) == 36.96


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({"architectures": ["NeverHeardOfForCausalLM"]}, "nearest"),
        ({"architectures": None, "model_type": None}, "architectures"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"num_memory_heads": 4}, "num_memory_heads"),
        ({"per_layer_expert_bias": True}, "per_layer_expert_bias"),
        ({"layer_types": ["full_attention"] * 3}, "layer_types"),
        ({"layer_types": ["ring_attention"] * 32}, "layer_types"),
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "gptq"),
        ({"quantization_config": {"quant_algo": "MIXED_PRECISION"}}, "quantized_layers"),
        ({"quantization_config": {"quant_algo": "FP3"}}, "NVFP4"),
    ],
)
def test_what_is_not_known_is_refused_by_name(changed: dict[str, object], missing: str) -> None:
    with pytest.raises(UnknownArchitecture) as refused:
        decoders.decoder(decoders.LLAMA, "my-model", **changed)
    assert "my-model" in str(refused.value) or "Never" in str(refused.value)
    assert any(missing in m for m in refused.value.missing) or missing == "nearest"


def test_harmless_keys_are_no_reason_to_refuse() -> None:
    extra = {
        "rope_theta": 500000.0,
        "num_beams": 1,
        "head_softcap_scale": None,
        "hidden_act": "silu",
        "use_cache": True,
    }
    assert decoders.llama(**extra).parameters == decoders.llama().parameters


def test_step_needs_the_heads_of_windowed_layers() -> None:
    facts = {
        "architectures": ["Step3p5ForCausalLM"], "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 1024, "moe_intermediate_size": 128,
        "num_experts": 4, "num_experts_per_tok": 2, "share_expert_dim": 128, "first_k_dense_replace": 1,
        "layer_types": ["full_attention", "sliding_attention"], "sliding_window": 512, "vocab_size": 1000,
    }  # fmt: skip
    with pytest.raises(UnknownArchitecture, match="number of heads of their own"):
        parse_config(facts, name="step")
    decoder = parse_config(facts | {"attention_other_setting": {"num_attention_heads": 6}})
    assert [layer.mixer.heads for layer in decoder.layers if layer.mixer is not None] == [4, 6]
