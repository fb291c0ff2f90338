"""What a collective can reach on a system named by its GPU, its nodes and their NICs: bound, reference, published.

A reading above the bound is no measurement of that system. One above the reference, or far below it, is looked at
again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from clusterwright.model.hardware import Gpu
from clusterwright.physics.ceilings import (
    COLLECTIVES,
    Collective,
    busbw_bound,
    busbw_bound_inside,
    busbw_reference,
)
from clusterwright.physics.published import Published, best_published

#: NVLink generation from which NVSwitch adds up in the network (NVLS): NVSwitch 3, Hopper.
NVLS_GENERATION: Final = 4
#: busbw = algbw × factor × (n − 1) ÷ n; source: nccl-tests PERFORMANCE.md.
FACTORS: Final[dict[Collective, float]] = {
    "all-reduce": 2.0,
    "all-gather": 1.0,
    "reduce-scatter": 1.0,
    "all-to-all": 1.0,
}


@dataclass(frozen=True, slots=True)
class System:
    """GPUs that take part in a collective, and how they reach each other.

    Args:
        ranks: GPUs that take part.
        domain_gpus: GPUs that reach each other without a NIC; with multi-node NVLink off, those of one node.
        nic_gbytes_s: NIC rate per GPU in GB/s; None when not known.
        sharp: whether switches of the network add up.
    """

    gpu: Gpu
    ranks: int
    domain_gpus: int
    nic_gbytes_s: float | None = None
    sharp: bool = False

    @property
    def domains(self) -> float:
        """Domains that take part; 1 when all GPUs are in one."""
        return max(1.0, self.ranks / max(1, self.domain_gpus))

    @property
    def link_gbytes_s(self) -> float | None:
        """Rate of one GPU into its domain, GB/s one direction; None without such a link."""
        return None if self.gpu.scale_up is None else self.gpu.scale_up.per_direction.to("GB/s")

    @property
    def switch_reduces(self) -> bool:
        """Whether switches of the domain add up (NVLS)."""
        link = self.gpu.scale_up
        return (
            link is not None and link.kind == "nvlink" and link.switched and (link.generation or 0) >= NVLS_GENERATION
        )

    def __str__(self) -> str:
        if self.domains <= 1:
            return f"{self.ranks} × {self.gpu.name} in one domain"
        nic = f", {self.nic_gbytes_s:g} GB/s of NIC per GPU" if self.nic_gbytes_s is not None else ""
        sharp = ", in-network reduction" if self.sharp else ""
        return f"{self.domains:g} domains of {self.domain_gpus} × {self.gpu.name}{nic}{sharp}"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a collective can reach, GB/s of bus bandwidth.

    Args:
        bound: nothing on this transport exceeds it; infinite where the network's switches add up.
        reference: of a flat ring; above it look again.
        published: the best published result on the same shape of system, if any.
    """

    bound: float
    reference: float
    published: Published | None = None

    @property
    def expected(self) -> float:
        """What healthy hardware was seen to reach, else the reference."""
        return self.published.busbw if self.published is not None else self.reference


def ceiling_of(system: System, operation: str) -> Ceiling | str:
    """The ceiling of a collective on a system, or what is missing to know it."""
    if operation not in COLLECTIVES:
        return f"no ceiling is known for {operation or 'an unnamed operation'}: choices are {', '.join(COLLECTIVES)}"
    if system.ranks < 2:
        return "one GPU has nobody to talk to"
    link = system.link_gbytes_s
    published = best_published(
        system.gpu.name,
        system.ranks if system.domains <= 1 else system.domain_gpus,
        system.domains,
        operation,
        system.nic_gbytes_s,
    )
    if system.domains <= 1:
        if link is None:
            return f"{system.gpu.name} has no link of its own inside a node"
        return Ceiling(busbw_bound_inside(operation, system.ranks, link, system.switch_reduces), link, published)
    if system.nic_gbytes_s is None:
        return "the NIC rate per GPU is not known"
    bound = busbw_bound(operation, system.domain_gpus, system.domains, system.nic_gbytes_s)
    reference = (
        bound
        if operation == "all-to-all"
        else busbw_reference(
            system.domain_gpus, system.domains, system.nic_gbytes_s, math.inf if link is None else link
        )
    )
    if system.sharp and operation == "all-reduce":
        bound = math.inf
    return Ceiling(bound, min(bound, reference), published)


def as_busbw(algbw: float, operation: Collective, ranks: int) -> float:
    """Bus bandwidth of an algorithm bandwidth, in the same unit."""
    return algbw * FACTORS[operation] * (ranks - 1) / ranks


def why_impossible(system: System, operation: str, busbw: float) -> str:
    """Why a bus bandwidth (GB/s) is no measurement of this system, "" when it may be one or nothing is known."""
    found = ceiling_of(system, operation)
    if isinstance(found, str) or busbw <= found.bound:
        return ""
    return f"{busbw:.4g} GB/s busbw; {operation} on {system} is bound by {found.bound:.4g}: it measured something else"
