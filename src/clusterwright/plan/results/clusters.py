"""Pools with their spares, and the network between their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clusterwright.lib.figures import Figure
from clusterwright.plan.results.refusals import Unplanned


@dataclass(frozen=True, slots=True)
class SparesPlan:
    """Spare nodes of a pool.

    Args:
        declared: spares that the file keeps.
        repair: days until a failed node is back.
        needed: (probability that all working nodes are whole, spares that it takes).
    """

    declared: int
    repair: Figure
    needed: tuple[tuple[float, Figure], ...]

    @property
    def reached(self) -> float | None:
        """The highest probability that the declared spares reach, None below all."""
        return max((target for target, figure in self.needed if self.declared >= figure.value), default=None)


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """A pool that has GPUs, how many of them the workloads take, and the spares that its working nodes need."""

    name: str
    nodes: tuple[str, ...]
    gpu: str
    gpus_per_node: int
    domain_gpus: int
    used: int
    spares: SparesPlan | None = None

    @property
    def gpus(self) -> int:
        """GPUs of the pool."""
        return len(self.nodes) * self.gpus_per_node


@dataclass(frozen=True, slots=True)
class CollectivePlan:
    """Bus bandwidth of one collective over some nodes of a pool.

    Args:
        bound: GB/s busbw that nothing on this transport can exceed.
        reference: GB/s busbw of a flat ring: more means look again, far less means look for the cause.
        expected: GB/s busbw of a message of 1 GiB; None where nobody measured the inside of such a domain.
    """

    pool: str
    operation: Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]
    nodes: int
    bound: Figure
    reference: Figure
    expected: Figure | None = None


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """Collective bounds per pool, and what kept others from being computed."""

    collectives: tuple[CollectivePlan, ...] = ()
    unknown: tuple[Unplanned, ...] = ()
