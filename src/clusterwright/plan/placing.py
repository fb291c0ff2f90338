"""Placing all workloads together: largest first, replicas of one workload on different nodes where that is possible.

Pure: nodes with free GPUs in, assignments out. A replica smaller than a node never leaves it; a larger one takes equal
shares of as few nodes as hold it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations

from clusterwright.plan.results.layouts import Assignment

#: Node sets tried one by one when looking for the worst loss.
_MOST_SETS = 2_000


@dataclass(frozen=True, slots=True)
class Request:
    """Equal replicas of one workload.

    Args:
        gpus: of one replica.
        replicas: wanted.
        priority: larger goes first when not everything fits.
        apart: never two replicas on one node.
        queue: of the scheduler, "" if none.
        least: GPUs of the smallest replica that may run after a loss, 0 for `gpus`.
    """

    workload: str
    pool: str
    gpus: int
    replicas: int
    priority: int = 0
    apart: bool = False
    queue: str = ""
    least: int = 0


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
    free = {p.pool: [list(range(p.gpus)) for _ in p.names] for p in pools}
    by_name = {p.pool: p for p in pools}
    assignments, placed = list[Assignment](), dict[str, int]()
    for request in requests:
        pool = by_name.get(request.pool)
        if pool is None or not pool.gpus:
            continue
        found = _place_replicas(request, pool, free[request.pool])
        assignments += found
        if found:
            placed[request.workload] = placed.get(request.workload, 0) + 1 + found[-1].replica
    return Placement(tuple(assignments), placed)


def _place_replicas(request: Request, pool: Nodes, free: list[list[int]]) -> list[Assignment]:
    """Assignments of as many replicas as fit; takes their GPUs out of `free`.

    Next comes the node with the fewest replicas of this workload, of those the fullest, of those the first.
    """
    spans = nodes_per_replica(request.gpus, pool.gpus)
    if request.gpus % spans:
        return []
    share = request.gpus // spans
    heap = [(0, len(gpus), node) for node, gpus in enumerate(free) if len(gpus) >= share]
    heapify(heap)
    assignments = list[Assignment]()
    for replica in range(request.replicas):
        if len(heap) < spans:
            break
        for mine, _, node in [heappop(heap) for _ in range(spans)]:
            gpus, free[node] = tuple(free[node][:share]), free[node][share:]
            assignments.append(Assignment(request.workload, replica, request.pool, pool.names[node], gpus))
            if len(free[node]) >= share and not request.apart:
                heappush(heap, (mine + 1, len(free[node]), node))
    return assignments


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
    """The nodes whose loss leaves fewest replicas of a workload; of equals those that hold most, then the first.

    Exact while the sets of `count` nodes are few. Beyond that the node that hits most replicas still whole is lost
    next, again and again: exact where a replica stays in one node, else at least 63 % of the worst (Nemhauser, Wolsey
    and Fisher 1978, greedy maximum coverage).
    """
    held: dict[str, set[int]] = {n: set() for n in nodes}
    for part in assignments:
        if part.workload == workload and part.node in held:
            held[part.node].add(part.replica)
    pool = sorted(nodes, key=lambda n: -len(held[n]))
    if math.comb(len(pool), count) <= _MOST_SETS:
        sets = combinations(pool, count)
        return min(sets, key=lambda lost: -len(set().union(*(held[n] for n in lost))), default=())
    return _worst_greedily(held, pool, count)


def _worst_greedily(held: Mapping[str, set[int]], pool: Sequence[str], count: int) -> tuple[str, ...]:
    """Lazy greedy: what a node hits only shrinks, so the best of the queue is recomputed only when it comes up."""
    queue = [(-len(held[n]), i) for i, n in enumerate(pool)]
    heapify(queue)
    hit, lost = set[int](), list[str]()
    while queue and len(lost) < count:
        gain, index = heappop(queue)
        now = -len(held[pool[index]] - hit)
        if now != gain:
            heappush(queue, (now, index))
            continue
        lost.append(pool[index])
        hit |= held[pool[index]]
    return tuple(lost)
