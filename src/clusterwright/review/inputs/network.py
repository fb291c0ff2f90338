"""Readiness of the network: a fabric per role, names and time, placement, failure domains, proof and sight of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.review.requiring import (
    PRACTICE,
    asked_as_a_whole,
    each_compute_network,
    each_data_network,
    each_network,
    require,
    the_file,
)
from clusterwright.review.rules import ALWAYS, BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject

_TABLE = RuleTable("network")


@_TABLE.rule(
    "network-missing",
    Severity.ERROR,
    90,
    why="Placement, storage rates and recovery all cross a network; without one nothing between nodes is planned.",
    satisfy="declare each physical network under fabric.networks with its roles and rate",
    example="fabric: {networks: {in-band: {kind: ethernet, roles: [in-band], rate: 25 Gb/s}}}",
    source=PRACTICE,
)
def no_network(subject: Subject) -> Iterator[Hit]:
    """No network is declared."""
    if not subject.networks:
        whole = asked_as_a_whole(subject, "fabric")
        rest = ", and nothing about addresses, names, time, ingress and egress" if whole else ""
        yield Hit("fabric" if whole else "fabric.networks", f"the file declares no network{rest}")


@_TABLE.rule(
    "network-role-missing",
    Severity.ERROR,
    75,
    why="Each role loads a network differently: GPU collectives, storage, management. A role that no network carries "
    "ends up on one that was not sized for it.",
    satisfy="let a declared network carry the role",
    example="networks: {storage: {kind: ethernet, roles: [storage], rate: 200 Gb/s}}",
    source=PRACTICE,
)
def role_missing(subject: Subject) -> Iterator[Hit]:
    """A fabric role is carried by no network: in-band always, storage and compute where traffic needs them."""
    if not subject.networks:
        return
    carried = {role for network in subject.networks.values() for role in network.roles}
    wanted = ["in-band"]
    if any(store.kind in ("object", "file", "block") for store in subject.stores.values()):
        wanted.append("storage")
    if any(_spans_nodes(subject, name) for name in subject.workloads):
        wanted.append("compute")
    for role in wanted:
        if role not in carried:
            known = ", ".join(f"{n} ({', '.join(w.roles)})" for n, w in subject.networks.items())
            yield Hit("fabric.networks", f"no network carries the role {role}; declared: {known}")


def _spans_nodes(subject: Subject, name: str) -> bool:
    """Whether GPUs of a workload talk between nodes: as planned, by its size, or by its own word."""
    workload, planned = subject.workloads[name], subject.plan.workload(name)
    chosen = planned.chosen if planned else None
    if chosen is not None and chosen.level == "nodes":
        return True
    each = max((subject.gpus_per_node(pool) or 0 for pool in subject.pools_of(name)), default=0)
    wide = workload.train is not None and 0 < each < workload.train.gpus
    return wide or workload.network_sensitivity == "high"


require(
    _TABLE,
    "addressing-missing",
    the_file,
    {
        "fabric.addressing": "addresses and routes",
        "fabric.dns": "how names are resolved",
        "fabric.time": "where time comes from",
    },
    catches="Addresses, names or time are not stated.",
    why="Clocks that differ break log order, tokens and Kerberos; overlapping addresses break the first merger.",
    satisfy="give fabric.addressing, fabric.dns and fabric.time",
    example="fabric: {addressing: 10.20.0.0/22 in-band, ..., dns: two resolvers, time: two NTP servers}",
    weight=40,
)
require(
    _TABLE,
    "placement-guarantee-missing",
    each_compute_network,
    {"placement": "how close together its nodes are guaranteed to sit"},
    catches="A compute network gives no placement guarantee.",
    why="Two nodes on different spines share oversubscribed uplinks; a rented cluster may be scattered over a hall.",
    satisfy="state the guarantee: same leaf, rail-optimised, placement group",
    example="placement: both nodes on the same leaf switches, rail-optimised",
    weight=55,
    stages=ALWAYS,
)
require(
    _TABLE,
    "failure-domain-missing",
    each_network,
    {"failure_domain": "what one failure takes down"},
    catches="A network does not say what one failure takes down.",
    why="Replicas that share a switch fail together, however many there are.",
    satisfy="name what one failed device takes with it",
    example="failure_domain: one leaf switch takes one rail",
    weight=50,
)
require(
    _TABLE,
    "oversubscription-missing",
    each_data_network,
    {"oversubscription": "its oversubscription (1 means none)"},
    catches="A network for GPU or storage traffic does not state its oversubscription.",
    why="Rates divide by it as soon as all nodes send at once, which is what collectives and cold starts do.",
    satisfy="declare the ratio",
    example="oversubscription: 1",
    weight=60,
    stages=ALWAYS,
)
require(
    _TABLE,
    "network-benchmark-missing",
    each_data_network,
    {"benchmark": "which test proves it"},
    catches="A network for GPU or storage traffic names no benchmark.",
    why="A link that is up is not a path that is fast; a ping is not evidence.",
    satisfy="name the test that proves it end to end",
    example="benchmark: nccl-tests all_reduce_perf over both nodes",
    weight=50,
)
require(
    _TABLE,
    "network-observability-missing",
    each_network,
    {"observability": "where its errors, retransmits and congestion are seen"},
    catches="A network's errors are seen nowhere.",
    why="A flapping link halves a job's speed without failing it.",
    satisfy="say where counters are collected",
    example="observability: port counters every 30 s in Prometheus",
    weight=40,
)
require(
    _TABLE,
    "network-isolation-missing",
    each_network,
    {"isolation": "how it is kept apart (VLAN, VRF, partition key, own switch)"},
    catches="A network does not say how it is kept apart from others.",
    why="Management and storage that anyone on the fabric can reach are a way around every other control.",
    satisfy="name the VLAN, VRF, partition key or physical separation",
    example="isolation: VLAN 21",
    weight=40,
)


@_TABLE.rule(
    "gpudirect-undecided",
    Severity.ERROR,
    50,
    why="With GPUDirect RDMA the NIC reads GPU memory; without it every byte crosses host memory. It is decided by "
    "drivers, BIOS and slots before anybody notices.",
    satisfy="say fabric.gpudirect_rdma.enabled true with what it rests on, or false",
    example="gpudirect_rdma: {enabled: true, via: dma-buf, placement: same-switch, acs: 'off', iommu: passthrough}",
    source="NVIDIA GPUDirect RDMA documentation, 'Supported Systems'",
    stages=BUILD,
)
def gpudirect_undecided(subject: Subject) -> Iterator[Hit]:
    """An RDMA network carries GPU traffic and nobody decided on GPUDirect RDMA."""
    fabric = subject.architecture.fabric
    rdma = [n for n, w in subject.networks_with("compute").items() if w.kind in ("infiniband", "roce")]
    if fabric is not None and rdma and fabric.gpudirect_rdma is None:
        yield Hit("fabric.gpudirect_rdma", f"network {rdma[0]} can do RDMA, and GPUDirect RDMA is not decided")


@_TABLE.rule(
    "pod-networking-missing",
    Severity.ERROR,
    40,
    why="A pod on the host network sees every interface; one behind an overlay sees no RDMA device unless it is given.",
    satisfy="say host, container or multus",
    example="fabric: {pod_networking: multus}",
    source=PRACTICE,
    stages=BUILD,
)
def pod_networking_missing(subject: Subject) -> Iterator[Hit]:
    """On Kubernetes, how pods reach the networks is not stated."""
    fabric = subject.architecture.fabric
    if asked_as_a_whole(subject, "fabric"):
        return  # network-missing says so
    if "kubernetes" in subject.engines and (fabric is None or fabric.pod_networking is None):
        yield Hit("fabric.pod_networking", "the engine is kubernetes and the file does not say how pods reach networks")


@_TABLE.rule(
    "ingress-missing",
    Severity.ERROR,
    40,
    why="Requests must reach the replicas; the way in is part of latency and of every failure scenario.",
    satisfy="describe fabric.ingress",
    example="fabric: {ingress: two load balancers in front of the gateway}",
    source=PRACTICE,
    stages=BUILD,
)
def ingress_missing(subject: Subject) -> Iterator[Hit]:
    """An inference workload has no way in."""
    fabric = subject.architecture.fabric
    serving = [n for n, w in subject.workloads.items() if w.serve is not None]
    if asked_as_a_whole(subject, "fabric"):
        return  # network-missing says so
    if serving and (fabric is None or fabric.ingress is None):
        yield Hit("fabric.ingress", f"workload {serving[0]} serves requests and the file names no ingress")


require(
    _TABLE,
    "egress-path-missing",
    the_file,
    {"fabric.egress": "how nodes reach the outside, or that they do not"},
    catches="The way out of the cluster is not stated.",
    why="Images, weights, licences and telemetry may need it, attackers certainly do, and clouds bill it by the byte.",
    satisfy="describe fabric.egress",
    example="fabric: {egress: through a proxy with an allow list}",
    weight=35,
)


@_TABLE.rule(
    "multi-node-nvlink-undeclared",
    Severity.ERROR,
    60,
    why="In a rack-scale domain ranks either use NVLink between nodes or fall back to the NICs, an order of magnitude "
    "slower; it needs IMEX and must be decided.",
    satisfy="say fabric.multi_node_nvlink true or false",
    example="fabric: {multi_node_nvlink: true}",
    source="NVIDIA IMEX service guide for NVLink networks",
    stages=BUILD,
)
def multi_node_nvlink_undeclared(subject: Subject) -> Iterator[Hit]:
    """Nodes share an NVLink domain and the file does not say whether it is used."""
    fabric = subject.architecture.fabric
    for name, pool in subject.gpu_pools.items():
        shape = subject.shape(name)
        if shape is None or shape.domain_nodes < 2 or pool.node_count < 2:
            continue
        if fabric is None or fabric.multi_node_nvlink is None:
            message = (
                f"up to {shape.domain_nodes} nodes of pool {name} share one NVLink domain of {shape.domain_gpus} GPUs"
            )
            yield Hit("fabric.multi_node_nvlink", f"{message}, and the file does not say whether it is used")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
