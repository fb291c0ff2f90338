"""Collectives over several nodes: what scale-up domains and network do, and which of them binds.

g GPUs per domain, k domains, n = g·k, r = NIC rate of one GPU. Inside a domain the measured terms hold. Between domains

- all-reduce: every NIC of a domain carries its part of the sum. Over two domains each byte leaves once, 1/r per GPU's
  part (2(k−1)/k = 1); over more, ring and double binary tree alike pass it twice. A network that adds up itself (SHARP)
  shortens the way; its one published result shows no more bandwidth, so none is counted. The parts inside and between
  overlap (NCCL works in chunks), so the slower counts.
- all-gather, reduce-scatter: a ring over all ranks enters and leaves a domain over all g NICs.
- all-to-all: the n−g parts for other domains leave over the rank's own NIC.

An oversubscribed leaf passes r/o per node where all traffic leaves it. A ring leaves a leaf of m nodes once, so it
gives way only from o > m on; the share of an all-to-all that leaves is (k − m)/(k − 1).

Latency: steps × hops, over the ring 2(k−1), over the tree 2·log₂ k; the shorter is taken, as NCCL chooses.

Sources: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009;
NCCL src/graph/tuning.cc (hwLat, NET: ring LL 2.7 µs, tree LL 5.0 µs); "Massively Scale Your Deep Learning Training with
NCCL 2.4" (double binary trees).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from clusterwright.physics.ceilings import Collective
from clusterwright.physics.collectives import CollectiveTerms, collective_us

#: Share of the NIC's rate that long rings and trees reach: median of the published results in `published`.
RING_SHARE: Final = 0.94
#: The same of an all-to-all.
ALL_TO_ALL_SHARE: Final = 0.85
#: µs per hop between nodes in a ring and in a tree.
RING_HOP_US: Final = 2.7
TREE_HOP_US: Final = 5.0
#: Share that 15 of the 16 results in `published` over nodes lie within, each with the shares above chosen without it.
NODES_SPREAD: Final = 0.10
#: Domains up to which those 15 were measured, and what part of the estimate the one over more (20 racks) reached.
_FEW_DOMAINS: Final = 8
_REACHED_OVER_MANY: Final = 0.49


@dataclass(frozen=True, slots=True)
class Fabric:
    """The network between scale-up domains.

    Args:
        domain_gpus: g, GPUs per domain that take part.
        domains: k.
        nic_gbytes_s: r, nominal rate of the NICs of one GPU.
        oversubscription: of a leaf switch, 1 for none.
        leaf_domains: m, domains that share a leaf (`share_of_leaf`).
        in_network: switches add up (SHARP).
        ring_share, all_to_all_share: of the NIC's rate that is reached.
        ring_hop_us, tree_hop_us: latency of a step between domains.
    """

    domain_gpus: float
    domains: float
    nic_gbytes_s: float
    oversubscription: float = 1.0
    leaf_domains: float = 1.0
    in_network: bool = False
    ring_share: float = RING_SHARE
    all_to_all_share: float = ALL_TO_ALL_SHARE
    ring_hop_us: float = RING_HOP_US
    tree_hop_us: float = TREE_HOP_US

    @property
    def ranks(self) -> float:
        """GPUs that take part."""
        return self.domain_gpus * self.domains

    @property
    def ring_gbytes_s(self) -> float:
        """Rate per GPU between domains in a ring or tree that passes every leaf once."""
        squeeze = max(1.0, self.oversubscription / max(1.0, self.leaf_domains))
        return self.nic_gbytes_s * self.ring_share / squeeze

    @property
    def all_to_all_gbytes_s(self) -> float:
        """Rate per GPU of what an all-to-all sends to other domains."""
        leaving = max(0.0, self.domains - self.leaf_domains) / max(1.0, self.domains - 1)
        return self.nic_gbytes_s * self.all_to_all_share / max(1.0, self.oversubscription * leaving)


def band_between(domains: float) -> tuple[float, float]:
    """Factors on an estimated bandwidth over domains within which published results lie."""
    return (1 - NODES_SPREAD if domains <= _FEW_DOMAINS else _REACHED_OVER_MANY), 1 + NODES_SPREAD


def share_of_leaf(down_ports: float, domain_gpus: float, rails: bool) -> float:
    """Domains that share a leaf with `down_ports` ports to nodes.

    With rails GPU i of each is on leaf i, and an all-to-all reaches its rail inside the domain first (NCCL's PXN);
    without, all NICs of a domain are on one leaf.
    """
    return down_ports if rails else max(1.0, down_ports // domain_gpus)


@dataclass(frozen=True, slots=True)
class OverNodes:
    """Time of one collective over several domains, µs.

    Args:
        terms: latency, and of the two that overlap the one that binds; they sum to the time.
        binding: which of the two it is.
        algorithm: whose latency it is.
    """

    terms: tuple[tuple[str, float], ...]
    binding: Literal["inside", "between"]
    algorithm: Literal["ring", "tree", "in-network", "pairwise"]

    @property
    def time_us(self) -> float:
        """All terms together."""
        return math.fsum(value for _, value in self.terms)


def over_nodes_us(operation: Collective, size_bytes: float, fabric: Fabric, inside: CollectiveTerms) -> OverNodes:
    """One collective of `size_bytes` (as nccl-tests counts it) over all domains of a fabric.

    Args:
        inside: of the same operation over the GPUs of one domain.

    Raises:
        ValueError: for fewer than two domains; `collectives.collective_us` is the time inside one.
    """
    if fabric.domains < 2:
        raise ValueError("one domain: collectives.collective_us")
    within = _inside_us(operation, size_bytes, fabric, inside)
    between = _between_us(operation, size_bytes, fabric)
    algorithm, hops = _latency_us(operation, fabric)
    slower: Literal["inside", "between"] = "inside" if within > between else "between"
    terms = (
        ("latency inside", inside.empty_us),
        (f"latency between ({algorithm})", hops),
        (slower, max(within, between)),
    )
    return OverNodes(terms, slower, algorithm)


def _inside_us(operation: Collective, size_bytes: float, fabric: Fabric, inside: CollectiveTerms) -> float:
    """µs of the bytes inside each domain, without latency."""
    g, n = fabric.domain_gpus, fabric.ranks
    if g <= 1:
        return 0.0
    if operation == "all-to-all":
        size_bytes *= g / n  # of a rank's buffer, what its own domain gets
    elif operation != "all-reduce":
        size_bytes *= (n - 1) / n * g / (g - 1)  # the ring passes everything through every GPU
    return collective_us(operation, size_bytes, g, inside) - inside.empty_us


def _between_us(operation: Collective, size_bytes: float, fabric: Fabric) -> float:
    """µs of the bytes between domains, without latency."""
    g, k, n = fabric.domain_gpus, fabric.domains, fabric.ranks
    if operation == "all-to-all":
        return size_bytes * (n - g) / n / (fabric.all_to_all_gbytes_s * 1e3)
    together = g * fabric.ring_gbytes_s * 1e3
    if operation == "all-reduce":
        passes = 1.0 if k == 2 else 2 * (n - 1) / n
        return size_bytes * passes / together
    return size_bytes * (n - 1) / n / together


def _latency_us(
    operation: Collective, fabric: Fabric
) -> tuple[Literal["ring", "tree", "in-network", "pairwise"], float]:
    k = fabric.domains
    if operation == "all-to-all":
        return "pairwise", fabric.ring_hop_us
    if operation != "all-reduce":
        return "ring", (k - 1) * fabric.ring_hop_us
    if fabric.in_network:
        return "in-network", 2 * fabric.tree_hop_us
    ring, tree = 2 * (k - 1) * fabric.ring_hop_us, 2 * math.ceil(math.log2(k)) * fabric.tree_hop_us
    return ("tree", tree) if tree < ring else ("ring", ring)


def hierarchical_all_reduce_us(
    size_bytes: float,
    gpus_per_node: float,
    nodes: float,
    inside_gbytes_s: float,
    nic_gbytes_s: float,
    latency_us: float,
) -> float:
    """µs of reduce-scatter and all-gather inside each node around an all-reduce between nodes, one after the other.

    Nothing overlaps: the upper end for a library without chunks. `over_nodes_us` is what NCCL's results agree with.

    Args:
        inside_gbytes_s: bus bandwidth inside a node.
        nic_gbytes_s: achieved rate of the NIC of one GPU.
        latency_us: of all steps together.
    """
    inside = size_bytes * 2 * (gpus_per_node - 1) / gpus_per_node / (inside_gbytes_s * 1e3)
    between = size_bytes / gpus_per_node * 2 * (nodes - 1) / nodes / (nic_gbytes_s * 1e3)
    return inside + between + latency_us


def copies_between(top_k: float, domains: float, most_domains: float = math.inf) -> float:
    """Copies of a token that leave its domain when its experts are uniform over the domains: one per other domain hit.

    k·(1 − (1 − 1/k)^top_k) domains are hit, of which the own domain is one in k; a router that keeps to
    `most_domains` (DeepSeek-V3: 4 nodes, arXiv:2412.19437, section 2.1.2) hits no more.
    """
    hit = domains * (1 - (1 - 1 / domains) ** top_k)
    return float(min(hit, most_domains) * (domains - 1) / domains)


def expert_exchange_us(
    tokens: float,
    hidden: float,
    element_bytes: float,
    top_k: float,
    fabric: Fabric,
    inside_gbytes_s: float,
    latency_us: float,
    most_domains: float = math.inf,
) -> float:
    """µs of one dispatch (or combine) of expert parallelism over every rank of a fabric.

    A token goes once to each other domain (over its own rail) and from there to its experts, as DeepEP sends it; both
    ways overlap.

    Args:
        tokens: per GPU.
        element_bytes: per activation: 1 fp8, 2 bf16.
        inside_gbytes_s: rate of a GPU into its domain.
        latency_us: of the exchange.
    """
    token = hidden * element_bytes
    between = 0.0
    if fabric.domains > 1:
        copies = copies_between(top_k, fabric.domains, most_domains)
        between = tokens * token * copies / (fabric.all_to_all_gbytes_s * 1e3)
    within = tokens * token * top_k * (fabric.domain_gpus - 1) / fabric.domain_gpus / (inside_gbytes_s * 1e3)
    return latency_us + max(between, within)
