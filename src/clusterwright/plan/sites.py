"""Pools as the planner sees them: what the file declares over what the catalogue says of the shape."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.model.hardware import Gpu, NodeShape
from clusterwright.model.networks import Network
from clusterwright.model.pools import Pool
from clusterwright.physics.transfers import network_rate
from clusterwright.plan.choosing import Kind
from clusterwright.plan.gathering import Sheet


@dataclass(frozen=True, slots=True)
class Site:
    """A pool with GPUs.

    Args:
        gpu: catalogue entry, None when the file names none that is known.
        gpus_per_node: as declared, else of the shape.
        domain_gpus: GPUs that reach each other without a NIC; may span nodes (NVL72).
        working: nodes that carry workloads: all but the declared spares.
    """

    name: str
    pool: Pool
    shape: NodeShape | None
    gpu: Gpu | None
    gpus_per_node: int
    domain_gpus: int

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node."""
        return self.pool.nodes

    @property
    def working(self) -> tuple[str, ...]:
        """Nodes that carry workloads: the last `spares` are kept free."""
        return self.nodes[: max(0, len(self.nodes) - self.pool.spares)]

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return len(self.nodes) * self.gpus_per_node

    @property
    def path(self) -> str:
        """Path in the file."""
        return f"pools.{self.name}"


def find_sites(sheet: Sheet) -> tuple[Site, ...]:
    """Worker pools that have GPUs; a worker pool whose GPUs nobody states is recorded as unplanned."""
    sites = []
    for name, pool in sheet.architecture.pools.items():
        if pool.role != "worker":
            continue
        site = _site(sheet, name, pool)
        if site is None:
            sheet.miss(
                f"pools.{name}",
                _shapeless(sheet, name, pool.shape),
                f"pools.{name}.shape",
                f"pools.{name}.hardware.gpus",
            )
        elif site.gpus_per_node:
            sites.append(site)
            _limits(sheet, name, pool)
    return tuple(sites)


def _shapeless(sheet: Sheet, name: str, shape: str | None) -> str:
    """What is wrong with a pool that has no shape and no GPU count, with the nearest shapes there are."""
    if shape is None:
        return f"pool {name} names no node shape of the catalogue and no GPU count"
    meant = _meant(sheet, "shapes", shape)
    return f"pool {name} states no GPU count, and the catalogue has no node shape '{shape}'{meant}"


def _meant(sheet: Sheet, kind: str, wrong: str) -> str:
    """The nearest entries of the catalogue, or all of them, behind a wrong name."""
    near = sheet.catalogue.suggest(kind, wrong)
    return f"; did you mean {' or '.join(near)}?" if near else f"; known: {', '.join(sheet.catalogue.names(kind))}"


def _limits(sheet: Sheet, name: str, pool: Pool) -> None:
    if pool.sharing not in (None, "none"):
        sheet.limit(f"pool {name} shares GPUs by {pool.sharing}; it is planned as whole GPUs")
    if pool.mixed:
        sheet.limit(f"nodes of pool {name} are known to differ; they are planned as if all were alike")


def _site(sheet: Sheet, name: str, pool: Pool) -> Site | None:
    shape = sheet.catalogue.find_shape(pool.shape) if pool.shape else None
    hardware = pool.hardware
    count = hardware.gpus if hardware and hardware.gpus is not None else (shape.gpus if shape else None)
    if count is None:
        return None
    gpu_name = (hardware.gpu if hardware else None) or (shape.gpu if shape else None)
    gpu = sheet.catalogue.find_gpu(gpu_name) if gpu_name else None
    if count and gpu is None:
        meant = _meant(sheet, "gpus", str(gpu_name))
        sheet.miss(f"pools.{name}.gpu", f"the catalogue has no GPU '{gpu_name}'{meant}", f"pools.{name}.hardware.gpu")
    if gpu is not None and gpu.devices > 1:
        sheet.miss(f"pools.{name}.gpu", f"{gpu.name} shows {gpu.devices} devices per package, which is not modelled")
        gpu = None
    return Site(name, pool, shape, gpu, count, _domain(shape, gpu, count, hardware.nvswitch if hardware else None))


def _domain(shape: NodeShape | None, gpu: Gpu | None, count: int, nvswitch: bool | None) -> int:
    """GPUs of one scale-up domain: the shape's where its GPU count is kept; a switch joins a whole node."""
    if shape is not None and shape.gpus == count and nvswitch is None:
        return shape.domain_gpus or 1
    if shape is not None and shape.gpus == count and nvswitch == shape.nvswitch:
        return shape.domain_gpus or 1
    if nvswitch and gpu is not None and gpu.scale_up is not None:
        return count
    return 1


def reported_memory(sheet: Sheet, site: Site) -> Figure | None:
    """GiB of one GPU as a program sees it; None (recorded) when no source gives it."""
    if site.gpu is None:
        return None
    total = site.gpu.visible_memory
    known = sheet.published(site.gpu, "reported_memory", total, "GiB") if total else None
    found = sheet.choose(Kind.SIZE, f"{site.path}.gpu.reported_memory", known)
    if found is None:
        sheet.miss(
            f"{site.path}.gpu.reported_memory",
            f"no source says how much memory a program sees on {site.gpu.name}",
            f"catalogue gpus.{site.gpu.name}.reported",
        )
    return found


def networks_with(sheet: Sheet, role: str, pool: str) -> dict[str, Network]:
    """Networks that carry a role and reach a pool."""
    fabric = sheet.architecture.fabric
    if fabric is None:
        return {}
    return {
        name: network
        for name, network in fabric.networks.items()
        if role in network.roles and (not network.pools or pool in network.pools)
    }


def node_network_rate(sheet: Sheet, name: str, network: Network) -> Figure:
    """GB/s of one node into a network: rate of a port × ports ÷ oversubscription."""
    path = f"fabric.networks.{name}"
    rate = sheet.declared(f"{path}.rate", network.rate, "Gb/s")
    if "ports" in network.model_fields_set:
        ports = sheet.declared(f"{path}.ports", network.ports, "ports")
    else:
        ports = sheet.assumed(f"{path}.ports", 1, "ports", "the file states no number of ports")
    if network.oversubscription is None:
        squeeze = sheet.assumed(f"{path}.oversubscription", 1.0, "", "the file states no oversubscription")
    else:
        squeeze = sheet.declared(f"{path}.oversubscription", network.oversubscription, "")
    computed = sheet.derive(
        f"{path}.node_rate",
        "GB/s",
        "rate of a port × ports ÷ 8 bit ÷ oversubscription",
        lambda r, p, o: network_rate(r, p, 1, o),  # linear: Gb/s in, GB/s out
        rate,
        ports,
        squeeze,
    )
    return sheet.picked(Kind.RATE, f"{path}.node_rate", computed, nodes=1)
