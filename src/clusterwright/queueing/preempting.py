"""Whom a waiting job may send back into the queue, by the declared policy. Says who; does not do it.

The rule is Kueue's (pkg/scheduler/preemption, v0.19). Within its own queue a job takes from lower priority
(`within_queue`). From another queue of its tree it takes only what that queue borrows: any of it, or only from lower
priority, while it stays within its own guarantee (`reclaim`); from lower priority while it borrows itself
(`borrow_and_preempt`). Borrowed capacity goes first, then lower priority, then what was queued last; what proves
unnecessary is given back. `minimum_runtime` is the caller's to look at: this has no clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clusterwright.model.jobs import JobId, TaskPlacement
from clusterwright.model.scheduling import Preemption
from clusterwright.queueing.deciding import find_start
from clusterwright.queueing.explaining import not_ready
from clusterwright.queueing.states import QueueState, Waiting
from clusterwright.queueing.supplies import balance_of, flavors_of


@dataclass(frozen=True, slots=True)
class Running:
    """A job that holds GPUs, with what decides whether it may be preempted."""

    id: JobId
    queue: str
    priority: int
    queued_at_s: float
    flavor: str
    tasks: tuple[TaskPlacement, ...]


def find_victims(
    job: Waiting, running: Sequence[Running], state: QueueState, policy: Preemption | None
) -> tuple[JobId, ...]:
    """Jobs that must end so that this one starts; empty when it starts anyway, or when no permitted victim helps."""
    if policy is None or not_ready(job, state) or find_start(job, state) is not None:
        return ()
    taken = list[Running]()
    for candidate in sorted(running, key=lambda r: (r.queue == job.queue, r.priority, -r.queued_at_s, r.id)):
        if _may_take(job, candidate, _without(state, taken), policy):
            taken.append(candidate)
            if find_start(job, _without(state, taken)) is not None:
                return tuple(r.id for r in _needed(job, taken, state))
    return ()


def _needed(job: Waiting, taken: Sequence[Running], state: QueueState) -> list[Running]:
    """Without those whose end is not needed after all; who would be taken last is spared first."""
    needed = list(taken)
    for spared in reversed(taken):
        rest = [r for r in needed if r is not spared]
        if find_start(job, _without(state, rest)) is not None:
            needed = rest
    return needed


def _may_take(job: Waiting, other: Running, state: QueueState, policy: Preemption) -> bool:
    if other.flavor not in flavors_of(job, state):
        return False
    lower = other.priority < job.priority
    if other.queue == job.queue:
        newer = other.priority == job.priority and other.queued_at_s > job.queued_at_s
        return {
            "never": False,
            "lower-priority": lower,
            "lower-or-newer-equal": lower or newer,
        }[policy.within_queue]
    tree = state.tree
    if not {job.queue, other.queue} <= tree.leaves or tree.root_of(job.queue) != tree.root_of(other.queue):
        return False
    balance = balance_of(state, other.flavor)
    if policy.reclaim == "never" or not balance.borrows(other.queue, 0):
        return False
    if not balance.borrows(job.queue, job.least_gpus):
        return policy.reclaim == "any" or lower
    return policy.borrow_and_preempt == "lower-priority" and lower


def _without(state: QueueState, gone: Sequence[Running]) -> QueueState:
    """The state after these jobs have given back what they hold."""
    if not gone:
        return state
    freed: dict[str, set[str]] = defaultdict(set)
    for task in (t for r in gone for t in r.tasks):
        freed[task.node].update(task.devices)
    nodes = tuple(
        replace(n, free=tuple(d for d in n.devices if d in n.free or d in freed[n.name])) if n.name in freed else n
        for n in state.nodes
    )
    ids = {r.id for r in gone}
    return replace(state, nodes=nodes, holdings=tuple(h for h in state.holdings if h.id not in ids))
