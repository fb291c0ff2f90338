"""Nodes whose GPUs several tasks may share, as arrays of what is free, and what a task asks of such a node.

A GPU is 1,000 milli-GPU. A task asks for a share of one GPU or for whole GPUs of one node, beside CPU and memory.
Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023, section 2.1; Alibaba's open-gpu-share annotations
(gpu-milli, gpu-count, gpu-card-model) that its traces use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterwright.queueing.policies import NodeTie

MILLI = 1000
"""Milli-GPU of one GPU."""

UNLIMITED = 1 << 40
"""Free CPU (milli) or memory (MiB) of a node where that is not counted."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Ask:
    """What one task needs of one node; equal asks are equally hard to place.

    Args:
        gpus: how many GPUs, 0 for a task of CPU alone.
        gpu_milli: of each of them; below 1,000 only with one GPU.
        models: GPU models that will do, empty for any.

    Raises:
        ValueError: a share of more than one GPU, or a share outside 1 to 1,000 milli-GPU.
    """

    cpu_milli: int = 0
    gpus: int = 0
    gpu_milli: int = MILLI
    memory_mib: int = 0
    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.gpus and not 0 < self.gpu_milli <= MILLI:
            raise ValueError(f"{self.gpu_milli} milli-GPU of a GPU; 1 to {MILLI} are possible")
        if self.gpus > 1 and self.gpu_milli < MILLI:
            raise ValueError(f"{self.gpu_milli} milli-GPU of each of {self.gpus} GPUs; only one GPU can be shared")

    @property
    def shared(self) -> bool:
        """Whether it leaves a part of its GPU to others."""
        return self.gpus == 1 and self.gpu_milli < MILLI

    @property
    def total_milli(self) -> int:
        """Milli-GPU of all its GPUs."""
        return self.gpus * self.gpu_milli

    @property
    def size(self) -> int:
        """Its class of size: 0 shares a GPU, n takes n whole ones."""
        return 0 if self.shared else self.gpus


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """An empty node.

    Args:
        domain: name of the rack, block or link domain that it is in.
    """

    name: str
    gpus: int
    cpu_milli: int = UNLIMITED
    memory_mib: int = UNLIMITED
    model: str = ""
    domain: str = ""


@dataclass(slots=True)
class NodeRows:
    """Nodes in the order in which equally good ones are taken.

    Args:
        free_milli: (nodes, most GPUs of a node) int64, 0 also where a node has no such GPU.
        gpus: (nodes,) int64, installed.
        cpu_milli, memory_mib: (nodes,) int64, free.
        model: (nodes,) int64, index into `models`.
        domain: (nodes,) int64, equal within one domain.
        tenants: (nodes, sizes) int64, tasks that run there by `Ask.size`.
        most_cpu_milli, most_milli: CPU and milli-GPU of the largest node, which scale scores.
    """

    free_milli: Ints
    gpus: Ints
    cpu_milli: Ints
    memory_mib: Ints
    model: Ints
    domain: Ints
    tenants: Ints
    models: tuple[str, ...]
    most_cpu_milli: int
    most_milli: int
    names: tuple[str, ...] = ()

    def at(self, index: Ints) -> NodeRows:
        """Copies of some rows, without their names."""
        return NodeRows(
            self.free_milli[index],
            self.gpus[index],
            self.cpu_milli[index],
            self.memory_mib[index],
            self.model[index],
            self.domain[index],
            self.tenants[index],
            self.models,
            self.most_cpu_milli,
            self.most_milli,
        )

    def accepts(self, asks: Sequence[Ask]) -> Bools:
        """Which models will do: (models, asks) bool."""
        rows = [[not ask.models or model in ask.models for ask in asks] for model in self.models]
        return np.array(rows, dtype=np.bool_).reshape(len(self.models), len(asks))

    def fits(self, ask: Ask, index: Ints) -> Bools:
        """Which of these rows the ask could start on now: (rows,) bool."""
        fits = (self.cpu_milli[index] >= ask.cpu_milli) & (self.memory_mib[index] >= ask.memory_mib)
        if ask.gpus:
            fits &= (self.free_milli[index] >= ask.gpu_milli).sum(axis=1) >= ask.gpus
        if ask.models:
            fits &= self.accepts([ask])[self.model[index], 0]
        return fits

    def place(self, row: int, ask: Ask, gpus: Sequence[int]) -> None:
        """Take what the ask needs of one node, on these of its GPUs."""
        self.cpu_milli[row] -= ask.cpu_milli
        self.memory_mib[row] -= ask.memory_mib
        for gpu in gpus:
            self.free_milli[row, gpu] -= ask.gpu_milli
        if ask.gpus:
            self.tenants[row, ask.size] += 1


def lay_out(specs: Sequence[NodeSpec], tie: NodeTie = NodeTie.NAME) -> NodeRows:
    """Empty nodes as rows, by name or as declared."""
    specs = sorted(specs, key=lambda s: s.name) if tie is NodeTie.NAME else list(specs)
    models = tuple(dict.fromkeys(s.model for s in specs))
    domains = {name: i for i, name in enumerate(dict.fromkeys(s.domain for s in specs))}
    gpus = np.array([s.gpus for s in specs], dtype=np.int64)
    most = max((s.gpus for s in specs), default=0)
    return NodeRows(
        free_milli=np.where(np.arange(most) < gpus[:, None], MILLI, 0).astype(np.int64),
        gpus=gpus,
        cpu_milli=np.array([s.cpu_milli for s in specs], dtype=np.int64),
        memory_mib=np.array([s.memory_mib for s in specs], dtype=np.int64),
        model=np.array([models.index(s.model) for s in specs], dtype=np.int64),
        domain=np.array([domains[s.domain] for s in specs], dtype=np.int64),
        tenants=np.zeros((len(specs), most + 1), dtype=np.int64),
        models=models,
        most_cpu_milli=max((s.cpu_milli for s in specs), default=1),
        most_milli=max(most, 1) * MILLI,
        names=tuple(s.name for s in specs),
    )


def of_whole_gpus(free: Ints, installed: Ints) -> NodeRows:
    """Nodes of one model that are known by their number of free GPUs alone; CPU and memory are not counted.

    Args:
        free, installed: (nodes,) int64 GPUs; 0 free for a node that may not be used.

    Raises:
        ValueError: more is free than installed.
    """
    if (np.asarray(free) > np.asarray(installed)).any():
        raise ValueError("a node has more GPUs free than installed")
    rows = lay_out([NodeSpec(f"{i}", int(gpus)) for i, gpus in enumerate(installed)], NodeTie.DECLARED)
    columns = np.arange(rows.free_milli.shape[1])
    rows.free_milli[:] = np.where(columns < np.asarray(free)[:, None], MILLI, 0)
    return rows
