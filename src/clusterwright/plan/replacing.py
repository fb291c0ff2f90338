"""Placing again after a loss: what runs keeps its GPUs, what was lost is placed by priority, then size.

Only where the scheduler may preempt does a replica take GPUs from one of lower priority. What was preempted is placed
again in its turn, or waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from clusterwright.plan.placing import Nodes, Request, nodes_per_replica
from clusterwright.plan.results import Assignment

#: Whether a request may take the GPUs of a victim of lower priority, given what runs.
MayPreempt = Callable[[Request, Request, "Running"], bool]


@dataclass
class Running:
    """What runs while the lost is placed again.

    Args:
        parts: (workload, replica) → its assignments.
        free: pool → node → GPUs nobody holds.
        preempted: (who was stopped, for whom), in order.
        shrunk: workload → GPUs that its job runs on instead of the declared ones.
    """

    parts: dict[tuple[str, int], list[Assignment]]
    free: dict[str, dict[str, list[int]]]
    preempted: list[tuple[str, str]] = field(default_factory=list)
    shrunk: dict[str, int] = field(default_factory=dict)

    def count(self, workload: str) -> int:
        """Replicas of a workload that run."""
        return sum(name == workload for name, _ in self.parts)

    def nodes(self, workload: str) -> tuple[str, ...]:
        """Nodes that a workload runs on, without repeats."""
        return tuple(
            dict.fromkeys(a.node for (name, _), parts in self.parts.items() if name == workload for a in parts)
        )

    def gpus(self, workloads: Iterable[str], pool: str) -> int:
        """GPUs of a pool that these workloads hold."""
        names = set(workloads)
        return sum(
            len(a.gpus) for (name, _), parts in self.parts.items() if name in names for a in parts if a.pool == pool
        )


def place_again(
    requests: Sequence[Request],
    pools: Sequence[Nodes],
    assignments: Iterable[Assignment],
    lost: Iterable[str],
    may_preempt: MayPreempt,
) -> Running:
    """What runs after `lost` nodes are gone and every missing replica was placed that finds GPUs.

    Args:
        requests: as declared: a workload never gets more replicas than it asked for.
        pools: nodes as they are after the loss, spares included.
        assignments: from before the loss.
    """
    state = _surviving(pools, assignments, set(lost))
    by_name = {p.pool: p for p in pools}
    for request in sorted(requests, key=lambda r: (-r.priority, -r.gpus, r.workload)):
        pool = by_name.get(request.pool)
        if pool is not None and pool.gpus:
            _fill(request, pool, state, {r.workload: r for r in requests}, may_preempt)
    return state


def _surviving(pools: Sequence[Nodes], assignments: Iterable[Assignment], lost: set[str]) -> Running:
    parts: dict[tuple[str, int], list[Assignment]] = {}
    for a in assignments:
        parts.setdefault((a.workload, a.replica), []).append(a)
    whole = {key: mine for key, mine in parts.items() if not any(a.node in lost for a in mine)}
    free = {p.pool: {name: list(range(p.gpus)) for name in p.names} for p in pools}
    for mine in whole.values():
        for a in mine:
            held = set(a.gpus)
            free[a.pool][a.node] = [g for g in free[a.pool][a.node] if g not in held]
    return Running(whole, free)


def _fill(request: Request, pool: Nodes, state: Running, requests: dict[str, Request], may_preempt: MayPreempt) -> None:
    """Place the missing replicas: on free GPUs, else on those of others, else a smaller job."""
    missing = request.replicas - state.count(request.workload)
    missing -= _place(request, pool, state, missing)
    if missing > 0:
        missing -= _preempt(request, pool, state, requests, may_preempt, missing)
    if missing > 0 and 0 < request.least < request.gpus:
        smaller = replace(request, gpus=request.least)
        if _place(smaller, pool, state, missing):
            state.shrunk[request.workload] = request.least


def _place(request: Request, pool: Nodes, state: Running, missing: int) -> int:
    """Place up to `missing` replicas on free GPUs; how many were."""
    spans = nodes_per_replica(request.gpus, pool.gpus)
    if missing <= 0 or request.gpus % spans:
        return 0
    share, free, own = request.gpus // spans, state.free[request.pool], _own(request, state)
    heap = [
        (own.get(name, 0), len(free[name]), index)
        for index, name in enumerate(pool.names)
        if len(free[name]) >= share and not (request.apart and own.get(name))
    ]
    heapify(heap)
    for done, replica in enumerate(_lacking(request, state)[:missing]):
        if len(heap) < spans:
            return done
        taken = [heappop(heap) for _ in range(spans)]
        _give(request, replica, state, [pool.names[index] for _, _, index in taken], share)
        for mine, _, index in taken:
            left = len(free[pool.names[index]])
            if left >= share and not request.apart:
                heappush(heap, (mine + 1, left, index))
    return missing


def _own(request: Request, state: Running) -> dict[str, int]:
    found: dict[str, int] = {}
    for (name, _), parts in state.parts.items():
        if name == request.workload:
            for a in parts:
                found[a.node] = found.get(a.node, 0) + 1
    return found


def _lacking(request: Request, state: Running) -> list[int]:
    """Numbers of the replicas that do not run."""
    return [i for i in range(request.replicas) if (request.workload, i) not in state.parts]


def _give(request: Request, replica: int, state: Running, nodes: Sequence[str], share: int) -> None:
    parts = []
    for node in nodes:
        free = state.free[request.pool][node]
        parts.append(Assignment(request.workload, replica, request.pool, node, tuple(free[:share])))
        state.free[request.pool][node] = free[share:]
    state.parts[request.workload, replica] = parts


def _preempt(
    request: Request,
    pool: Nodes,
    state: Running,
    requests: dict[str, Request],
    may_preempt: MayPreempt,
    missing: int,
) -> int:
    """Place up to `missing` replicas by stopping others, on the nodes where that stops fewest GPUs; how many were."""
    spans = nodes_per_replica(request.gpus, pool.gpus)
    if request.gpus % spans:
        return 0
    share = request.gpus // spans
    for done, replica in enumerate(_lacking(request, state)[:missing]):
        victims = _victims(request, state, requests, may_preempt)
        if not victims:
            return done
        own = _own(request, state)
        costs = []
        for index, name in enumerate(pool.names):
            if request.apart and own.get(name):
                continue
            stopped = _enough(state, request.pool, name, share, victims.get(name, []))
            if stopped is not None:
                costs.append((sum(_held(state, v) for v in stopped), index, stopped))
        if len(costs) < spans:
            return done
        chosen = sorted(costs)[:spans]
        for victim in dict.fromkeys(v for _, _, stopped in chosen for v in stopped):
            _stop(victim, request, state)
        _give(request, replica, state, [pool.names[index] for _, index, _ in chosen], share)
    return missing


def _victims(
    request: Request, state: Running, requests: dict[str, Request], may_preempt: MayPreempt
) -> dict[str, list[tuple[str, int]]]:
    """Node → replicas that may be stopped for this request, lowest priority first."""
    allowed = {
        name
        for name, other in requests.items()
        if other.pool == request.pool and other.priority < request.priority and may_preempt(request, other, state)
    }
    found: dict[str, list[tuple[str, int]]] = {}
    keys = sorted((k for k in state.parts if k[0] in allowed), key=lambda k: (requests[k[0]].priority, k))
    for key in keys:
        for a in state.parts[key]:
            found.setdefault(a.node, []).append(key)
    return found


def _enough(
    state: Running, pool: str, node: str, share: int, victims: list[tuple[str, int]]
) -> list[tuple[str, int]] | None:
    """The first victims that leave `share` GPUs free on a node, None when all of them do not."""
    free, stopped = len(state.free[pool][node]), list[tuple[str, int]]()
    for victim in victims:
        if free >= share:
            break
        free += sum(len(a.gpus) for a in state.parts[victim] if a.node == node)
        stopped.append(victim)
    return stopped if free >= share else None


def _held(state: Running, key: tuple[str, int]) -> int:
    return sum(len(a.gpus) for a in state.parts[key])


def _stop(victim: tuple[str, int], request: Request, state: Running) -> None:
    for a in state.parts.pop(victim):
        free = state.free[a.pool][a.node]
        state.free[a.pool][a.node] = sorted([*free, *a.gpus])
    state.preempted.append((victim[0], request.workload))
