"""Which queue's job is next when fair share decides: a tournament, level by level.

Every queue offers one job. A group nominates the offer of that child whose share with the offered job is lowest, then
by the tie-break (priority, age, …); its parent compares the group's share with the nominee in use, and so on to the
root. So a branch that has little of the cluster goes first, whoever within it has much; and which of its queues that
is, is its own affair. A flat comparison of queues gives the same order only where no group stands below another.

Of several roots, which share nothing, the tie-break alone decides. An offer costs O(depth × log children).

Source: Kueue 0.19, pkg/scheduler/fair_sharing_iterator.go (runTournament, computeDRS, less).
"""

from __future__ import annotations

import heapq
from typing import Any

from clusterwright.queueing.fairness import Take
from clusterwright.queueing.usages import Share, Usage

#: What is compared: share with the offered job, tie-break, name of the queue that offers it.
_Score = tuple[Share, Any, str]

_TOP = ""


class Tournament:
    """The offers of all queues, and whose is first.

    Args:
        usage: present use; `offer` or `withdraw` of a queue tells that its use, or that of its groups, has changed.
    """

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._offers: dict[str, tuple[Take, Any]] = {}
        self._scores: dict[str, _Score] = {}
        self._standings: dict[str, list[tuple[_Score, str]]] = {}

    def offer(self, take: Take, tie: Any) -> None:
        """A queue's next job takes part, in place of what the queue offered before.

        Args:
            tie: any values that compare with each other; the lower goes first.
        """
        self._offers[take.queue] = take, tie
        self._climb(take.queue)

    def withdraw(self, queue: str) -> None:
        """A queue has no job to offer."""
        self._offers.pop(queue, None)
        self._climb(queue)

    def first(self) -> str | None:
        """The queue whose offer is first, None without offers."""
        return self._nominee(_TOP)

    def _climb(self, queue: str) -> None:
        """Finds anew who is nominated at each level above a queue, and with what share."""
        path = self._usage.path(queue) or (queue,)
        shares: dict[str, tuple[Share, ...]] = {}
        for depth in range(len(path) - 1, -1, -1):
            node, parent = path[depth], path[depth - 1] if depth else _TOP
            nominee = queue if queue in self._offers else None
            if depth < len(path) - 1:
                nominee = self._nominee(node)
            if nominee is None:
                self._scores.pop(node, None)
                continue
            take, tie = self._offers[nominee]
            if nominee not in shares:
                shares[nominee] = self._usage.shares(*take)
            share = shares[nominee][-depth] if depth else Share(0.0)
            self._scores[node] = score = (share, tie, nominee)
            heapq.heappush(self._standings.setdefault(parent, []), (score, node))

    def _nominee(self, group: str) -> str | None:
        """Whose offer is best among the children of a group; scores that no longer hold are dropped on the way."""
        standing = self._standings.get(group, [])
        while standing and self._scores.get(standing[0][1]) is not standing[0][0]:
            heapq.heappop(standing)
        return standing[0][0][2] if standing else None
