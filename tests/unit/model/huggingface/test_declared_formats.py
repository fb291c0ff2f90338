"""Formats that a checkpoint declares for what an engine keeps beside its weights: the KV cache, recurrent states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders.decoders import LLAMA
from clusterwright.model.decoders import Decoder, StateMixer
from clusterwright.model.huggingface import parse_config
from clusterwright.model.huggingface.quantisation import declared_cache

REFERENCE = json.loads((Path(__file__).parent / "reference_counts.json").read_text(encoding="utf-8"))
EIGHT = {"dynamic": False, "num_bits": 8, "type": "float"}
INT8_WEIGHTS = {"group_0": {"weights": {"num_bits": 8, "type": "int", "strategy": "channel"}, "targets": ["Linear"]}}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (None, ("", "")),
        ({}, ("", "")),
        ({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, ("fp8", "modelopt")),
        ({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": None}}, ("", "")),
        ({"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}, ("", "")),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": EIGHT}, ("fp8", "modelopt")),
        ({"quant_algo": "FP8", "kv_cache_scheme": "FP8"}, ("fp8", "modelopt")),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": EIGHT}, ("fp8", "compressed-tensors")),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": EIGHT | {"type": "int"}}, ("", "")),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, ("", "")),
    ],
)
def test_a_cache_in_fp8_is_read_with_who_declared_it(facts: dict[str, Any] | None, expected: tuple[str, str]) -> None:
    assert declared_cache(facts) == expected


def test_the_file_beside_a_config_declares_it_too() -> None:
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    decoder = parse_config(LLAMA, quantization=beside)
    assert (decoder.kv_format, decoder.kv_declared_by) == ("fp8", "modelopt")
    own = {"quant_method": "compressed-tensors", "config_groups": INT8_WEIGHTS, "kv_cache_scheme": EIGHT}
    decoder = parse_config({**LLAMA, "quantization_config": own})
    assert (decoder.kv_format, decoder.kv_declared_by) == ("fp8", "compressed-tensors")
    assert parse_config(LLAMA).kv_format == ""


def states(decoder: Decoder) -> set[str]:
    return {layer.mixer.asked for layer in decoder.layers if isinstance(layer.mixer, StateMixer)}


HYBRIDS = [
    name
    for name, entry in REFERENCE.items()
    if any(isinstance(x.mixer, StateMixer) for x in parse_config(entry["config"]).layers)
]


@pytest.mark.parametrize("name", HYBRIDS)
@pytest.mark.parametrize("key", ["mamba_ssm_dtype", "mamba_ssm_cache_dtype"])
def test_the_format_of_states_is_read_whatever_family_asks_for_it(name: str, key: str) -> None:
    config = REFERENCE[name]["config"]
    plain, asked = parse_config(config), parse_config({**config, key: "bfloat16"})
    own = {"fp32"} if any(m.kind == "kimi-delta" for m in mixers(plain)) else {""}
    assert states(plain) == own
    assert states(asked) == ({"bf16"} if own == {""} else own)
    assert asked.parameters == plain.parameters


def mixers(decoder: Decoder) -> list[StateMixer]:
    return [layer.mixer for layer in decoder.layers if isinstance(layer.mixer, StateMixer)]


def test_what_is_no_format_is_not_taken_for_one() -> None:
    config = REFERENCE[HYBRIDS[0]]["config"]
    for written in ("auto", "", None, 4):
        assert states(parse_config({**config, "mamba_ssm_dtype": written})) == states(parse_config(config))
