"""From what one replica carries to replicas, GPUs, nodes, what a failure takes, and GPU-hours per token.

Replicas inside a node lie evenly over nodes, so a node takes as few of them along as can be: of r replicas on n nodes
⌈r/n⌉. The fewest nodes are taken first, then the fewest replicas on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clusterwright.plan.searching.columns import Floats, Ints
from clusterwright.plan.searching.questions import ServingQuestion


def replicas_for(load: Any, each: Any) -> Floats:
    """Whole replicas for a load of which one carries `each`, at least one."""
    return np.asarray(np.maximum(np.ceil(load / each - 1e-9), 1.0))


def replicas_with_losses(needed: Any, nodes: Any, lost: int) -> Floats:
    """Fewest replicas, even over the nodes, of which `needed` are left wherever `lost` nodes fail; infinite where no
    node is left.

    With k on the fullest node r = needed + lost·k, and k is the smallest with needed ≤ (nodes − lost)·k.
    """
    left = np.maximum(np.asarray(nodes, dtype=np.float64) - lost, 0.0)
    found = needed + lost * np.ceil(needed / np.maximum(left, 1.0))
    return np.asarray(np.where(left > 0, found, np.inf))


def per_node(question: ServingQuestion, wide: Ints) -> Ints:
    """Replicas that one node holds; 1 where a replica spans nodes."""
    return np.ones_like(wide) if question.apart else np.maximum(question.pool.gpus_per_node // wide, 1)


def replicas_in_pool(question: ServingQuestion, wide: Ints) -> Floats:
    """Replicas that the pool has room for beside those that may be lost; infinite where the pool has no limit."""
    node, nodes, lost = question.pool.gpus_per_node, question.pool.nodes, question.survive_nodes
    if nodes is None:
        return np.full(len(wide), np.inf)
    whole = np.where(
        wide <= node, (nodes - lost) * per_node(question, wide), nodes // np.maximum(-(-wide // node), 1) - lost
    )
    return np.asarray(whole, dtype=np.float64)


def needed_of(question: ServingQuestion, replicas: Floats, wide: Ints) -> Floats:
    """Replicas for the load among at most so many, the rest against losses; 0 where all are needed for those."""
    most = question.survive_nodes * int(per_node(question, wide).max(initial=1))
    found = np.zeros(len(replicas))
    for spare in reversed(range(most + 1)):
        needed = np.maximum(replicas - spare, 0.0)
        enough = (needed > 0) & (with_losses(question, needed, wide)[0] <= replicas)
        found = np.where(enough, needed, found)
    return found


def with_losses(question: ServingQuestion, needed: Floats, wide: Ints) -> tuple[Floats, Floats]:
    """(replicas with those that may be lost, nodes that they lie on)."""
    node, lost = question.pool.gpus_per_node, question.survive_nodes
    across = np.maximum(-(-wide // node), 1)
    held, declared = per_node(question, wide), question.replicas
    there = (question.pool.nodes or 0) if question.spread else 0
    nodes = np.maximum(np.ceil(needed / held) + lost, there)
    inside = wide <= node
    replicas = np.where(inside, replicas_with_losses(needed, nodes, lost), needed + lost)
    if declared is not None:
        replicas, nodes = np.full_like(replicas, declared), np.maximum(np.ceil(declared / held), there)
    return replicas, np.where(inside, np.minimum(nodes, replicas), replicas * across)


def left_of(question: ServingQuestion, needed: Floats, wide: Ints) -> Floats:
    """Replicas that run on, of all that there are, when the nodes that may be lost are."""
    replicas, nodes = with_losses(question, needed, wide)
    fullest = np.where(wide <= question.pool.gpus_per_node, np.ceil(replicas / nodes), 1.0)
    return np.asarray(replicas - question.survive_nodes * fullest)


def sized(question: ServingQuestion, needed: Floats, requests_s: Floats, wide: Ints) -> dict[str, Floats]:
    """Columns of size and cost.

    Args:
        needed: replicas for the load. requests_s: that all of them complete. wide: GPUs of one replica.

    Returns:
        `charged_gpus` are those of whole nodes: what replicas leave over of their nodes belongs to them, shared evenly.
    """
    node = question.pool.gpus_per_node
    replicas, nodes = with_losses(question, needed, wide)
    inside, across = wide <= node, np.maximum(-(-wide // node), 1)
    charged = replicas * np.where(inside, node / np.maximum(node // wide, 1), across * node)
    tokens_s = requests_s * max(question.lengths.mean_out, 1.0)
    return {
        "needed": needed,
        "replicas": replicas,
        "gpus": replicas * wide,
        "charged_gpus": charged,
        "nodes": nodes,
        "gpu_h_per_mtok": charged / (tokens_s * 3600) * 1e6,
        "domain_gpus": np.where(inside, np.ceil(replicas / nodes) * wide, wide).astype(np.float64),
        "domain_nodes": across.astype(np.float64),
    }
