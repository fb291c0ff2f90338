"""How workloads are split over GPUs, and where their replicas are placed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clusterwright.lib.figures import Figure

Level = Literal["gpu", "node", "nodes"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How one replica or one job is split over GPUs; `declared` when the file says so."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    declared: bool = False
    vp: int = 1
    dcp: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of one replica or job."""
        return self.tp * self.pp * self.dp * self.cp

    def __str__(self) -> str:
        widths = {"TP": self.tp, "PP": self.pp, "DP": self.dp, "CP": self.cp, "EP": self.ep, "VP": self.vp}
        widths["DCP"] = self.dcp
        return " ".join(f"{name}{width}" for name, width in widths.items() if width > 1) or "TP1"


@dataclass(frozen=True, slots=True)
class PlacementChoice:
    """One way to place a replica or job: in a GPU, in a node, over nodes.

    Args:
        reason: why it was chosen, or why not.
        failure_domain: what one failure takes down.
        memory_total: GiB on the fullest GPU, None where it could not be computed.
    """

    level: Level
    layout: Layout
    feasible: bool
    chosen: bool
    reason: str
    failure_domain: str
    memory_total: Figure | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """GPUs of one node given to one replica (training: replica 0) of a workload."""

    workload: str
    replica: int
    pool: str
    node: str
    gpus: tuple[int, ...]
