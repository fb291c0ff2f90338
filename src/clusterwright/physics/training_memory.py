"""Training memory per GPU: model states, activations, logits, allocator reserve; in bytes unless said.

Mixed-precision Adam holds 16 B per parameter: bf16 weights 2, gradients 2, fp32 master weights 4, moments 4 + 4; 18
with fp32 main gradients. ZeRO divides parts of it among data-parallel ranks.

Sources: ZeRO, arXiv:1910.02054, section 3 and figure 1; Megatron-Core distributed optimizer documentation (6 + 12/dp);
"Reducing Activation Recomputation in Large Transformer Models", arXiv:2205.05198, equations 1, 2, 5 and table 2.
"""

from __future__ import annotations

from typing import Final

#: B per parameter of mixed-precision Adam, with 16-bit and with fp32 main gradients.
ADAM_BYTES: Final = 16.0
ADAM_FP32_GRADIENT_BYTES: Final = 18.0
#: B per parameter of a full checkpoint: bf16 weights 2, master weights 4, two moments 8.
CHECKPOINT_BYTES: Final = 14.0
#: B per token and vocabulary entry of unfused logits: bf16 logits, fp32 copy, softmax, gradient.
LOGITS_BYTES: Final = 14.0
#: Reserved ÷ peak allocated memory (fragmentation) by framework: Megatron's published runs; for torchtitan what puts
#: its published full-recompute runs (benchmarks/llama3_h100_202412_torchtitan.md) on both sides of the estimate.
RESERVE: Final[dict[str, float]] = {"megatron": 1.2, "torchtitan": 1.1}
RESERVE_ELSEWHERE: Final = 1.2
#: B per element of a layer's input that selective recompute keeps: Megatron recomputes attention only (34); torchtitan
#: saves every other product, which its four published 8B runs put at 15 to 19.
SELECTIVE: Final[dict[str, float]] = {"megatron": 34.0, "torchtitan": 17.0}
SELECTIVE_ELSEWHERE: Final = 34.0


def state_bytes_per_parameter(sharding: str, dp: float) -> float:
    """B per parameter and GPU of weights, gradients and optimizer.

    Args:
        sharding: ddp, zero1, zero2, zero3 or fsdp; distributed (Megatron's distributed optimizer, fp32 gradients).
        dp: data-parallel ranks that share the states.
    """
    return {
        "ddp": ADAM_BYTES,
        "zero1": 4 + 12 / dp,
        "zero2": 2 + 14 / dp,
        "zero3": ADAM_BYTES / dp,
        "fsdp": ADAM_BYTES / dp,
        "distributed": 6 + 12 / dp,
    }[sharding]


def gathered_bytes(largest_unit_parameters: float) -> float:
    """B of parameters that ZeRO-3 or FSDP holds whole: the unit at work and the one prefetched, 16-bit weights, and the
    16-bit gradients of the unit at work.

    Source: PyTorch FSDP, arXiv:2304.11277, section 3.3 (one all-gather ahead).
    """
    return largest_unit_parameters * (2 * 2 + 2)


def gathered_stage_bytes(stage_parameters: float) -> float:
    """B that FSDP2 holds whole inside a pipeline: 16-bit weights and fp32 gradients of the stage, all step long."""
    return stage_parameters * 6


def activation_bytes_per_layer(
    sequence: float,
    batch: float,
    hidden: float,
    heads: float,
    recompute: str,
    tp: float = 1,
    flash: bool = True,
    kept: float = SELECTIVE_ELSEWHERE,
) -> float:
    """B of activations that one layer keeps for the backward pass; tensor ranks split the sequence too.

    Args:
        sequence, batch: tokens per sequence, sequences per micro-batch.
        recompute: none; selective; full (only layer inputs kept).
        tp: tensor and sequence parallel ranks.
        flash: attention kernel that never stores the score matrix, which drops its term also without recompute.
        kept: B per element under selective recompute (SELECTIVE).
    """
    plane = sequence * batch * hidden / tp
    if recompute == "full":
        return 2 * plane
    if recompute == "selective":
        return plane * kept
    return plane * (34 + (0.0 if flash else 5 * heads * sequence / hidden))


def micro_batches_in_flight(stages: float, micro_batches: float, virtual: float = 1) -> float:
    """Micro-batches whose activations the first pipeline stage holds under 1F1B; more when interleaved."""
    held = min(stages, micro_batches)
    return held * (1 + (stages - 1) / (stages * virtual)) if virtual > 1 else held


def logits_bytes(tokens: float, vocabulary: float, tp: float = 1) -> float:
    """B of logits and their gradient when the loss is not fused or chunked."""
    return LOGITS_BYTES * tokens * vocabulary / tp


def checkpoint_bytes(parameters: float) -> float:
    """B of one checkpoint with optimizer states."""
    return CHECKPOINT_BYTES * parameters
