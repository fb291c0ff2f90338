"""Where a job can start now: on the first of its flavors on which quota and free nodes allow it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

import numpy as np

from clusterwright.queueing.commitments import Promise
from clusterwright.queueing.limits import gpus_allowed
from clusterwright.queueing.requests import Placement, Request
from clusterwright.queueing.state import State
from clusterwright.queueing.windows import Window, open_for


class NoStart(Enum):
    """Why a job cannot start now: quota keeps it from a flavor, or there is no room on any."""

    QUOTA = auto()
    ROOM = auto()


def find_start(request: Request, state: State, closed: Sequence[Window] = ()) -> Placement | NoStart:
    """Where a job can start now, not on the nodes of `closed` windows; takes nothing."""
    demand, usage, policy = request.demand, state.usage, state.policy
    least, floors, lacking = demand.least_gpus, state.cluster.floors, NoStart.ROOM
    for flavor in demand.flavors or state.cluster.flavors:
        floor = floors.get(flavor)
        if floor is None:
            continue
        limit = gpus_allowed(request, flavor, usage, policy)
        if limit < least:
            lacking = NoStart.QUOTA
            continue
        if closed:
            found = floor.find_in(open_for(state.cluster, flavor, closed, floor.free), demand, limit)
        else:
            found = floor.find(demand, limit)
        if isinstance(found, Placement):
            return found
    return lacking


def find_beside(request: Request, state: State, promise: Promise, closed: Sequence[Window] = ()) -> Placement | None:
    """Where a job can run past the promised time without taking what the promised job will need; takes nothing."""
    demand = request.demand
    for flavor in state.flavors_of(request):
        limit = gpus_allowed(request, flavor, state.usage, state.policy)
        if limit < demand.least_gpus:
            continue
        floor = state.cluster.floors[flavor]
        free = open_for(state.cluster, flavor, closed, floor.free) if closed else floor.free
        spare = floor.spare
        if flavor == promise.placement.flavor:
            limit = min(limit, gpus_allowed(request, flavor, promise.usage, state.policy))
            if limit < demand.least_gpus:
                continue
            free = np.minimum(free, promise.left)
            spare = {name: np.minimum(amounts, promise.spare[name]) for name, amounts in spare.items()}
        found = floor.find_in(free, demand, limit, spare)
        if isinstance(found, Placement):
            return found
    return None
