"""The shortest way from a job's arrival to its start, for a job that alone decides what happens (`State.lone`).

A whole cycle would look at nobody else, so neither a line nor an order of queues is needed: where there is room, a job
comes and starts. Where it cannot start, a cycle finds out what follows.
"""

from __future__ import annotations

from clusterwright.queueing.decisions import Start
from clusterwright.queueing.gangs import NoFit
from clusterwright.queueing.limits import gpus_allowed
from clusterwright.queueing.requests import Request
from clusterwright.queueing.state import State


def start_alone(request: Request, state: State, now_s: float) -> Start | None:
    """Start a job on the first of its flavors on which it can; None, and nothing changes, when there is none."""
    demand, usage, policy = request.demand, state.usage, state.policy
    least, floors = demand.least_gpus, state.cluster.floors
    for flavor in demand.flavors or state.cluster.flavors:
        floor = floors.get(flavor)
        if floor is None:
            continue
        limit = gpus_allowed(request, flavor, usage, policy)
        if limit < least:
            continue
        placement = floor.find(demand, limit)
        if isinstance(placement, NoFit):
            continue
        borrowed = usage.borrows(request.queue, flavor, placement.gpus)
        state.start(request, placement, now_s, borrowed=borrowed)
        return Start(request, placement, borrowed)
    return None
