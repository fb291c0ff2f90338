"""What a job asks of the queue, as plain hashable values: equal demands are equally hard to place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from clusterwright.model.jobs import DEFAULT_QUEUE, JobId


@dataclass(frozen=True, slots=True)
class Shape:
    """`count` equal tasks, each on one node.

    Args:
        gpus: of one task, all of one node.
        least: fewest tasks with which the group may run; unset is all.
        spread: every task on a node of its own.
        resources: further needs of one task by resource name (`cpu` in cores, `memory` in GiB), sorted by name.
    """

    count: int
    gpus: int
    name: str = "main"
    least: int | None = None
    spread: bool = False
    resources: tuple[tuple[str, float], ...] = ()

    @property
    def fewest(self) -> int:
        """Tasks of the smallest group that may run."""
        return self.count if self.least is None else self.least


@dataclass(frozen=True, slots=True)
class TopologyWish:
    """Where the tasks of a gang want to be.

    Args:
        level: name of the level that must (or should) hold all tasks in one domain, "" for any.
        required: whether the job waits rather than run across domains of `level`; else wider domains are taken.
        slice_tasks: tasks of one slice, 0 for none; every slice lies within one domain of `slice_level`.
        exclusive: the domain (of `level`) holds no other job while this one runs.

    Source: Kueue, Topology Aware Scheduling (podset-required-topology, podset-preferred-topology,
    podset-slice-required-topology, podset-slice-size); Slurm topology/block with --segment.
    """

    level: str = ""
    required: bool = True
    slice_tasks: int = 0
    slice_level: str = ""
    exclusive: bool = False


@dataclass(frozen=True)
class Demand:
    """Everything about a job that decides where it fits; jobs that share one are tried once per cycle.

    Args:
        groups: in rank order; all of them or none.
        flavors: to try, in order; empty means every flavor in order of declaration.
        exclude: nodes never used.
        avoid: nodes used only when the job could not fit on the others even if these were empty.
    """

    groups: tuple[Shape, ...]
    flavors: tuple[str, ...] = ()
    topology: TopologyWish | None = None
    exclude: frozenset[str] = frozenset()
    avoid: frozenset[str] = frozenset()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.groups, self.flavors, self.topology, self.exclude, self.avoid))

    @cached_property
    def most_gpus(self) -> int:
        """GPUs of the whole gang."""
        return sum(g.count * g.gpus for g in self.groups)

    @cached_property
    def least_gpus(self) -> int:
        """GPUs of the smallest gang that may run."""
        return sum(g.fewest * g.gpus for g in self.groups)

    @cached_property
    def elastic(self) -> bool:
        """Whether it may run with fewer tasks than it wants."""
        return any(g.fewest < g.count for g in self.groups)

    @cached_property
    def plain(self) -> bool:
        """Whether it asks for nothing but GPUs."""
        return not any(g.resources for g in self.groups)

    @cached_property
    def least_resources(self) -> tuple[tuple[str, float], ...]:
        """What the smallest gang uses besides GPUs, by resource name."""
        return _total((g.fewest, g.resources) for g in self.groups)

    @cached_property
    def most_resources(self) -> tuple[tuple[str, float], ...]:
        """What the whole gang uses besides GPUs, by resource name."""
        return _total((g.count, g.resources) for g in self.groups)

    @cached_property
    def single(self) -> int | None:
        """GPUs of its only task when nothing but GPUs of one node decides where it fits, else None."""
        first = self.groups[0]
        plain = len(self.groups) == 1 and first.count == 1 and first.fewest == 1 and not first.resources
        return first.gpus if plain and self.topology is None and not self.exclude and not self.avoid else None


@dataclass(slots=True)
class Request:
    """A job that wants to start.

    Args:
        demand: what it needs.
        queued_at_s: submission or last eviction, which is its age in the order.
        limit_s: most seconds it runs once started; None is no limit, and nothing is backfilled on its promise.
        grace_s: between SIGTERM and SIGKILL when it is preempted; None takes the policy's.
        user: for limits and fair share over time.
        preemptible: whether others may ever take its GPUs.
        reservation: name of the reservation it may use.
        hold: why it is held, "" when it is not.
        gates: names of what must be released first, with an explanation.
        not_before_s: earliest start, after a failure.
    """

    id: JobId
    demand: Demand
    queued_at_s: float
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    limit_s: float | None = None
    grace_s: float | None = None
    user: str = ""
    preemptible: bool = True
    reservation: str = ""
    hold: str = ""
    gates: Mapping[str, str] = field(default_factory=dict)
    not_before_s: float = 0.0
    restarts: int = 0
    max_restarts: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a gang goes.

    Args:
        flavor: all of its nodes are of this one.
        runs: (index of the group, index of the node within the flavor, tasks) in rank order.
        gpus: of all tasks.
        domain: the exclusive domain it takes, as (level, index of the domain), None without.
    """

    flavor: str
    runs: tuple[tuple[int, int, int], ...]
    gpus: int
    domain: tuple[str, int] | None = None


@dataclass(slots=True)
class Holding:
    """What an admitted job holds.

    Args:
        borrowed: whether its admission took its queue over its guarantee.
        started_at_s: when it got its GPUs.
        saved_at_s: when its last checkpoint was written; what it did since is lost when it is preempted.
        leaving_at_s: when it gives its GPUs back, once it was told to leave.
    """

    request: Request
    placement: Placement
    started_at_s: float
    saved_at_s: float
    borrowed: bool = False
    leaving_at_s: float | None = None

    @property
    def ends_by_s(self) -> float | None:
        """When its time limit ends it, or when it leaves; None without a limit."""
        if self.leaving_at_s is not None:
            return self.leaving_at_s
        limit = self.request.limit_s
        return None if limit is None else self.started_at_s + limit


def resources_of(demand: Demand, placement: Placement) -> tuple[tuple[str, float], ...]:
    """What a placed gang uses besides GPUs, by resource name."""
    return () if demand.plain else _total((t, demand.groups[g].resources) for g, _, t in placement.runs)


def _total(parts: Iterable[tuple[int, tuple[tuple[str, float], ...]]]) -> tuple[tuple[str, float], ...]:
    total: dict[str, float] = {}
    for tasks, resources in parts:
        for name, amount in resources:
            total[name] = total.get(name, 0.0) + amount * tasks
    return tuple(sorted(total.items()))
