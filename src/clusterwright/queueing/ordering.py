"""Whose job is next, across queues.

Every queue offers its jobs in its own order; where others may pass, jobs that were found to have no room are passed. A
queue that was not looked at since something came free stands where its first job would, whether that has room or not:
what was set aside comes back as a head, as in Kueue, and the next job is compared once the first was passed. Which
queue was looked at is part of the state, so that equal states decide alike.

Of these offers come first those that stay within their queue's guarantee, then those that borrow; then higher priority,
then less usage over time, then age. With fair share the branch of the tree that borrows least goes first, level by
level (`tournaments`).

Source: Kueue 0.19, pkg/scheduler/scheduler.go (entryOrdering), fair_sharing_iterator.go.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable, Sequence

from clusterwright.queueing.fairness import Take
from clusterwright.queueing.lines import Line, Rank, age_of
from clusterwright.queueing.requests import Request
from clusterwright.queueing.state import State
from clusterwright.queueing.tournaments import Tournament
from clusterwright.queueing.turns import Turn

Offer = tuple[Turn, Request]


class Order:
    """The order of one cycle."""

    def __init__(self, state: State, now_s: float) -> None:
        self._state, self._now_s = state, now_s

    def offers(self, lines: Sequence[Line], turn_of: Callable[[Line], Turn]) -> Generator[Offer, None, None]:
        """The jobs to look at, one after the other; what was decided about each counts for the next.

        A turn that was closed meanwhile offers no more.
        """
        if self._state.policy.fair.now:
            return self._by_share([turn_of(line) for line in sorted(lines, key=lambda line: line.queue)])
        return self._by_rank(lines, turn_of)

    def behind(self, request: Request, other: Request) -> bool:
        """Whether a job comes after another one."""
        if request.id == other.id:
            return False
        if request.queue == other.queue and not self._state.policy.fair.by_user:
            return (-request.priority, age_of(request)) > (-other.priority, age_of(other))
        return self._rank(request) > self._rank(other)

    def _by_rank(self, lines: Sequence[Line], turn_of: Callable[[Line], Turn]) -> Generator[Offer, None, None]:
        queue: list[tuple[Rank, int, Turn]] = []
        wanted = set[Line]()
        for number, line in enumerate(lines):
            if self._state.decayed is None and line.seen != self._state.freed:
                wanted.add(line)  # its first job will be looked at first
            else:
                self._enqueue(turn_of(line), number, queue)
        heads, aside = self._rank_heads(wanted), list[tuple[Rank, int, Line]]()
        try:
            while queue or wanted:
                while wanted and heads and (heads[0][2].ranked is not heads[0][0] or heads[0][2] not in wanted):
                    aside.append(heapq.heappop(heads))
                if wanted and not heads:
                    self._rank_heads(wanted)
                if wanted and (not queue or heads[0][0] < queue[0][0]):
                    aside.append(heapq.heappop(heads))
                    rank, _, line = aside[-1]
                    wanted.discard(line)
                    number, turn = len(lines) + len(wanted), turn_of(line)
                else:
                    rank, number, turn = heapq.heappop(queue)
                offered = turn.next()
                if offered is None:
                    continue
                now = self._rank(offered)  # what others got since may have changed it, to a later one only
                first = min((h[0][0] for h in (queue, heads if wanted else []) if h), default=None)
                if first is not None and now > rank and now > first:
                    heapq.heappush(queue, (now, number, turn))
                    continue
                yield turn, offered
                if not turn.closed:
                    self._enqueue(turn, number, queue)
        finally:
            for entry in aside:
                if entry[2].ranked is entry[0]:
                    heapq.heappush(heads, entry)

    def _rank_heads(self, lines: Iterable[Line]) -> list[tuple[Rank, int, Line]]:
        """The heap of first jobs, in which those of these lines stand with their rank of now."""
        heads = self._state.heads
        for line in lines:
            if line.ranked is None:
                head = line.head()
                assert head is not None
                line.ranked = self._rank(head[0])
                heapq.heappush(heads, (line.ranked, id(line), line))
        return heads

    def _enqueue(self, turn: Turn, number: int, queue: list[tuple[Rank, int, Turn]]) -> None:
        offered = turn.next()
        if offered is not None:
            heapq.heappush(queue, (self._rank(offered), number, turn))

    def _by_share(self, turns: Sequence[Turn]) -> Generator[Offer, None, None]:
        tournament, by_queue = Tournament(self._state.usage), {t.line.queue: t for t in turns}
        for turn in turns:
            self._enter(turn, tournament)
        while (name := tournament.first()) is not None:
            turn = by_queue[name]
            offered = turn.next()
            if offered is not None:
                yield turn, offered
            self._enter(turn, tournament)

    def _enter(self, turn: Turn, tournament: Tournament) -> None:
        request = None if turn.closed else turn.next()
        if request is None:
            tournament.withdraw(turn.line.queue)
            return
        gpus, resources = request.demand.least_gpus, request.demand.least_resources
        usage, queue = self._state.usage, request.queue
        flavor = min(self._named(request), key=lambda f: usage.share(queue, f, gpus, resources), default="")
        tie = (-request.priority, self._state.usage_over_time(request, self._now_s), age_of(request))
        tournament.offer(Take(queue, flavor, gpus, resources), tie)

    def _rank(self, request: Request) -> Rank:
        over_time = self._state.usage_over_time(request, self._now_s)
        return (self._borrowing(request), -request.priority, over_time, age_of(request))

    def _borrowing(self, request: Request) -> float:
        """0 for a job that stays within its queue's guarantee on some flavor, else 1 or the share it would have."""
        usage, gpus = self._state.usage, request.demand.least_gpus
        flavors = self._named(request) if self._state.tree.queues else []
        if not flavors:
            return 0.0
        if self._state.policy.fair.now:
            return min(usage.share(request.queue, f, gpus) for f in flavors)
        return float(all(usage.borrows(request.queue, f, gpus) for f in flavors))

    def _named(self, request: Request) -> list[str]:
        return [f for f in self._state.flavors_of(request) if self._state.usage.named(request.queue, f)]
