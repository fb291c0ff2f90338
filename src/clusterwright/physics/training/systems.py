"""What a GPU and its surroundings give a training step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clusterwright.lib.quantities import Quantity
from clusterwright.model.hardware import Gpu


@dataclass(frozen=True, slots=True)
class System:
    """One kind of machine.

    Args:
        name: under which constants were calibrated; others take the mean of their generation.
        bf16, fp8, fp4: peak dense FLOP/s; 0 where the GPU lacks a format; fp32: of its vector units.
        memory_bytes_s: bandwidth of the GPU's memory.
        scale_up_bytes_s: per GPU and direction inside the domain of `domain` GPUs; nic_bytes_s: out of it.
        node_bytes_s: over PCIe to the others of a node of `node` GPUs, where bridges join fewer.
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
    node: int = 1
    node_bytes_s: float = 0.0

    def out_bytes_s(self, ranks: Any) -> Any:
        """B/s per GPU and direction out of its domain, where so many ranks next to each other exchange."""
        return np.where(np.asarray(ranks) <= self.node, self.node_bytes_s or self.nic_bytes_s, self.nic_bytes_s)

    def peak(self, precision: str) -> float:
        """Peak of a recipe's precision, the next wider format where the GPU lacks it."""
        wanted = {"bf16": self.bf16, "fp16": self.bf16, "fp8": self.fp8, "mxfp8": self.fp8, "nvfp4": self.fp4}[
            precision
        ]
        return wanted or self.fp8 or self.bf16


#: Exponentials per second of special function units: SMs × 16 per clock. A100 108 at 1.41 GHz, H100 132 at 1.83 GHz,
#: B200 148 at 1.92 GHz, B300 twice as many per SM (NVIDIA architecture white papers).
_EXPONENTIALS: Final = {"ampere": 2.4e12, "hopper": 3.9e12, "blackwell": 4.5e12, "blackwell-ultra": 9.0e12}
#: FLOP/s of fp32 lanes per exponential elsewhere: 128 lanes of two FLOP beside 16 special function units.
_LANES: Final = 16.0
#: B/s and direction between GPU and host over NVLink-C2C (Grace Hopper and Grace Blackwell white papers).
_C2C_BYTES_S: Final = 450e9


def system_of(
    gpu: Gpu, *, domain: int, link_bytes_s: float, nic_bytes_s: float, node: tuple[int, float] = (1, 0.0)
) -> System:
    """The system that a catalogue GPU makes with its surroundings; rates per GPU and direction.

    Constants were calibrated under NVIDIA's names: DGX-H100, DGX-GB200 for modules on boards of the vendor, the
    catalogue's name for cards.

    Raises:
        ValueError: if the catalogue has no bf16 or fp16 rate of the GPU.
    """
    board = gpu.vendor == "nvidia" and gpu.form in ("sxm", "superchip")
    bf16 = _rate(gpu.dense.bf16) or _rate(gpu.dense.fp16)
    fp32 = _rate(gpu.dense.fp32)
    if not bf16:
        raise ValueError(f"{gpu.name} has no bf16 or fp16 rate in the catalogue")
    return System(
        name=f"DGX-{gpu.name.split('-')[0].upper()}" if board else gpu.name,
        bf16=bf16,
        fp8=_rate(gpu.dense.fp8),
        fp4=_rate(gpu.dense.fp4),
        fp32=fp32 or bf16,
        memory_bytes_s=float(gpu.bandwidth.value),
        scale_up_bytes_s=link_bytes_s,
        domain=domain,
        nic_bytes_s=nic_bytes_s,
        node=node[0],
        node_bytes_s=node[1],
        exponentials_s=_EXPONENTIALS.get(gpu.architecture, (fp32 or bf16) / _LANES),
        **({"host_bytes_s": _C2C_BYTES_S} if gpu.form == "superchip" else {}),
    )


def _rate(quantity: Quantity | None) -> float:
    return float(quantity.value) if quantity is not None else 0.0
