"""What the path from GPU to port rests on: GPUDirect RDMA, NICs, PCIe slots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.lib.quantities import format_base
from clusterwright.model.findings import Severity
from clusterwright.model.hardware import Pcie
from clusterwright.model.networks import Network
from clusterwright.review.rules import Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject, counted, listed

_TABLE = RuleTable("network")
#: Newest PCI Express generation whose rate the model knows (its base specification is published).
_NEWEST: Final = 7


@_TABLE.rule(
    "gpudirect-prerequisites",
    Severity.ERROR,
    65,
    why="When one prerequisite is missing NCCL falls back to copies through host memory without an error.",
    satisfy="settle NIC, driver path (dma-buf or nvidia-peermem), placement, ACS and IOMMU, or say enabled: false",
    example="gpudirect_rdma: {enabled: true, via: dma-buf, placement: same-switch, acs: 'off', iommu: passthrough}",
    source="NVIDIA GPUDirect RDMA documentation ('Supported Systems', 'PCIe BAR sizes'); NCCL user guide, "
    "'Troubleshooting: PCI Access Control Services (ACS)'",
)
def gpudirect_prerequisites(subject: Subject) -> Iterator[Hit]:
    """GPUDirect RDMA is claimed without what it rests on."""
    fabric = subject.architecture.fabric
    direct = fabric.gpudirect_rdma if fabric else None
    if direct is None or not direct.enabled:
        return
    path = "fabric.gpudirect_rdma"
    for field, words in {
        "via": "the driver path (dma-buf or nvidia-peermem)",
        "placement": "how NIC and GPU sit (same-switch at best)",
        "acs": "whether PCIe ACS is off",
        "iommu": "whether the IOMMU is off or passes through",
    }.items():
        if getattr(direct, field) is None:
            yield Hit(f"{path}.{field}", f"GPUDirect RDMA is enabled and the file does not say {words}")
    if direct.acs == "on":
        yield from _acs_on(subject, f"{path}.acs")
    if direct.iommu == "on":
        yield Hit(
            f"{path}.iommu", "with the IOMMU translating, peer DMA is redirected or fails; passthrough or off is needed"
        )
    if direct.placement == "cross-numa":
        yield Hit(f"{path}.placement", "across the CPU interconnect NCCL does not use GPUDirect RDMA by default")
    yield from _nic_prerequisites(subject, direct.via)


def _acs_on(subject: Subject, path: str) -> Iterator[Hit]:
    access = subject.architecture.access
    if access is not None and "virtual machine" in (access.isolation or "").lower():
        message = "ACS stays on under virtual machines: peer traffic is direct only with ATS enabled on the NICs"
        yield Hit(path, message, "show that ATS is enabled, by a test with GPU memory", severity=Severity.WARNING)
    else:
        yield Hit(path, "with ACS on, peer traffic is redirected to the root complex: slow, or refused")


def _nic_prerequisites(subject: Subject, via: str | None) -> Iterator[Hit]:
    compute = subject.networks_with("compute")
    rdma = [n for n, w in compute.items() if w.kind in ("infiniband", "roce", "efa", "slingshot")]
    if not rdma:
        yield Hit("fabric.gpudirect_rdma.enabled", "GPUDirect RDMA is enabled and no compute network does RDMA")
        return
    for pool in subject.gpu_pools:
        nic = subject.nic(pool)
        if nic is None or not any(subject.network_reaches(n, pool) for n in rdma):
            continue
        wanted = {"dma-buf": "dmabuf", "nvidia-peermem": "peermem"}.get(via or "")
        if not nic.gpudirect:
            yield Hit(f"pools.{pool}.hardware.nic", f"no source claims GPUDirect RDMA for the NIC {nic.name}")
        elif wanted and wanted not in nic.gpudirect and "efa" not in nic.gpudirect:
            yield Hit(
                "fabric.gpudirect_rdma.via",
                f"NIC {nic.name} of pool {pool} supports {listed(nic.gpudirect)}, not {via}",
            )


@_TABLE.rule(
    "gpudirect-placement-slow",
    Severity.WARNING,
    45,
    why="Through the root complex peer traffic runs below the slot's rate; a common PCIe switch carries all of it.",
    satisfy="choose a chassis in which each GPU shares a PCIe switch with its NIC",
    example="gpudirect_rdma: {enabled: true, placement: same-switch, ...}",
    source="NVIDIA GPUDirect RDMA documentation, 'Supported Systems': only PCIe switches on the path perform best",
)
def gpudirect_placement(subject: Subject) -> Iterator[Hit]:
    """GPUDirect RDMA runs through the root complex or within a NUMA node instead of one PCIe switch."""
    fabric = subject.architecture.fabric
    direct = fabric.gpudirect_rdma if fabric else None
    if direct is not None and direct.enabled and direct.placement in ("same-root-complex", "same-numa"):
        yield Hit("fabric.gpudirect_rdma.placement", f"NIC and GPU are {direct.placement}, not behind one PCIe switch")


def _slot(subject: Subject, pool: str) -> Pcie | None:
    """The slot of a pool's compute NICs: as declared, else of the shape."""
    hardware, shape = subject.pools[pool].hardware, subject.shape(pool)
    shipped = next((s.pcie for s in (shape.nics if shape else ()) if s.role == "compute" and s.pcie), None)
    generation = (hardware.pcie_generation if hardware else None) or (shipped.generation if shipped else None)
    lanes = (hardware.pcie_lanes if hardware else None) or (shipped.lanes if shipped else None)
    if generation is None or lanes is None or generation > _NEWEST:
        return None
    return Pcie(generation=generation, lanes=lanes)


def _ports_per_nic(subject: Subject, pool: str, network: Network) -> float:
    hardware = subject.pools[pool].hardware
    nics = hardware.nics if hardware and hardware.nics else None
    return max(1.0, network.ports / nics) if nics else 1.0


@_TABLE.rule(
    "nic-above-pcie",
    Severity.ERROR,
    70,
    why="A 400 Gb/s port in a PCIe 4.0 x16 slot delivers 252 Gb/s at best; the rest is paid for and never seen.",
    satisfy="choose a slot with enough lanes of a high enough generation, or a slower and cheaper port",
    example="hardware: {nic: connectx-7, nics: 8, pcie_generation: 5, pcie_lanes: 16}",
    source="PCI Express Base Specification: transfer rate per lane and line code; packet overhead comes on top",
)
def nic_above_pcie(subject: Subject) -> Iterator[Hit]:
    """A compute port is faster than the PCIe slot of its NIC."""
    for name, network in subject.networks_with("compute").items():
        for pool in subject.gpu_pools:
            if not subject.network_reaches(name, pool):
                continue
            slot = _slot(subject, pool)
            if slot is None:
                if subject.gpus_per_node(pool) is not None:
                    yield undecided(
                        f"pools.{pool}.hardware.pcie_generation",
                        f"generation and lanes of the slots in pool {pool}, for {network.rate} of network {name}",
                    )
                continue
            host = slot.rate.to("Gb/s")
            wanted = network.rate.to("Gb/s") * _ports_per_nic(subject, pool, network)
            if wanted > host:
                yield Hit(
                    f"pools.{pool}.hardware.pcie_generation",
                    f"network {name} wants {wanted:g} Gb/s from each NIC; "
                    f"PCIe {slot.generation}.0 x{slot.lanes} carries {host:.0f} Gb/s",
                )


#: Part of a NIC's rate up to which a network wastes it; our default. A port one generation slower is half of it.
WASTED: Final = 0.5


@_TABLE.rule(
    "network-below-nic",
    Severity.WARNING,
    65,
    why="A 400 Gb/s NIC on a 25 Gb/s network is a sixteenth of the fabric, by design or by a slip in the unit: jobs "
    "over several nodes wait for it all the time.",
    satisfy="check rate and unit of the network, or buy the NIC that the network needs",
    example="networks: {ib: {kind: infiniband, roles: [compute], rate: 400 Gb/s, ports: 8}}",
    source="the catalogue's NIC entries (vendor user manuals); half of the rate is our default",
)
def network_below_nic(subject: Subject) -> Iterator[Hit]:
    """A compute network gives at most half of what the NICs, or the slots they sit in, carry."""
    for name, network in subject.networks_with("compute").items():
        for pool in subject.gpu_pools:
            nic = subject.nic(pool)
            if nic is None or not subject.network_reaches(name, pool) or network.kind not in nic.fabrics:
                continue
            slot = _slot(subject, pool) or nic.pcie
            most = min(nic.rate.value, slot.rate.value / nic.ports if slot else nic.rate.value)
            share = network.rate.value / most
            if share <= WASTED:
                has = f"{nic.name} of pool {pool} carries {format_base(most, nic.rate.powers)}"
                yield Hit(f"fabric.networks.{name}.rate", f"network {name} has ports of {network.rate}; {has} "
                          f"({share:.0%} of it is used)")  # fmt: skip


@_TABLE.rule(
    "nic-rate-mismatch",
    Severity.ERROR,
    65,
    why="A port that the NIC does not have, or a protocol that it does not speak, is found when the cables are in.",
    satisfy="match the network's rate, kind and ports to the NIC that the pool has",
    example="hardware: {nic: connectx-7, nics: 8}   # 400 Gb/s InfiniBand or Ethernet, one port",
    source="the catalogue's NIC entries (vendor user manuals)",
)
def nic_rate_mismatch(subject: Subject) -> Iterator[Hit]:
    """A compute network is faster than, or of another kind than, the NICs that reach it."""
    for name, network in subject.networks_with("compute").items():
        path = f"fabric.networks.{name}"
        for pool in subject.gpu_pools:
            nic = subject.nic(pool)
            if nic is None or not subject.network_reaches(name, pool):
                continue
            if network.kind not in nic.fabrics and network.kind in ("infiniband", "roce", "ethernet", "efa"):
                yield Hit(f"{path}.kind", f"network {name} is {network.kind}; {nic.name} of pool {pool} speaks "
                          f"{listed(nic.fabrics)}")  # fmt: skip
            elif network.rate.value > nic.rate.value * (1 + 1e-9):
                yield Hit(f"{path}.rate", f"network {name} has ports of {network.rate}; {nic.name} of pool {pool} has "
                          f"{nic.rate}")  # fmt: skip
            hardware = subject.pools[pool].hardware
            nics = hardware.nics if hardware else None
            if nics is not None and network.ports > nics * nic.ports:
                asked = f"network {name} has {counted(network.ports, 'port')} a node"
                yield Hit(f"{path}.ports", f"{asked}; {nics} × {nic.name} have {nics * nic.ports}")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
