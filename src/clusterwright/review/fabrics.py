"""What is contradictory or impossible in the fabric: shared roles, subnet managers, congestion, NVLink domains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.model.networks import Network
from clusterwright.review.rules import BUILD, Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject, counted, listed
from clusterwright.review.thresholds import claims_of, pool_of

_TABLE = RuleTable("network")


@_TABLE.rule(
    "roles-share-network",
    Severity.ERROR,
    75,
    why="A collective and a checkpoint on one link slow each other to a fraction unless capacity, isolation and "
    "congestion policy are settled beforehand.",
    satisfy="give each role its own network, or settle oversubscription, isolation, qos and congestion",
    example="shared: {roles: [compute, storage], oversubscription: 1, isolation: VLAN 21 and 22, qos: 60/40 by DSCP, "
    "congestion: {pfc: true, ecn: true, ...}}",
    source="NVIDIA DGX SuperPOD reference architecture: separate compute, storage, in-band and out-of-band networks",
)
def roles_share_network(subject: Subject) -> Iterator[Hit]:
    """One network carries several roles without capacity, isolation and congestion policy."""
    for name, network in subject.networks.items():
        if len(set(network.roles)) < 2:
            continue
        wanted: dict[str, object] = {
            "capacity (oversubscription)": network.oversubscription,
            "isolation": network.isolation,
            "a policy between the roles (qos)": network.qos,
        }
        if network.kind in ("roce", "ethernet"):
            wanted["congestion settings"] = network.congestion
        open_points = [words for words, value in wanted.items() if value is None]
        if open_points:
            roles = listed(network.roles)
            yield Hit(
                f"fabric.networks.{name}.roles", f"network {name} carries {roles} without {listed(open_points, 'or')}"
            )


@_TABLE.rule(
    "storage-on-compute-fabric",
    Severity.WARNING,
    65,
    why="Checkpoints and cold starts come in bursts of every node at once, just when collectives wait for the slowest.",
    satisfy="give storage its own network, or show by a test under both loads that the collective keeps its rate",
    example="storage: {kind: ethernet, roles: [storage], rate: 200 Gb/s}",
    source="NVIDIA DGX SuperPOD reference architecture: storage fabric apart from the compute fabric",
)
def storage_on_compute(subject: Subject) -> Iterator[Hit]:
    """Storage traffic runs on the compute fabric."""
    for name, network in subject.networks.items():
        if {"compute", "storage"} <= set(network.roles):
            yield Hit(
                f"fabric.networks.{name}.roles",
                f"network {name} carries GPU collectives and storage on {network.ports} × {network.rate}",
            )


@_TABLE.rule(
    "no-out-of-band-path",
    Severity.ERROR,
    65,
    why="A node that hangs, or a switch that was misconfigured, can only be reached by a path that does not need it.",
    satisfy="declare a network with the role out-of-band for BMCs and switch consoles",
    example="oob: {kind: ethernet, roles: [out-of-band], rate: 1 Gb/s, isolation: own switch}",
    source="NVIDIA DGX SuperPOD reference architecture: out-of-band management network",
)
def no_out_of_band(subject: Subject) -> Iterator[Hit]:
    """No network is out-of-band, and no provider manages the site."""
    if subject.networks and not subject.networks_with("out-of-band") and not subject.provider_managed:
        yield Hit(
            "fabric.networks", f"none of {counted(len(subject.networks), 'network')} carries the role out-of-band"
        )


@_TABLE.rule(
    "out-of-band-shared",
    Severity.WARNING,
    45,
    why="Management that shares a network with what it manages is lost together with it.",
    satisfy="put out-of-band on switches of its own",
    example="oob: {kind: ethernet, roles: [out-of-band], rate: 1 Gb/s}",
    source="NVIDIA DGX SuperPOD reference architecture: out-of-band management network",
)
def out_of_band_shared(subject: Subject) -> Iterator[Hit]:
    """The out-of-band role shares a network with other roles."""
    dedicated = [n for n, w in subject.networks_with("out-of-band").items() if len(set(w.roles)) == 1]
    for name, network in subject.networks_with("out-of-band").items():
        if not dedicated and len(set(network.roles)) > 1:
            others = listed(r for r in network.roles if r != "out-of-band")
            yield Hit(f"fabric.networks.{name}.roles", f"network {name} carries out-of-band together with {others}")


@_TABLE.rule(
    "subnet-manager-missing",
    Severity.ERROR,
    80,
    why="Without a subnet manager no InfiniBand port becomes active.",
    satisfy="run subnet managers on two hosts or switches, and declare how many",
    example="ib: {kind: infiniband, subnet_managers: 2}",
    source="InfiniBand Architecture Specification vol. 1, chapter 14 (subnet management)",
)
def subnet_manager_missing(subject: Subject) -> Iterator[Hit]:
    """An InfiniBand network has no subnet manager."""
    for name, network in subject.networks.items():
        if network.kind == "infiniband" and not network.subnet_managers:
            said = "declares 0 subnet managers" if network.subnet_managers == 0 else "declares no subnet manager"
            yield Hit(f"fabric.networks.{name}.subnet_managers", f"InfiniBand network {name} {said}")


@_TABLE.rule(
    "subnet-manager-not-redundant",
    Severity.WARNING,
    60,
    why="When the only subnet manager is gone, links that flap and nodes that reboot do not come back.",
    satisfy="run a standby subnet manager",
    example="ib: {kind: infiniband, subnet_managers: 2}",
    source="InfiniBand Architecture Specification vol. 1, 14.4 (master and standby subnet managers)",
)
def subnet_manager_single(subject: Subject) -> Iterator[Hit]:
    """An InfiniBand network has one subnet manager only."""
    for name, network in subject.networks.items():
        if network.kind == "infiniband" and network.subnet_managers == 1:
            yield Hit(
                f"fabric.networks.{name}.subnet_managers", f"InfiniBand network {name} has 1 subnet manager, no standby"
            )


@_TABLE.rule(
    "roce-without-congestion",
    Severity.ERROR,
    75,
    why="RoCE v2 drops to a fraction of line rate, or deadlocks, when NICs and switches disagree on PFC and ECN.",
    satisfy="agree PFC and ECN and write down the settings of NICs and switches",
    example="congestion: {pfc: true, ecn: true, nic_settings: DSCP 26 to priority 3, switch_settings: the same}",
    source="NVIDIA RoCE documentation, 'Lossless and zero-touch RoCE'; IEEE 802.1Qbb (PFC); RFC 3168 (ECN)",
)
def roce_without_congestion(subject: Subject) -> Iterator[Hit]:
    """A RoCE network has no agreed congestion settings."""
    for name, network in subject.networks.items():
        if network.kind != "roce":
            continue
        gaps = _congestion_gaps(network)
        if gaps:
            yield Hit(f"fabric.networks.{name}.congestion", f"RoCE network {name} lacks {listed(gaps)}")


def _congestion_gaps(network: Network) -> list[str]:
    settings = network.congestion
    if settings is None:
        return ["any congestion settings (pfc, ecn, nic_settings, switch_settings)"]
    gaps = [] if settings.pfc or settings.ecn else ["both PFC and ECN"]
    return gaps + [f for f in ("nic_settings", "switch_settings") if getattr(settings, f) is None]


@_TABLE.rule(
    "multi-node-nvlink-wrong",
    Severity.ERROR,
    70,
    why="NVLink between nodes exists only inside a rack-scale domain; counted wrongly, collectives are planned up "
    "to ten times too fast or too slow.",
    satisfy="say true only for shapes whose NVLink domain spans nodes",
    example="fabric: {multi_node_nvlink: false}   # eight-GPU nodes",
    source="the catalogue's node shapes (GPUs per scale-up domain)",
)
def multi_node_nvlink_wrong(subject: Subject) -> Iterator[Hit]:
    """Multi-node NVLink is assumed where no NVLink domain spans nodes."""
    fabric = subject.architecture.fabric
    if fabric is None or not fabric.multi_node_nvlink:
        return
    shapes = {n: subject.shape(n) for n in subject.gpu_pools}
    if any(shape is not None and shape.domain_nodes > 1 for shape in shapes.values()):
        return
    if any(shape is None for shape in shapes.values()):
        yield undecided("fabric.multi_node_nvlink", "a catalogue shape for every GPU pool")
        return
    found = listed(f"{n}: {s.domain_gpus} GPUs in one node" for n, s in shapes.items() if s is not None)
    yield Hit("fabric.multi_node_nvlink", f"no pool has an NVLink domain over several nodes ({found})")


@_TABLE.rule(
    "multi-node-nvlink-unused",
    Severity.WARNING,
    60,
    why="The rack-scale domain is what such hardware is bought for; over NICs collectives run several times slower.",
    satisfy="plan IMEX and domain-aware placement and say true, or buy nodes without the rack-scale domain",
    example="fabric: {multi_node_nvlink: true}",
    source="NVIDIA IMEX service guide for NVLink networks",
)
def multi_node_nvlink_unused(subject: Subject) -> Iterator[Hit]:
    """Nodes share an NVLink domain and the file excludes its use."""
    fabric = subject.architecture.fabric
    if fabric is None or fabric.multi_node_nvlink is not False:
        return
    for name, pool in subject.gpu_pools.items():
        shape = subject.shape(name)
        if shape is not None and shape.domain_nodes > 1 and pool.node_count > 1:
            domain = f"an NVLink domain of {shape.domain_gpus} GPUs"
            yield Hit(
                "fabric.multi_node_nvlink", f"{shape.domain_nodes} nodes of pool {name} share {domain}; it is excluded"
            )


@_TABLE.rule(
    "pool-off-compute-network",
    Severity.ERROR,
    75,
    why="A job over several nodes needs a network for its collectives; over the management network it crawls.",
    satisfy="connect the pool to a network with the role compute, or keep the workload inside one node",
    example="ib: {kind: infiniband, roles: [compute], pools: [gpu], ...}",
    source="Clusterwright: the fabric roles of the file",
)
def pool_off_compute(subject: Subject) -> Iterator[Hit]:
    """A workload spans nodes of a pool that no compute network reaches."""
    for planned in subject.plan.workloads:
        chosen = planned.chosen
        if chosen is None or chosen.level != "nodes" or planned.pool not in subject.gpu_pools:
            continue
        if not any(subject.network_reaches(n, planned.pool) for n in subject.networks_with("compute")):
            yield Hit(
                f"pools.{planned.pool}",
                f"workload {planned.name} takes {chosen.layout.gpus} GPUs over several nodes of {planned.pool}, "
                "which no compute network reaches",
            )


@_TABLE.rule(
    "compute-oversubscribed",
    Severity.WARNING,
    50,
    why="At a:1 oversubscription every rank gets 1/a of its port when all send, which is what an all-reduce is.",
    satisfy="build the compute fabric without oversubscription, or keep what talks between nodes under one leaf switch",
    example="ib: {oversubscription: 1}",
    source="NVIDIA DGX SuperPOD reference architecture: full fat tree for compute",
)
def compute_oversubscribed(subject: Subject) -> Iterator[Hit]:
    """The compute network is oversubscribed, and a workload or an accepted collective needs it between nodes."""
    for name, network in subject.networks_with("compute").items():
        users = _between_nodes(subject, name)
        if users and network.oversubscription is not None and network.oversubscription > 1:
            share = network.rate.to("Gb/s") / network.oversubscription
            yield Hit(
                f"fabric.networks.{name}.oversubscription",
                f"network {name} at {network.oversubscription:g}:1 leaves {share:g} Gb/s of {network.rate} per port "
                f"when all send; {listed(users)}",
            )


def _between_nodes(subject: Subject, network: str) -> list[str]:
    """What needs a network between nodes, in words: sensitive workloads, those that span nodes, collectives."""
    pools = [pool for pool in subject.gpu_pools if subject.network_reaches(network, pool)]
    found = []
    for name, workload in subject.workloads.items():
        planned = subject.plan.workload(name)
        if not any(pool in pools for pool in subject.pools_of(name)):
            continue
        if planned is not None and planned.chosen is not None and planned.chosen.level == "nodes":
            found.append(f"{name} spans nodes")
        elif workload.network_sensitivity == "high":
            found.append(f"{name} is highly sensitive to it")
    for _, name, claim in claims_of(subject):
        pool = pool_of(subject, claim)
        nodes = claim.scope.nodes or (subject.pools[pool].node_count if pool else 1)
        if claim.metric in ("busbw", "algbw") and claim.scope.of != "node" and nodes > 1 and pool in pools:
            found.append(f"{name} asks {claim.threshold} over {counted(nodes, 'node')}")
    return found


@_TABLE.rule(
    "efa-without-placement-group",
    Severity.ERROR,
    60,
    why="Cloud instances outside one cluster placement group sit anywhere in a zone; their rates and latency follow.",
    satisfy="state the placement group (or capacity block) under `placement`",
    example="efa: {kind: efa, ports: 32, placement: one cluster placement group in a capacity block}",
    source="AWS EC2 user guide, 'Placement strategies: cluster' and 'Elastic Fabric Adapter'",
    stages=BUILD,
)
def efa_placement(subject: Subject) -> Iterator[Hit]:
    """An EFA network names no placement group."""
    for name, network in subject.networks.items():
        said = (network.placement or "").lower()
        if (
            network.kind == "efa"
            and network.placement
            and not any(w in said for w in ("group", "block", "ultracluster"))
        ):
            yield Hit(
                f"fabric.networks.{name}.placement",
                f"EFA network {name}: '{network.placement}' names no placement group",
            )


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
