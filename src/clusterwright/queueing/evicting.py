"""Whom a job that cannot start may make leave, by policy: nobody for nothing, and nobody who could have stayed.

The matrix is Kueue's (pkg/scheduler/preemption, 0.19). In its own queue a job takes from lower priority, or from equal
and newer (`within_queue`). From another queue of its tree it takes only what that queue borrows: any of it or only from
lower priority while it stays within its own guarantee (`reclaim`), from lower priority up to a threshold while it
borrows itself (`borrow_below`). With fair share it takes from a borrower only while its own share with the job stays at
most the victim's without it (LessThanOrEqualToFinalShare).

Victims are taken in this order until the job fits: other queues first, then lowest priority, then least lost work (time
since the last checkpoint × GPUs), then most recently started; what is leaving already counts as free and costs nobody
anything. Who proves unnecessary is given back, the last one taken first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from clusterwright.model.jobs import JobId
from clusterwright.queueing.domains import Ints
from clusterwright.queueing.fairness import Take, heaviest, may_evict
from clusterwright.queueing.gangs import NoFit
from clusterwright.queueing.limits import gpus_allowed
from clusterwright.queueing.policies import Reclaim, WithinQueue
from clusterwright.queueing.promising import withhold_claims
from clusterwright.queueing.requests import Holding, Placement, Request, resources_of
from clusterwright.queueing.state import State
from clusterwright.queueing.usages import Usage


def find_victims(request: Request, state: State, now_s: float) -> tuple[Placement, tuple[JobId, ...]] | None:
    """Where the job will run and who must leave for it; None when no permitted victims make it fit.

    The victims may be none: then what is leaving already will do.
    """
    for flavor in state.flavors_of(request):
        if request.demand.least_gpus and not state.usage.named(request.queue, flavor):
            continue
        found = _Search(request, flavor, state, now_s).run()
        if found is not None:
            return found
    return None


class _Search:
    def __init__(self, request: Request, flavor: str, state: State, now_s: float) -> None:
        self.request, self.flavor, self.state, self.now_s = request, flavor, state, now_s
        self.floor = state.cluster.floors[flavor]

    def run(self) -> tuple[Placement, tuple[JobId, ...]] | None:
        candidates = self._candidates()
        running = self.state.running
        leaving = [h for j in self.state.leaving if (h := running[j]).placement.flavor == self.flavor]
        if not candidates and not leaving:
            return None
        free, spare, usage = self._free_of_leaving(leaving)
        taken = self._permitted(candidates, usage)
        count = self._fewest(lambda n: self._place(taken[:n], free, spare, usage) is not None, len(taken))
        if count is None:
            return None
        needed = list(taken[:count])
        for spared in reversed(taken[:count]):
            rest = [h for h in needed if h is not spared]
            if self._place(rest, free, spare, usage) is not None:
                needed = rest
        placement = self._place(needed, free, spare, usage)
        assert placement is not None
        return placement, tuple(h.request.id for h in needed)

    def _holdings(self) -> list[Holding]:
        return [h for h in self.state.running.values() if h.placement.flavor == self.flavor]

    def _candidates(self) -> list[Holding]:
        """Those who may be asked at all, in order."""
        request, policy = self.request, self.state.policy.preemption
        if not self._worth_looking():
            return []
        found = [
            h
            for h in reversed(self._holdings())  # of equals, who started last
            if h.leaving_at_s is None
            and h.request.preemptible
            and self.now_s - h.started_at_s >= policy.minimum_runtime_s
            and self._related(h.request.queue)
        ]
        return sorted(
            found,
            key=lambda h: (
                h.request.queue == request.queue,
                h.request.priority,
                (self.now_s - h.saved_at_s) * h.placement.gpus,
                -h.started_at_s,
            ),
        )

    def _worth_looking(self) -> bool:
        """Whether any running job could be a victim by its priority."""
        policy, mine = self.state.policy.preemption, self.request.priority
        if policy.reclaim is Reclaim.ANY:
            return bool(self.state.tree.queues) or policy.within_queue is not WithinQueue.NEVER
        equal = policy.within_queue is WithinQueue.LOWER_OR_NEWER
        return any(n and (p < mine or (equal and p == mine)) for p, n in self.state.priorities[self.flavor].items())

    def _related(self, queue: str) -> bool:
        tree, mine = self.state.tree, self.request.queue
        if queue == mine:
            return True
        return {queue, mine} <= tree.leaves and tree.root_of(queue) == tree.root_of(mine)

    def _permitted(self, candidates: Sequence[Holding], usage: Usage) -> list[Holding]:
        """Those the policy lets the job take, each judged as if those before it had left."""
        left, found = usage.fork(), []
        for holding in candidates if not self.state.policy.fair.now else self._heaviest_first(candidates, left):
            if self._may_take(holding, left):
                found.append(holding)
                _take_away(holding, left)
        return found

    def _heaviest_first(self, candidates: Sequence[Holding], left: Usage) -> Iterator[Holding]:
        """Always from the queue with the highest share of what is left, at last from the job's own."""
        by_queue: dict[str, list[Holding]] = {}
        for holding in reversed(candidates):
            by_queue.setdefault(holding.request.queue, []).append(holding)
        own = by_queue.pop(self.request.queue, [])
        while by_queue:
            queue = heaviest(left, self.request.queue, by_queue)
            if queue is None:
                break
            yield by_queue[queue].pop()
            if not by_queue[queue]:
                del by_queue[queue]
        yield from reversed(own)

    def _may_take(self, holding: Holding, usage: Usage) -> bool:
        policy, request, victim = self.state.policy.preemption, self.request, holding.request
        lower = victim.priority < request.priority
        if victim.queue == request.queue:
            if policy.within_queue is WithinQueue.NEVER:
                return False
            newer = victim.priority == request.priority and victim.queued_at_s > request.queued_at_s
            return lower or (newer and policy.within_queue is WithinQueue.LOWER_OR_NEWER)
        if not usage.borrows(victim.queue, self.flavor, 0):
            return False
        if not usage.borrows(request.queue, self.flavor, request.demand.least_gpus):
            return policy.reclaim is Reclaim.ANY or (policy.reclaim is Reclaim.LOWER and lower)
        if policy.borrow_below is not None and lower and victim.priority <= policy.borrow_below:
            return True
        return self.state.policy.fair.now and policy.reclaim is not Reclaim.NEVER and self._fairer(holding, usage)

    def _fairer(self, holding: Holding, usage: Usage) -> bool:
        demand, victim, gone = self.request.demand, holding.request, holding.placement
        taker = Take(self.request.queue, self.flavor, demand.least_gpus, demand.least_resources)
        return may_evict(usage, taker, Take(victim.queue, self.flavor, gone.gpus, resources_of(victim.demand, gone)))

    def _free_of_leaving(self, leaving: Sequence[Holding]) -> tuple[Ints, dict[str, Ints], Usage]:
        """What is free once those who are leaving have left and those who claim that have it: GPUs, further, quota."""
        free, spare, usage = self.floor.free.copy(), _copied(self.floor.spare), self.state.usage.fork()
        for holding in leaving:
            self.floor.put_back(free, holding.placement, holding.request.demand, spare)
            _take_away(holding, usage)
        withhold_claims(self.state, self.flavor, free)
        return free, spare, usage

    def _place(self, gone: Sequence[Holding], free: Ints, spare: dict[str, Ints], usage: Usage) -> Placement | None:
        """Where the job fits once these have left, too."""
        left = usage
        if gone:
            free, spare, left = free.copy(), _copied(spare), usage.fork()
            for holding in gone:
                self.floor.put_back(free, holding.placement, holding.request.demand, spare)
                _take_away(holding, left)
        limit = gpus_allowed(self.request, self.flavor, left, self.state.policy)
        least = self.request.demand.least_gpus
        if limit < least:
            return None
        # Nobody leaves so that a gang may be larger than its minimum.
        found = self.floor.find_in(np.maximum(free, 0), self.request.demand, least, spare)
        return None if isinstance(found, NoFit) else found

    @staticmethod
    def _fewest(enough: Callable[[int], bool], most: int) -> int | None:
        """The smallest count for which `enough` holds; it holds for every larger one."""
        if not enough(most):
            return None
        low, high = 0, most
        while low < high:
            middle = (low + high) // 2
            if enough(middle):
                high = middle
            else:
                low = middle + 1
        return low


def _copied(spare: Mapping[str, Ints]) -> dict[str, Ints]:
    return {name: amounts.copy() for name, amounts in spare.items()}


def _take_away(holding: Holding, usage: Usage) -> None:
    request, placement = holding.request, holding.placement
    used = resources_of(request.demand, placement)
    usage.remove(request.queue, placement.flavor, placement.gpus, used, preemptible=request.preemptible)
