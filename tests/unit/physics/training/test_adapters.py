"""Memory of adapters and offload beside published peaks."""

from __future__ import annotations

import math

import pytest

from builders.decoders import LLAMA, decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.calibration import CALIBRATED, REFERENCE_SYSTEM
from clusterwright.physics.training.memory import training_memory
from clusterwright.physics.training.recipes import Recipe

LARGE = {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 28672}
#: What PyTorch's allocator does not count.
_OUTSIDE = ("allocator reserve", "CUDA context and NCCL")


@pytest.mark.parametrize(
    ("size", "layout", "how", "recompute", "gib"),
    [
        ({}, Layout(), {"adapter_rank": 8}, "full", 16.2),
        ({}, Layout(), {"adapter_rank": 8, "base": "nf4"}, "full", 7.4),
        ({}, Layout(), {"adapter_rank": 8}, "none", 30.3),
        (LARGE, Layout(dp=8), {"adapter_rank": 16}, "full", 27.6),
        (LARGE, Layout(dp=8), {"offload": "parameters"}, "full", 13.9),
    ],
)
def test_peaks_of_adapters_and_offload_are_as_published(size, layout, how, recompute, gib) -> None:
    """torchtune README, 2024-10: Llama 3.1 8B and 70B, batches of 2 × 2,048 tokens, peak memory per GPU."""
    recipe = Recipe(
        framework="torchtitan",
        sharding="fsdp",
        sequence=2048,
        micro_batch=2,
        global_batch=2 * layout.dp,
        recompute=recompute,
        logits="chunked",
        **how,
    )
    peak = training_memory(decoder(LLAMA, **size), layout, recipe).peak
    allocated = math.fsum(value for name, value in peak.terms if name not in _OUTSIDE)
    assert allocated == pytest.approx(gib, rel=0.12)


def test_a_system_that_nobody_measured_has_the_constants_of_its_die_else_the_mean() -> None:
    measured = [CALIBRATED.constants(name, "bf16").products for name in (REFERENCE_SYSTEM, *CALIBRATED.compute)]
    assert CALIBRATED.constants("DGX-H200", "bf16").products == CALIBRATED.constants("DGX-H100", "bf16").products
    assert CALIBRATED.constants("DGX-A100", "bf16").products == pytest.approx(sum(measured) / len(measured))
    assert CALIBRATED.knows("DGX-GH200")
    assert not CALIBRATED.knows("DGX-A100")
