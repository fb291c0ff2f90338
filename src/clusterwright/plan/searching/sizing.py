"""From what one replica carries to replicas, GPUs, nodes, what a failure takes, and GPU-hours per token."""

from __future__ import annotations

from typing import Any

import numpy as np

from clusterwright.plan.searching.columns import Floats, Ints
from clusterwright.plan.searching.questions import ServingQuestion


def replicas_for(load: Any, each: Any) -> Floats:
    """Whole replicas for a load of which one carries `each`, at least one."""
    return np.asarray(np.maximum(np.ceil(load / each - 1e-9), 1.0))


def replicas_in_pool(question: ServingQuestion, wide: Ints) -> Floats:
    """Replicas that the pool has room for beside those that may be lost; infinite where the pool has no limit."""
    node, nodes = question.pool.gpus_per_node, question.pool.nodes
    if nodes is None:
        return np.full(len(wide), np.inf)
    shared = np.maximum(node // wide, 1)
    whole = np.where(wide <= node, nodes * shared, nodes // np.maximum(-(-wide // node), 1))
    return np.asarray(whole - spare_replicas(question, wide), dtype=np.float64)


def spare_replicas(question: ServingQuestion, wide: Ints) -> Ints:
    """Replicas that die with the nodes that may be lost: all on them, or one of those that span several nodes."""
    return np.asarray(question.survive_nodes * np.maximum(question.pool.gpus_per_node // wide, 1))


def sized(question: ServingQuestion, needed: Floats, requests_s: Floats, wide: Ints) -> dict[str, Floats]:
    """Columns of size and cost.

    Args:
        needed: replicas for the load. requests_s: that all of them complete. wide: GPUs of one replica.

    Returns:
        `charged_gpus` are those of whole nodes: what replicas leave over of their nodes belongs to them, shared evenly.
    """
    node = question.pool.gpus_per_node
    replicas = needed + spare_replicas(question, wide)
    shared = np.maximum(node // wide, 1)
    across = np.maximum(-(-wide // node), 1)
    charged = replicas * np.where(wide <= node, node / shared, across * node)
    tokens_s = requests_s * max(question.lengths.mean_out, 1.0)
    return {
        "needed": needed,
        "replicas": replicas,
        "gpus": replicas * wide,
        "charged_gpus": charged,
        "nodes": np.where(wide <= node, np.ceil(replicas / shared), replicas * across),
        "gpu_h_per_mtok": charged / (tokens_s * 3600) * 1e6,
        "domain_gpus": np.where(wide <= node, shared * wide, wide).astype(np.float64),
        "domain_nodes": across.astype(np.float64),
    }
