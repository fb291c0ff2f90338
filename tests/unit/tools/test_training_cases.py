"""Rows of measured training memory are read by what they say: engine, sharding, optimizer, adapters, unit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from validation.training_cases import read_case, shown_gib

from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.memory import training_memory

NOWHERE = Path("no-configs-here")
SHAPE = {
    "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "intermediate": 14336, "vocab": 128256,
    "attn": "gqa", "tied": False,
}  # fmt: skip


def row(**said: Any) -> dict[str, Any]:
    return {
        "engine": "torchtune", "model": "Llama 3.1 8B", "shape": SHAPE, "num_gpus": 8, "parallel": {"dp": 8},
        "param_dtype": "bf16", "local_batch": 2, "global_batch": 16, "seq_len": 4096, "activation_ckpt": "full",
        "unit": "GiB, max_memory_reserved", **said,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            {},
            {"framework": "torchtitan", "sharding": "fsdp", "master_bytes": 0, "moment_bytes": 2, "logits": "unfused"},
        ),
        ({"parallel": {}, "num_gpus": 1}, {"sharding": "ddp", "recompute": "full"}),
        ({"optimizer": "AdamW 8-bit"}, {"moment_bytes": 1}),
        (
            {"optimizer": "PagedAdamW8bit", "techniques": "optimizer in backward"},
            {"moment_bytes": 0, "gradient_accumulation_bytes": 0, "offload": "none"},
        ),
        (
            {"engine": "deepspeed", "parallel": {"zero": 3, "offload": "optimizer and parameters"}},
            {"offload": "parameters"},
        ),
        ({"engine": "torchtitan", "param_dtype": "fp32"}, {"master_bytes": 4, "moment_bytes": 4}),
        ({"activation_ckpt": "per-op SAC"}, {"recompute": "selective"}),
        ({"activation_ckpt": None}, {"recompute": "none"}),
        ({"techniques": "torch.compile"}, {"logits": "fused"}),
        ({"techniques": "LoRA rank 16"}, {"adapter_rank": 16, "base": "bf16"}),
        ({"techniques": "QLoRA"}, {"adapter_rank": 8, "base": "nf4"}),
        (
            {"engine": "deepspeed (HF)", "parallel": {"dp": 8, "zero": 2}, "techniques": "Liger kernel"},
            {"framework": "deepspeed", "sharding": "zero2", "logits": "chunked", "in_place": True},
        ),
        (
            {"engine": "deepspeed zero3", "parallel": {"dp": 8, "zero": 3, "offload": "AdamW to CPU"}},
            {"sharding": "zero3", "offload": "optimizer"},
        ),
        (
            {"engine": "megatron (ms-swift)", "parallel": {"tp": 4, "dp": 2, "zero": 1}},
            {"sharding": "distributed", "logits": "fused", "expandable": True, "master_bytes": 4},
        ),
        (
            {"engine": "megatron (ms-swift)", "source": "examples/megatron/fp8/x.sh", "model": "Llama 3.1 8B FP8"},
            {"precision": "fp8", "fp8_weights": True, "master_bytes": 4, "moment_bytes": 2},
        ),
    ],
)
def test_a_row_becomes_the_recipe_that_it_tells(said: dict[str, Any], expected: dict[str, Any]) -> None:
    read = read_case(row(**said), NOWHERE)
    assert read is not None
    assert {key: getattr(read[2], key) for key in expected} == expected


def test_data_parallel_ranks_follow_from_the_gpus_where_a_row_leaves_them_out() -> None:
    read = read_case(row(engine="megatron", parallel={"tp": 2, "pp": 2}, num_gpus=16), NOWHERE)
    assert read is not None
    assert read[1] == Layout(tp=2, pp=2, dp=4)


def test_engines_and_models_that_are_not_known_have_no_estimate() -> None:
    assert read_case(row(engine="jax"), NOWHERE) is None
    assert read_case(row(model="nobody knows", shape=None), NOWHERE) is None
    known = read_case(row(engine="megatron", model="Qwen2.5-72B-Instruct", shape=None), NOWHERE)
    assert known is not None
    assert known[0].parameters == pytest.approx(72.7e9, rel=0.001)


def test_tools_show_different_parts_of_the_same_peak() -> None:
    read = read_case(row(), NOWHERE)
    assert read is not None
    peak = training_memory(*read).peak
    terms = dict(peak.terms)
    shown = {unit: shown_gib({"unit": unit}, peak) for unit in ("nvidia-smi", "max_memory_reserved", "max_allocated")}
    assert shown["nvidia-smi"] == peak.total_gib
    assert shown["nvidia-smi"] - shown["max_memory_reserved"] == pytest.approx(terms["CUDA context and NCCL"])
    assert shown["max_memory_reserved"] - shown["max_allocated"] == pytest.approx(terms["allocator reserve"])
