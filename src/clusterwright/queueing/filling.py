"""Filling a cluster task by task, as an allocation study does: nothing leaves, what does not fit is skipped.

Scores are kept by kind of task; only nodes that changed since a kind was last looked at are scored again, which gives
the same choices as scoring every node every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clusterwright.queueing.fractions import MILLI, Ask, Floats, Ints, NodeRows
from clusterwright.queueing.fragmenting import Gauge, TaskMix
from clusterwright.queueing.preferring import GpuChoice, Offer, SharePolicy

UNFIT = np.iinfo(np.int64).min
"""Score of a node that the task does not fit on."""

AT_ONCE = 4096
"""Rows that are measured at a time: some megabytes."""


@dataclass(frozen=True, slots=True)
class Filling:
    """What became of each arrival, in order; all (arrivals,) int64 or float64.

    Args:
        rows: the node's row, -1 for an arrival that did not fit.
        arrived_milli: milli-GPU that arrived so far, placed or not.
        allocated_milli: milli-GPU in use after it.
        fragmented_milli: fragmentation of the cluster after it, in milli-GPU.
        capacity_milli: milli-GPU of the cluster.
    """

    rows: Ints
    arrived_milli: Ints
    allocated_milli: Ints
    fragmented_milli: Floats
    capacity_milli: int


def draw_arrivals(asks: Sequence[Ask], capacity_milli: int, load: float, rng: np.random.Generator) -> Ints:
    """A shuffled workload, thinned or repeated until it asks for `load` times the GPUs of the cluster.

    All tasks come once in random order. If they ask for less, further ones are drawn with replacement until the next
    would pass the target; if they ask for more, random ones are left out until they do not.

    Args:
        load: GPUs asked for over GPUs of the cluster.

    Returns:
        (arrivals,) int64, indexes of `asks`.

    Raises:
        ValueError: no task asks for a GPU.

    Source: SortClusterPods and TunePodsByNodeTotalResource (pkg/simulator/simulator.go).
    """
    target = load * capacity_milli
    milli = np.array([ask.total_milli for ask in asks], dtype=np.int64)
    total = int(milli.sum())
    if not total:
        raise ValueError("no task asks for a GPU, so none can fill a share of them")
    order = rng.permutation(len(asks))
    if total > target:
        left_out = rng.permutation(len(order))
        enough = int(np.argmax(total - np.cumsum(milli[order[left_out]]) <= target)) + 1
        return np.delete(order, left_out[:enough])
    further = []
    while total + int(milli[drawn := int(rng.integers(len(asks)))]) <= target:
        total += int(milli[drawn])
        further.append(drawn)
    return np.concatenate([order, np.array(further, dtype=np.int64)])


def fill(
    nodes: NodeRows,
    asks: Sequence[Ask],
    arrivals: Ints,
    policy: SharePolicy,
    mix: TaskMix,
    rng: np.random.Generator | None = None,
) -> Filling:
    """Place arrivals one by one on a copy of the nodes.

    Args:
        asks: of the tasks; equal ones are scored once.
        arrivals: (arrivals,) indexes of `asks`.
        mix: against which fragmentation is measured, and which FGD expects.
        rng: for policies that use chance.

    Raises:
        ValueError: the policy uses chance and there is no `rng`.
    """
    if policy.by_chance and rng is None:
        raise ValueError(f"policy {policy.name!r} needs random numbers")
    board = _Board(nodes.at(np.arange(len(nodes.gpus))), policy, mix, rng)
    kinds = {ask: i for i, ask in enumerate(dict.fromkeys(asks))}
    kind_of = np.array([kinds[ask] for ask in asks], dtype=np.int64)[arrivals]
    by_kind = list(kinds)
    rows = np.empty(len(arrivals), dtype=np.int64)
    free_after = np.empty((len(arrivals), nodes.free_milli.shape[1]), dtype=np.int64)
    cpu_after = np.empty(len(arrivals), dtype=np.int64)
    for i, kind in enumerate(kind_of.tolist()):
        row = rows[i] = board.place(kind, by_kind[kind])
        free_after[i] = board.nodes.free_milli[row]
        cpu_after[i] = board.nodes.cpu_milli[row]
    after = replace(nodes.at(rows), free_milli=free_after, cpu_milli=cpu_after)
    milli = np.array([ask.total_milli for ask in by_kind], dtype=np.int64)[kind_of]
    return Filling(
        rows=rows,
        arrived_milli=np.cumsum(milli),
        allocated_milli=np.cumsum(np.where(rows >= 0, milli, 0)),
        fragmented_milli=_course(board.gauge.now(nodes), rows, _measured(board.gauge, after)) / mix.total,
        capacity_milli=int(nodes.gpus.sum()) * MILLI,
    )


def by_arrived(filling: Filling, values: Floats | Ints, percents: Sequence[int]) -> Floats:
    """Mean of a quantity, as percent of the capacity, over the arrivals at each whole percent of capacity arrived.

    Percents without an arrival take those within one percent of it, else NaN.
    Source: experiments/analysis/merge_alloc_discrete.py of the simulator.
    """
    arrived = np.rint(filling.arrived_milli * 100 / filling.capacity_milli)
    share = np.asarray(values) / filling.capacity_milli * 100
    out = []
    for percent in percents:
        near = arrived == percent
        near = near if near.any() else np.abs(arrived - percent) <= 1
        out.append(float(share[near].mean()) if near.any() else float("nan"))
    return np.array(out)


def _measured(gauge: Gauge, after: NodeRows) -> Ints:
    """Fragmentation of many rows, a bounded number at a time."""
    every = np.arange(len(after.gpus))
    parts = [gauge.now(after.at(every[begin : begin + AT_ONCE])) for begin in range(0, len(every), AT_ONCE)]
    return np.concatenate([every[:0], *parts])


def _course(by_node: Ints, rows: Ints, after: Ints) -> Ints:
    """Sum over all nodes after each arrival, from each node's value at the start and the placed node's value after."""
    current = by_node.tolist()
    total = sum(current)
    out = []
    for row, value in zip(rows.tolist(), after.tolist(), strict=True):
        if row >= 0:
            total += value - current[row]
            current[row] = value
        out.append(total)
    return np.array(out, dtype=np.int64)


class _Board:
    """Nodes while they fill, with the scores of every kind of task seen."""

    def __init__(self, nodes: NodeRows, policy: SharePolicy, mix: TaskMix, rng: np.random.Generator | None) -> None:
        self.nodes = nodes
        self.policy = policy
        self.rng = rng
        self.gauge = Gauge(mix, nodes)
        self.scores: dict[int, Ints] = {}
        self.gpu: dict[int, Ints] = {}
        self.seen: dict[int, int] = {}
        self.changes = 0
        self.at_change = np.zeros(len(nodes.gpus), dtype=np.int64)

    def place(self, kind: int, ask: Ask) -> int:
        """Place a task and return its row, -1 if it fits nowhere."""
        row = self._choose(self._score(kind, ask))
        if row < 0:
            return -1
        self.nodes.place(row, ask, self._gpus(kind, row, ask))
        self.changes += 1
        self.at_change[row] = self.changes
        return row

    def _score(self, kind: int, ask: Ask) -> Ints:
        scores = self.scores.get(kind)
        if scores is None:
            scores = self.scores[kind] = np.full(len(self.nodes.gpus), UNFIT)
            self.gpu[kind] = np.zeros(len(self.nodes.gpus), dtype=np.int64)
        stale = self._stale(kind)
        if len(stale) == 0:
            return scores
        fits = self.nodes.fits(ask, stale)
        scores[stale] = UNFIT
        fitting = stale[fits]
        if len(fitting) == 0:
            return scores
        asked = stale if self.policy.by_domain else fitting
        score = self.policy.score(Offer(self.nodes.at(asked), ask, self.gauge))
        score = score[fits] if self.policy.by_domain else score
        if self.policy.gpu is GpuChoice.SCORED:
            self.gpu[kind][fitting] = score.argmax(axis=1)
            score = score.max(axis=1)
        scores[fitting] = score
        return scores

    def _stale(self, kind: int) -> Ints:
        """Rows to score again for a kind, in order."""
        changed = self.at_change > self.seen.get(kind, -1)
        self.seen[kind] = self.changes
        if self.policy.by_domain:
            changed = np.isin(self.nodes.domain, self.nodes.domain[changed])
        return changed.nonzero()[0]

    def _choose(self, scores: Ints) -> int:
        row = int(scores.argmax())
        if scores[row] == UNFIT:
            return -1
        if self.policy.random_tie and self.rng is not None:
            return int(self.rng.choice(np.flatnonzero(scores == scores[row])))
        return row

    def _gpus(self, kind: int, row: int, ask: Ask) -> list[int]:
        free = self.nodes.free_milli[row]
        if not ask.shared:
            return [int(gpu) for gpu in np.flatnonzero(free == MILLI)[: ask.gpus]]
        if self.policy.gpu is GpuChoice.SCORED:
            return [int(self.gpu[kind][row])]
        room = np.flatnonzero(free >= ask.gpu_milli)
        if self.policy.gpu is GpuChoice.RANDOM and self.rng is not None:
            return [int(self.rng.choice(room))]
        return [int(room[np.argmin(free[room])])]
