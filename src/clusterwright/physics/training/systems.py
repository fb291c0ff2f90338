"""What a GPU and its surroundings give a training step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class System:
    """One kind of machine.

    Args:
        name: under which constants were calibrated; others take the mean of their generation.
        bf16, fp8, fp4: peak dense FLOP/s; 0 where the GPU lacks a format; fp32: of its vector units.
        memory_bytes_s: bandwidth of the GPU's memory.
        scale_up_bytes_s: per GPU and direction inside the domain of `domain` GPUs; nic_bytes_s: out of it.
        exponentials_s: of the special function units (SMs × 16 per clock; doubled in Blackwell Ultra), the other limit
            of attention kernels (FlashAttention-3, arXiv:2407.08608, section 3.1).
        host_bytes_s: per GPU and direction between GPU and host memory.
        host_memory_bytes_s: of the host's memory per GPU, which bounds an optimizer on the host (two sockets of twelve
            DDR5-4800 channels, two thirds of peak, for eight GPUs).
    """

    name: str
    bf16: float
    fp8: float
    fp4: float
    fp32: float
    memory_bytes_s: float
    scale_up_bytes_s: float
    domain: int
    nic_bytes_s: float
    exponentials_s: float
    host_bytes_s: float = 55e9
    host_memory_bytes_s: float = 60e9

    def peak(self, precision: str) -> float:
        """Peak of a recipe's precision, the next wider format where the GPU lacks it."""
        wanted = {"bf16": self.bf16, "fp16": self.bf16, "fp8": self.fp8, "mxfp8": self.fp8, "nvfp4": self.fp4}[
            precision
        ]
        return wanted or self.fp8 or self.bf16


_400G: Final = 50e9
#: SMs × 16 × clock: 132 at 1.83 GHz, 148 at 1.92 GHz.
_H: Final = 3.9e12
_B: Final = 4.5e12
#: Datasheet figures (as in the hardware catalogue) of systems with published training runs.
SYSTEMS: Final[dict[str, System]] = {
    "DGX-H100": System("DGX-H100", 989.4e12, 1978.9e12, 0.0, 66.9e12, 3.35e12, 450e9, 8, _400G, _H),
    "DGX-H200": System("DGX-H200", 989.4e12, 1978.9e12, 0.0, 66.9e12, 4.8e12, 450e9, 8, _400G, _H),
    "DGX-B200": System("DGX-B200", 2250e12, 4500e12, 9000e12, 75e12, 7.7e12, 900e9, 8, _400G, _B),
    "DGX-B300": System("DGX-B300", 2250e12, 4500e12, 13500e12, 75e12, 7.7e12, 900e9, 8, 2 * _400G, 2 * _B),
    "DGX-GB200": System("DGX-GB200", 2500e12, 5000e12, 10000e12, 80e12, 8.0e12, 900e9, 72, _400G, _B, 450e9),
    "DGX-GB300": System("DGX-GB300", 2500e12, 5000e12, 15000e12, 80e12, 8.0e12, 900e9, 72, 2 * _400G, 2 * _B, 450e9),
    "H100-500W": System("H100-500W", 989.4e12, 1978.9e12, 0.0, 66.9e12, 2.4e12, 450e9, 8, _400G, _H),
}
