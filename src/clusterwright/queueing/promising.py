"""When the first job that cannot start will: the promise that backfilling keeps.

Every running job is taken to run to its limit; one that was told to leave, to the end of its grace. The promise is the
first of these ends after which both the quota and a placement are there. It needs time limits: what holds GPUs without
one is taken to hold them for good. Source: Lifka, "The ANL/IBM SP scheduling system", 1995 (EASY).
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from clusterwright.model.jobs import JobId
from clusterwright.queueing.clusters import Floor
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


def _on_flavor(request: Request, flavor: str, state: State, now_s: float) -> Promise | None:
    floor, demand = state.cluster.floors[flavor], request.demand
    free, usage = floor.free.copy(), state.usage.fork()
    withhold_claims(state, flavor, free)
    count = _Slots(floor, demand, free)
    returned: list[Holding] = []
    for at_s, ends in groupby(state.releases(flavor), key=_time):
        last: JobId | None = None
        for _, _, job in ends:
            holding, last = state.running[job], job
            count.give(holding)
            returned.append(holding)
        if not count.enough():
            continue
        while returned:
            _return_quota(returned.pop(), usage)
        limit = gpus_allowed(request, flavor, usage, state.policy)
        if limit < demand.least_gpus:
            continue
        placement = floor.find_in(free, demand, limit)
        if not isinstance(placement, NoFit):
            floor.take_away(free, placement, demand)
            used = resources_of(demand, placement)
            usage.add(request.queue, flavor, placement.gpus, used, preemptible=request.preemptible)
            at_s = max(at_s, now_s)
            return Promise(request, at_s, placement, free, usage, state.surprises, last)
    return None


def _time(end: tuple[float, int, JobId]) -> float:
    return end[0]


def withhold_claims(state: State, flavor: str, free: Ints) -> None:
    """Take from `free` what claims will take besides what they hold already: it is not there when victims leave."""
    floor = state.cluster.floors[flavor]
    for claim in state.claims.values():
        if claim.placement.flavor == flavor:
            floor.take_away(free, claim.placement, claim.request.demand)
            for node, gpus in claim.kept.items():
                free[node] += gpus


def _return_quota(holding: Holding, usage: Usage) -> None:
    request, placement = holding.request, holding.placement
    used = resources_of(request.demand, placement)
    usage.remove(request.queue, placement.flavor, placement.gpus, used, preemptible=request.preemptible)


class _Slots:
    """How many tasks of a demand's largest shape fit, kept up while GPUs come free: a quick 'not yet'."""

    def __init__(self, floor: Floor, demand: Demand, free: Ints) -> None:
        self._floor, self._free, self._usable = floor, free, floor.usable
        largest = max(demand.groups, key=lambda g: g.gpus)
        self._gpus, self._needed = largest.gpus, largest.fewest
        self._total = demand.least_gpus
        counted = np.where(floor.usable, np.maximum(free, 0), 0)
        self._gpus_free = int(counted.sum())
        self._slots = int((counted // self._gpus).sum()) if self._gpus else 0

    def give(self, holding: Holding) -> None:
        """A job's GPUs come free."""
        placement, demand = holding.placement, holding.request.demand
        if placement.domain is not None:
            for node, gpus in self._floor.effect(placement, demand).gpus.items():
                self._add(node, gpus)
            return
        for group, node, tasks in placement.runs:
            self._add(node, tasks * demand.groups[group].gpus)

    def _add(self, node: int, gpus: int) -> None:
        before = int(self._free[node])
        self._free[node] = before + gpus
        if self._usable[node]:
            low, high = max(before, 0), max(before + gpus, 0)
            self._gpus_free += high - low
            if self._gpus:
                self._slots += high // self._gpus - low // self._gpus

    def enough(self) -> bool:
        """Whether a placement may exist."""
        return self._gpus_free >= self._total and (not self._gpus or self._slots >= self._needed)
