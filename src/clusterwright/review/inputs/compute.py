"""Readiness of compute: what a node is, what is installed on it, how it is replaced, powered and shared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from clusterwright.model.findings import Severity
from clusterwright.review.requiring import (
    PRACTICE,
    Parts,
    asked_as_a_whole,
    each_gpu_pool,
    each_pool,
    require,
    the_file,
)
from clusterwright.review.rules import ALWAYS, BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject, listed

_TABLE = RuleTable("compute")


@_TABLE.rule(
    "gpu-pool-missing",
    Severity.ERROR,
    100,
    why="A GPU cluster without GPU nodes carries no workload; control-plane nodes add no GPU capacity.",
    satisfy="declare at least one pool with role worker and GPUs",
    example='pools: {gpu: {nodes: "gpu-[001-002]", shape: hgx-h100-sxm-8}}',
    source=PRACTICE,
)
def no_gpu_pool(subject: Subject) -> Iterator[Hit]:
    """No pool has GPUs for workloads."""
    if not subject.gpu_pools:
        others = ", ".join(f"{n} ({p.role})" for n, p in subject.pools.items()) or "none"
        yield Hit("pools", f"no worker pool with GPUs; pools declared: {others}")


@_TABLE.rule(
    "gpu-hardware-missing",
    Severity.ERROR,
    95,
    why="Model, memory, form and count of the GPUs decide every other number.",
    satisfy="name a node shape of the catalogue, or the GPU and how many a node has",
    example="shape: hgx-h100-sxm-8   # or hardware: {gpu: h100-sxm-80, gpus: 8, nvswitch: true}",
    source=PRACTICE,
)
def gpu_hardware_missing(subject: Subject) -> Iterator[Hit]:
    """A GPU pool does not say which GPUs a node has, or how many."""
    for name, pool in subject.gpu_pools.items():
        if pool.shape:
            continue
        path = f"pools.{name}"
        if not (pool.hardware and pool.hardware.gpu):
            yield Hit(f"{path}.shape", f"pool {name} names neither a node shape nor a GPU model")
        elif pool.hardware.gpus is None:
            yield Hit(f"{path}.hardware.gpus", f"pool {name} does not say how many GPUs a node has")


@_TABLE.rule(
    "intra-node-topology-missing",
    Severity.ERROR,
    70,
    why="Whether GPUs talk through NVSwitch decides tensor parallelism, collective rates and the need for "
    "Fabric Manager.",
    satisfy="name a catalogue shape, or say hardware.nvswitch true or false",
    example="hardware: {gpu: h100-sxm-80, gpus: 8, nvswitch: true}",
    source=PRACTICE,
)
def topology_missing(subject: Subject) -> Iterator[Hit]:
    """A GPU pool does not say how the GPUs of a node are connected."""
    for name in subject.gpu_pools:
        if subject.nvswitch(name) is None and (subject.gpus_per_node(name) or 0) > 1:
            yield Hit(f"pools.{name}.hardware.nvswitch", f"pool {name} does not say whether its GPUs share NVSwitch")


def _host_facts(subject: Subject, pool: str) -> dict[str, Any]:
    """Host facts by field: as declared, else what the catalogue's shape gives; None where neither says."""
    hardware, shape = subject.pools[pool].hardware, subject.shape(pool)
    drives = [d for d in shape.drives if d.use == "data"] if shape else []
    from_shape: dict[str, Any] = {
        "cpu": shape.cpu if shape else None,
        "cpu_cores": shape.cpu if shape else None,
        "ram": shape.ram if shape else None,
        "numa_nodes": shape.numa_nodes if shape else None,
        "nvme_capacity": drives or None,
        "nvme_read": None,
        "nvme_write": None,
        "nic": next((s.nic for s in shape.nics if s.role == "compute"), None) if shape else None,
        "nics": next((s.count for s in shape.nics if s.role == "compute"), None) if shape else None,
        "pcie_generation": next((s.pcie for s in shape.nics if s.role == "compute"), None) if shape else None,
        "pcie_lanes": next((s.pcie for s in shape.nics if s.role == "compute"), None) if shape else None,
        "power": subject.node_power(pool),
    }
    return {f: v if (v := getattr(hardware, f, None)) is not None else other for f, other in from_shape.items()}


def _ask_host(subject: Subject, fields: dict[str, str]) -> Iterator[Hit]:
    for name, pool in subject.gpu_pools.items():
        if pool.hardware is None and subject.stage in BUILD:
            continue  # host-missing asks for the whole of it
        for field, words in _open_points(subject, name, fields).items():
            yield Hit(f"pools.{name}.hardware.{field}", f"pool {name} does not say {words}")


def _open_points(subject: Subject, pool: str, fields: dict[str, str]) -> dict[str, str]:
    facts = _host_facts(subject, pool)
    return {field: words for field, words in fields.items() if facts[field] is None}


@_TABLE.rule(
    "host-missing",
    Severity.ERROR,
    45,
    why="Data loading, tokenisation and staging run on the host; too little of it idles the GPUs beside it.",
    satisfy="declare what the catalogue's shape leaves to the server vendor",
    example="hardware: {cpu: 2 x Intel Xeon Platinum 8480C, cpu_cores: 112, ram: 2048 GiB, numa_nodes: 2}",
    source=PRACTICE,
    stages=BUILD,
)
def host_missing(subject: Subject) -> Iterator[Hit]:
    """A GPU pool does not say what CPUs, memory and NUMA nodes its hosts have, or has no hardware section at all."""
    yield from _ask_host(subject, _HOST)
    for name, pool in subject.gpu_pools.items():
        wanted = _HOST | _DISKS | (_NICS if _on_compute_network(subject, name) else {})
        wanted |= {} if subject.provider_managed else _POWER
        open_points = _open_points(subject, name, wanted)
        if pool.hardware is None and open_points:
            yield Hit(f"pools.{name}.hardware", f"pool {name} does not say {listed(open_points.values(), 'or')}")


_HOST: Final = {
    "cpu": "which CPUs its nodes have",
    "cpu_cores": "how many cores a node has",
    "ram": "how much memory a node has",
    "numa_nodes": "how many NUMA nodes a node has",
}
_DISKS: Final = {
    "nvme_capacity": "how much local NVMe a node has",
    "nvme_read": "how fast a node reads its NVMe",
    "nvme_write": "how fast a node writes its NVMe",
}
_NICS: Final = {
    "nic": "which compute NIC its nodes have",
    "nics": "how many compute NICs a node has",
    "pcie_generation": "which PCIe generation a NIC's slot has",
    "pcie_lanes": "how many PCIe lanes a NIC's slot has",
}
_POWER: Final = {"power": "what power a node draws"}


def _on_compute_network(subject: Subject, pool: str) -> bool:
    return any(subject.network_reaches(network, pool) for network in subject.networks_with("compute"))


@_TABLE.rule(
    "local-storage-missing",
    Severity.ERROR,
    45,
    why="A weight cache or scratch space on local disk is as fast as that disk, and as large.",
    satisfy="declare capacity and rates of one node's NVMe",
    example="hardware: {nvme_capacity: 30.72 TB, nvme_read: 25 GB/s, nvme_write: 12 GB/s}",
    source=PRACTICE,
    stages=BUILD,
)
def local_storage_missing(subject: Subject) -> Iterator[Hit]:
    """A GPU pool does not say how large and fast its local disks are."""
    yield from _ask_host(subject, _DISKS)


@_TABLE.rule(
    "nics-missing",
    Severity.ERROR,
    55,
    why="The rate between nodes is the NIC's, or its PCIe slot's if that is lower.",
    satisfy="name the NIC, how many, and the slot each sits in",
    example="hardware: {nic: connectx-7, nics: 8, pcie_generation: 5, pcie_lanes: 16}",
    source=PRACTICE,
    stages=BUILD,
)
def nics_missing(subject: Subject) -> Iterator[Hit]:
    """A GPU pool on a compute network does not say which NICs its nodes have, in which slots."""
    on_fabric = tuple(f"pools.{pool}." for pool in subject.gpu_pools if _on_compute_network(subject, pool))
    yield from (hit for hit in _ask_host(subject, _NICS) if hit.path.startswith(on_fabric))


@_TABLE.rule(
    "node-power-missing",
    Severity.ERROR,
    40,
    why="Power and cooling are sold by the kilowatt; a rack that trips is a failure domain nobody planned.",
    satisfy="declare the sustained power of one node, or a catalogue shape that has it",
    example="hardware: {power: 10.2 kW}",
    source=PRACTICE,
)
def node_power_missing(subject: Subject) -> Iterator[Hit]:
    """A GPU pool does not say what power a node draws."""
    if _runs_own_site(subject):
        yield from _ask_host(subject, _POWER)


def _runs_own_site(subject: Subject) -> bool:
    """Whether power and cooling are the reader's business; for a quote only where delivery says so."""
    unsaid = subject.architecture.cluster.delivery is None
    return not subject.provider_managed and not (unsaid and subject.stage == "quote")


def _own_site(subject: Subject) -> Parts:
    return the_file(subject) if _runs_own_site(subject) else ()


require(
    _TABLE,
    "site-power-missing",
    _own_site,
    {"cluster.power": "how much sustained power the site gives", "cluster.cooling": "how heat is taken away"},
    catches="The power and cooling of a site that no provider manages are not stated.",
    why="Eight-GPU nodes draw 10 kW and more each; a site that cannot power or cool them delays the whole project.",
    satisfy="give cluster.power and cluster.cooling",
    example="cluster: {name: prod, power: 26 kW, cooling: air, rear-door heat exchanger}",
    weight=50,
    stages=ALWAYS,
)
require(
    _TABLE,
    "site-missing",
    the_file,
    {"cluster.site": "where it stands", "cluster.delivery": "who runs it (self-managed, managed, provider-managed)"},
    catches="Site or way of delivery is not stated.",
    why="Latency, law, power price and who answers at night follow from it.",
    satisfy="give cluster.site and cluster.delivery",
    example="cluster: {name: prod, site: ams1, delivery: self-managed}",
    weight=45,
    stages=ALWAYS,
)
require(
    _TABLE,
    "sharing-policy-missing",
    each_gpu_pool,
    {"sharing": "whether GPUs are shared, and how"},
    catches="A GPU pool has no sharing policy.",
    why="Time-slicing, MPS and MIG differ in isolation, telemetry and performance; the default of an operator is a "
    "decision that nobody took.",
    satisfy="say none, mig, time-slicing, mps or vgpu",
    example="sharing: none",
    weight=35,
)
require(
    _TABLE,
    "replacement-missing",
    each_gpu_pool,
    {"replacement": "how and within which time a failed node is replaced", "replacement.policy": "who replaces it"},
    catches="A GPU pool has no replacement policy.",
    why="Until it is replaced a failed node is lost capacity that somebody pays for.",
    satisfy="give the time and the policy",
    example='replacement: {within: 24 h, policy: "provider replaces the server"}',
    weight=50,
    stages=ALWAYS,
)


@_TABLE.rule(
    "software-missing",
    Severity.ERROR,
    70,
    why="Engine, operator, driver, CUDA, NCCL and runtime have support ranges of their own; what is not named "
    "cannot be checked, and is decided by whoever installs first.",
    satisfy="write software: the engine's version, a profile per kind of node, and who keeps them current (lifecycle)",
    example="software: {kubernetes: 1.36.2, profiles: {gpu-node: {os: Ubuntu 24.04, driver: 595.91.07, ...}}, ...}",
    source=PRACTICE,
    stages=BUILD,
)
def software_missing(subject: Subject) -> Iterator[Hit]:
    """The file has no section software: versions, profiles and their upkeep are open."""
    if asked_as_a_whole(subject, "software"):
        yield Hit("software", "the file says nothing about software: versions, profiles of the nodes, lifecycle")


def _each_pool_with_profiles(subject: Subject) -> Parts:
    return () if asked_as_a_whole(subject, "software") else each_pool(subject)


require(
    _TABLE,
    "pool-profile-missing",
    _each_pool_with_profiles,
    {"software": "which software profile its nodes have"},
    catches="A pool has no software profile.",
    why="Nodes without a declared profile drift apart, and a failing version pair cannot be seen beforehand.",
    satisfy="name a profile of software.profiles",
    example="software: gpu-node",
    weight=60,
)


@_TABLE.rule(
    "driver-stack-missing",
    Severity.ERROR,
    65,
    why="OS, driver and CUDA decide whether the workload starts; their support ranges are checked pair by pair.",
    satisfy="declare os, kernel, driver and cuda (or rocm) of the profile with exact versions",
    example="profiles: {gpu-node: {os: Ubuntu 24.04, kernel: 6.8.0-88, driver: 595.91.07, cuda: 13.2}}",
    source=PRACTICE,
    stages=BUILD,
)
def driver_stack_missing(subject: Subject) -> Iterator[Hit]:
    """The software profile of a GPU pool lacks OS, kernel, driver or compute stack."""
    for name, pool in subject.gpu_pools.items():
        profile = subject.profile(name)
        if profile is None:
            continue
        path = f"software.profiles.{pool.software}"
        gpu = subject.gpu(name)
        stack = "rocm" if gpu is not None and gpu.vendor == "amd" else "cuda"
        for field in ("os", "kernel", "driver", stack):
            if getattr(profile, field) is None:
                yield Hit(f"{path}.{field}", f"profile {pool.software} of GPU pool {name} does not declare {field}")


@_TABLE.rule(
    "collective-library-missing",
    Severity.ERROR,
    40,
    why="The collective library decides bandwidth between GPUs; acceptance must be repeated when it changes.",
    satisfy="declare nccl and dcgm of the profile; on AMD the versions are ROCm's",
    example="profiles: {gpu-node: {nccl: 2.29.2, dcgm: 4.5.2, ...}}",
    source=PRACTICE,
    stages=BUILD,
)
def libraries_missing(subject: Subject) -> Iterator[Hit]:
    """The software profile of a pool with NVIDIA GPUs lacks NCCL or DCGM."""
    for name, pool in subject.gpu_pools.items():
        profile, gpu = subject.profile(name), subject.gpu(name)
        if profile is None or (gpu is not None and gpu.vendor == "amd"):
            continue
        for field in ("nccl", "dcgm"):
            if getattr(profile, field) is None:
                yield Hit(f"software.profiles.{pool.software}.{field}", f"profile {pool.software} declares no {field}")


require(
    _TABLE,
    "lifecycle-missing",
    the_file,
    {
        "software.lifecycle.drivers": "who installs GPU drivers, and how",
        "software.lifecycle.patching": "how nodes are patched",
        "software.lifecycle.upgrades": "how versions are raised",
        "software.lifecycle.provisioning": "what nodes are configured from, and where its history is",
    },
    catches="How software changes after the first day is not stated.",
    why="Drivers, operating system and firmware go out of support within the life of the hardware; an upgrade without "
    "a plan is an outage.",
    satisfy="describe drivers, patching, upgrades and provisioning under software.lifecycle",
    example="software: {lifecycle: {drivers: ..., patching: ..., upgrades: ..., provisioning: ...}}",
    weight=45,
)

RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
