"""How a layout meets a load: the batch for the targets, replicas, GPUs, what a failure takes, money.

Requests in flight over all replicas are counted as M/G/infinity: Poisson about rate × time in service, whatever the
distribution of lengths (Kleinrock, Queueing Systems I, section 3.8), dealt to the replica with the fewest. Where a
quantile is asked for, that many of all moments have no more in flight than replicas hold within the targets.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from clusterwright.plan.searching.columns import Floats, Ints


def in_flight(mean: Any, quantile: float | None) -> Any:
    """Requests in flight at a quantile of moments; the mean without. Cornish-Fisher expansion of Poisson's quantile."""
    if quantile is None:
        return mean
    z = NormalDist().inv_cdf(quantile)
    return mean + z * np.sqrt(mean) + (z * z - 1) / 6


def replicas_per_node(gpus: Any, node: int) -> Any:
    """Replicas that share a node, 0 where one is wider than it."""
    return node // gpus


def charged_gpus(gpus: Any, node: int) -> Any:
    """GPUs that one replica takes of whole nodes: what is left over of a node belongs to those on it."""
    shared = np.maximum(node // gpus, 1)
    return np.where(gpus <= node, node / shared, np.ceil(gpus / node) * node)


def nodes_for(replicas: Any, gpus: Any, node: int) -> Any:
    """Whole nodes of so many replicas."""
    shared = np.maximum(node // gpus, 1)
    return np.where(gpus <= node, np.ceil(replicas / shared), replicas * np.ceil(gpus / node))


def spare_replicas(gpus: Any, node: int, nodes: int) -> Any:
    """Replicas that die with `nodes` nodes at worst: all on them, or one of those that span several."""
    return nodes * np.maximum(node // gpus, 1)


def lost_gpus(gpus: Any, node: int) -> Any:
    """GPUs that stop working when one node fails: those of every replica on it."""
    return np.where(gpus <= node, node // np.maximum(gpus, 1) * gpus, gpus)


def request_at(mean: float, p95: float | None, quantile: float | None) -> float:
    """Tokens at a quantile of a lognormal length with this mean and 95th percentile; the mean where either is missing.

    Of the two lognormals with this ratio the narrower one; the widest possible ratio is 3.87.
    """
    if p95 is None or quantile is None or p95 <= mean:
        return mean
    z = NormalDist().inv_cdf(0.95)
    sigma = z - math.sqrt(max(z * z - 2 * math.log(p95 / mean), 0.0))
    return mean * math.exp(NormalDist().inv_cdf(quantile) * sigma - sigma * sigma / 2)


def ladder(most: int) -> Ints:
    """Whole numbers from 1 to `most`, four to an octave."""
    steps = np.round(2.0 ** (np.arange(4 * max(most, 1).bit_length() + 1) / 4)).astype(np.int64)
    return np.unique(np.append(steps[steps <= most], max(most, 1)))


def per_million(money_per_h: Floats, tokens_s: Floats) -> Floats:
    """Money per million tokens."""
    return money_per_h / (tokens_s * 3600) * 1e6
