"""Storage: stores, what they hold, and the way between them."""

from typing import Literal

from pydantic import Field

from clusterwright.model.section import Section
from clusterwright.model.units import ByteRate, Bytes, BytesPrice, BytesTimePrice, Count, Text


class Store(Section):
    """One place where data lives. Rates are of the whole store unless they say per node."""

    kind: Literal["object", "file", "block", "local-nvme", "memory"] = Field(description="kind of store")
    durable: bool = Field(description="whether it keeps what nothing else has")
    interface: Text | None = Field(default=None, description="s3, nfs, lustre, csi, posix and why")
    capacity: Bytes | None = Field(default=None, description="usable")
    read: ByteRate | None = Field(default=None, description="aggregate, or of one node for a node's own disk")
    write: ByteRate | None = Field(default=None, description="aggregate, or of one node for a node's own disk")
    network: Text | None = Field(default=None, description="network between it and the nodes")
    cache_of: Text | None = Field(default=None, description="durable store that this caches")
    readers: Count | None = Field(default=None, description="concurrent readers it is designed for")
    writers: Count | None = Field(default=None, description="concurrent writers it is designed for")
    snapshots: Text | None = Field(default=None, description="how and how long")
    backup: Text | None = Field(default=None, description="what is copied where")
    retention: Text | None = Field(default=None, description="how long data stays")
    cleanup: Text | None = Field(default=None, description="what is removed, when, by whom")
    on_failure: Text | None = Field(default=None, description="what happens when a path fails")
    region: Text | None = Field(default=None, description="where it is")
    price: BytesTimePrice | None = Field(default=None, description="of stored bytes over time")
    egress_price: BytesPrice | None = Field(default=None, description="of bytes that leave")


class Uses(Section):
    """Which store holds what."""

    weights: Text | None = Field(default=None, description="model weights")
    cache: Text | None = Field(default=None, description="weights near the GPUs")
    datasets: Text | None = Field(default=None, description="training data")
    checkpoints: Text | None = Field(default=None, description="checkpoints")
    outputs: Text | None = Field(default=None, description="results")
    logs: Text | None = Field(default=None, description="logs and evidence")


class Storage(Section):
    """Stores, their uses, and the decision on GPUDirect Storage."""

    stores: dict[str, Store] = Field(default_factory=dict, description="stores by name")
    uses: Uses | None = Field(default=None, description="which store holds what")
    gpudirect_storage: Literal["ordinary", "optimised", "accepted-bottleneck"] | None = Field(
        default=None, description="decision on GPUDirect Storage: not used, used, or knowingly slower without"
    )
