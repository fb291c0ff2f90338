"""The quota algebra for one flavor and one resource, kept up to date in lists by queue number.

Same figures as `quotas.Balance`, whose module states the algebra; here a change costs O(depth).
With room(n) = subtree(n) − local(n) + borrow(n), one walk from the root gives both figures:

    available(n) = max(0, local − usage) + min( available(parent), room − max(0, usage − local) )
    potential(n) = local + min( potential(parent), room )

A change of use or of quota goes up the path until it is no longer visible above: what a node shares with its parent is
subtree − local, what it takes from it is max(0, usage − local). Sums are exact for whole numbers and binary fractions.
"""

from __future__ import annotations

from typing import Final

from clusterwright.queueing.quotas import QueueTree, Quota

INFINITE: Final = float("inf")


class Outline:
    """Who stands above whom, by number: queues are numbered in order of declaration."""

    def __init__(self, tree: QueueTree) -> None:
        self.names = tuple(q.name for q in tree.queues)
        self.index = {name: i for i, name in enumerate(self.names)}
        self.parents = [-1 if q.parent is None else self.index[q.parent] for q in tree.queues]
        self.paths = [self._path(i) for i in range(len(self.names))]

    def _path(self, number: int) -> tuple[int, ...]:
        """From the root down to a queue."""
        path = [number]
        while (number := self.parents[number]) >= 0:
            path.append(number)
        return tuple(reversed(path))


class Column:
    """Guarantees, limits and use of every queue for one flavor and one resource.

    All lists are by queue number, in one unit. `used` is the algebra's usage; `fixed` is the part of a queue's own use
    that belongs to jobs which may not be preempted, which the caller counts.
    """

    __slots__ = (
        "_outline",
        "_quotas_are_shared",
        "borrow",
        "fixed",
        "guarantee",
        "lend",
        "local",
        "named",
        "room",
        "subtree",
        "used",
    )

    def __init__(self, outline: Outline) -> None:
        count = len(outline.names)
        self._outline, self._quotas_are_shared = outline, False
        self.named = [False] * count
        self.guarantee: list[float] = [0] * count
        self.borrow: list[float] = [INFINITE] * count
        self.lend: list[float] = [INFINITE] * count
        self.subtree: list[float] = [0] * count
        self.local: list[float] = [0] * count
        self.room: list[float] = [INFINITE] * count
        self.used: list[float] = [0] * count
        self.fixed: list[float] = [0] * count

    def fork(self) -> Column:
        """A copy whose changes leave this one as it is; quotas are copied only when either of the two changes them."""
        twin = object.__new__(Column)
        twin._outline, twin.named, twin.guarantee = self._outline, self.named, self.guarantee
        twin.borrow, twin.lend, twin.subtree = self.borrow, self.lend, self.subtree
        twin.local, twin.room = self.local, self.room
        twin.used, twin.fixed = self.used.copy(), self.fixed.copy()
        self._quotas_are_shared = twin._quotas_are_shared = True
        return twin

    def add(self, number: int, amount: float) -> None:
        """Counts more use (less if negative) at a queue, and at every node above as far as it is seen there."""
        used, local, parents = self.used, self.local, self._outline.parents
        while amount and number >= 0:
            before, kept = used[number], local[number]
            after = used[number] = before + amount
            if kept:
                amount = (after - kept if after > kept else 0) - (before - kept if before > kept else 0)
            number = parents[number]

    def seen_above(self, number: int, amount: float) -> float:
        """How much of `amount` more use (less if negative) of a node its parent would see."""
        before, kept = self.used[number], self.local[number]
        return max(0, before + amount - kept) - max(0, before - kept)

    def available(self, number: int) -> float:
        """What may still be admitted, negative when more is in use than there is."""
        used, local, room = self.used, self.local, self.room
        path = self._outline.paths[number]
        root = path[0]
        above = self.subtree[root] - used[root]
        for n in path[1:]:
            over, limit = used[n] - local[n], room[n]
            if over >= 0:
                if limit - over < above:
                    above = limit - over
            else:
                above = (limit if limit < above else above) - over
        return above

    def potential(self, number: int) -> float:
        """The most the queue could ever use, if all others were idle."""
        path = self._outline.paths[number]
        above = self.subtree[path[0]]
        for n in path[1:]:
            above = self.local[n] + min(above, self.room[n])
        return above

    def set(self, number: int, quota: Quota) -> None:
        """Gives a queue another quota. Nothing in use is taken back: what is available may turn negative."""
        if self._quotas_are_shared:
            for name in ("named", "guarantee", "borrow", "lend", "subtree", "local", "room"):
                setattr(self, name, getattr(self, name).copy())
            self._quotas_are_shared = False
        more = quota.guarantee - self.guarantee[number]
        self.named[number], self.guarantee[number] = True, quota.guarantee
        self.borrow[number] = INFINITE if quota.borrow is None else quota.borrow
        self.lend[number] = INFINITE if quota.lend is None else quota.lend
        self._carry_up(number, more)

    def _carry_up(self, number: int, more: float) -> None:
        """Adds `more` to what a node has, and tells each parent what it now shares and takes."""
        taken = 0.0
        for n in reversed(self._outline.paths[number]):
            shared, over = self.subtree[n] - self.local[n], max(0, self.used[n] - self.local[n])
            self.subtree[n] += more
            self.used[n] += taken
            self.local[n] = max(0, self.subtree[n] - self.lend[n])
            self.room[n] = self.subtree[n] - self.local[n] + self.borrow[n]
            more = self.subtree[n] - self.local[n] - shared
            taken = max(0, self.used[n] - self.local[n]) - over
