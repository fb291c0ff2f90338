"""Speed of training: FLOP per token, model FLOP utilization, pipeline bubble.

FLOP per token 6·(active parameters without the input table) + 6·L·H·hd·s: forward and backward of every matrix product
and of causal attention; recomputation does not count. Matches the TFLOP/s that NVIDIA publishes to 0.3 %.

Sources: PaLM, arXiv:2204.02311, appendix B; "Efficient Large-Scale Language Model Training on GPU Clusters",
arXiv:2104.04473, section 2.2 (bubble).
"""

from __future__ import annotations

from typing import Final

#: Median model FLOP utilization by GPU, (number format, architecture), of peak dense rate in that format.
MFU: Final[dict[str, dict[tuple[str, str], float]]] = {
    "h100-sxm-80": {("bf16", "dense"): 0.327, ("bf16", "moe"): 0.205, ("fp8", "dense"): 0.378, ("fp8", "moe"): 0.106},
    "b200-sxm-180": {("bf16", "moe"): 0.204, ("fp8", "moe"): 0.138},
    "gb200-186": {("bf16", "moe"): 0.218, ("fp8", "dense"): 0.393, ("fp8", "moe"): 0.197},
    "gb300-279": {("bf16", "moe"): 0.266, ("fp8", "dense"): 0.475, ("fp8", "moe"): 0.220},
}
MFU_SOURCE: Final = "median of NVIDIA Megatron-Bridge performance summaries, 2026"
#: H100 bf16 dense comes from another table, whose GPUs ran at 500 W.
MFU_SOURCE_H100_DENSE: Final = "median of torchtitan's four bf16 runs of Llama 3.1 8B on 8 and 128 H100, 2024-12"
#: What a software release alone moves: twelve and a half per cent; what the medians hide is more.
MFU_BAND: Final = (0.7, 1.4)


def flops_per_token(multiplied: float, layers: float, heads: float, head_dim: float, sequence: float) -> float:
    """Training FLOP per token.

    Args:
        multiplied: parameters that a token is multiplied with (no input table).
        sequence: tokens per sequence.
    """
    return 6 * multiplied + 6 * layers * heads * head_dim * sequence


def tokens_per_s(gpus: float, peak_flops_s: float, mfu: float, flops_per_token_: float) -> float:
    """Tokens per second of the whole job."""
    return gpus * peak_flops_s * mfu / flops_per_token_


def bubble_share(stages: float, micro_batches: float, virtual: float = 1) -> float:
    """Idle share of a pipeline, (p − 1)/(v·m + p − 1)."""
    return (stages - 1) / (virtual * micro_batches + stages - 1)
