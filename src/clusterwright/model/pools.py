"""Pools: nodes of one shape with one software profile."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clusterwright.model.section import Section
from clusterwright.model.units import ByteRate, Bytes, Duration, Hosts, PoolPrice, Power, Text, Version

EngineName = Literal["kubernetes", "slurm", "local"]


class Hardware(Section):
    """What differs from, or is missing in, the catalogue's node shape. Per node unless said."""

    gpu: Text | None = Field(default=None, description="GPU model of the catalogue")
    gpus: int | None = Field(default=None, ge=0, le=128)
    nvswitch: bool | None = None
    gpu_subrevision: int | None = Field(default=None, ge=0, description="as nvidia-smi -q prints it")
    vbios: Version | None = Field(default=None, description="GPU firmware, such as 96.00.68.00.01")
    cpu: Text | None = None
    cpu_cores: int | None = Field(default=None, ge=1)
    ram: Bytes | None = None
    numa_nodes: int | None = Field(default=None, ge=1)
    nvme_capacity: Bytes | None = None
    nvme_read: ByteRate | None = None
    nvme_write: ByteRate | None = None
    nic: Text | None = Field(default=None, description="NIC model of the catalogue")
    nics: int | None = Field(default=None, ge=0, le=64, description="compute NICs")
    pcie_generation: int | None = Field(default=None, ge=1, le=8)
    pcie_lanes: int | None = Field(default=None, ge=1, le=32, description="of the slot each NIC sits in")
    power: Power | None = Field(default=None, description="sustained, of one node")


class Replacement(Section):
    """How a failed node is replaced."""

    within: Duration
    policy: Text | None = Field(default=None, description="repair, swap from spares, provider replaces")


class Pool(Section):
    """Nodes of one shape and one software profile; belongs to exactly one engine."""

    nodes: Hosts
    role: Literal["worker", "control-plane", "login", "storage"] = "worker"
    shape: Text | None = Field(default=None, description="node shape of the catalogue")
    hardware: Hardware | None = None
    software: Text | None = Field(default=None, description="software profile")
    engine: EngineName | None = Field(default=None, description="engine that runs it; scheduling.engine if absent")
    price: PoolPrice | None = Field(default=None, description="per GPU-h, per node-h, or of the whole pool per time")
    ownership: Literal["rented", "reserved", "owned"] | None = None
    spares: int = Field(default=0, ge=0, description="nodes of the pool kept free for replacement")
    sharing: Literal["none", "mig", "time-slicing", "mps", "vgpu"] | None = None
    replacement: Replacement | None = None
    mixed: bool = Field(default=False, description="true when nodes of the pool are known to differ")

    @property
    def node_count(self) -> int:
        """Nodes in the pool."""
        return len(self.nodes)
