"""What engines do with the formats that a checkpoint declares, by release."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.decoders import deepseek_sparse, llama
from clusterwright.model.decoders import Attention, Decoder, Layer, Mlp, StateMixer
from clusterwright.physics.engines import sglang, tensorrt_llm, vllm
from clusterwright.physics.engines.results import EngineMemory, Gpu
from clusterwright.physics.engines.settings import cache_format
from clusterwright.physics.layouts import Layout

H200 = Gpu("H200", 139.72)


def declaring(quantiser: str) -> Decoder:
    return replace(llama(), kv_format="fp8", kv_declared_by=quantiser)


@pytest.mark.parametrize(
    ("engine", "version", "quantiser", "form"),
    [
        ("vllm", (0, 13), "modelopt", "bf16"),
        ("vllm", (0, 14), "modelopt", "fp8"),
        ("vllm", (0, 14), "compressed-tensors", "bf16"),
        ("vllm", (0, 15), "compressed-tensors", "fp8"),
        ("sglang", (0, 4), "modelopt", "bf16"),
        ("sglang", (0, 5), "modelopt", "fp8"),
        ("sglang", (0, 5), "compressed-tensors", "bf16"),
        ("tensorrt-llm", (1, 0), "modelopt", "fp8"),
    ],
)
def test_a_declared_cache_counts_where_the_release_takes_it(
    engine: str, version: tuple[int, int], quantiser: str, form: str
) -> None:
    model = declaring(quantiser)
    assert cache_format(model, "auto", engine, version) == form
    assert cache_format(model, "bf16", engine, version) == "bf16"
    assert cache_format(model, "fp8", engine, version) == "fp8"
    assert cache_format(llama(), "auto", engine, version) == "bf16"


def test_sparse_attention_keeps_its_own_format() -> None:
    model = replace(deepseek_sparse(), kv_format="fp8", kv_declared_by="modelopt")
    assert cache_format(model, "auto", "vllm", (0, 24)) == "fp8_ds_mla"
    assert cache_format(deepseek_sparse(), "auto", "sglang", (0, 5)) == "bf16"


def test_a_declared_cache_holds_twice_the_tokens_and_is_said_to() -> None:
    settings = vllm.VllmSettings(version=(0, 15), max_model_len=8192)
    plain, declared = (vllm.plan_memory(m, Layout(), H200, settings) for m in (llama(), declaring("modelopt")))
    assert declared.kv_bytes_per_token == plain.kv_bytes_per_token / 2
    assert any("since the checkpoint declares it" in note for note in declared.notes)
    assert "--kv-cache-dtype" not in declared.flags
    older = vllm.plan_memory(declaring("modelopt"), Layout(), H200, replace(settings, version=(0, 11)))
    assert older.kv_bytes_per_token == plain.kv_bytes_per_token
    assert any("does not take by itself" in note for note in older.notes)


def hybrid(asked: str, architecture: str = "") -> Decoder:
    """As in Qwen3.5-9B (config.json): gated delta nets, each fourth layer attention."""
    state = StateMixer("gated-delta", 32, 32 * 128 * 128, 3 * 8192, asked)
    mlp = Mlp(12288)
    layers = tuple(Layer(Attention(16, 4, 256, 256) if i % 4 == 3 else state, mlp, ()) for i in range(32))
    return Decoder("h", architecture, 4096, 248320, 262144, layers, (), tied=False)


def vllm_plan(model: Decoder, version: tuple[int, int]) -> EngineMemory:
    return vllm.plan_memory(model, Layout(), H200, vllm.VllmSettings(version=version, max_model_len=32768))


@pytest.mark.parametrize(
    ("version", "architecture", "asked", "form"),
    [
        ((0, 10), "", "fp32", "bf16"),
        ((0, 11), "", "fp32", "fp32"),
        ((0, 24), "", "fp32", "fp32"),
        ((0, 24), "", "", "bf16"),
        ((0, 19), "NemotronHForCausalLM", "", "bf16"),
        ((0, 20), "NemotronHForCausalLM", "", "fp32"),
        ((0, 20), "NemotronHForCausalLM", "fp16", "fp16"),
    ],
)
def test_states_are_kept_as_the_release_keeps_them(
    version: tuple[int, int], architecture: str, asked: str, form: str
) -> None:
    plan = vllm_plan(hybrid(asked, architecture), version)
    assert any(f"recurrent states are planned in {form}" in note for note in plan.notes)


def test_wider_states_leave_room_for_fewer_requests() -> None:
    wide, narrow = (vllm_plan(hybrid(asked), (0, 24)).max_concurrency for asked in ("fp32", "bf16"))
    assert wide < narrow


def test_a_release_that_does_not_read_the_config_is_told_by_a_flag() -> None:
    name = "--mamba-ssm-cache-dtype"
    flags = {version: vllm_plan(hybrid("fp32"), version).flags for version in ((0, 10), (0, 11), (0, 13))}
    assert [name in found for found in flags.values()] == [False, True, False]
    assert flags[0, 11][flags[0, 11].index(name) + 1] == "float32"
    assert name not in vllm_plan(hybrid(""), (0, 11)).flags
    for version, told in (((1, 0), True), ((1, 3), False)):
        plan = tensorrt_llm.plan_memory(hybrid("fp32"), Layout(), H200, tensorrt_llm.TrtllmSettings(version=version))
        assert ("mamba_ssm_cache_dtype: float32" in plan.extra_config) is told


def test_sglang_keeps_states_in_32_bits_unless_the_config_asks_otherwise() -> None:
    def slots(asked: str) -> str:
        settings = sglang.SglangSettings(max_model_len=32768)
        notes = sglang.plan_memory(hybrid(asked), Layout(), H200, settings).notes
        return next(note for note in notes if note.startswith("states take"))

    assert slots("") == slots("fp32")
    assert slots("fp32") != slots("bf16")
