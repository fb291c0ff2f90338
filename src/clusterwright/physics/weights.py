"""Bytes of weights by numeric format.

Block formats carry scales: nvfp4 4 bit + one fp8 scale per 16 (0.5625 B), mxfp4 4 bit + one 8-bit scale per 32
(0.53125 B), int4 one 16-bit scale per group: 0.5625 B at 32, 0.515625 B at 128. fp8 and int8 scales (per tensor,
per channel or per 128×128 block) are under 0.1 % and left out.

Sources: OCP Microscaling Formats (MX) v1.0, table 1; NVIDIA, "Introducing NVFP4", 2025; AWQ and GPTQ checkpoints as
published with group size 128.
"""

from __future__ import annotations

from typing import Final

#: Bytes per parameter of a linear layer. int4 is taken at group size 128, the common checkpoint.
BYTES: Final[dict[str, float]] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "nvfp4": 0.5625,
    "mxfp4": 0.53125,
    "int4": 0.515625,
}
#: int4 with one 16-bit scale per 32 weights.
INT4_GROUP_32: Final = 0.5625
#: Quantized checkpoints keep embedding, head, norms and routers in 16 bit.
PLAIN_BYTES: Final = 2.0


def weight_bytes(linear: float, plain: float, bytes_per_linear: float) -> float:
    """Bytes of all weights.

    Args:
        linear: parameters of the linear layers.
        plain: parameters of embedding, head, norms, routers; never below 16 bit, and 32 bit only when all are.
        bytes_per_linear: B per linear parameter (BYTES).
    """
    return linear * bytes_per_linear + plain * max(PLAIN_BYTES, bytes_per_linear)


def weight_bytes_per_gpu(
    dense_linear: float,
    experts: float,
    replicated: float,
    vocabulary: float,
    bytes_per_dense: float,
    bytes_per_expert: float,
    tp: float,
    pp: float,
    ep: float,
) -> float:
    """Bytes of weights on the fullest GPU of one replica.

    Layers divide by tp and pp; routed experts by pp and by the larger of tp and ep (expert parallelism takes the place
    of tensor parallelism inside experts); norms and routers are on every tensor rank; each stage of a pipeline may hold
    one vocabulary table, split over tp.

    Args:
        dense_linear: parameters of attention, MLPs, shared experts.
        experts: parameters of routed experts.
        replicated: parameters of norms and routers.
        vocabulary: parameters of embedding plus head; with pp > 1 a stage holds at most half of them.
        bytes_per_dense, bytes_per_expert: B per parameter; they differ where only experts are quantized (mxfp4).
    """
    tables = vocabulary / tp if pp == 1 else vocabulary / (2 * tp)
    plain = max(PLAIN_BYTES, bytes_per_dense)
    linear = dense_linear / (tp * pp) * bytes_per_dense + experts / (pp * max(tp, ep)) * bytes_per_expert
    return linear + (replicated / pp + tables) * plain
