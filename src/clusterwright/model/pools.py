"""Pools: nodes of one shape with one software profile."""

from typing import Literal

from pydantic import Field

from clusterwright.model.section import Section
from clusterwright.model.units import ByteRate, Bytes, Count, Duration, Hosts, PoolPrice, Power, Text, Version, Whole

EngineName = Literal["kubernetes", "slurm", "local"]


class Hardware(Section):
    """What differs from, or is missing in, the catalogue's node shape. Per node unless said."""

    gpu: Text | None = Field(default=None, description="GPU model of the catalogue")
    gpus: int | None = Field(default=None, ge=0, le=128, description="GPUs per node")
    nvswitch: bool | None = Field(default=None, description="GPUs of a node are joined by NVSwitch")
    gpu_subrevision: Whole | None = Field(default=None, description="as nvidia-smi -q prints it")
    vbios: Version | None = Field(default=None, description="GPU firmware, such as 96.00.68.00.01")
    cpu: Text | None = Field(default=None, description="CPU model")
    cpu_cores: Count | None = Field(default=None, description="physical cores")
    ram: Bytes | None = Field(default=None, description="main memory")
    numa_nodes: Count | None = Field(default=None, description="NUMA nodes")
    nvme_capacity: Bytes | None = Field(default=None, description="local NVMe, all drives")
    nvme_read: ByteRate | None = Field(default=None, description="local NVMe, all drives")
    nvme_write: ByteRate | None = Field(default=None, description="local NVMe, all drives")
    nic: Text | None = Field(default=None, description="NIC model of the catalogue")
    nics: int | None = Field(default=None, ge=0, le=64, description="compute NICs")
    pcie_generation: int | None = Field(default=None, ge=1, le=8, description="of the slot each NIC sits in")
    pcie_lanes: int | None = Field(default=None, ge=1, le=32, description="of the slot each NIC sits in")
    power: Power | None = Field(default=None, description="sustained, of one node")


class Replacement(Section):
    """How a failed node is replaced."""

    within: Duration = Field(description="time until the capacity is back")
    policy: Text | None = Field(default=None, description="repair, swap from spares, provider replaces")


class Pool(Section):
    """Nodes of one shape and one software profile; belongs to exactly one engine."""

    nodes: Hosts = Field(description="host list, such as gpu-[001-008]")
    role: Literal["worker", "control-plane", "login", "storage"] = Field(
        default="worker", description="what the nodes are for"
    )
    shape: Text | None = Field(default=None, description="node shape of the catalogue")
    hardware: Hardware | None = Field(default=None, description="what differs from the shape")
    software: Text | None = Field(default=None, description="software profile")
    engine: EngineName | None = Field(default=None, description="engine that runs it; scheduling.engine if absent")
    price: PoolPrice | None = Field(default=None, description="per GPU-h, per node-h, or of the whole pool per time")
    ownership: Literal["rented", "reserved", "owned"] | None = Field(default=None, description="how it is paid for")
    spares: Whole = Field(default=0, description="nodes of the pool kept free for replacement")
    sharing: Literal["none", "mig", "time-slicing", "mps", "vgpu"] | None = Field(
        default=None, description="how one GPU is shared between jobs"
    )
    replacement: Replacement | None = Field(default=None, description="what happens when a node fails")
    mixed: bool = Field(default=False, description="true when nodes of the pool are known to differ")

    @property
    def node_count(self) -> int:
        """Nodes in the pool."""
        return len(self.nodes)
