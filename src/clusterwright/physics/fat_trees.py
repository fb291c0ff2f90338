"""Switches and cables of a folded Clos network (fat tree), rail-optimised or not.

Nodes come in groups that share leaves. With rails GPU i of every node of a group is on leaf i of the group; a group
holds as many nodes as a leaf has ports to nodes. Leaves are built for whole groups, so that all parts of the fabric are
alike (and a node can be added); cables to absent nodes are left out.

A leaf of radix R gives R·o/(o+1) ports to nodes and the rest to spines (o = oversubscription, 1 for none). Spines are
as few as carry all uplinks, rounded up to a number that divides a leaf's uplinks, so that every leaf has as many cables
to each. When the spines of one plane would need more ports than leaves there are, a third tier joins pods: spines then
give half their ports upwards, and cores carry those.

Source: counts of NVIDIA's DGX SuperPOD reference architectures (DGX H100: RA-11333-001, table "Compute fabric component
count"; DGX B200: "Larger SuperPOD component counts"), which these rules give exactly (a test).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FatTree:
    """Counts of one network.

    Args:
        tiers: 1 (one switch), 2 (leaf and spine) or 3 (with cores).
        groups: groups of nodes that share leaves.
        group_nodes: nodes that a group holds when full.
        node_cables: from nodes to leaves; leaf_cables: from leaves to spines; core_cables: from spines to cores.
    """

    tiers: int
    groups: int
    group_nodes: int
    leaves: int
    spines: int
    cores: int
    node_cables: int
    leaf_cables: int
    core_cables: int

    @property
    def switches(self) -> int:
        """Switches of all tiers."""
        return self.leaves + self.spines + self.cores

    @property
    def cables(self) -> int:
        """Links of all tiers."""
        return self.node_cables + self.leaf_cables + self.core_cables


def fat_tree(nodes: int, ports: int, radix: int, oversubscription: float = 1.0, rails: bool = True) -> FatTree:
    """The network that joins `nodes` nodes with `ports` ports each by switches of `radix` ports.

    Args:
        ports: per node, all of the switches' rate.
        radix: ports of a switch at that rate; even.
        oversubscription: bandwidth into a leaf ÷ bandwidth out of it towards the spines.

    Raises:
        ValueError: for no nodes or ports, an odd radix, or more nodes than three tiers hold.
    """
    if nodes < 1 or ports < 1 or radix < 2 or radix % 2:
        raise ValueError("a network has at least one node and port, and switches of an even number of ports")
    if nodes * ports <= radix:
        return FatTree(1, 1, nodes, 1, 0, 0, nodes * ports, 0, 0)
    down = min(radix - 1, math.floor(radix * oversubscription / (oversubscription + 1)))
    up = radix - down
    group_nodes = down if rails else max(1, down // ports)
    per_group = ports if rails else math.ceil(group_nodes * ports / down)
    groups = math.ceil(nodes / group_nodes)
    leaves = groups * per_group
    uplinks = leaves * up
    if leaves <= radix:
        return FatTree(2, groups, group_nodes, leaves, _even(uplinks, radix, up), 0, nodes * ports, uplinks, 0)
    if leaves > radix * (radix // 2):
        raise ValueError(f"{nodes} nodes need {leaves} leaves, three tiers of {radix}-port switches hold fewer")
    spines = math.ceil(uplinks / (radix // 2))
    cores = math.ceil(spines * (radix // 2) / radix)
    return FatTree(3, groups, group_nodes, leaves, spines, cores, nodes * ports, uplinks, uplinks)


def _even(uplinks: int, radix: int, of_a_leaf: int) -> int:
    """Fewest spines that carry all uplinks and divide those of one leaf; without such a number the fewest."""
    fewest = math.ceil(uplinks / radix)
    return next((n for n in range(fewest, of_a_leaf + 1) if of_a_leaf % n == 0), fewest)
