"""Which node, and which GPU of it, a task is given: policies as a table of scores over all nodes at once.

Every policy is a `SharePolicy`: a score per node (the highest is taken, ties go to the first row or to chance) and a
choice of GPU for tasks that share one. Scores are whole numbers from 0 to 100, as in the scheduler framework of
Kubernetes, so nodes that differ by less than a step are equally good and the tie-break decides between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from clusterwright.queueing.fractions import MILLI, Ask, Floats, Ints, NodeRows
from clusterwright.queueing.fragmenting import NEVER, Gauge

BEST = 100
"""Highest score (framework.MaxNodeScore of Kubernetes)."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Nodes that could take an ask; `gauge` measures fragmentation against the mix that is expected."""

    rows: NodeRows
    ask: Ask
    gauge: Gauge


Score = Callable[[Offer], Ints]
"""Higher is better: (nodes,) int64, or (nodes, GPUs) int64 by the GPU that an ask shares, -1 on GPUs without room."""


class GpuChoice(StrEnum):
    """Which GPU of its node a task shares; whole GPUs are always the first free ones.

    TIGHTEST: the least free one with room. SCORED: the one that the score by GPU puts first. RANDOM: any with room.
    Of equals the first.
    """

    TIGHTEST = "tightest"
    SCORED = "scored"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class SharePolicy:
    """How tasks are placed on nodes whose GPUs are shared.

    Args:
        score: how good nodes are.
        gpu: which GPU a task shares.
        by_domain: whether a score depends on the other nodes of the domain.
        random_tie: whether chance decides between equally good nodes, rather than the order of the rows.
    """

    name: str
    score: Score
    gpu: GpuChoice = GpuChoice.TIGHTEST
    by_domain: bool = False
    random_tie: bool = False

    @property
    def by_chance(self) -> bool:
        """Whether it needs random numbers."""
        return self.random_tie or self.gpu is GpuChoice.RANDOM


def best_fit(offer: Offer) -> Ints:
    """Least is left: half the share of CPU and half that of GPU that stay free, of the largest node.

    Source: getBestFitScore of the simulator (pkg/simulator/plugin/best_fit_score.go).
    """
    rows, ask = offer.rows, offer.ask
    left = (rows.cpu_milli - ask.cpu_milli) / rows.most_cpu_milli * 0.5
    left = left + (rows.free_milli.sum(axis=1) - ask.total_milli) / rows.most_milli * 0.5
    return _whole_steps((1.0 - left) * BEST)


def fragmentation_gradient(offer: Offer) -> Ints:
    """Fragmentation grows least, or shrinks most (fragmentation-gradient descent, FGD); by GPU.

    Source: the paper, Algorithm 1; calculateGpuShareFragExtendScore (pkg/simulator/plugin/fgd_score.go), which maps
    the growth in GPUs to a score by a sigmoid.
    """
    after = offer.gauge.after(offer.rows, offer.ask)
    room = after != NEVER
    before = offer.gauge.now(offer.rows)[:, None]
    growth = np.where(room, after - before, 0) / (offer.gauge.mix.total * MILLI)
    return np.where(room, _whole_steps(1.0 / (1.0 + np.exp(growth)) * BEST), -1)


def gpu_packing(offer: Offer) -> Ints:
    """GPUs in use first, then free GPUs of nodes in use, then free nodes; tasks without GPU by tie-break alone.

    Source: getPackingScore (pkg/simulator/plugin/gpu_packing_score.go).
    """
    rows, ask = offer.rows, offer.ask
    if not ask.gpus:
        return np.zeros(len(rows.gpus), dtype=np.int64)
    idle = (rows.free_milli == MILLI).sum(axis=1)
    roomy_first = np.where(rows.free_milli >= ask.gpu_milli, rows.free_milli, MILLI + 1)
    chosen: Ints = np.sort(roomy_first, axis=1)[:, : ask.gpus]
    new = (chosen == MILLI).sum(axis=1)
    on_idle_node = np.maximum(BEST // 3 - idle, idle)
    on_idle_gpus = np.maximum(BEST // 2 - new, BEST // 3)
    on_used_gpus = np.maximum(BEST - (chosen * 100 // MILLI).sum(axis=1) // 10, BEST // 2)
    on_used_node: Ints = np.where(new > 0, on_idle_gpus, on_used_gpus)
    return np.where(idle == rows.gpus, on_idle_node, on_used_node)


def gpu_clustering(offer: Offer) -> Ints:
    """Beside tasks of the same size alone, then beside some of them, then on a free node; fuller ones first.

    Source: the paper, section 6.1 (after Gandiva); pkg/simulator/plugin/gpu_clustering_score.go.
    """
    rows, ask = offer.rows, offer.ask
    if not ask.gpus:
        return np.zeros(len(rows.gpus), dtype=np.int64)
    same = rows.tenants[:, ask.size] > 0
    sizes = (rows.tenants > 0).sum(axis=1)
    quarter: Ints = np.where(same, np.where(sizes == 1, 3, 2), np.where(sizes == 0, 1, 0))
    fuller: Ints = BEST // 4 * (rows.most_milli - rows.free_milli.sum(axis=1)) // rows.most_milli
    return fuller + quarter * BEST // 4


def dot_product(offer: Offer) -> Ints:
    """What is free points away from what is asked: the smallest product of the two, scaled by the largest node.

    Source: the paper, section 6.1 (after Tetris, SIGCOMM 2014); pkg/simulator/plugin/dot_product_score.go.
    """
    rows, ask = offer.rows, offer.ask
    cpu = (rows.cpu_milli / rows.most_cpu_milli) * (ask.cpu_milli / rows.most_cpu_milli)
    gpu = (rows.free_milli.sum(axis=1) / rows.most_milli) * (ask.total_milli / rows.most_milli)
    return _whole_steps(BEST * (1.0 - (cpu + gpu) / 2))


def domain_packing(offer: Offer) -> Ints:
    """The domain with the least free that fits, and in it as `gpu_packing` does: whole domains stay free longest.

    The rows must be whole domains.
    """
    rows = offer.rows
    free = np.bincount(rows.domain, weights=rows.free_milli.sum(axis=1)).astype(np.int64)
    return gpu_packing(offer) - free[rows.domain] * (BEST + 1)


def anywhere(offer: Offer) -> Ints:
    """Every node is as good as any other."""
    return np.zeros(len(offer.rows.gpus), dtype=np.int64)


def _whole_steps(scores: Floats) -> Ints:
    return scores.astype(np.int64)


POLICIES: Mapping[str, SharePolicy] = {
    policy.name: policy
    for policy in (
        SharePolicy("best-fit", best_fit),
        SharePolicy("fgd", fragmentation_gradient, GpuChoice.SCORED),
        SharePolicy("gpu-packing", gpu_packing),
        SharePolicy("domain-packing", domain_packing, by_domain=True),
        SharePolicy("gpu-clustering", gpu_clustering),
        SharePolicy("dot-product", dot_product),
        SharePolicy("random", anywhere, GpuChoice.RANDOM, random_tie=True),
    )
}
