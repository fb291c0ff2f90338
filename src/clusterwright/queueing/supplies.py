"""What a job could get: GPU models, quota left, rooms on nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from clusterwright.queueing.placing import NoFit, Room, place, tasks_of
from clusterwright.queueing.quotas import Balance
from clusterwright.queueing.states import NodeView, QueueState, Waiting


def flavors_of(job: Waiting, state: QueueState) -> list[str]:
    """GPU models to try, in order of declaration."""
    known = list(dict.fromkeys(n.flavor for n in state.nodes))
    return known if job.flavor is None else [f for f in known if f == job.flavor]


def gpus_available(job: Waiting, flavor: str, state: QueueState) -> float:
    """GPUs of this flavor the job's queue may still take; without declared queues there is no limit."""
    if not state.tree.queues:
        return float("inf")
    balance = balance_of(state, flavor)
    return balance.available(job.queue) if balance.named(job.queue) else 0.0


def balance_of(state: QueueState, flavor: str) -> Balance:
    """The quota tree at the usage of this state."""
    used: dict[str, float] = defaultdict(float)
    for holding in state.holdings:
        if holding.flavor == flavor:
            used[holding.queue] += holding.gpus
    return Balance(state.tree, flavor, used)


def rooms_of(job: Waiting, flavor: str, nodes: Sequence[NodeView], *, avoid: bool, empty: bool = False) -> list[Room]:
    """Nodes of one flavor that this job may use, with their free devices (or all of them)."""
    skip = job.exclude | (job.avoid if avoid else frozenset())
    return [
        Room(n.name, n.devices if empty else n.free, n.topology)
        for n in nodes
        if n.flavor == flavor and n.name not in skip
    ]


def others_could(job: Waiting, flavor: str, up: Sequence[NodeView]) -> bool:
    """Whether the smallest gang would fit on the nodes that are not avoided, were they empty."""
    smallest = tasks_of(job.groups, {g.name: g.least for g in job.groups})
    return not isinstance(place(smallest, rooms_of(job, flavor, up, avoid=True, empty=True)), NoFit)
