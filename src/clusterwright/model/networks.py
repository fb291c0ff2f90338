"""Fabric: physical networks and the roles they carry."""

from typing import Annotated, Literal

from pydantic import Field, Strict

from clusterwright.model.section import Section
from clusterwright.model.units import BitRate, Text, Texts, Whole

Role = Literal["compute", "storage", "in-band", "out-of-band"]
NetworkKind = Literal["infiniband", "roce", "ethernet", "efa", "slingshot", "nvlink"]


class Congestion(Section):
    """Congestion settings agreed between NICs and switches."""

    pfc: bool | None = Field(default=None, description="priority flow control is on")
    ecn: bool | None = Field(default=None, description="explicit congestion notification is on")
    nic_settings: Text | None = Field(default=None, description="settings of the NICs")
    switch_settings: Text | None = Field(default=None, description="settings of the switches")


class Network(Section):
    """One physical network."""

    kind: NetworkKind = Field(description="technology")
    roles: Annotated[tuple[Role, ...], Strict(False)] = Field(description="what it carries")
    rate: BitRate = Field(description="of one port")
    ports: int = Field(default=1, ge=1, le=64, description="per node")
    pools: Texts = Field(default=(), description="pools it reaches; all if absent")
    oversubscription: float | None = Field(default=None, ge=1, le=64, description="1 means none")
    subnet_managers: Whole | None = Field(default=None, description="subnet managers of InfiniBand, standby included")
    congestion: Congestion | None = Field(default=None, description="for RoCE and shared Ethernet")
    isolation: Text | None = Field(default=None, description="VLAN, VRF, partition key")
    qos: Text | None = Field(default=None, description="how roles that share it are kept apart")
    benchmark: Text | None = Field(default=None, description="test that proves it")
    observability: Text | None = Field(default=None, description="where errors, retransmits and congestion are seen")
    failure_domain: Text | None = Field(default=None, description="what one failure takes down")
    placement: Text | None = Field(default=None, description="guarantee that nodes sit close (rail, leaf, group)")
    in_network_reduction: bool = Field(default=False, description="SHARP or similar is enabled")


class GpuDirect(Section):
    """GPUDirect RDMA and what it rests on."""

    enabled: bool = Field(description="whether NICs read and write GPU memory")
    via: Literal["dma-buf", "nvidia-peermem"] | None = Field(
        default=None, description="kernel interface between NIC and GPU driver"
    )
    placement: Literal["same-switch", "same-root-complex", "same-numa", "cross-numa"] | None = Field(
        default=None, description="distance between each GPU and its NIC"
    )
    acs: Literal["off", "on"] | None = Field(default=None, description="PCIe access control services on the path")
    iommu: Literal["off", "passthrough", "on"] | None = Field(default=None, description="IOMMU mode")


class Fabric(Section):
    """Networks, names, time, and what runs over them."""

    networks: dict[str, Network] = Field(default_factory=dict, description="physical networks by name")
    gpudirect_rdma: GpuDirect | None = Field(default=None, description="direct path between NIC and GPU")
    multi_node_nvlink: bool | None = Field(default=None, description="whether NVLink spans nodes")
    addressing: Text | None = Field(default=None, description="networks and routes")
    dns: Text | None = Field(default=None, description="name resolution")
    time: Text | None = Field(default=None, description="time source, such as two NTP servers")
    ingress: Text | None = Field(default=None, description="how requests come in")
    egress: Text | None = Field(default=None, description="how data goes out")
    pod_networking: Literal["host", "container", "multus"] | None = Field(
        default=None, description="how containers reach the network"
    )
