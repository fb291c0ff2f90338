"""What a drawing of the cluster shows: pools with their nodes and devices, networks by role, stores, who runs where.

Taken from the document and, where one was made, from the plan; nothing is added that neither says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.hostlists import fold
from clusterwright.model.architecture import Architecture
from clusterwright.model.networks import Network
from clusterwright.model.pools import Pool
from clusterwright.plan.results.clusters import PoolPlan
from clusterwright.plan.results.plans import Plan
from clusterwright.report.proofs import Proof

KINDS: Final[dict[str, str]] = {
    "infiniband": "InfiniBand",
    "roce": "RoCE",
    "ethernet": "Ethernet",
    "efa": "EFA",
    "slingshot": "Slingshot",
    "nvlink": "NVLink",
}
#: (node, GPU) → (workload, replica)
Taken = Mapping[tuple[str, int], tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Attachment:
    """How the nodes of a pool, or a store, hang on a network: `8 × 400 Gb/s`."""

    network: str
    words: str


@dataclass(frozen=True, slots=True)
class DrawnNetwork:
    """A network as drawn.

    Args:
        role: the role that colours it; `mixed` when it carries several.
        words: kind, roles, rate and what protects it.
        brief: kind, roles and rate.
    """

    name: str
    role: str
    words: str
    brief: str


@dataclass(frozen=True, slots=True)
class DrawnPool:
    """A pool as drawn.

    Args:
        about: role, shape, GPU model.
        gpus: per node.
        domain: GPUs in one scale-up domain, 0 if unknown or none.
        domain_words: what the domain is.
        devices: other devices of a node, each as words (NICs, local disks, CPU).
    """

    name: str
    nodes: tuple[str, ...]
    about: tuple[str, ...]
    gpus: int
    domain: int
    domain_words: str
    nics: int
    devices: tuple[str, ...]
    attachments: tuple[Attachment, ...]

    @property
    def domain_nodes(self) -> int:
        """Nodes that share one scale-up domain."""
        return max(1, self.domain // self.gpus) if self.gpus else 1


@dataclass(frozen=True, slots=True)
class DrawnStore:
    """A store as drawn; `pools` are those whose nodes hold it when it is local to nodes."""

    name: str
    words: tuple[str, ...]
    attachments: tuple[Attachment, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that one drawing shows.

    Args:
        codes: workload → letter by which it is marked in the drawing, in the order of the file.
    """

    pools: tuple[DrawnPool, ...]
    networks: tuple[DrawnNetwork, ...]
    stores: tuple[DrawnStore, ...]
    taken: Taken
    codes: Mapping[str, str]

    def placed(self, workload: str) -> tuple[tuple[int, str, tuple[int, ...]], ...]:
        """(replica, node, GPUs) of a workload, in the order of the plan."""
        found: dict[tuple[int, str], list[int]] = {}
        for (node, gpu), (name, replica) in self.taken.items():
            if name == workload:
                found.setdefault((replica, node), []).append(gpu)
        return tuple((replica, node, tuple(sorted(gpus))) for (replica, node), gpus in found.items())


def site_of(proof: Proof) -> Site | None:
    """The drawing's content, None when there is no document or it has no pool."""
    if proof.document is None or not proof.document.architecture.pools:
        return None
    architecture, plan = proof.document.architecture, proof.plan
    planned = {p.name: p for p in plan.pools} if plan else {}
    return Site(
        pools=tuple(_pool(n, p, architecture, planned.get(n)) for n, p in architecture.pools.items()),
        networks=tuple(_network(n, w) for n, w in _networks(architecture).items()),
        stores=_stores(architecture),
        taken=_taken(plan),
        codes={name: _letter(i) for i, name in enumerate(architecture.workloads)},
    )


def _networks(architecture: Architecture) -> dict[str, Network]:
    return architecture.fabric.networks if architecture.fabric else {}


def _letter(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else f"W{index + 1}"


def _taken(plan: Plan | None) -> Taken:
    return {
        (a.node, gpu): (a.workload, a.replica)
        for w in (plan.workloads if plan else ())
        for a in w.placement
        for gpu in a.gpus
    }


def _network(name: str, network: Network) -> DrawnNetwork:
    role = network.roles[0] if len(network.roles) == 1 else "mixed"
    extra = []
    if network.oversubscription is not None:
        blocking = f"{network.oversubscription:g} : 1"
        extra.append("not oversubscribed" if network.oversubscription == 1 else f"oversubscribed {blocking}")
    if network.kind == "infiniband" and network.subnet_managers is not None:
        extra.append(f"{network.subnet_managers} subnet managers")
    said = [KINDS[network.kind], " + ".join(network.roles), f"{network.rate} a port"]
    return DrawnNetwork(name, role, ", ".join([*said, *extra]), ", ".join(said))


def _pool(name: str, pool: Pool, architecture: Architecture, planned: PoolPlan | None) -> DrawnPool:
    hardware = pool.hardware
    gpus = planned.gpus_per_node if planned else (hardware.gpus or 0 if hardware else 0)
    gpu = planned.gpu if planned else (hardware.gpu or "" if hardware else "")
    domain = planned.domain_gpus if planned else 0
    shape = pool.shape or "shape not declared"
    total = f"{len(pool.nodes) * gpus:,} × {gpu or 'GPU'}" if gpus else ""
    spares = f"the last {pool.spares} kept as spares" if pool.spares else ""
    attachments = tuple(
        Attachment(n, f"{w.ports} × {w.rate}" if w.ports > 1 else str(w.rate))
        for n, w in _networks(architecture).items()
        if not w.pools or name in w.pools
    )
    return DrawnPool(
        name=name,
        nodes=pool.nodes,
        about=tuple(s for s in (f"{pool.role}, {shape}", total, spares) if s),
        gpus=gpus,
        domain=domain if domain > 1 else 0,
        domain_words=_domain_words(domain, gpus, switched=_switched(pool, architecture)) if domain > 1 else "",
        nics=(hardware.nics or 0) if hardware else 0,
        devices=_devices(name, pool, architecture),
        attachments=attachments,
    )


def _domain_words(domain: int, gpus_per_node: int, *, switched: bool) -> str:
    joined = "NVSwitch" if switched else "scale-up"
    spans = f" over {domain // gpus_per_node} nodes" if gpus_per_node and domain > gpus_per_node else ""
    return f"{joined} domain, {domain} GPUs{spans}"


def _switched(pool: Pool, architecture: Architecture) -> bool:
    """Whether the file says that the pool has NVSwitch: outright, or by the Fabric Manager that only NVSwitch needs."""
    if pool.hardware and pool.hardware.nvswitch is not None:
        return pool.hardware.nvswitch
    profiles = architecture.software.profiles if architecture.software else {}
    profile = profiles.get(pool.software or "")
    return bool(profile and profile.fabric_manager)


def _devices(name: str, pool: Pool, architecture: Architecture) -> tuple[str, ...]:
    hardware = pool.hardware
    if hardware is None:
        return ()
    said = []
    if hardware.nics:
        said.append(f"{hardware.nics} × {hardware.nic or 'compute NIC'}")
    if hardware.nvme_capacity:
        local = [
            n
            for n, s in (architecture.storage.stores if architecture.storage else {}).items()
            if s.kind == "local-nvme"
        ]
        kept = f" (store {', '.join(local)})" if local and pool.role == "worker" else ""
        said.append(f"NVMe {hardware.nvme_capacity}{kept}")
    if hardware.cpu_cores or hardware.cpu:
        said.append(f"{hardware.cpu_cores} cores" if hardware.cpu_cores else str(hardware.cpu))
    if hardware.ram:
        said.append(f"{hardware.ram} RAM")
    return tuple(said)


def _stores(architecture: Architecture) -> tuple[DrawnStore, ...]:
    found = []
    for name, store in (architecture.storage.stores if architecture.storage else {}).items():
        first = [store.kind, "durable" if store.durable else "not durable"]
        first += [f"cache of {store.cache_of}"] if store.cache_of else []
        second = [str(store.capacity)] if store.capacity else []
        second += [f"read {store.read}"] if store.read else []
        second += [f"write {store.write}"] if store.write else []
        attached = (Attachment(store.network, ""),) if store.network in _networks(architecture) else ()
        said = tuple(", ".join(s) for s in (first, second) if s)
        found.append(DrawnStore(name, said, attached))
    return tuple(found)


def placed_words(site: Site, workload: str) -> str:
    """Where a workload's replicas run, folded: `replica 0: gpu-001 GPUs 0-3; replica 1: gpu-002 GPUs 0-3`."""
    by_replica: dict[int, dict[tuple[int, ...], list[str]]] = {}
    for replica, node, gpus in site.placed(workload):
        by_replica.setdefault(replica, {}).setdefault(gpus, []).append(node)
    shown = []
    for replica, groups in list(by_replica.items())[:8]:
        where = " and ".join(f"{fold(nodes)} GPU{'s' if len(g) > 1 else ''} {ranges(g)}" for g, nodes in groups.items())
        shown.append(f"replica {replica}: {where}")
    more = len(by_replica) - len(shown)
    return "; ".join(shown) + (f"; and {more} more replicas" if more else "")


def ranges(numbers: tuple[int, ...]) -> str:
    """Ascending numbers folded: `0-3, 6`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in parts)
