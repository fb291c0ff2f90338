"""What the catalogue knows about hardware: GPUs, node shapes, NICs.

Every entry says where its numbers come from (`source`) and when they were looked up (`date`). A number that no source
gives is None: it is then missing for everybody who needs it, and is never replaced by a guess.

Memory is written in GiB. Vendors print "80 GB" and build 80 GiB (H100 80 GB: nvidia-smi 81,559 MiB); `sold_as` keeps
the label. Firmware, ECC and the driver take a part: `reported` is what a program sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from clusterwright.lib.quantities import Quantity
from clusterwright.model.entries import (
    BitRate,
    ByteRate,
    Bytes,
    Capability,
    ComputeRate,
    Entry,
    Natural,
    Positive,
    Power,
    Record,
    Text,
    matching,
    not_empty,
    within,
)

#: Numeric formats whose dense rate an entry may give, widest first.
Precision = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"]
FabricKind = Literal["infiniband", "roce", "ethernet", "efa"]


@dataclass(frozen=True, kw_only=True)
class ReportedMemory(Record):
    """Device memory as software sees it.

    Args:
        total: what the CUDA or HIP runtime reports as total (torch.cuda.get_device_properties); the lowest seen, since
            ECC and driver settings move it.
        highest: the highest seen, None when only one value is known.
        smi: what nvidia-smi or rocm-smi prints as total, larger than `total` on NVIDIA.
        source: where these were seen.
    """

    total: Bytes | None = None
    highest: Bytes | None = None
    smi: Bytes | None = None
    source: Text

    def __post_init__(self) -> None:
        if self.total is None and self.smi is None:
            raise ValueError("give total, smi, or leave the whole of reported out")


@dataclass(frozen=True, kw_only=True)
class DenseRates(Record):
    """Peak dense rates by format; structured sparsity is never counted.

    int8 counts integer operations. fp32, fp64 are the larger of vector and matrix units.
    """

    fp64: ComputeRate | None = None
    fp32: ComputeRate | None = None
    tf32: ComputeRate | None = None
    fp16: ComputeRate | None = None
    bf16: ComputeRate | None = None
    fp8: ComputeRate | None = None
    int8: ComputeRate | None = None
    fp4: ComputeRate | None = None

    def of(self, precision: Precision) -> Quantity | None:
        """Dense rate in a format, None when the device has no such unit or nobody published it."""
        rate: Quantity | None = getattr(self, precision)
        return rate


@dataclass(frozen=True, kw_only=True)
class ScaleUp(Record):
    """The domain in which GPUs reach each other without a NIC.

    Args:
        kind: nvlink (switched or bridged), xgmi (AMD Infinity Fabric, a full mesh or less).
        generation: 3 for NVLink 3, and so on; None for xGMI links whose vendor gives none.
        gpus: GPUs in the largest domain that is sold; a node shape says what was built.
        per_direction: bytes per second and direction from one GPU to all others together.
        total: both directions, as vendors print it.
        per_peer: bytes per second and direction to one other GPU, where the topology has no switch.
        switched: through NVSwitch, so that any pair may use the whole rate.
    """

    kind: Literal["nvlink", "xgmi"]
    generation: Positive | None = None
    gpus: Positive
    per_direction: ByteRate
    total: ByteRate
    per_peer: ByteRate | None = None
    switched: bool = False


_PCIE_LANE_BPS: Final = {
    1: 2.5e9 * 8 / 10,
    2: 5e9 * 8 / 10,
    3: 8e9 * 128 / 130,
    4: 16e9 * 128 / 130,
    5: 32e9 * 128 / 130,
    6: 64e9,
    7: 128e9,
}


@dataclass(frozen=True, kw_only=True)
class Pcie(Record):
    """A PCI Express link: generation and lanes."""

    generation: Annotated[int, within(1, 7)]
    lanes: Annotated[int, within(1, 32)]

    @property
    def rate(self) -> Quantity:
        """Bits per second one way after line coding, before packet overhead.

        Source: PCI Express Base Specification: transfer rate per lane; line code 8b/10b for generations 1 and 2,
        128b/130b for 3 to 5; from 6 on flit mode, whose loss is in the packets.
        """
        return Quantity(_PCIE_LANE_BPS[self.generation] * self.lanes, (("b", 1), ("s", -1)))


@dataclass(frozen=True, kw_only=True)
class Gpu(Entry):
    """One GPU product.

    Args:
        vendor: who makes it.
        architecture: lower-case family name (hopper, blackwell, cdna3).
        form: sxm, pcie, oam, superchip (GPU on a CPU board) or apu.
        compute_capability: CUDA compute capability ("9.0"); None on AMD.
        gfx: LLVM target ("gfx942"); None on NVIDIA.
        devices: devices that software sees per package (2 on MI250X, one per die); `reported` is of one device, all
            other numbers are of the package.
        memory: built capacity (see the module).
        sold_as: the vendor's label.
        memory_kind: HBM3, GDDR6, ...
        reported: what software sees, None if nobody published it.
        bandwidth: peak memory bandwidth.
        dense: peak rates without sparsity.
        tdp: highest configurable board power.
        scale_up: None when the GPU has neither NVLink nor xGMI.
        pcie: host link; None for parts whose CPU link is not PCIe (NVLink-C2C, on-package).
        mig_instances: most MIG instances, 0 when it has no MIG (AMD partitions are not MIG).
    """

    vendor: Literal["nvidia", "amd"]
    architecture: Text
    form: Literal["sxm", "pcie", "oam", "superchip", "apu"]
    compute_capability: Capability | None = None
    gfx: Annotated[str, matching(r"gfx[0-9a-f]+")] | None = None
    devices: Positive = 1
    memory: Bytes
    sold_as: Text
    memory_kind: Text
    reported: ReportedMemory | None = None
    bandwidth: ByteRate
    dense: DenseRates
    tdp: Power | None = None
    scale_up: ScaleUp | None = None
    pcie: Pcie | None = None
    mig_instances: Annotated[int, within(0, 7)] = 0

    @property
    def visible_memory(self) -> Quantity | None:
        """Total memory as CUDA or HIP reports it (lowest seen), None if unknown."""
        return self.reported.total if self.reported else None

    @property
    def capability(self) -> tuple[int, int] | None:
        """CUDA compute capability as (major, minor)."""
        if self.compute_capability is None:
            return None
        major, minor = self.compute_capability.split(".")
        return int(major), int(minor)


@dataclass(frozen=True, kw_only=True)
class Cpu(Record):
    """The host processors of a node: model, sockets, physical cores of the whole node, instruction set."""

    model: Text
    sockets: Positive
    cores: Positive
    arch: Literal["x86_64", "aarch64"]


@dataclass(frozen=True, kw_only=True)
class Drives(Record):
    """Identical NVMe drives: how many, size of one, what the vendor put them in for."""

    count: Positive
    each: Bytes
    use: Literal["boot", "data"]


@dataclass(frozen=True, kw_only=True)
class NicSlots(Record):
    """Identical network adapters of a node as shipped, or the slots for them.

    Args:
        count: adapters or slots.
        role: compute (GPU to GPU), storage, or management.
        nic: catalogue name of the adapter shipped; None for an empty slot or an adapter of the buyer's choice.
        rate: per adapter, all ports together, as shipped; None for an empty slot.
        pcie: what the slot gives; None if the source does not say.
    """

    count: Positive
    role: Literal["compute", "storage", "management"]
    nic: Text | None = None
    rate: BitRate | None = None
    pcie: Pcie | None = None


@dataclass(frozen=True, kw_only=True)
class NodeShape(Entry):
    """A kind of node: what is in one box (or one tray of a rack).

    Fields that the board vendor leaves to the server vendor are None in the shape of a board (`hgx-...`): the
    architecture file says them.

    Args:
        gpu: catalogue name of its GPUs; None for a CPU node.
        gpus: GPUs per node.
        nvswitch: whether GPUs of this node talk through NVSwitch, which makes Fabric Manager necessary.
        fabric_manager: where Fabric Manager runs: on the node, on the switch trays (NVL72), or not at all.
        domain_gpus: GPUs in one scale-up domain as built: 8 on an HGX board, 72 in an NVL72 rack, 1 without a link.
        cpu, ram, numa_nodes: the host.
        drives: NVMe as shipped.
        nics: adapters as shipped, or slots.
        power: highest system power; the source says whether it is a limit of supplies or a typical maximum.
        cooling: as shipped.
    """

    gpu: Text | None = None
    gpus: Natural = 0
    nvswitch: bool = False
    fabric_manager: Literal["node", "switch-tray", "none"] = "none"
    domain_gpus: Natural = 0
    cpu: Cpu | None = None
    ram: Bytes | None = None
    numa_nodes: Positive | None = None
    drives: tuple[Drives, ...] = ()
    nics: tuple[NicSlots, ...] = ()
    power: Power | None = None
    cooling: Literal["air", "liquid", "air or liquid"] | None = None

    def __post_init__(self) -> None:
        if (self.gpu is None) != (self.gpus == 0):
            raise ValueError("gpu and gpus belong together: name the GPU and how many, or neither")
        if self.gpus and not self.domain_gpus:
            raise ValueError("domain_gpus is missing: GPUs per scale-up domain, 1 without NVLink or xGMI")
        if self.nvswitch and self.fabric_manager == "none":
            raise ValueError("a node with NVSwitch needs fabric_manager: node or switch-tray")

    @property
    def domain_nodes(self) -> int:
        """Nodes that share one scale-up domain: 1 on an HGX board, 18 in an NVL72 rack."""
        return max(1, self.domain_gpus // self.gpus) if self.gpus else 1

    @property
    def compute_rate(self) -> Quantity | None:
        """Sum of the shipped compute adapters' rates, None if nothing is shipped."""
        rates = [(s.count, s.rate) for s in self.nics if s.role == "compute" and s.rate is not None]
        if not rates:
            return None
        return Quantity(sum(n * r.value for n, r in rates), rates[0][1].powers)


@dataclass(frozen=True, kw_only=True)
class Nic(Entry):
    """A network adapter.

    Args:
        rate: of one port.
        ports: on the adapter.
        total_rate: most that all ports together carry; less than ports × rate where the host link is the limit.
        pcie: its host link; None where the vendor does not say (cloud adapters).
        fabrics: what its ports speak.
        gpudirect: how a GPU's memory is reached by RDMA: peermem (nvidia-peermem module), dmabuf (Linux DMA-BUF), both,
            efa (AWS's own), or none where no source claims it.
        in_network_reduction: SHARP or the like on its fabric.
    """

    rate: BitRate
    ports: Positive
    total_rate: BitRate
    pcie: Pcie | None = None
    fabrics: Annotated[tuple[FabricKind, ...], not_empty]
    gpudirect: tuple[Literal["peermem", "dmabuf", "efa"], ...] = ()
    in_network_reduction: bool = False

    @property
    def host_rate(self) -> Quantity | None:
        """Bits per second that its PCIe link carries one way, None if the link is unknown."""
        return self.pcie.rate if self.pcie else None
