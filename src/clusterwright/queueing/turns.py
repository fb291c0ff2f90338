"""Whose turn it is among the jobs of one queue."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING, Protocol

from clusterwright.queueing.lines import Age, Bunch, Line

if TYPE_CHECKING:
    from clusterwright.queueing.requests import Request
    from clusterwright.queueing.state import State


class Turn(Protocol):
    """The jobs of one queue that a cycle has not looked at, in the queue's order.

    Attributes:
        looked: how many of its jobs were looked at.
        closed: whether the queue offers no more in this pass.
        bunch: of the job that `next` told.
    """

    line: Line
    looked: int
    closed: bool
    bunch: Bunch

    def next(self) -> Request | None:
        """The job whose turn it is, None when no more is to be looked at."""

    def advance(self) -> None:
        """The bunch whose turn it was moved on."""


def turn_of(line: Line, state: State, now_s: float, *, head_only: bool, hopeless: Callable[[Request], bool]) -> Turn:
    """The turn of a queue.

    Args:
        head_only: where nothing passes a first job that cannot start.
        hopeless: says of a job that neither it nor any later one of its bunch needs to be looked at.
    """
    if line.seen != state.freed:
        line.look_again(state.freed)
    if head_only and not line.by_user:
        return _HeadTurn(line)
    return _LineTurn(line, state, now_s, head_only, hopeless)


class _HeadTurn:
    """One job at a time, the first of the queue; none once that was found unable to start."""

    __slots__ = ("bunch", "closed", "line", "looked")

    def __init__(self, line: Line) -> None:
        self.line, self.looked, self.closed = line, 0, False

    def next(self) -> Request | None:
        bunch = self.line.head()
        if bunch is None or bunch.tried:
            return None
        self.bunch = bunch
        return bunch.next()

    def advance(self) -> None:
        pass


class _LineTurn:
    """All jobs that were not looked at since the last change, by priority, usage over time and age."""

    __slots__ = ("_heap", "bunch", "closed", "line", "looked")

    def __init__(
        self, line: Line, state: State, now_s: float, head_only: bool, hopeless: Callable[[Request], bool]
    ) -> None:
        self.line, self.looked, self.closed = line, 0, False
        heap: list[tuple[int, float, Age, int, Bunch]] = []
        usage = 0.0
        for number, bunch in enumerate(line.fresh):
            request = bunch.next()
            if request is None:
                continue
            if hopeless(request):
                bunch.tried = len(bunch)
                continue
            if line.by_user:
                usage = state.usage_over_time(request, now_s)
            heap.append((-bunch.priority, usage, bunch.age(bunch.tried), number, bunch))
        heapify(heap)
        if head_only and heap:
            first = min((-b.priority, state.usage_over_time(b[0], now_s), b.age(0)) for b in line.bunches.values())
            if heap[0][:3] != first:
                heap = []
        self._heap, line.fresh = heap, {}

    def next(self) -> Request | None:
        heap = self._heap
        while heap:
            bunch = heap[0][4]
            request = bunch.next()
            if request is not None:
                self.bunch = bunch
                return request
            heappop(heap)
        return None

    def advance(self) -> None:
        heap = self._heap
        if not heap:
            return
        priority, usage, _, number, bunch = heap[0]
        if bunch.next() is not None:
            heapreplace(heap, (priority, usage, bunch.age(bunch.tried), number, bunch))
        else:
            heappop(heap)
