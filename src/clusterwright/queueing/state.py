"""Everything a decision depends on: capacity, quota in use, who waits, who runs, what was promised.

The state is the whole memory of the queue. Whoever owns it tells it what happened (a job came, ended, saved its work;
a node went down); `cycling.run_cycle` decides and writes its decisions into it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.jobs import JobId
from clusterwright.queueing.budgets import Budgets
from clusterwright.queueing.clusters import Cluster, Floor, NodeInfo
from clusterwright.queueing.commitments import Claim, Promise, kept_of
from clusterwright.queueing.fairness import DecayedUsage
from clusterwright.queueing.lines import Asking, Line, Rank
from clusterwright.queueing.policies import Backfill, Policy
from clusterwright.queueing.quotas import QueueTree, Quota
from clusterwright.queueing.requests import Holding, Placement, Request, resources_of
from clusterwright.queueing.usages import Usage
from clusterwright.queueing.windows import Window

#: (time, number, job): when a job may start at the earliest; numbers are those of arrival.
Sleep = tuple[float, int, JobId]
#: (time, number, job, node, GPUs, queue, preemptible): when a running job ends and what it gives back then. The node is
#: −1 where there are several, or where the job has more than GPUs.
End = tuple[float, int, JobId, int, int, str, bool]


class State:
    """The queue's memory.

    Args:
        nodes: with their capacity; usage comes from `start`.
        levels: names of the topology levels above a node, widest first.
        tree: quotas; the empty tree sets none.
        windows: reservations and maintenance.
        budgets: gates of GPU-hours; none without.

    Attributes:
        newcomer: the job that came since the last cycle, when it is the only one. It stands in no line before
            `seat_newcomer`, which every cycle but the shortest begins with.
        lines: who waits, by queue.
        asking: the demands of the waiting jobs, with the queues in which they wait.
        priorities: running jobs by priority on each flavor, counted where jobs may be preempted.
        heads: a heap of the lines by the rank of their first jobs; what is not `Line.ranked` any more is out of date.
        freed: counts the changes after which something that could not start might.
        surprises: counts the changes that were not foreseen when a promise was made.
    """

    def __init__(
        self,
        nodes: Sequence[NodeInfo],
        *,
        levels: Sequence[str] = (),
        tree: QueueTree | None = None,
        policy: Policy | None = None,
        windows: Iterable[Window] = (),
        budgets: Budgets | None = None,
    ) -> None:
        self.policy = policy or Policy()
        self.tree = tree or QueueTree()
        self.cluster = Cluster(nodes, levels, self.policy)
        self.usage = Usage(self.tree, self.policy, self.cluster.flavors)
        self.windows, self.budgets = list(windows), budgets
        self.preempts = self.policy.preemption.active
        self.waiting: dict[JobId, Request] = {}
        self.apart: dict[JobId, Request] = {}
        self.overdrawn: dict[JobId, Request] = {}
        self.newcomer: Request | None = None
        self.lines: dict[str, Line] = {}
        self.asking: Asking = {}
        self.heads: list[tuple[Rank, int, Line]] = []
        self.running: dict[JobId, Holding] = {}
        self.claims: dict[JobId, Claim] = {}
        self.leaving: set[JobId] = set()
        self.promise: Promise | None = None
        self.freed = self.surprises = 0
        self.priorities: dict[str, Counter[int]] = {f: Counter() for f in self.cluster.flavors}
        half_life = self.policy.fair.half_life_s
        self.decayed = None if half_life is None else DecayedUsage(half_life, self.policy.weights)
        self._spare_gpus = {f: _unusable(floor) for f, floor in self.cluster.floors.items()}
        self._woken: set[str] = set()
        self._all_woken = False
        self._sleeping: list[Sleep] = []
        self._ends: dict[str, list[End]] = {}
        self._end_of: dict[JobId, End] = {}
        self._count = 0

    # -- what happened ------------------------------------------------------------------------------------------

    def submit(self, request: Request) -> None:
        """A job came, or came back.

        Raises:
            InvalidInput: when a job of this id waits or runs already.
        """
        job = request.id
        if job in self.waiting or job in self.running:
            raise InvalidInput(f"job {job} is in the queue already")
        self.waiting[job] = request
        if request.hold or request.gates or (self.tree.queues and request.queue not in self.tree.leaves):
            self.apart[job] = request
        elif request.not_before_s > request.queued_at_s:
            self.apart[job] = request
            self._count += 1
            heappush(self._sleeping, (request.not_before_s, self._count, job))
        else:
            self._line_up(request)

    def withdraw(self, job: JobId) -> Request:
        """A waiting job is taken out of the queue."""
        request = self.waiting.pop(job)
        self.drop_claim(job)
        self.overdrawn.pop(job, None)
        if self.apart.pop(job, None) is None:
            self.seat_newcomer()
            self.lines[request.queue].remove(request)
            self._woken.add(request.queue)
        if self.promise is not None and self.promise.request.id == job:
            self.promise = None
            self.wake()
        return request

    def change(self, request: Request) -> None:
        """A waiting job is not what it was: held, released, of another priority."""
        self.withdraw(request.id)
        self.submit(request)

    def start(self, request: Request, placement: Placement, now_s: float, *, borrowed: bool = False) -> Holding:
        """A job holds GPUs from now on; it no longer waits."""
        self.waiting.pop(request.id, None)
        if self.newcomer is request:
            self.newcomer = None
        return self.hold(Holding(request, placement, now_s, now_s, borrowed))

    def hold(self, holding: Holding) -> Holding:
        """A job holds GPUs, since whenever it says."""
        request, placement, since_s = holding.request, holding.placement, holding.started_at_s
        flavor, gpus, queue = placement.flavor, placement.gpus, request.queue
        self.cluster.floors[flavor].take(placement, request.demand)
        used = () if request.demand.plain else resources_of(request.demand, placement)
        self.usage.add(queue, flavor, gpus, used, preemptible=request.preemptible)
        self.running[request.id] = holding
        if self.waiting:
            self._unrank(queue)
        if self.preempts:
            self.priorities[flavor][request.priority] += 1
        self._expect(holding)
        if self.budgets is not None:
            self.budgets.start(request.id, queue, request.user, gpus, request.limit_s, since_s)
        if self.decayed is not None:
            self.decayed.begin(self._share_key(request), gpus, since_s)
        return holding

    def release(self, job: JobId, now_s: float) -> Holding:
        """A job gave its GPUs back."""
        holding = self.running.pop(job)
        request, placement = holding.request, holding.placement
        flavor, gpus, queue = placement.flavor, placement.gpus, request.queue
        expected = self._forget(holding)
        if expected is None or expected > now_s:
            self.surprises += 1
        self.cluster.floors[flavor].give(placement, request.demand)
        if request.demand.plain:
            self.usage.add(queue, flavor, -gpus, preemptible=request.preemptible)
        else:
            used = resources_of(request.demand, placement)
            self.usage.remove(queue, flavor, gpus, used, preemptible=request.preemptible)
        if self.preempts:
            self.priorities[flavor][request.priority] -= 1
        if self.waiting:
            self._unrank(queue)
        if self.leaving:
            self.leaving.discard(job)
        if self.budgets is not None:
            self.budgets.end(job, now_s)
        if self.decayed is not None:
            self.decayed.end(self._share_key(request), gpus, now_s)
        self.wake()
        return holding

    def saved(self, job: JobId, at_s: float) -> None:
        """A job wrote a checkpoint: what it did before is not lost when it is preempted."""
        self.running[job].saved_at_s = at_s

    def leave(self, job: JobId, at_s: float) -> None:
        """A job was told to leave and gives its GPUs back at `at_s` at the latest."""
        holding = self.running[job]
        self._forget(holding)
        ends = holding.ends_by_s
        holding.leaving_at_s = at_s if ends is None else min(at_s, ends)
        self._expect(holding)
        self.leaving.add(job)
        self.surprises += 1

    def set_quota(self, queue: str, flavor: str, quota: Quota) -> None:
        """A queue has another quota from now on; what runs stays."""
        self.usage.set_quota(queue, flavor, quota)
        queues = tuple(
            replace(q, quotas={**q.quotas, flavor: quota}) if q.name == queue else q for q in self.tree.queues
        )
        self.tree = QueueTree(queues)
        self._unrank_all()
        self.surprises += 1
        self.wake()

    def set_usable(self, node: str, *, usable: bool) -> None:
        """A node takes jobs from now on, or no longer (down, draining, in repair, spare).

        What is missing of the nodes that were usable at first is taken from what slack queues lend.
        """
        for flavor, floor in self.cluster.floors.items():
            index = floor.index.get(node)
            if index is not None:
                floor.set_usable(index, usable)
                self.usage.withdraw(flavor, max(0, _unusable(floor) - self._spare_gpus[flavor]))
                self._unrank_all()
        self.surprises += 1
        if usable:
            self.wake()

    # -- what the cycle asks ------------------------------------------------------------------------------------

    def seat_newcomer(self) -> None:
        """Give the newcomer, if there is one, its place in its line."""
        if self.newcomer is not None:
            self._seat(self.newcomer)

    def lone(self) -> bool:
        """Whether the newcomer alone decides what happens: nobody else waits, or nobody who waits can start.

        Those who wait cannot when nothing came free since they were looked at. A job may pass them where its queue is
        best effort; promises, claims, windows and budgets are for a whole cycle to look at.
        """
        request = self.newcomer
        if request is None or self.promise is not None or self.claims or self.windows or self.budgets is not None:
            return False
        if len(self.waiting) - len(self.apart) <= 1:
            return True
        if self._all_woken or self.preempts or self.policy.backfill is Backfill.EASY:
            return False
        line = self.lines[request.queue]
        return (line.seen == self.freed or not line.bunches) and not self.tree.strict(request.queue)

    def undisturbed(self, now_s: float) -> bool:
        """Whether nothing but the newcomer is to be looked at, and the promise stands as it is."""
        if self._woken or self._all_woken or self.claims:
            return False
        promise = self.promise
        if promise is None:
            return True
        return promise.surprises == self.surprises and promise.at_s > now_s and not promise.passed

    def wake(self) -> None:
        """Something may have become possible: every line is looked at in the next cycle."""
        self.freed += 1
        self._all_woken = True
        for request in list(self.overdrawn.values()) if self.overdrawn else ():
            del self.overdrawn[request.id], self.apart[request.id]
            self._line_up(request)

    def take_woken(self) -> set[str]:
        """The queues whose lines are to be looked at; they count as looked at from now on."""
        woken, self._woken = self._woken, set()
        if self._all_woken:
            self._all_woken = False
            woken.update(q for q, line in self.lines.items() if line.bunches)
        return woken

    def wake_due(self, now_s: float) -> bool:
        """Jobs whose earliest start is reached join their line; whether any line is to be looked at."""
        while self._sleeping and self._sleeping[0][0] <= now_s:
            _, _, job = heappop(self._sleeping)
            request = self.apart.get(job)
            if request is not None and not request.hold and not request.gates and request.not_before_s <= now_s:
                del self.apart[job]
                self._line_up(request)
        if self.newcomer is not None or self._woken:
            return True
        return self._all_woken and len(self.waiting) > len(self.apart)

    def next_wake_s(self, now_s: float) -> float | None:
        """When time alone may let something start: call `wake` and run a cycle then; None when that is never.

        That is when a job reaches its earliest start, a promise its time, a window its end, a budget a new period, and
        a running job the end of its minimum run time.
        """
        if not self.waiting:
            return None
        times = [self._sleeping[0][0]] if self._sleeping else []
        times += [self.promise.at_s] if self.promise is not None else []
        times += [w.end_s for w in self.windows]
        if self.budgets is not None and (period := self.budgets.next_period_s(now_s)) is not None:
            times.append(period)
        safe = self.policy.preemption.minimum_runtime_s
        if safe and self.policy.preemption.active:
            times += [h.started_at_s + safe for h in self.running.values()]
        return min((t for t in times if t > now_s), default=None)

    def set_apart(self, request: Request) -> None:
        """A job's budget does not admit it now: it stands in nobody's way until something is given back."""
        self.lines[request.queue].remove(request)
        self.apart[request.id] = self.overdrawn[request.id] = request

    def known_ends(self, flavor: str) -> list[End]:
        """Every known end on a flavor, soonest first; jobs without a limit have none."""
        ends = self._ends.get(flavor)
        if ends is None:  # kept in order from the first question on: plain FIFO never asks
            some = (self._end_of.get(job) for job, h in self.running.items() if h.placement.flavor == flavor)
            ends = self._ends[flavor] = sorted(end for end in some if end is not None)
        return ends

    def flavors_of(self, request: Request) -> tuple[str, ...]:
        """The flavors to try, in order; those that no node has are left out."""
        asked, there = request.demand.flavors, self.cluster.floors
        return tuple(f for f in asked if f in there) if asked else self.cluster.flavors

    def usage_over_time(self, request: Request, now_s: float) -> float:
        """Decayed usage that orders jobs of equal priority, in GPU-seconds; 0 where the policy has none."""
        if self.decayed is None:
            return 0.0
        return self.decayed.value(self._share_key(request), now_s)

    def keep(self, claim: Claim) -> None:
        """Keep for a job what its placement needs of the GPUs that are free now, and the quota of all of it."""
        placement, demand = claim.placement, claim.request.demand
        floor = self.cluster.floors[placement.flavor]
        wanted = floor.effect(placement, demand).gpus
        claim.kept = {n: min(g, int(floor.free[n])) for n, g in wanted.items() if floor.usable[n] and floor.free[n]}
        if claim.kept:
            self.cluster.take(*kept_of(claim))
        used = resources_of(demand, placement)
        fixed = not claim.request.preemptible
        self.usage.add(claim.request.queue, placement.flavor, placement.gpus, used, preemptible=not fixed)
        self.claims[claim.request.id] = claim
        self._unrank(claim.request.queue)

    def drop_claim(self, job: JobId) -> Claim | None:
        """What is kept for a job is free again."""
        claim = self.claims.pop(job, None)
        if claim is None:
            return None
        if claim.kept:
            self.cluster.give(*kept_of(claim))
        request, placement = claim.request, claim.placement
        used = resources_of(request.demand, placement)
        self.usage.remove(request.queue, placement.flavor, placement.gpus, used, preemptible=request.preemptible)
        self._unrank(request.queue)
        return claim

    def fork(self) -> State:
        """A state of its own that starts as a copy of this one; requests are shared, nobody changes them."""
        other = State.__new__(State)
        other.policy, other.tree, other.windows = self.policy, self.tree, list(self.windows)
        other.preempts = self.preempts
        other.cluster, other.usage = self.cluster.fork(), self.usage.fork()
        other.waiting, other.apart, other.overdrawn = dict(self.waiting), dict(self.apart), dict(self.overdrawn)
        other.budgets = None if self.budgets is None else self.budgets.fork()
        other.newcomer, other.asking = self.newcomer, {}
        other.lines = {q: line.copy(other.asking) for q, line in self.lines.items()}
        other.heads = []
        other.running = {j: replace(h) for j, h in self.running.items()}
        other.claims = {j: replace(c, kept=dict(c.kept)) for j, c in self.claims.items()}
        other.leaving = set(self.leaving)
        promise = self.promise
        if promise is not None:
            spare = {name: amounts.copy() for name, amounts in promise.spare.items()}
            promise = replace(promise, left=promise.left.copy(), spare=spare, usage=promise.usage.fork())
        other.promise, other._woken, other._all_woken = promise, set(self._woken), self._all_woken
        other.freed, other.surprises = self.freed, self.surprises
        other.priorities = {f: Counter(c) for f, c in self.priorities.items()}
        other.decayed = None if self.decayed is None else self.decayed.fork()
        other._spare_gpus = self._spare_gpus
        other._sleeping, other._count = list(self._sleeping), self._count
        other._ends = {f: list(e) for f, e in self._ends.items()}
        other._end_of = dict(self._end_of)
        return other

    def _unrank(self, queue: str) -> None:
        line = self.lines.get(queue)
        if line is not None:
            line.ranked = None

    def _unrank_all(self) -> None:
        for line in self.lines.values():
            line.ranked = None

    def _line_up(self, request: Request) -> None:
        queue = request.queue
        if queue not in self.lines:
            self.lines[queue] = Line(queue, self.asking, by_user=self.policy.fair.by_user)
        if self.newcomer is None and not self._woken:
            self.newcomer = request
            return
        self.seat_newcomer()
        self._seat(request)

    def _seat(self, request: Request) -> None:
        """Give a job its place in its line."""
        self.newcomer = None
        self.lines[request.queue].add(request)
        self._woken.add(request.queue)

    def _expect(self, holding: Holding) -> None:
        ends_s = holding.ends_by_s
        if ends_s is not None:
            self._count += 1
            request, placement = holding.request, holding.placement
            job, runs = request.id, placement.runs
            node = runs[0][1] if len(runs) == 1 and placement.domain is None and request.demand.plain else -1
            entry = (ends_s, self._count, job, node, placement.gpus, request.queue, request.preemptible)
            self._end_of[job] = entry
            ends = self._ends.get(placement.flavor)
            if ends is not None:
                insort(ends, entry)

    def _forget(self, holding: Holding) -> float | None:
        entry = self._end_of.pop(holding.request.id, None)
        if entry is None:
            return None
        ends = self._ends.get(holding.placement.flavor)
        if ends is not None:
            del ends[bisect_left(ends, entry)]
        return entry[0]

    def _share_key(self, request: Request) -> str:
        """Whose usage over time a job counts for."""
        return f"{request.queue}/{request.user}" if self.policy.fair.by_user else request.queue


def _unusable(floor: Floor) -> int:
    return int(floor.total[~floor.usable].sum())
