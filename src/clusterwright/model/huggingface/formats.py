"""How a quantised matrix is stored: its format and, exactly, the bytes of its scales.

Sources: README_WEIGHTS.md of DeepSeek-V3 (blocks of 128 × 128 with `weight_scale_inv`), exports of NVIDIA modelopt
(`weight_scale`, `weight_scale_2`, `input_scale`), compressed-tensors (`weight_scale`, `weight_shape`), OCP Microscaling
Formats 1.0 (32 elements share one 8-bit scale).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scheme:
    """Storage of one quantised matrix.

    Args:
        format: as in `decoders.BITS`.
        block: rows and columns that share a scale; 0 stands for all of them.
        scale_size: B of one such scale.
        fixed: further B per matrix (scales of the whole matrix or of its inputs, its shape).
        zero_bits: bits of a zero point beside each scale.
        input_bytes: B per column (GPTQ's index of groups).
    """

    format: str
    block: tuple[int, int]
    scale_size: int
    fixed: int = 0
    zero_bits: int = 0
    input_bytes: int = 0

    def scale_bytes(self, rows: int, columns: int) -> int:
        """Bytes of everything stored beside the matrix's elements."""
        high, wide = self.block[0] or rows, self.block[1] or columns
        scales = -(-rows // high) * -(-columns // wide)
        return scales * self.scale_size + -(-scales * self.zero_bits // 8) + self.fixed + columns * self.input_bytes
