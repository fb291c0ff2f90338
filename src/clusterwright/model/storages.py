"""Storage: stores, what they hold, and the way between them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clusterwright.model.section import Section
from clusterwright.model.units import ByteRate, Bytes, BytesPrice, BytesTimePrice, Text


class Store(Section):
    """One place where data lives. Rates are of the whole store unless they say per node."""

    kind: Literal["object", "file", "block", "local-nvme", "memory"]
    durable: bool
    interface: Text | None = Field(default=None, description="s3, nfs, lustre, csi, posix and why")
    capacity: Bytes | None = None
    read: ByteRate | None = Field(default=None, description="aggregate, or of one node for a node's own disk")
    write: ByteRate | None = Field(default=None, description="aggregate, or of one node for a node's own disk")
    network: Text | None = Field(default=None, description="network between it and the nodes")
    cache_of: Text | None = Field(default=None, description="durable store that this caches")
    readers: int | None = Field(default=None, ge=1, description="concurrent readers it is designed for")
    writers: int | None = Field(default=None, ge=1, description="concurrent writers it is designed for")
    snapshots: Text | None = None
    backup: Text | None = None
    retention: Text | None = None
    cleanup: Text | None = None
    on_failure: Text | None = Field(default=None, description="what happens when a path fails")
    region: Text | None = None
    price: BytesTimePrice | None = None
    egress_price: BytesPrice | None = None


class Uses(Section):
    """Which store holds what."""

    weights: Text | None = None
    cache: Text | None = None
    datasets: Text | None = None
    checkpoints: Text | None = None
    outputs: Text | None = None
    logs: Text | None = None


class Storage(Section):
    """Stores, their uses, and the decision on GPUDirect Storage."""

    stores: dict[str, Store] = Field(default_factory=dict)
    uses: Uses | None = None
    gpudirect_storage: Literal["ordinary", "optimised", "accepted-bottleneck"] | None = None
