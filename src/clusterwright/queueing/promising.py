"""When the first job that cannot start will: the promise that backfilling keeps.

Every running job is taken to run to its limit; one that was told to leave, to the end of its grace. The promise is the
first of these ends after which both the quota and a placement are there. It needs time limits: what holds GPUs without
one is taken to hold them for good. Source: Lifka, "The ANL/IBM SP scheduling system", 1995 (EASY).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from clusterwright.model.jobs import JobId
from clusterwright.queueing.commitments import Promise
from clusterwright.queueing.domains import Ints
from clusterwright.queueing.gangs import NoFit
from clusterwright.queueing.limits import gpus_allowed
from clusterwright.queueing.requests import Demand, Holding, Request, resources_of
from clusterwright.queueing.state import End, State

#: Slots of a future that were not counted.
_UNKNOWN: Final = -1


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
        usage = future.usage
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

    Most instants give too little. That is found out with plain lists and sums: a count of tasks that would fit.

    Attributes:
        at_s: the instant.
        usage: the quota in use then.
        spare: further resources that are free then.
    """

    def __init__(self, state: State, flavor: str, demand: Demand) -> None:
        self._running, self._flavor, self._floor = state.running, flavor, state.cluster.floors[flavor]
        largest = max(demand.groups, key=lambda g: g.gpus)
        self._size, self._least = max(largest.gpus, 1), demand.least_gpus
        self._alone = bool(demand.single)
        self._tasks = largest.fewest if largest.gpus else 0
        floor, free = self._floor, self._floor.free
        if state.claims:
            free = free.copy()
            withhold_claims(state, flavor, free)
            counted = np.where(floor.usable, np.maximum(free, 0), 0)
            self._gpus, self._slots = int(counted.sum()), int((counted // self._size).sum())
        else:
            self._gpus, self._slots = floor.free_gpus, floor.slots(self._size)
        self._free: list[int] = free.tolist()
        self._up: list[bool] = floor.usable.tolist()
        self._ends, self._next = state.known_ends(flavor), 0
        self.at_s, self.usage = 0.0, state.usage.fork()
        self.spare = {name: amounts.copy() for name, amounts in floor.spare.items()}

    def advance(self) -> JobId | None:
        """On to the next instant by which a placement may exist; the last job that ends then, None when none helps."""
        place = self._first_room() if self._alone and not self._next and not self._slots else self._enough()
        if place is None:
            return None
        last = self._ends[place]
        self._settle(self._ends[self._next : place + 1])
        self._next, self.at_s = place + 1, last[0]
        return last[2]

    def _first_room(self) -> int | None:
        """The place of the end after which a node first holds one task, where none does at first."""
        ends, free, up, size, found = self._ends, self._free, self._up, self._size, False
        for place, (at_s, _, job, only, released, _, _) in enumerate(ends):
            if only >= 0:
                after = free[only] = free[only] + released
                found = found or (after >= size and up[only])
            else:
                for node, more in self._released(job):
                    after = free[node] = free[node] + more
                    found = found or (after >= size and up[node])
            if found and (place + 1 == len(ends) or ends[place + 1][0] != at_s):
                self._slots = _UNKNOWN
                return place
        return None

    def _enough(self) -> int | None:
        """The place of the end after which there are enough GPUs, and nodes hold enough tasks of the largest kind."""
        ends, size = self._ends, self._size
        if self._slots == _UNKNOWN:
            there = [max(gpus, 0) for gpus, usable in zip(self._free, self._up, strict=True) if usable]
            self._gpus, self._slots = sum(there), sum(gpus // size for gpus in there)
        free, up, gpus, slots = self._free, self._up, self._gpus, self._slots
        for place in range(self._next, len(ends)):
            at_s, _, job, only, released, _, _ = ends[place]
            for node, more in ((only, released),) if only >= 0 else self._released(job):
                before = free[node]
                after = free[node] = before + more
                if up[node]:
                    if before < 0:  # claimed by a job whose victims have not left
                        before, after = 0, max(after, 0)
                    gpus += after - before
                    slots += after // size - before // size
            if slots >= self._tasks and gpus >= self._least:
                if place + 1 < len(ends) and ends[place + 1][0] == at_s:
                    continue
                self._gpus, self._slots = gpus, slots
                return place
        return None

    def _released(self, job: JobId) -> Iterable[tuple[int, int]]:
        """(node, GPUs) that a running job gives back."""
        holding = self._running[job]
        return self._floor.effect(holding.placement, holding.request.demand).gpus.items()

    def free(self) -> Ints:
        """`(nodes,) int32` GPUs that are free then."""
        return np.array(self._free, dtype=self._floor.free.dtype)

    def _settle(self, ended: Sequence[End]) -> None:
        """Give back quota and further resources of these; GPUs are counted already."""
        owner, total, takes = "", 0, True
        for _, _, job, node, gpus, queue, preemptible in ended:
            if queue != owner or preemptible is not takes:
                self.usage.remove(owner, self._flavor, total, preemptible=takes)
                owner, total, takes = queue, 0, preemptible
            total += gpus
            if node < 0:
                self._settle_further(self._running[job])
        self.usage.remove(owner, self._flavor, total, preemptible=takes)

    def _settle_further(self, holding: Holding) -> None:
        owner, placement = holding.request, holding.placement
        if placement.domain is None and owner.demand.plain:
            return
        further = self._floor.effect(placement, owner.demand).further
        for name, amounts in self.spare.items():
            for node, parts in further.get(name, {}).items():
                amounts[node] += parts
        used = resources_of(owner.demand, placement)
        self.usage.remove(owner.queue, self._flavor, 0, used, preemptible=owner.preemptible)
