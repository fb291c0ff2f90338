"""Measured laws of collectives inside one node, by GPU and operation (`collective_laws` says what the numbers are).

Fitted to latencies of nccl-tests from 512 B to 512 MiB, over every rank count at once
(`tools/validation/nccl_fitting.py` repeats it). A ring adds up 8-bit numbers everywhere; an NVSwitch of Hopper or later
adds up wider ones itself, which NCCL was seen to use for the all-reduce of eight GPUs: IN_SWITCH. Nobody measured five
to seven; they are taken as a ring.

Source: NCCL src/include/device.h, ncclNvlsSupported: integers and floating point of 16 to 64 bit, none of 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusterwright.physics.ceilings import Collective
from clusterwright.physics.collective_laws import Law, Protocol
from clusterwright.physics.collectives import CollectiveTerms

FIT_SOURCE: Final = (
    "fit to nccl-tests latencies shipped in aiconfigurator-core (Apache-2.0), NCCL 2.23 to 2.29, fitted 2026-12-01"
)

#: Ranks of IN_SWITCH.
SWITCHED_RANKS: Final = 8

#: By catalogue name of the GPU and operation. GB200 and GB300: one tray of four. L40S and RTX PRO 6000 have no NVLink:
#: PCIe, from eight GPUs on across sockets.
FITS: Final[Mapping[str, Mapping[Collective, Law]]] = {
    "a100-sxm-80": {
        "all-reduce": Law(
            Protocol(7.433, 1.015, 0.01186, 0.02467, eight_bit=0.01444),
            Protocol(6.021, 0.7787, 0.003956, 0.01495, memory=0.0002813, eight_bit=0.0001724),
            2**14.5,
        ),
        "all-gather": Law(
            Protocol(7.409, 0.9818, 0.0263, 0.02933),
            Protocol(7.826, 0.7857, 0.002838, 0.009238, memory=0.001421),
            2**14.5,
        ),
        "reduce-scatter": Law(
            Protocol(7.918, 1.01, 0.007524, 0.009299, eight_bit=0.000459),
            Protocol(21.45, 3.445, 0.003038, 0.003284, memory=0.00123, eight_bit=0.0003332),
            2**19.5,
        ),
        "all-to-all": Law(
            Protocol(11.36, 0.2764, 0.01212, 0.006452),
            Protocol(11.83, 0.1146, 0.003683, 0.00759, memory=0.0007578),
            2**19.5,
        ),
    },
    "h100-sxm-80": {
        "all-reduce": Law(
            Protocol(4.727, 0.788, 0.02432, 0.00591, eight_bit=0.01588),
            Protocol(3.563, 0.8816, 0.002075, 0.006871, memory=0.0007747, eight_bit=0.0001155),
            2**13.5,
        ),
        "all-gather": Law(
            Protocol(4.469, 0.8432, 0.03739, 0.00768),
            Protocol(4.03, 0.8198, 0.001724, 0.00537, memory=0.0008336),
            2**13.5,
        ),
        "reduce-scatter": Law(
            Protocol(4.745, 0.8488, 0.002713, 0.004307, eight_bit=0.0004437),
            Protocol(3.161, 0.8886, 0.001222, 0.004978, memory=0.001257, eight_bit=0.0001444),
            2**18.5,
        ),
        "all-to-all": Law(
            Protocol(5.35, 0.2505, 0.001998, 0.02752), Protocol(10.61, 0, 0.002608, 0.002421, memory=0.0003704), 2**16.5
        ),
    },
    "h200-sxm-141": {
        "all-reduce": Law(
            Protocol(4.21, 0.8132, 0.04386, 0.01062, eight_bit=0.03289),
            Protocol(3.912, 0.9537, 0.002113, 0.005422, memory=0.0008154, eight_bit=9.265e-05),
            2**12.5,
        ),
        "all-gather": Law(
            Protocol(4.101, 0.9719, 0.05872, 0.004575),
            Protocol(3.393, 1.112, 0.001668, 0.004926, memory=0.0008787),
            2**13.5,
        ),
        "reduce-scatter": Law(
            Protocol(4.128, 1.003, 0.002658, 0.004635, eight_bit=0.0005225),
            Protocol(4.061, 1.316, 0.001163, 0.003898, memory=0.001335, eight_bit=0.0001219),
            2**18.5,
        ),
        "all-to-all": Law(
            Protocol(5.136, 0.419, 0.002322, 0.02684),
            Protocol(9.383, 0.1423, 0.002838, 0.002542, memory=0.0001356),
            2**16.5,
        ),
    },
    "b200-sxm-180": {
        "all-reduce": Law(
            Protocol(6.501, 1.397, 0.002055, 0.00403, eight_bit=0.0007088),
            Protocol(16.97, 4.64, 0.0007825, 0, memory=0.001044, eight_bit=9.153e-05),
            2**20.5,
        ),
        "all-gather": Law(
            Protocol(6.553, 1.478, 0.003069, 0.003894), Protocol(9.168, 9.422, 0.0002013, 0, memory=0.001018), 2**20.5
        ),
        "reduce-scatter": Law(
            Protocol(6.558, 1.433, 0.002369, 0.004054),
            Protocol(9.268, 7.895, 0, 0, memory=0.001232, eight_bit=0.0001834),
            2**20.5,
        ),
        "all-to-all": Law(
            Protocol(7.762, 0.3616, 0.001958, 0.02727),
            Protocol(13.25, 0.3847, 0.0001466, 0.001624, memory=0.001343),
            2**16.5,
        ),
    },
    "b300-sxm-270": {
        "all-reduce": Law(
            Protocol(6.801, 1.337, 0.001921, 0.003545, eight_bit=0.0005389),
            Protocol(16.41, 4.6, 0.0008091, 0, memory=0.0009999, eight_bit=8.456e-05),
            2**20.5,
        ),
        "all-gather": Law(
            Protocol(6.802, 1.442, 0.002508, 0.00375), Protocol(8.713, 9.532, 0.0002226, 0, memory=0.0009921), 2**20.5
        ),
        "reduce-scatter": Law(
            Protocol(6.843, 1.387, 0.00268, 0.003048, eight_bit=0.0001743),
            Protocol(8.681, 7.97, 0, 0, memory=0.001226, eight_bit=0.0001893),
            2**20.5,
        ),
        "all-to-all": Law(
            Protocol(7.951, 0.4685, 0.004361, 0.02435),
            Protocol(12.79, 0.4509, 0.0001437, 0.001474, memory=0.001315),
            2**16.5,
        ),
    },
    "gb200-186": {
        "all-reduce": Law(
            Protocol(8.247, 1.315, 0.002744, 0.001053, eight_bit=0.0004071),
            Protocol(9.379, 8.905, 0.0005803, 0, memory=0.00121, eight_bit=0.0001148),
            2**20.5,
        ),
        "all-gather": Law(
            Protocol(8.136, 1.234, 0.003441, 0.002303), Protocol(8.896, 9.998, 0.0002724, 0, memory=0.0009681), 2**20.5
        ),
        "reduce-scatter": Law(
            Protocol(7.939, 1.329, 0.002952, 0.002254, eight_bit=0.0002612),
            Protocol(8.963, 8.466, 0, 0, memory=0.001217, eight_bit=0.0002579),
            2**20.5,
        ),
        "all-to-all": Law(
            Protocol(9.114, 0.3386, 0.02831, 0.01467),
            Protocol(15.61, 0.3597, 0.0002854, 0.0001044, memory=0.001301),
            2**15.5,
        ),
    },
    "gb300-279": {
        "all-reduce": Law(
            Protocol(7.756, 1.327, 0.002363, 0.00177, eight_bit=0.0004129),
            Protocol(9.111, 8.804, 0.000589, 0, memory=0.001191, eight_bit=0.0001002),
            2**20.5,
        ),
        "all-gather": Law(
            Protocol(7.374, 1.434, 0.002819, 0.003184), Protocol(8.475, 9.94, 0.0002442, 0, memory=0.0009731), 2**20.5
        ),
        "reduce-scatter": Law(
            Protocol(7.456, 1.398, 0.002771, 0.00272, eight_bit=7.551e-05),
            Protocol(8.622, 8.283, 2.472e-05, 0, memory=0.001198, eight_bit=0.0002415),
            2**20.5,
        ),
        "all-to-all": Law(
            Protocol(9.113, 0.2799, 0.02517, 0.01459), Protocol(15.36, 0.3364, 0.0003265, 0, memory=0.001259), 2**15.5
        ),
    },
    "l40s": {
        "all-reduce": Law(
            Protocol(4.02, 1.163, 0.09389, 0, eight_bit=0.0009801, bridge=0.06064, socket=0.1704),
            Protocol(9.723, 4.062, 0.04964, 0, bridge=0.06889, socket=0.05707),
            2**17.5,
            per_rank=False,
        ),
        "all-gather": Law(
            Protocol(5.017, 1.037, 0.09875, 0, bridge=0.07941, socket=0.1729),
            Protocol(18.02, 0, 0.05092, 0, bridge=0.07939, socket=0.07314),
            2**19.5,
            per_rank=False,
        ),
        "reduce-scatter": Law(
            Protocol(4.961, 0.9892, 0.09161, 0.001045, eight_bit=0.003985, bridge=0.1009, socket=0.1562),
            Protocol(11.44, 8.498, 0.05272, 0, bridge=0.06396, socket=0.05694),
            2**18.5,
            per_rank=False,
        ),
        "all-to-all": Law(
            Protocol(6.794, 0.6434, 0.0374, 0.02126, bridge=0.08698, socket=0.08852),
            Protocol(0, 27.83, 0.04465, 0, bridge=0.08516),
            2**25.5,
            per_rank=False,
        ),
    },
    "rtx-pro-6000-server": {
        "all-reduce": Law(
            Protocol(3.285, 1.542, 0.04548, 0, eight_bit=0.004135, bridge=0.0093),
            Protocol(5.71, 5.805, 0.02675, 0, eight_bit=0.0008028, bridge=0.0029),
            2**18.5,
            per_rank=False,
        ),
        "all-gather": Law(
            Protocol(4.507, 1.46, 0.06609, 0, bridge=0.006996, socket=0.002638),
            Protocol(11.73, 3.778, 0.03125, 0, bridge=0.002006),
            2**18.5,
            per_rank=False,
        ),
        "reduce-scatter": Law(
            Protocol(4.117, 1.594, 0.0598, 0, eight_bit=0.001508, bridge=0.009539),
            Protocol(8.482, 5.072, 0.03303, 0, eight_bit=0.003667, bridge=0.00243),
            2**18.5,
            per_rank=False,
        ),
        "all-to-all": Law(
            Protocol(5.521, 0.5374, 0.07378, 0.01418, bridge=0.03916, socket=0.003368),
            Protocol(5.071, 2.423, 0.03727, 0.002658, bridge=0.002738, socket=0.001632),
            2**15.5,
            per_rank=False,
        ),
    },
}
#: All-reduce of wider than 8-bit numbers over SWITCHED_RANKS GPUs, added up in the switch.
IN_SWITCH: Final[Mapping[str, Law]] = {
    "h100-sxm-80": Law(Protocol(15.72, 0, 0.003499, 0.01208), Protocol(59.77, 0, 0.002203, 0), 2**23.5, per_rank=False),
    "h200-sxm-141": Law(
        Protocol(16.37, 0, 0.003073, 0.01618), Protocol(74.01, 0, 0.002092, 0), 2**24.5, per_rank=False
    ),
    "b200-sxm-180": Law(
        Protocol(26.05, 0, 0.002228, 0.007061), Protocol(123.4, 0, 0.001277, 0), 2**25.5, per_rank=False
    ),
    "b300-sxm-270": Law(Protocol(26.84, 0, 0.002443, 0), Protocol(122.4, 0, 0.001275, 0), 2**25.5, per_rank=False),
}
#: Largest number of ranks that was measured, where it is not eight.
_MEASURED: Final = {"gb200-186": 4, "gb300-279": 4}
#: Share of the measured latency that the estimate is off by at most, for nine of ten latencies of the fitted file when
#: a fifth of the message sizes is left out of the fit at a time.
SPREADS: Final[Mapping[str, float]] = {
    "a100-sxm-80": 0.146,
    "h100-sxm-80": 0.116,
    "h200-sxm-141": 0.129,
    "b200-sxm-180": 0.121,
    "b300-sxm-270": 0.115,
    "gb200-186": 0.086,
    "gb300-279": 0.099,
    "l40s": 0.224,
    "rtx-pro-6000-server": 0.202,
}
#: GPUs whose laws are those of another: the same links.
_SAME: Final = {"a100-sxm-40": "a100-sxm-80"}


def find_terms(
    gpu: str, operation: Collective, ranks: float, switch_adds: bool = True, eight_bit: bool = False
) -> CollectiveTerms | None:
    """Terms of an operation over `ranks` GPUs of one node; None for a GPU that nobody measured.

    Args:
        gpu: catalogue name.
        ranks: at least 2.
        switch_adds: False where NVLS is off.
        eight_bit: numbers of 8 bit are added up, which no switch does.
    """
    law = FITS.get(_SAME.get(gpu, gpu), {}).get(operation)
    if operation == "all-reduce" and ranks == SWITCHED_RANKS and switch_adds and not eight_bit:
        law = IN_SWITCH.get(gpu, law)
    return None if law is None else law.terms(operation, ranks, eight_bit)


def most_ranks(gpu: str) -> int:
    """Largest number of ranks that was measured for a GPU, 0 for one that nobody measured."""
    name = _SAME.get(gpu, gpu)
    return _MEASURED.get(name, 8) if name in FITS else 0


def find_spread(gpu: str) -> float | None:
    """Share that nine of ten latencies lie within (SPREADS); None for a GPU that nobody measured."""
    return SPREADS.get(_SAME.get(gpu, gpu))
