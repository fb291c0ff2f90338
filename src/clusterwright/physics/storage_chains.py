"""The way of bytes from where they lie into GPU memory (and back) as a chain of limits: the slowest link binds.

media → server → network → adapter → PCIe → host memory → loader. Links that work on one stream are limited by the
slowest. Without GPUDirect Storage a byte is written to host memory by the adapter and read from it by the GPU: half the
memory's rate is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

LinkName = Literal["media", "server", "network", "nic", "pcie", "memory", "loader"]

#: Share of a PCIe link's rate after line coding that copies to pinned memory reach.
PCIE_SHARE: Final = 0.8
#: B/s of one socket's memory by CPU model: channels × transfers × 8 B; product pages of Intel, AMD, NVIDIA (2026-11).
MEMORY_BYTES_S: Final[dict[str, float]] = {
    "Intel Xeon Platinum 8480C": 8 * 4.8e9 * 8,
    "Intel Xeon Platinum 8480+": 8 * 4.8e9 * 8,
    "Intel Xeon Platinum 8570": 8 * 5.6e9 * 8,
    "AMD EPYC 7742": 8 * 3.2e9 * 8,
    "AMD EPYC 7R13": 8 * 3.2e9 * 8,
    "NVIDIA Grace": 512e9,
}
MEMORY_SOURCE: Final = "memory channels × transfer rate × 8 B of the CPU, 2026-11"
#: B/s of one loading process, fastest published: Llama-3-8B (15 GB) by loader; the safetensors loader stays at its rate
#: on faster disks, so it is the loader that binds; the streamer from S3 is the fastest.
LOADER_BYTES_S: Final[dict[str, float]] = {
    "safetensors": 15e9 / 47.99,
    "tensorizer": 15e9 / 10.36,
    "runai-streamer": 15e9 / 4.88,
}
#: What engines load with unless told otherwise: vLLM LoadConfig.load_format `auto` (docs.vllm.ai, 0.15).
DEFAULT_LOADER: Final = "safetensors"
FASTEST_LOADER: Final = max(LOADER_BYTES_S, key=LOADER_BYTES_S.__getitem__)
LOADER_SOURCE: Final = "Run:ai Model Streamer performance benchmarks, run.ai/blog, 2024-10-29, one GPU"


@dataclass(frozen=True, slots=True)
class NodeClass:
    """What one reference node moves to and from shared storage, B/s."""

    name: Literal["good", "better", "best"]
    read_bytes_s: float
    write_bytes_s: float


#: DGX H100: text and small models; images and large models in memory; video, uncompressed images, offline inference.
#: Source: NVIDIA DGX SuperPOD with DGX H100, reference architecture RA-11333-001, storage performance, 2023-09.
NODE_CLASSES: Final = (NodeClass("good", 4e9, 2e9), NodeClass("better", 8e9, 4e9), NodeClass("best", 40e9, 20e9))


@dataclass(frozen=True, slots=True)
class Link:
    """One limit, B/s for all readers together."""

    name: LinkName
    rate_bytes_s: float


@dataclass(frozen=True, slots=True)
class Chain:
    """How long bytes take through a chain.

    Args:
        binding: the slowest link, None for a chain without links.
        time_s: of all bytes through it.
    """

    binding: LinkName | None
    rate_bytes_s: float
    time_s: float


def follow_chain(links: tuple[Link, ...], total_bytes: float) -> Chain:
    """All bytes through every link at once; of equals the first binds."""
    slowest = min(links, key=lambda link: link.rate_bytes_s, default=None)
    if slowest is None:
        return Chain(None, math.inf, 0.0)
    rate = slowest.rate_bytes_s
    return Chain(slowest.name, rate, total_bytes / rate if rate else math.inf)


def host_memory_bytes_s(sockets: float, socket_bytes_s: float, direct: bool) -> float:
    """Rate that host memory lets a stream from adapter to GPU have: half, or no limit with GPUDirect Storage."""
    return math.inf if direct else sockets * socket_bytes_s / 2


def node_class(rate_bytes_s: float, way: Literal["read", "write"]) -> str:
    """The best class of reference node that a rate per node reaches, `below good` under all."""
    reached = [c.name for c in NODE_CLASSES if rate_bytes_s >= getattr(c, f"{way}_bytes_s")]
    return reached[-1] if reached else "below good"
