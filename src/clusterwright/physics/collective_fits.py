"""Measured terms of collectives inside one node, by GPU, operation and rank count.

Fitted to the 16-bit latencies of nccl-tests from 512 B to 512 MiB (`tools/validation/nccl.py` repeats it). Between
measured rank counts and above them the terms follow from the nearest two (`interpolate`). Sums are of 16-bit numbers,
which an NVSwitch of Hopper or later adds up itself from eight GPUs on; WITHOUT_SWITCH is without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusterwright.physics.ceilings import Collective
from clusterwright.physics.collectives import CollectiveTerms

FIT_SOURCE: Final = (
    "fit to nccl-tests latencies shipped in aiconfigurator-core (Apache-2.0), NCCL 2.26 to 2.29, fitted 2026-11-30"
)

#: (α µs, B GB/s, c µs/√B) by catalogue name of the GPU, operation, ranks. GB200 and GB300: one tray of four. L40S and
#: RTX PRO 6000 have no NVLink: PCIe, from eight GPUs on across sockets.
FITS: Final[Mapping[str, Mapping[Collective, Mapping[int, tuple[float, float, float]]]]] = {
    "a100-sxm-80": {
        "all-reduce": {2: (9.707, 218.8, 0.01107), 4: (13.58, 234.8, 0.01206), 8: (20.99, 237.2, 0.01211)},
        "all-gather": {2: (8.831, 171.4, 0.008638), 4: (10.52, 224.8, 0.01184), 8: (14.66, 217.8, 0.008207)},
        "reduce-scatter": {2: (8.858, 198.1, 0.007729), 4: (10.55, 233.8, 0.009784), 8: (14.53, 232.9, 0.008293)},
        "all-to-all": {2: (10.57, 196.8, 0.008422), 4: (12.13, 211.8, 0.007176), 8: (12.51, 225.3, 0.008949)},
    },
    "h100-sxm-80": {
        "all-reduce": {2: (6.109, 334, 0.005221), 4: (9.571, 368.9, 0.005137), 8: (15.32, 510.5, 0.01007)},
        "all-gather": {2: (5.239, 292.2, 0.005144), 4: (7.148, 351.3, 0.005105), 8: (10.4, 364.2, 0.004631)},
        "reduce-scatter": {2: (5.357, 252.3, 0.003473), 4: (7.27, 325.8, 0.00337), 8: (10.39, 355.1, 0.003243)},
        "all-to-all": {2: (6.576, 320.4, 0.004462), 4: (6.725, 385.8, 0.006077), 8: (7.679, 346.9, 0.005023)},
    },
    "h200-sxm-141": {
        "all-reduce": {2: (5.951, 336.4, 0.004951), 4: (9.402, 367.4, 0.004682), 8: (15.92, 538.3, 0.01081)},
        "all-gather": {2: (5.088, 285.8, 0.004393), 4: (6.953, 352.8, 0.00495), 8: (11.27, 372.9, 0.004814)},
        "reduce-scatter": {2: (5.102, 253.8, 0.003171), 4: (7.046, 328.1, 0.003088), 8: (10.58, 366.3, 0.003963)},
        "all-to-all": {2: (6.713, 345, 0.00436), 4: (6.759, 382.2, 0.005412), 8: (9.301, 342.1, 0.003765)},
    },
    "b200-sxm-180": {
        "all-reduce": {2: (9.261, 601.2, 0.003698), 4: (14.51, 697, 0.004005), 8: (24.97, 866.5, 0.009734)},
        "all-gather": {2: (8.028, 549.1, 0.003494), 4: (10.62, 710.4, 0.004381), 8: (16.56, 718.2, 0.003726)},
        "reduce-scatter": {2: (8.011, 468.3, 0.002851), 4: (10.67, 640.8, 0.003373), 8: (16.12, 715.8, 0.003903)},
        "all-to-all": {2: (8.901, 402.8, 0.004383), 4: (9.995, 571.1, 0.00355), 8: (10.81, 673.3, 0.004535)},
    },
    "b300-sxm-270": {
        "all-reduce": {2: (9.555, 603.2, 0.003481), 4: (14.54, 681.5, 0.002971), 8: (25.92, 847.5, 0.008789)},
        "all-gather": {2: (8.269, 528.3, 0.003051), 4: (10.54, 677.5, 0.003617), 8: (16.77, 703.9, 0.003057)},
        "reduce-scatter": {2: (8.252, 461.5, 0.002404), 4: (10.65, 631.2, 0.003058), 8: (16.05, 740.8, 0.004748)},
        "all-to-all": {2: (9.375, 400.2, 0.003793), 4: (9.865, 591.8, 0.003569), 8: (11.99, 675.2, 0.004076)},
    },
    "gb200-186": {
        "all-reduce": {2: (10.63, 581.8, 0.002497), 4: (15.96, 674.4, 0.002663)},
        "all-gather": {2: (9.207, 522.5, 0.002918), 4: (11.65, 671.8, 0.003495)},
        "reduce-scatter": {2: (9.193, 456.7, 0.002345), 4: (11.78, 618.6, 0.00268)},
        "all-to-all": {2: (10.15, 399.3, 0.003489), 4: (10.63, 592.9, 0.00351)},
    },
    "gb300-279": {
        "all-reduce": {2: (10.13, 594.7, 0.002877), 4: (15.54, 674.5, 0.002471)},
        "all-gather": {2: (8.741, 527.1, 0.002936), 4: (11.55, 655, 0.002905)},
        "reduce-scatter": {2: (8.776, 465.8, 0.002486), 4: (11.46, 632.6, 0.003058)},
        "all-to-all": {2: (10.08, 392.4, 0.00299), 4: (10.42, 599.5, 0.003537)},
    },
    "l40s": {
        "all-reduce": {2: (5.448, 20.82, 0.01555), 4: (11.58, 5.141, 0), 8: (20.3, 1.478, 0.02516)},
        "all-gather": {2: (5.056, 20.66, 0.01173), 4: (8.496, 4.738, 0.0001461), 8: (11.07, 1.218, 0.05292)},
        "reduce-scatter": {2: (5.027, 19.54, 0.01124), 4: (8.062, 4.916, 0.006331), 8: (9.899, 1.647, 0.06901)},
        "all-to-all": {2: (8.507, 23.52, 0.01022), 4: (8.937, 4.654, 0.008201), 8: (3.252, 1.306, 0.14)},
    },
    "rtx-pro-6000-server": {
        "all-reduce": {2: (5.923, 38.41, 0.007941), 4: (12.74, 25.95, 0.007591), 8: (23.09, 25.37, 0.03421)},
        "all-gather": {2: (5.682, 33.31, 0.00684), 4: (9.095, 23.84, 0.005454), 8: (13.82, 24.18, 0.01869)},
        "reduce-scatter": {2: (5.137, 32.94, 0.008346), 4: (9.166, 24.03, 0.006194), 8: (14.31, 24.59, 0.01884)},
        "all-to-all": {2: (6.511, 27.32, 0.004089), 4: (7.757, 24.69, 0.01253), 8: (8.965, 18.56, 0.02487)},
    },
}
#: The same over eight GPUs whose switch does not add up (NCCL_NVLS_ENABLE=0): fitted to sums of integers, which no
#: NVSwitch adds up.
WITHOUT_SWITCH: Final[Mapping[str, Mapping[Collective, tuple[float, float, float]]]] = {
    "h100-sxm-80": {"all-reduce": (15.76, 379.5, 0.006945), "reduce-scatter": (10.45, 344.8, 0.003408)},
    "h200-sxm-141": {"all-reduce": (16.61, 377.9, 0.005959), "reduce-scatter": (10.47, 352.4, 0.003714)},
    "b200-sxm-180": {"all-reduce": (26.09, 693.7, 0.003247), "reduce-scatter": (16.71, 649.9, 0.002759)},
    "b300-sxm-270": {"all-reduce": (25.99, 686.9, 0.00248), "reduce-scatter": (17.36, 661.3, 0.003115)},
}
#: Ranks of WITHOUT_SWITCH.
_SWITCHED: Final = 8
#: How far above the fastest measured bandwidth a line may lead.
_MOST: Final = 1.25
#: GPUs whose terms are those of another: the same links.
_SAME: Final = {"a100-sxm-40": "a100-sxm-80"}


def find_terms(gpu: str, operation: Collective, ranks: float, switch_adds: bool = True) -> CollectiveTerms | None:
    """Terms of an operation over `ranks` GPUs of one node; None for a GPU that nobody measured.

    Args:
        gpu: catalogue name.
        ranks: at least 2.
        switch_adds: False where NVLS is off or cannot add up the type of number.
    """
    known = FITS.get(_SAME.get(gpu, gpu), {}).get(operation)
    if not known:
        return None
    terms = {n: CollectiveTerms(*t) for n, t in known.items()}
    alone = WITHOUT_SWITCH.get(gpu, {}).get(operation)
    if alone is not None and not switch_adds:
        terms[_SWITCHED] = CollectiveTerms(*alone)
    return interpolate(terms, ranks)


def most_ranks(gpu: str) -> int:
    """Largest number of ranks that was measured for a GPU, 0 for one that nobody measured."""
    return max((n for terms in FITS.get(_SAME.get(gpu, gpu), {}).values() for n in terms), default=0)


def interpolate(known: Mapping[int, CollectiveTerms], ranks: float) -> CollectiveTerms:
    """Terms at a rank count from those at two or more others, on the line through the nearest two.

    The latency is linear in ranks (steps of a ring). Per byte of the buffer a part f/B goes over the link and a part
    that does not depend on ranks through memory, so 1/B is linear in 1/f, f = (n−1)/n. c: linear between, else nearest.
    """
    if ranks in known:
        return known[int(ranks)]
    low, high = _neighbours(sorted(known), ranks)
    a, b = known[low], known[high]
    part, slow = (ranks - low) / (high - low), _inverse_factor(low)
    bytes_part = (_inverse_factor(ranks) - slow) / (_inverse_factor(high) - slow)
    per_byte = 1 / a.bandwidth_gbytes_s + bytes_part * (1 / b.bandwidth_gbytes_s - 1 / a.bandwidth_gbytes_s)
    root = a.root_us + min(1.0, max(0.0, part)) * (b.root_us - a.root_us)
    fastest = max(t.bandwidth_gbytes_s for t in known.values()) * _MOST
    return CollectiveTerms(
        max(0.0, a.latency_us + part * (b.latency_us - a.latency_us)), 1 / max(per_byte, 1 / fastest), root
    )


def _inverse_factor(ranks: float) -> float:
    return ranks / (ranks - 1)


def _neighbours(counts: list[int], ranks: float) -> tuple[int, int]:
    above = next((i for i, n in enumerate(counts) if n > ranks), len(counts) - 1)
    high = max(1, above)
    return counts[high - 1], counts[high]
