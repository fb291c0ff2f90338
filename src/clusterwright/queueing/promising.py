"""When the first job that cannot start will: the promise that backfilling keeps.

Every running job is taken to run to its limit; one that was told to leave, to the end of its grace. The promise is the
first of these ends after which both the quota and a placement are there. It needs time limits: what holds GPUs without
one is taken to hold them for good. Source: Lifka, "The ANL/IBM SP scheduling system", 1995 (EASY).
"""

from __future__ import annotations

import numpy as np

from clusterwright.model.jobs import JobId
from clusterwright.queueing.commitments import Promise
from clusterwright.queueing.domains import Ints
from clusterwright.queueing.gangs import NoFit
from clusterwright.queueing.limits import gpus_allowed
from clusterwright.queueing.requests import Demand, Holding, Request, resources_of
from clusterwright.queueing.state import State
from clusterwright.queueing.usages import Usage


def find_promise(request: Request, state: State, now_s: float) -> Promise | None:
    """The earliest start of a job over its flavors; None when no known end makes room for it."""
    best: Promise | None = None
    for flavor in state.flavors_of(request):
        if request.demand.least_gpus and not state.usage.named(request.queue, flavor):
            continue
        found = _on_flavor(request, flavor, state, now_s)
        if found is not None and (best is None or found.at_s < best.at_s):
            best = found
    return best


def renew_promise(promise: Promise, state: State) -> bool:
    """Place a promised job anew after others passed it; whether it stands elsewhere now.

    Its time stays: what passed it took nothing that it needs, and nothing came free sooner.
    """
    request, placement = promise.request, promise.placement
    flavor, demand = placement.flavor, request.demand
    floor, usage = state.cluster.floors[flavor], promise.usage
    floor.put_back(promise.left, placement, demand, promise.spare)
    used, preemptible = resources_of(demand, placement), request.preemptible
    usage.remove(request.queue, flavor, placement.gpus, used, preemptible=preemptible)
    found = floor.find_in(promise.left, demand, gpus_allowed(request, flavor, usage, state.policy), promise.spare)
    if not isinstance(found, NoFit):
        promise.placement = found
    floor.take_away(promise.left, promise.placement, demand, promise.spare)
    used = resources_of(demand, promise.placement)
    usage.add(request.queue, flavor, promise.placement.gpus, used, preemptible=preemptible)
    promise.passed = False
    return promise.placement != placement


def _on_flavor(request: Request, flavor: str, state: State, now_s: float) -> Promise | None:
    floor, demand = state.cluster.floors[flavor], request.demand
    future = _Future(state, flavor, demand)
    while (job := future.advance()) is not None:
        if not future.enough:
            continue
        usage = future.usage()
        limit = gpus_allowed(request, flavor, usage, state.policy)
        if limit < demand.least_gpus:
            continue
        free = future.free()
        placement = floor.find_in(free, demand, limit, future.spare)
        if not isinstance(placement, NoFit):
            floor.take_away(free, placement, demand, future.spare)
            used = resources_of(demand, placement)
            usage.add(request.queue, flavor, placement.gpus, used, preemptible=request.preemptible)
            at_s = max(future.at_s, now_s)
            return Promise(request, at_s, placement, free, future.spare, usage, state.surprises, job)
    return None


def withhold_claims(state: State, flavor: str, free: Ints) -> None:
    """Take from `free` what claims will take besides what they hold already: it is not there when victims leave."""
    floor = state.cluster.floors[flavor]
    for claim in state.claims.values():
        if claim.placement.flavor == flavor:
            floor.take_away(free, claim.placement, claim.request.demand)
            for node, gpus in claim.kept.items():
                free[node] += gpus


class _Future:
    """What comes free as running jobs end, one instant after the other.

    Plain lists and sums, because most instants give too little and need no more than a count of tasks that would fit.

    Attributes:
        at_s: the instant.
        enough: whether a placement may exist by then.
        spare: further resources that are free then.
    """

    def __init__(self, state: State, flavor: str, demand: Demand) -> None:
        self._state, self._flavor, self._floor = state, flavor, state.cluster.floors[flavor]
        free = self._floor.free.copy()
        withhold_claims(state, flavor, free)
        largest = max(demand.groups, key=lambda g: g.gpus)
        self._size, self._tasks, self._least = largest.gpus, largest.fewest, demand.least_gpus
        counted = np.where(self._floor.usable, np.maximum(free, 0), 0)
        self._gpus = int(counted.sum())
        self._slots = int((counted // self._size).sum()) if self._size else 0
        self._free: list[int] = free.tolist()
        self._up: list[bool] = self._floor.usable.tolist()
        self._ends, self._next = state.releases(flavor), 0
        self._usage: Usage | None = None
        self._returned: dict[tuple[str, bool], int] = {}
        self.at_s, self.enough = 0.0, False
        self.spare = {name: amounts.copy() for name, amounts in self._floor.spare.items()}

    def advance(self) -> JobId | None:
        """On to the next instant at which jobs end; the last of these, None when no more end is known."""
        ends, running, job, place = self._ends, self._state.running, None, self._next
        if place < len(ends):
            self.at_s = ends[place][0]
        while place < len(ends) and ends[place][0] == self.at_s:
            job = ends[place][2]
            place += 1
            holding = running[job]
            owner, placement = holding.request, holding.placement
            demand = owner.demand
            if placement.domain is None and len(placement.runs) == 1 and demand.plain:
                self._add(placement.runs[0][1], placement.gpus)
                key = (owner.queue, owner.preemptible)
                self._returned[key] = self._returned.get(key, 0) + placement.gpus
            else:
                self._end(holding)
        self._next = place
        self.enough = self._gpus >= self._least and (not self._size or self._slots >= self._tasks)
        return job

    def free(self) -> Ints:
        """`(nodes,) int32` GPUs that are free then."""
        return np.array(self._free, dtype=self._floor.free.dtype)

    def usage(self) -> Usage:
        """The quota in use then."""
        if self._usage is None:
            self._usage = self._state.usage.fork()
        for (queue, preemptible), gpus in self._returned.items():
            self._usage.remove(queue, self._flavor, gpus, preemptible=preemptible)
        self._returned.clear()
        return self._usage

    def _end(self, holding: Holding) -> None:
        placement, owner = holding.placement, holding.request
        effect = self._floor.effect(placement, owner.demand)
        for node, gpus in effect.gpus.items():
            self._add(node, gpus)
        for name, amounts in self.spare.items():
            for node, parts in effect.further.get(name, {}).items():
                amounts[node] += parts
        used = resources_of(owner.demand, placement)
        self.usage().remove(owner.queue, self._flavor, placement.gpus, used, preemptible=owner.preemptible)

    def _add(self, node: int, gpus: int) -> None:
        before = self._free[node]
        after = self._free[node] = before + gpus
        if self._up[node]:
            if before < 0:  # claimed by a job whose victims have not left
                before, after = 0, max(after, 0)
            self._gpus += after - before
            if self._size:
                self._slots += after // self._size - before // self._size
