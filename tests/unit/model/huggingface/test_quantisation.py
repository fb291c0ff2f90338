"""Bytes of quantised checkpoints: which matrices are quantised, and how large their scales are."""

from __future__ import annotations

from typing import Any

import pytest

from builders import decoders
from clusterwright.model.decoders import Decoder
from clusterwright.model.huggingface.formats import Scheme
from clusterwright.model.huggingface.quantisation import Names


def stored(decoder: Decoder) -> dict[str, int]:
    totals: dict[str, int] = {}
    for part, count in decoder.parts(drafts=True):
        totals[part.stored] = totals.get(part.stored, 0) + part.parameters * count
    return totals


def test_mxfp4_checkpoint_of_gpt_oss() -> None:
    """65,248,815,744 B of tensors in openai/gpt-oss-120b's index."""
    assert decoders.gpt_oss().checkpoint_bytes == 65_248_815_744


def test_blocks_at_the_edge_have_a_scale_of_their_own() -> None:
    assert Scheme("fp8", (128, 128), 4).scale_bytes(576, 7168) == 5 * 56 * 4
    assert Scheme("nvfp4", (1, 16), 1, fixed=8).scale_bytes(10, 40) == 10 * 3 + 8
    assert Scheme("fp8", (1, 0), 4).scale_bytes(10, 40) == 40
    assert Scheme("fp8", (0, 0), 4, fixed=4).scale_bytes(10, 40) == 8
    assert Scheme("int4", (1, 128), 2, zero_bits=4, input_bytes=4).scale_bytes(8, 256) == 16 * 2 + 8 + 256 * 4


def test_qwen_keeps_scales_of_blocks_in_16_bits() -> None:
    """14,269,952 scales: Qwen3-235B-A22B-Instruct-2507-FP8 has 235,107,904,512 elements, the model 235,093,634,560."""
    decoder = decoders.qwen3_moe(quantization_config=decoders.FP8_BLOCKS)
    scales = sum(part.scale_bytes * count for part, count in decoder.parts())
    assert scales == 14_269_952 * 2


@pytest.mark.parametrize(
    ("quantised", "expected"),
    [
        ({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["model.layers.0"]}, "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8"),
        ({"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}, "nvfp4"),
        ({"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}, "fp8"),
        (
            {
                "quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"],
                "config_groups": {"g": {
                    "targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
                }},
            },
            "fp8",
        ),
        (
            {
                "quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["re:.*lm_head"],
                "config_groups": {"g": {
                    "targets": ["Linear"],
                    "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32},
                }},
            },
            "int4",
        ),
    ],
)  # fmt: skip
def test_embedding_norms_and_head_stay(quantised: dict[str, Any], expected: str) -> None:
    decoder = decoders.llama(quantization_config=quantised)
    whole = stored(decoder)
    tables = 2 * 128256 * 4096
    assert set(whole) == {"bf16", expected}
    assert tables < whole["bf16"] < tables + 500_000_000
    assert decoder.parameters == decoders.llama().parameters
    assert decoder.checkpoint_bytes < decoders.llama().checkpoint_bytes


def test_layers_and_modules_are_left_out_by_name() -> None:
    quantised = {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", "model.layers.0*", "*self_attn*"]}
    decoder = decoders.llama(quantization_config=quantised, num_hidden_layers=3)
    assert {p.stored for p in decoder.layers[0].parts} == {"bf16"}
    assert {p.stored for p in decoder.layers[1].parts if p.role == "attention"} == {"bf16"}
    assert {p.stored for p in decoder.layers[1].parts if p.role == "mlp"} == {"nvfp4"}


def test_named_layers_have_their_own_formats() -> None:
    layers = {
        "model.layers.0.mlp.down_proj": {"quant_algo": "FP8"},
        "model.layers.0.mlp.up_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
        "lm_head": {"quant_algo": "FP8"},
    }
    quantised = {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    decoder = decoders.llama(quantization_config=quantised, num_hidden_layers=1)
    matrix = 4096 * 14336
    assert stored(decoder)["nvfp4"] == matrix
    assert stored(decoder)["fp8"] == matrix + 128256 * 4096


def test_a_config_that_leaves_modules_open_says_so() -> None:
    assert decoders.llama(quantization_config={"quant_algo": "FP8"}).notes
    assert not decoders.llama(quantization_config={"quant_algo": "FP8", "exclude_modules": ["lm_head"]}).notes


@pytest.mark.parametrize(
    ("entry", "path", "held"),
    [
        ("lm_head", "lm_head", True),
        ("gate", "layers.3.mlp.gate", True),
        ("gate", "layers.3.mlp.gate_proj", False),
        ("model.layers.1", "layers.1.mlp.up_proj", True),
        ("model.layers.1", "layers.10.mlp.up_proj", False),
        ("model.layers.1.*", "layers.10.mlp.up_proj", False),
        ("language_model.model.layers.1.mlp", "layers.1.mlp.up_proj", True),
        ("re:.*self_attn.*", "layers.1.self_attn.q_proj", True),
        ("*.mlp.shared_expert.*", "layers.1.mlp.shared_expert.up_proj", True),
    ],
)
def test_names_of_modules(entry: str, path: str, held: bool) -> None:
    assert (path in Names([entry])) is held
