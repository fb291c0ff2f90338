"""What a decision is made from: nodes, waiting jobs, and what is held. Plain values, filled in by an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterwright.model.jobs import DEFAULT_QUEUE, Blocker, JobId, TaskGroup, TaskPlacement
from clusterwright.queueing.quotas import QueueTree


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node: `devices` are all its GPUs, `free` those no attempt holds; a node that is not up takes nothing."""

    name: str
    flavor: str
    devices: tuple[str, ...]
    free: tuple[str, ...]
    up: bool = True
    reason: str = ""
    topology: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that wants to start.

    Args:
        exclude: nodes never used.
        avoid: nodes on which an attempt was lost and that came back: used only when the job could not fit on the
            other nodes that are up even if these were empty.
        held_why: why the engine holds it; empty where its owner does.
        gates: names of what must be released first, with an explanation.
    """

    id: JobId
    groups: tuple[TaskGroup, ...]
    queued_at_s: float
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    flavor: str | None = None
    exclude: frozenset[str] = frozenset()
    avoid: frozenset[str] = frozenset()
    held: bool = False
    held_why: str = ""
    gates: Mapping[str, str] = field(default_factory=dict)
    not_before_s: float = 0.0
    restarts: int = 0
    max_restarts: int = 0

    @property
    def least_gpus(self) -> int:
        """GPUs of the smallest gang that may run."""
        return sum(g.least * g.gpus for g in self.groups)


@dataclass(frozen=True, slots=True)
class Holding:
    """What an admitted job holds; `ends_by_s` is when its time limit ends it, if it has one."""

    id: JobId
    queue: str
    flavor: str
    gpus: int
    ends_by_s: float | None = None


@dataclass(frozen=True, slots=True)
class QueueState:
    """Everything a decision depends on."""

    nodes: tuple[NodeView, ...]
    waiting: tuple[Waiting, ...]
    holdings: tuple[Holding, ...] = ()
    tree: QueueTree = field(default_factory=QueueTree)
    now_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Start:
    """A decision to start: placements in rank order, all on nodes of one flavor; `reason` in plain words."""

    id: JobId
    flavor: str
    tasks: tuple[TaskPlacement, ...]
    borrowed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Decisions:
    """What to start, and for every other waiting job at least one blocker."""

    starts: tuple[Start, ...]
    blockers: Mapping[JobId, tuple[Blocker, ...]]
