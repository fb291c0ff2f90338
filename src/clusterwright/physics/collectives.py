"""Time of collectives: a three-term fit per GPU product, and the hierarchical all-reduce over nodes.

t(µs) = α + S·f/(B·10³) + c·√S with S in bytes, f = 2(n−1)/n and B in GB/s. The terms were fitted to all-reduce
latencies of nccl-tests runs on one node (or one 4-GPU tray) as shipped in the aiconfigurator-core package
(Apache-2.0). α is that of the fitted rank count; with fewer ranks it is an upper estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CollectiveFit:
    """Terms of the fit: α in µs, B in GB/s bus bandwidth, c in µs per √byte, ranks they were fitted on."""

    latency_us: float
    bandwidth_gbytes_s: float
    root_us: float
    ranks: int


#: All-reduce inside one NVLink domain by catalogue name of the GPU.
ALL_REDUCE: Final[dict[str, CollectiveFit]] = {
    "h100-sxm-80": CollectiveFit(15.3, 517, 0.0103, 8),
    "h200-sxm-141": CollectiveFit(15.8, 546, 0.0108, 8),
    "a100-sxm-80": CollectiveFit(20.9, 240, 0.0126, 8),
    "a100-sxm-40": CollectiveFit(20.9, 240, 0.0126, 8),
    "b200-sxm-180": CollectiveFit(25.1, 865, 0.0096, 8),
    "gb200-186": CollectiveFit(15.8, 713, 0.0051, 4),
}
FIT_SOURCE: Final = "fit to nccl-tests all-reduce latencies shipped in aiconfigurator-core (Apache-2.0), 2026"


def all_reduce_us(
    size_bytes: float, ranks: float, latency_us: float, bandwidth_gbytes_s: float, root_us: float
) -> float:
    """µs of an all-reduce of `size_bytes` over `ranks` GPUs of one NVLink domain; 0 for one rank."""
    if ranks <= 1:
        return 0.0
    factor = 2 * (ranks - 1) / ranks
    return latency_us + size_bytes * factor / (bandwidth_gbytes_s * 1e3) + root_us * math.sqrt(size_bytes)


def bus_bandwidth_gbytes_s(size_bytes: float, time_us: float, ranks: float) -> float:
    """Bus bandwidth of an all-reduce as nccl-tests defines it: size ÷ time × 2(n−1)/n."""
    return size_bytes / (time_us * 1e3) * 2 * (ranks - 1) / ranks


def hierarchical_all_reduce_us(
    size_bytes: float,
    gpus_per_node: float,
    nodes: float,
    inside_gbytes_s: float,
    nic_gbytes_s: float,
    latency_us: float,
) -> float:
    """µs of reduce-scatter and all-gather inside each node around an all-reduce between nodes over every NIC.

    Args:
        inside_gbytes_s: bus bandwidth inside a node.
        nic_gbytes_s: achieved rate of the NIC of one GPU.
        latency_us: of all steps together.
    """
    inside = size_bytes * 2 * (gpus_per_node - 1) / gpus_per_node / (inside_gbytes_s * 1e3)
    between = size_bytes / gpus_per_node * 2 * (nodes - 1) / nodes / (nic_gbytes_s * 1e3)
    return inside + between + latency_us
