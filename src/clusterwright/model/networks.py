"""Fabric: physical networks and the roles they carry."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from clusterwright.model.section import Section
from clusterwright.model.units import BitRate, Text, Texts

Role = Literal["compute", "storage", "in-band", "out-of-band"]
NetworkKind = Literal["infiniband", "roce", "ethernet", "efa", "slingshot", "nvlink"]


class Congestion(Section):
    """Congestion settings agreed between NICs and switches."""

    pfc: bool | None = None
    ecn: bool | None = None
    nic_settings: Text | None = None
    switch_settings: Text | None = None


class Network(Section):
    """One physical network."""

    kind: NetworkKind
    roles: Annotated[tuple[Role, ...], Strict(False)]
    rate: BitRate = Field(description="of one port")
    ports: int = Field(default=1, ge=1, le=64, description="per node")
    pools: Texts = Field(default=(), description="pools it reaches; all if absent")
    oversubscription: float | None = Field(default=None, ge=1, le=64, description="1 means none")
    subnet_managers: int | None = Field(default=None, ge=0)
    congestion: Congestion | None = None
    isolation: Text | None = Field(default=None, description="VLAN, VRF, partition key")
    qos: Text | None = Field(default=None, description="how roles that share it are kept apart")
    benchmark: Text | None = Field(default=None, description="test that proves it")
    observability: Text | None = Field(default=None, description="where errors, retransmits and congestion are seen")
    failure_domain: Text | None = Field(default=None, description="what one failure takes down")
    placement: Text | None = Field(default=None, description="guarantee that nodes sit close (rail, leaf, group)")
    in_network_reduction: bool = Field(default=False, description="SHARP or similar is enabled")


class GpuDirect(Section):
    """GPUDirect RDMA and what it rests on."""

    enabled: bool
    via: Literal["dma-buf", "nvidia-peermem"] | None = None
    placement: Literal["same-switch", "same-root-complex", "same-numa", "cross-numa"] | None = None
    acs: Literal["off", "on"] | None = None
    iommu: Literal["off", "passthrough", "on"] | None = None


class Fabric(Section):
    """Networks, names, time, and what runs over them."""

    networks: dict[str, Network] = Field(default_factory=dict)
    gpudirect_rdma: GpuDirect | None = None
    multi_node_nvlink: bool | None = None
    addressing: Text | None = None
    dns: Text | None = None
    time: Text | None = Field(default=None, description="time source, such as two NTP servers")
    ingress: Text | None = None
    egress: Text | None = None
    pod_networking: Literal["host", "container", "multus"] | None = None
