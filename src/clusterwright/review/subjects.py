"""What the rules look at: the document with its plan, and questions about it that many rules ask."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.quantities import Quantity
from clusterwright.model.architecture import Architecture
from clusterwright.model.documents import Document
from clusterwright.model.findings import Stage
from clusterwright.model.hardware import Gpu, Nic, NodeShape
from clusterwright.model.networks import Network
from clusterwright.model.pools import Pool
from clusterwright.model.scheduling import Queue
from clusterwright.model.software import Profile
from clusterwright.model.storages import Store
from clusterwright.model.support import Support
from clusterwright.model.workloads import Workload
from clusterwright.plan.results.plans import Plan


@dataclass(frozen=True)
class Subject:
    """One architecture under review.

    Args:
        today: the day on which waivers and prices are judged.
        stage: what the design must be ready for.
    """

    document: Document
    catalogue: Catalogue
    plan: Plan
    today: datetime.date
    stage: Stage

    @property
    def architecture(self) -> Architecture:
        """The declared value."""
        return self.document.architecture

    @property
    def workloads(self) -> dict[str, Workload]:
        """Workloads by name."""
        return self.architecture.workloads

    @property
    def pools(self) -> dict[str, Pool]:
        """Pools by name."""
        return self.architecture.pools

    @cached_property
    def gpu_pools(self) -> dict[str, Pool]:
        """Worker pools that have, or do not exclude having, GPUs."""
        return {n: p for n, p in self.pools.items() if p.role == "worker" and self.gpus_per_node(n) != 0}

    @property
    def networks(self) -> dict[str, Network]:
        """Networks by name."""
        fabric = self.architecture.fabric
        return fabric.networks if fabric else {}

    @property
    def stores(self) -> dict[str, Store]:
        """Stores by name."""
        storage = self.architecture.storage
        return storage.stores if storage else {}

    @property
    def queues(self) -> dict[str, Queue]:
        """Queues by name."""
        scheduling = self.architecture.scheduling
        return scheduling.queues if scheduling else {}

    @property
    def profiles(self) -> dict[str, Profile]:
        """Software profiles by name."""
        software = self.architecture.software
        return software.profiles if software else {}

    @property
    def support(self) -> Support:
        """The software support matrix of the catalogue."""
        return self.catalogue.support

    @property
    def provider_managed(self) -> bool:
        """Whether a provider runs the site: its power, cooling and out-of-band path are not the reader's to design."""
        return self.architecture.cluster.delivery == "provider-managed"

    def engine_of(self, pool: str) -> str | None:
        """Engine that runs a pool: its own, else the cluster's."""
        scheduling = self.architecture.scheduling
        return self.pools[pool].engine or (scheduling.engine if scheduling else None)

    @cached_property
    def engines(self) -> tuple[str, ...]:
        """Engines of the worker pools, each once."""
        named = [self.engine_of(n) for n, p in self.pools.items() if p.role == "worker"]
        return tuple(dict.fromkeys(e for e in named if e))

    def shape(self, pool: str) -> NodeShape | None:
        """Catalogue entry of a pool's node shape."""
        name = self.pools[pool].shape
        return self.catalogue.find_shape(name) if name else None

    def gpu_name(self, pool: str) -> str | None:
        """Catalogue name of a pool's GPUs: as declared, else of its shape."""
        hardware, shape = self.pools[pool].hardware, self.shape(pool)
        return (hardware.gpu if hardware else None) or (shape.gpu if shape else None)

    def gpu(self, pool: str) -> Gpu | None:
        """Catalogue entry of a pool's GPUs."""
        name = self.gpu_name(pool)
        return self.catalogue.find_gpu(name) if name else None

    def gpus_per_node(self, pool: str) -> int | None:
        """GPUs of one node: as declared, else of the shape; None if neither says."""
        hardware, shape = self.pools[pool].hardware, self.shape(pool)
        if hardware and hardware.gpus is not None:
            return hardware.gpus
        if shape is not None:
            return shape.gpus
        # A control-plane node without hardware adds nothing; a worker of unknown shape is unknown.
        return None if self.pools[pool].role == "worker" else 0

    def gpus_in(self, pool: str) -> int | None:
        """GPUs of a whole worker pool; control-plane, login and storage nodes add none."""
        each = self.gpus_per_node(pool)
        if self.pools[pool].role != "worker":
            return 0
        return None if each is None else each * self.pools[pool].node_count

    def nvswitch(self, pool: str) -> bool | None:
        """Whether GPUs of a node talk through NVSwitch; None if nothing says."""
        hardware, shape = self.pools[pool].hardware, self.shape(pool)
        if hardware and hardware.nvswitch is not None:
            return hardware.nvswitch
        return shape.nvswitch if shape else None

    def domain_gpus(self, pool: str) -> int | None:
        """GPUs of one scale-up (NVLink, xGMI) domain as the plan sees it; None if the pool is not planned."""
        planned = next((p for p in self.plan.pools if p.name == pool), None)
        return planned.domain_gpus if planned else None

    def nic(self, pool: str) -> Nic | None:
        """Catalogue entry of a pool's compute NIC."""
        hardware, shape = self.pools[pool].hardware, self.shape(pool)
        name = (hardware.nic if hardware else None) or next(
            (s.nic for s in (shape.nics if shape else ()) if s.role == "compute" and s.nic), None
        )
        return self.catalogue.find_nic(name) if name else None

    def node_power(self, pool: str) -> Quantity | None:
        """Sustained power of one node: as declared, else the shape's system power."""
        hardware, shape = self.pools[pool].hardware, self.shape(pool)
        return (hardware.power if hardware else None) or (shape.power if shape else None)

    def profile(self, pool: str) -> Profile | None:
        """Software profile of a pool, None if none is named or the name is unknown."""
        return self.profiles.get(self.pools[pool].software or "")

    def pools_of(self, workload: str) -> dict[str, Pool]:
        """GPU pools that a workload may run on."""
        named = self.workloads[workload].pools
        return {n: p for n, p in self.gpu_pools.items() if not named or n in named}

    def all_spare(self, pool: str) -> bool:
        """Whether no node of a pool may run anything: all are kept spare, which spares-cover-pool says."""
        return pool in self.pools and self.pools[pool].spares >= self.pools[pool].node_count

    def network_reaches(self, network: str, pool: str) -> bool:
        """Whether a network reaches a pool; one that names no pools reaches all."""
        pools = self.networks[network].pools
        return not pools or pool in pools

    def networks_with(self, *roles: str) -> dict[str, Network]:
        """Networks that carry any of the roles."""
        return {n: w for n, w in self.networks.items() if set(roles) & set(w.roles)}

    def versions(self) -> Iterator[tuple[str, str, str]]:
        """(path, component, version) of every version that the software section declares."""
        software = self.architecture.software
        if software is None:
            return
        for name in ("kubernetes", "gpu_operator", "network_operator", "kueue", "slurm"):
            if value := getattr(software, name):
                yield f"software.{name}", name, value
        for profile_name, profile in software.profiles.items():
            for name in type(profile).model_fields:
                if value := getattr(profile, name):
                    yield f"software.profiles.{profile_name}.{name}", name, value

    def images(self) -> Iterator[tuple[str, str]]:
        """(path, reference) of every container image that the file names."""
        architecture = self.architecture
        for name, workload in architecture.workloads.items():
            if workload.image:
                yield f"workloads.{name}.image", workload.image
        for name, image in (architecture.software.images if architecture.software else {}).items():
            yield f"software.images.{name}", image
        if architecture.acceptance and architecture.acceptance.image:
            yield "acceptance.image", architecture.acceptance.image


def value_at(root: Any, path: str) -> Any:
    """The value at a dotted path of sections and mappings, None where any part is missing."""
    for part in path.split(".") if path else ():
        if root is None:
            return None
        root = root.get(part) if isinstance(root, dict) else getattr(root, part)
    return root


def counted(count: float, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    number = count if isinstance(count, int) else f"{count:g}"
    return f"{number} {noun}" if count == 1 else f"{number} {noun}s"


def listed(names: Any, last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    items = [str(n) for n in names]
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"
