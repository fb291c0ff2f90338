"""The shortest way for a job that comes alone: it starts, or waits, and nothing else changes.

A whole cycle would look at nobody else, so neither an order of queues nor a turn is needed. Where more may follow (a
promise to make, a preemption, a budget that sets it apart), a whole cycle looks; behind a promise that holds it waits.
"""

from __future__ import annotations

from clusterwright.queueing.decisions import Start
from clusterwright.queueing.ordering import Order
from clusterwright.queueing.policies import Backfill
from clusterwright.queueing.requests import Placement, Request
from clusterwright.queueing.starting import find_start
from clusterwright.queueing.state import State


def start_alone(request: Request, state: State, now_s: float) -> Start | None:
    """Start a job that decides alone (`State.lone`); None where it cannot. Its line counts as looked at."""
    queue = request.queue
    state.lines[queue].seen = state.freed
    placement = find_start(request, state)
    if not isinstance(placement, Placement):
        return None
    borrowed = state.usage.borrows(queue, placement.flavor, placement.gpus)
    state.start(request, placement, now_s, borrowed=borrowed)
    return Start(request, placement, borrowed)


def wait_alone(request: Request, state: State, now_s: float) -> bool:
    """Whether the newcomer cannot start and nothing follows from that; it counts as looked at then."""
    if state.preempts or not state.undisturbed(now_s):
        return False
    state.seat_newcomer()
    line, promise, easy = state.lines[request.queue], state.promise, state.policy.backfill is Backfill.EASY
    if line.seen != state.freed:
        return False
    if not easy and state.tree.strict(request.queue):
        head = line.head()
        if line.by_user or head is None or not head.tried:
            return False
        state.take_woken()
        return True
    bunch = line.bunch_of(request)
    if (easy and promise is None) or len(line.fresh) > 1 or bunch.next() is not request:
        return False
    if state.cluster.holds(request.demand):
        return False
    if promise is not None and not Order(state, now_s).behind(request, promise.request):
        return False
    bunch.tried, line.fresh = len(bunch), {}
    state.take_woken()
    return True
