"""Placing again after a loss: what runs keeps its GPUs, what was lost is placed by priority, then size.

Only where the scheduler may preempt does a replica take GPUs from one of lower priority. What was preempted is placed
again in its turn, or waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from clusterwright.plan.placing import Nodes, Request, nodes_per_replica
from clusterwright.plan.results.layouts import Assignment

#: (workload, replica).
Key = tuple[str, int]
#: Whether a request may take the GPUs of a victim of lower priority, given what runs.
MayPreempt = Callable[[Request, Request, "Running"], bool]


@dataclass
class Running:
    """What runs while the lost is placed again.

    Args:
        free: pool → node → GPUs nobody holds.
        parts: (workload, replica) → its assignments.
        preempted: (who was stopped, for whom), in order.
        shrunk: workload → GPUs that its job runs on instead of the declared ones.
    """

    free: dict[str, dict[str, list[int]]]
    parts: dict[Key, list[Assignment]] = field(default_factory=dict)
    preempted: list[tuple[str, str]] = field(default_factory=list)
    shrunk: dict[str, int] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _held: Counter[tuple[str, str]] = field(default_factory=Counter)

    def start(self, key: Key, parts: list[Assignment]) -> None:
        """A replica takes its GPUs."""
        self.parts[key] = parts
        self._counts[key[0]] += 1
        for a in parts:
            taken = set(a.gpus)
            self.free[a.pool][a.node] = [g for g in self.free[a.pool][a.node] if g not in taken]
            self._held[key[0], a.pool] += len(a.gpus)

    def stop(self, key: Key) -> list[Assignment]:
        """A replica gives its GPUs back; what it held."""
        parts = self.parts.pop(key)
        self._counts[key[0]] -= 1
        for a in parts:
            self.free[a.pool][a.node] = sorted([*self.free[a.pool][a.node], *a.gpus])
            self._held[key[0], a.pool] -= len(a.gpus)
        return parts

    def count(self, workload: str) -> int:
        """Replicas of a workload that run."""
        return self._counts[workload]

    def nodes(self, workload: str) -> tuple[str, ...]:
        """Nodes that a workload runs on, without repeats."""
        mine = (parts for (name, _), parts in self.parts.items() if name == workload)
        return tuple(dict.fromkeys(a.node for parts in mine for a in parts))

    def gpus(self, workloads: Iterable[str], pool: str) -> int:
        """GPUs of a pool that these workloads hold."""
        return sum(self._held[name, pool] for name in set(workloads))


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
    parts: dict[Key, list[Assignment]] = {}
    for a in assignments:
        parts.setdefault((a.workload, a.replica), []).append(a)
    state = Running({p.pool: {name: list(range(p.gpus)) for name in p.names} for p in pools})
    for key, mine in parts.items():
        if not any(a.node in lost for a in mine):
            state.start(key, mine)
    return state


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
    free = state.free[request.pool]
    parts = [Assignment(request.workload, replica, request.pool, n, tuple(free[n][:share])) for n in nodes]
    state.start((request.workload, replica), parts)


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
    share, own, allowed = request.gpus // spans, _own(request, state), set[str]()
    victims: dict[str, list[Key]] = {}
    queue: list[tuple[int, int]] = []

    def cost(index: int) -> int | None:
        name = pool.names[index]
        if request.apart and own.get(name):
            return None
        stopped = _enough(state, request.pool, name, share, victims.get(name, []))
        return None if stopped is None else sum(len(a.gpus) for key in stopped for a in state.parts[key])

    def push(indices: Iterable[int]) -> None:
        for index in indices:
            found = cost(index)
            if found is not None:
                heappush(queue, (found, index))

    where = {name: index for index, name in enumerate(pool.names)}
    for done, replica in enumerate(_lacking(request, state)[:missing]):
        now = _stoppable(request, state, requests, may_preempt)
        if not now:
            return done
        if now != allowed:
            allowed, victims, queue = now, _victims(now, state, requests), []
            push(range(len(pool.names)))
        chosen = _cheapest(queue, cost, spans)
        if len(chosen) < spans:
            return done
        names, touched = [pool.names[index] for index in chosen], set(chosen)
        for name in names:
            for key in _enough(state, request.pool, name, share, victims.get(name, [])) or []:
                touched.update(where[a.node] for a in state.stop(key) if a.node in where)
                state.preempted.append((key[0], request.workload))
        _give(request, replica, state, names, share)
        for name in names:
            own[name] = own.get(name, 0) + 1
        push(touched)
    return missing


def _cheapest(queue: list[tuple[int, int]], cost: Callable[[int], int | None], spans: int) -> list[int]:
    """Indices of the nodes that cost least now; entries whose cost has changed meanwhile are put back or left out."""
    chosen: list[int] = []
    while queue and len(chosen) < spans:
        known, index = heappop(queue)
        now = cost(index)
        if index in chosen or now is None:
            continue
        if now > known:
            heappush(queue, (now, index))
        else:
            chosen.append(index)
    return chosen


def _stoppable(request: Request, state: Running, requests: dict[str, Request], may_preempt: MayPreempt) -> set[str]:
    """Workloads of lower priority that run and may be stopped for this request."""
    return {
        name
        for name, other in requests.items()
        if other.pool == request.pool
        and other.priority < request.priority
        and state.count(name)
        and may_preempt(request, other, state)
    }


def _victims(allowed: set[str], state: Running, requests: dict[str, Request]) -> dict[str, list[Key]]:
    """Node → replicas that may be stopped, lowest priority first."""
    found: dict[str, list[Key]] = {}
    for key in sorted((k for k in state.parts if k[0] in allowed), key=lambda k: (requests[k[0]].priority, k)):
        for a in state.parts[key]:
            found.setdefault(a.node, []).append(key)
    return found


def _enough(state: Running, pool: str, node: str, share: int, victims: list[Key]) -> list[Key] | None:
    """The first running victims that leave `share` GPUs free on a node, None when all of them do not."""
    free, stopped = len(state.free[pool][node]), list[Key]()
    for victim in victims:
        if free >= share:
            break
        if victim in state.parts:
            free += sum(len(a.gpus) for a in state.parts[victim] if a.node == node)
            stopped.append(victim)
    return stopped if free >= share else None
