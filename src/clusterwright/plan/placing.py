"""Placing all workloads together: largest first, replicas of one workload on different nodes where that is possible.

Pure: nodes with free GPUs in, assignments out. A replica smaller than a node never leaves it; a larger one takes equal
shares of as few nodes as hold it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from clusterwright.plan.results import Assignment

#: Node sets tried when looking for the worst loss; beyond it the nodes that hold most are lost first.
_MOST_SETS = 2_000


@dataclass(frozen=True, slots=True)
class Request:
    """Equal replicas of one workload.

    Args:
        gpus: of one replica.
        replicas: wanted.
        priority: larger goes first when not everything fits.
    """

    workload: str
    pool: str
    gpus: int
    replicas: int
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of one pool, all alike."""

    pool: str
    names: tuple[str, ...]
    gpus: int

    def without(self, lost: Iterable[str]) -> Nodes:
        """The same pool after a loss."""
        gone = set(lost)
        return Nodes(self.pool, tuple(n for n in self.names if n not in gone), self.gpus)


@dataclass(frozen=True, slots=True)
class Placement:
    """Assignments, and how many replicas of each workload were placed."""

    assignments: tuple[Assignment, ...]
    placed: Mapping[str, int]

    def complete(self, requests: Iterable[Request]) -> bool:
        """Whether every wanted replica has its GPUs."""
        return all(self.placed.get(r.workload, 0) >= r.replicas for r in requests)


def nodes_per_replica(gpus: int, node_gpus: int) -> int:
    """Nodes that one replica spans."""
    return max(1, math.ceil(gpus / node_gpus))


def place(requests: Sequence[Request], pools: Sequence[Nodes]) -> Placement:
    """Place everything: largest replicas first; if that does not fit, by priority, then size."""
    placement = _place_in_order(sorted(requests, key=lambda r: (-r.gpus, r.workload)), pools)
    if placement.complete(requests):
        return placement
    return place_by_priority(requests, pools)


def place_by_priority(requests: Sequence[Request], pools: Sequence[Nodes]) -> Placement:
    """Place by priority, then size: who goes without when not everything fits."""
    return _place_in_order(sorted(requests, key=lambda r: (-r.priority, -r.gpus, r.workload)), pools)


def _place_in_order(requests: Sequence[Request], pools: Sequence[Nodes]) -> Placement:
    sizes = {p.pool: p.gpus for p in pools}
    free = {(p.pool, name): list(range(p.gpus)) for p in pools for name in p.names}
    assignments, placed = list[Assignment](), dict[str, int]()
    for request in requests:
        for replica in range(request.replicas):
            found = _place_one(request, replica, free, sizes.get(request.pool, 0), assignments)
            if not found:
                break
            assignments += found
            placed[request.workload] = placed.get(request.workload, 0) + 1
    return Placement(tuple(assignments), placed)


def _place_one(
    request: Request,
    replica: int,
    free: dict[tuple[str, str], list[int]],
    node_gpus: int,
    taken: Sequence[Assignment],
) -> list[Assignment]:
    """Assignments of one replica, empty when it does not fit; takes the GPUs out of `free`."""
    if not node_gpus:
        return []
    spans = nodes_per_replica(request.gpus, node_gpus)
    if request.gpus % spans:
        return []
    share = request.gpus // spans
    mine: dict[str, int] = {}
    for other in taken:
        if other.workload == request.workload and other.pool == request.pool:
            mine[other.node] = mine.get(other.node, 0) + 1
    order = list(free)
    fitting = [key for key in order if key[0] == request.pool and len(free[key]) >= share]
    fitting.sort(key=lambda key: (mine.get(key[1], 0), len(free[key])))
    if len(fitting) < spans:
        return []
    result = []
    for key in fitting[:spans]:
        gpus, free[key] = tuple(free[key][:share]), free[key][share:]
        result.append(Assignment(request.workload, replica, request.pool, key[1], gpus))
    return result


def surviving_replicas(workload: str, assignments: Iterable[Assignment], lost: Iterable[str]) -> int:
    """Replicas that keep every GPU when these nodes are lost."""
    gone, all_, hit = set(lost), set[int](), set[int]()
    for part in assignments:
        if part.workload == workload:
            all_.add(part.replica)
            if part.node in gone:
                hit.add(part.replica)
    return len(all_ - hit)


def worst_loss(workload: str, assignments: Sequence[Assignment], nodes: Sequence[str], count: int) -> tuple[str, ...]:
    """The nodes whose loss leaves fewest replicas of a workload; of equals those that hold most, then the first."""
    held = {n: sum(1 for a in assignments if a.node == n and a.workload == workload) for n in nodes}
    pool = sorted(nodes, key=lambda n: -held[n])
    sets = list(islice(combinations(pool, count), _MOST_SETS))
    return min(sets, key=lambda lost: surviving_replicas(workload, assignments, lost), default=())
