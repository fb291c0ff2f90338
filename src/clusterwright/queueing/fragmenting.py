"""How much of the free GPU capacity is of no use to the tasks that usually arrive.

For one task m on node n with free milli-GPU r_g on GPU g, what m cannot use is

    F_n(m) = Σ_g r_g                    if n cannot host m (GPU, CPU or model), or m needs no GPU
           = Σ_g [r_g < d_m] r_g        otherwise, with d_m the milli-GPU that m takes of one GPU

and the fragmentation of the node is its mean over the mix of tasks, F_n = Σ_m p_m F_n(m), in milli-GPU. Shares p_m are
counts over a total, so all sums are exact integers (milli-GPU × count) and equal on every machine.

Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
USENIX ATC 2023, section 3.2; NodeGpuShareFragAmount and GetTypicalPods of its simulator
(hkust-adsl/kubernetes-scheduler-simulator, pkg/utils/frag.go).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from clusterwright.queueing.fractions import MILLI, Ask, Floats, Ints, NodeRows

TYPICAL_COVERAGE = 0.95
"""Share of all tasks that the typical ones stand for (pod-popularity-threshold of the paper's experiments)."""

NEVER = np.iinfo(np.int64).max
"""Fragmentation where the ask does not fit."""


@dataclass(frozen=True, slots=True)
class TaskMix:
    """Tasks that usually arrive, and how often each; at least one task.

    Memory plays no part: in the paper's model a node is its GPUs, its CPU and its model.
    """

    asks: tuple[Ask, ...]
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """Tasks of all kinds."""
        return sum(self.counts)


def typical_tasks(asks: Iterable[Ask], coverage: float = TYPICAL_COVERAGE) -> TaskMix:
    """The most frequent asks that together make up at least `coverage` of all.

    Of equally frequent ones the larger comes first (CPU, share of a GPU, GPUs, models).

    Raises:
        ValueError: without any task.
    """
    kinds = Counter(replace(ask, memory_mib=0) for ask in asks)
    if not kinds:
        raise ValueError("no task to take a mix from")
    ordered = sorted(kinds, key=lambda ask: (kinds[ask], *_size(ask)), reverse=True)
    counts = np.array([kinds[ask] for ask in ordered])
    kept = int(np.searchsorted(np.cumsum(counts), coverage * counts.sum())) + 1
    return TaskMix(tuple(ordered[:kept]), tuple(int(c) for c in counts[:kept]))


class Gauge:
    """Measures fragmentation for one mix on nodes with these models; values are milli-GPU × `mix.total`.

    What a task can use of a node is Σ_g [r_g ≥ d] r_g where the node can host it and 0 elsewhere. It depends on the
    task's milli-GPU d alone, so it is kept by level: the distinct values of d in the mix. That sum reaches the task's
    GPUs × d exactly if enough GPUs have room, as only whole GPUs come in numbers.
    """

    def __init__(self, mix: TaskMix, nodes: NodeRows) -> None:
        self.mix = mix
        pairs = [(ask, count) for ask, count in zip(mix.asks, mix.counts, strict=True) if ask.gpus]
        asks = [ask for ask, _ in pairs]
        milli = np.array([ask.gpu_milli for ask in asks], dtype=np.int64)
        self._levels, self._level = np.unique(milli, return_inverse=True)
        self._need = np.array([ask.total_milli for ask in asks], dtype=np.int64)
        self._cpu = np.array([ask.cpu_milli for ask in asks], dtype=np.int64)
        self._weights = nodes.accepts(asks) * np.array([count for _, count in pairs], dtype=np.int64)

    def now(self, rows: NodeRows) -> Ints:
        """Of each node as it is: (nodes,) int64."""
        return self._left(rows.free_milli, self._welcome(rows, 0))

    def after(self, rows: NodeRows, ask: Ask) -> Ints:
        """Of each node once the ask is on it, by the GPU that it shares.

        Returns:
            (nodes, GPUs) int64 for an ask that shares a GPU, `NEVER` where the share does not fit on that GPU, else
            (nodes, 1); rows that the ask does not fit on for another reason mean nothing.
        """
        welcome = self._welcome(rows, ask.cpu_milli)
        if not ask.shared:
            return self._left(_without_whole(rows.free_milli, ask.gpus), welcome)[:, None]
        out = np.full(rows.free_milli.shape, NEVER)
        row, gpu = (rows.free_milli >= ask.gpu_milli).nonzero()
        each = self._usable(rows.free_milli)
        shared = each[row, gpu]
        usable = each.sum(axis=1)[row] - shared
        usable += np.where(shared >= self._levels + ask.gpu_milli, shared - ask.gpu_milli, 0)
        total = rows.free_milli.sum(axis=1)[row] - ask.gpu_milli
        out[row, gpu] = total * self.mix.total - self._used(usable, welcome[row])
        return out

    def _left(self, free: Ints, welcome: Ints) -> Ints:
        total: Ints = free.sum(axis=1) * self.mix.total
        return total - self._used(self._usable(free).sum(axis=1), welcome)

    def _usable(self, free: Ints) -> Ints:
        """Free milli-GPU of each GPU with room for a task, by its level: (nodes, GPUs, levels)."""
        each = free[:, :, None]
        return np.where(each >= self._levels, each, 0)

    def _welcome(self, rows: NodeRows, cpu_milli: int) -> Ints:
        """How often a task comes that CPU and model allow once `cpu_milli` is taken: (nodes, tasks)."""
        return np.where((rows.cpu_milli - cpu_milli)[:, None] >= self._cpu, self._weights[rows.model], 0)

    def _used(self, usable: Ints, welcome: Ints) -> Ints:
        by_task = usable[:, self._level]
        used: Ints = np.einsum("nt,nt->n", np.where(by_task >= self._need, by_task, 0), welcome)
        return used


def fragmentation(nodes: NodeRows, mix: TaskMix) -> Floats:
    """Fragmentation of each node for the mix, in milli-GPU: (nodes,) float64, between 0 and what is free on it.

    Divided by the free milli-GPU it is the share of free capacity that the mix cannot use; the sum over the nodes is
    that of the cluster. Any cluster can be measured, with whole GPUs only too.
    """
    return Gauge(mix, nodes).now(nodes) / mix.total


def _size(ask: Ask) -> tuple[int, int, int, str]:
    return ask.cpu_milli, ask.gpu_milli if ask.gpus else 0, ask.gpus, "|".join(ask.models)


def _without_whole(free: Ints, gpus: int) -> Ints:
    """Free milli-GPU once the first whole free GPUs of each node are taken."""
    if not gpus:
        return free
    whole = free == MILLI
    return np.where(whole & (np.cumsum(whole, axis=1) <= gpus), 0, free)
