"""Readiness of storage: where data lives for good, how fast, who reads it, and what happens to it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.review.requiring import (
    PRACTICE,
    Parts,
    asked_as_a_whole,
    each_durable_store,
    each_remote_store,
    each_store,
    require,
    the_file,
)
from clusterwright.review.rules import ALWAYS, BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject, listed

_TABLE = RuleTable("storage")


@_TABLE.rule(
    "durable-store-missing",
    Severity.ERROR,
    95,
    why="Everything else in a cluster can be built again; data that lives only in caches and local disks cannot.",
    satisfy="declare a store with durable: true",
    example="stores: {object: {kind: object, durable: true, read: 20 GB/s, write: 10 GB/s}}",
    source=PRACTICE,
)
def no_durable_store(subject: Subject) -> Iterator[Hit]:
    """No store keeps data for good."""
    if not subject.stores:
        where = "storage" if asked_as_a_whole(subject, "storage") else "storage.stores"
        yield Hit(where, "the file declares no store, so nothing keeps weights, data, checkpoints or logs")
    elif not any(store.durable for store in subject.stores.values()):
        yield Hit("storage.stores", f"no store is durable; stores declared: {', '.join(subject.stores)}")


require(
    _TABLE,
    "store-interface-missing",
    each_store,
    {"interface": "its interface (object, file, block) and why"},
    catches="A store does not say which interface is used, and why.",
    why="A loader written for files is slow on objects and the other way round; rates and semantics follow.",
    satisfy="name the interface and the reason",
    example="interface: s3, since weights and checkpoints are written once and read whole",
    weight=35,
)
require(
    _TABLE,
    "store-rates-missing",
    each_store,
    {"read": "how fast it reads", "write": "how fast it writes"},
    catches="A store does not state its rates.",
    why="Cold start, checkpoint stall and restore are bytes over these rates.",
    satisfy="give read and write, aggregate for a shared store, of one node for a local one",
    example="read: 20 GB/s\nwrite: 10 GB/s",
    weight=70,
    stages=ALWAYS,
)
require(
    _TABLE,
    "store-capacity-missing",
    each_store,
    {"capacity": "how much it holds"},
    catches="A store does not state its capacity.",
    why="Checkpoints that are kept, datasets and caches outgrow what nobody counted.",
    satisfy="give capacity",
    example="capacity: 200 TB",
    weight=50,
    stages=ALWAYS,
)
require(
    _TABLE,
    "store-concurrency-missing",
    each_durable_store,
    {"readers": "for how many concurrent readers it is designed", "writers": "for how many concurrent writers"},
    catches="A durable store does not say how many readers and writers it is designed for.",
    why="A rate holds for a number of clients; one client gets less, a thousand may get nothing.",
    satisfy="give readers and writers",
    example="readers: 16\nwriters: 8",
    weight=45,
)
require(
    _TABLE,
    "store-network-missing",
    each_remote_store,
    {"network": "over which network it is reached"},
    catches="A store does not say which network leads to it.",
    why="The network between store and nodes is often slower than the store.",
    satisfy="name a network of fabric.networks",
    example="network: storage",
    weight=55,
)
require(
    _TABLE,
    "path-failure-missing",
    each_store,
    {"on_failure": "what happens when a path to it fails"},
    catches="A store does not say what happens when a path fails.",
    why="Readers that hang forever look like a training bug; a replica without its cache may not start at all.",
    satisfy="describe the behaviour",
    example="on_failure: reads retry on the second path at half rate",
    weight=45,
)
require(
    _TABLE,
    "retention-missing",
    each_durable_store,
    {"retention": "how long it keeps data"},
    catches="A durable store has no retention.",
    why="Capacity, cost and the law depend on what is kept.",
    satisfy="say how long which data is kept",
    example="retention: 90 days, accepted runs 2 years",
    weight=35,
)
require(
    _TABLE,
    "backup-missing",
    each_durable_store,
    {"snapshots": "what snapshots it takes", "backup": "what is backed up elsewhere"},
    catches="A durable store has no snapshots or no backup.",
    why="Durable means against disks; against a wrong deletion only a second copy helps.",
    satisfy="describe snapshots and backup, or say that there are none",
    example="snapshots: versioned buckets, 7 days\nbackup: accepted runs are copied to a second site",
    weight=40,
)
require(
    _TABLE,
    "cleanup-missing",
    each_store,
    {"cleanup": "what is deleted, when, by whom"},
    catches="A store is never cleaned up.",
    why="Full caches and full buckets stop every job at once.",
    satisfy="describe the rule that deletes",
    example="cleanup: least recently used beyond 80 %",
    weight=30,
)


@_TABLE.rule(
    "storage-use-missing",
    Severity.ERROR,
    50,
    why="What has no declared place ends up on a local disk, and is gone with the node.",
    satisfy="name the store for each use under storage.uses",
    example="uses: {weights: object, cache: nvme, datasets: object, checkpoints: object, ...}",
    source=PRACTICE,
    stages=BUILD,
)
def use_missing(subject: Subject) -> Iterator[Hit]:
    """Weights, datasets, checkpoints, outputs or logs have no declared store."""
    storage = subject.architecture.storage
    uses = storage.uses if storage else None
    training = any(w.train is not None for w in subject.workloads.values())
    wanted = ["weights", "outputs", "logs"] + (["datasets", "checkpoints"] if training else [])
    if asked_as_a_whole(subject, "storage"):
        return  # durable-store-missing says so
    if uses is None:
        yield Hit("storage.uses", f"the file does not say which store holds {listed(wanted)}")
        return
    for use in wanted:
        if getattr(uses, use) is None:
            yield Hit(f"storage.uses.{use}", f"the file does not say which store holds {use}")


require(
    _TABLE,
    "gpudirect-storage-undecided",
    the_file,
    {"storage.gpudirect_storage": "whether storage goes through the host or straight to the GPU"},
    catches="GPUDirect Storage is not decided.",
    why="Ordinary reads are often enough; an optimised path needs drivers, file system and slots; a bottleneck can be "
    "accepted, but knowingly.",
    satisfy="say ordinary, optimised or accepted-bottleneck",
    example="storage: {gpudirect_storage: ordinary}",
    weight=35,
    source="NVIDIA GPUDirect Storage overview guide",
)


def _each_object_store(subject: Subject) -> Parts:
    return (part for part in each_durable_store(subject) if part[2].kind == "object")


require(
    _TABLE,
    "store-price-missing",
    _each_object_store,
    {
        "region": "in which region it stands",
        "price": "what it costs",
        "egress_price": "what reading from outside costs",
    },
    catches="A durable object store has no region, price or egress price.",
    why="Object stores bill what leaves their region; a cluster elsewhere can pay more for bytes than for GPUs.",
    satisfy="give region, price and egress_price; $0/GB when there is none",
    example="region: ams1\nprice: $0.02/GB-month\negress_price: $0.01/GB",
    severity=Severity.WARNING,
    weight=35,
)

RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
