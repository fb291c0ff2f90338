"""Cold starts that read from one shared store at the same time.

Every reader has a rate of its own at most (its NIC, its client), and all of them together that of the store. What there
is is shared max-min fairly: who is limited by itself gets its own rate, and the others get equal parts of the rest
(processor sharing). Readers of one rate are at the same point of a common clock of bytes, so that a change costs the
number of different rates, not of readers.

Page caches and copies between peers make a difference of tens of times, and no store has them by itself: who has the
bytes already is no reader.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Load:
    """What one start reads from the store.

    Args:
        readers: nodes that read.
        bytes_each: that each of them reads.
    """

    readers: int
    bytes_each: float


@dataclass(slots=True)
class _Lane:
    """Readers of one own rate: how many, how many bytes each has had, and who ends at which."""

    readers: int = 0
    had_bytes: float = 0.0
    ends: list[tuple[float, int, Hashable]] = field(default_factory=list)


class SharedStore:
    """Starts that read from one store; `next_s` is when the next has read all, infinite when nothing reads.

    Args:
        bytes_per_s: of all readers together, above 0.
    """

    def __init__(self, bytes_per_s: float) -> None:
        if not bytes_per_s > 0:
            raise ValueError("a store reads at a rate above 0")
        self._bytes_per_s = bytes_per_s
        self._lanes: dict[float, _Lane] = {}
        self._reading: dict[Hashable, tuple[float, int, int]] = {}
        self._now_s = 0.0
        self._count = 0
        self._first: Hashable = None
        self.next_s = math.inf

    def begin(self, start: Hashable, at_s: float, load: Load, reader_bytes_per_s: float = math.inf) -> None:
        """A start begins to read; a start that reads nothing is not begun.

        Raises:
            ValueError: if it reads already, or reads nothing, or has no rate.
        """
        if start in self._reading or load.readers < 1 or not reader_bytes_per_s > 0:
            raise ValueError(f"start {start!r} reads already, has no readers, or no rate")
        self._go_on(at_s)
        lane = self._lanes.setdefault(reader_bytes_per_s, _Lane())
        self._count += 1
        heapq.heappush(lane.ends, (lane.had_bytes + load.bytes_each, self._count, start))
        lane.readers += load.readers
        self._reading[start] = (reader_bytes_per_s, load.readers, self._count)
        self._look()

    def pop(self) -> Hashable:
        """The start that has read all at `next_s`, which is now.

        Raises:
            ValueError: if nothing reads.
        """
        if math.isinf(self.next_s):
            raise ValueError("nothing reads from the store")
        start = self._first
        self._go_on(self.next_s)
        self._end(start)
        return start

    def cancel(self, start: Hashable, at_s: float) -> None:
        """A start stops reading before it has all; nothing for one that does not read."""
        if start in self._reading:
            self._go_on(at_s)
            self._end(start)

    def _end(self, start: Hashable) -> None:
        own, readers, _ = self._reading.pop(start)
        lane = self._lanes[own]
        lane.readers -= readers
        while lane.ends and not self._is_reading(lane.ends[0]):
            heapq.heappop(lane.ends)
        if not lane.readers:
            del self._lanes[own]
        self._look()

    def _look(self) -> None:
        self.next_s = math.inf
        for own, rate in self._rates().items():
            lane = self._lanes[own]
            due_s = self._now_s + max(0.0, lane.ends[0][0] - lane.had_bytes) / rate
            if due_s < self.next_s:
                self.next_s, self._first = due_s, lane.ends[0][2]

    def _is_reading(self, end: tuple[float, int, Hashable]) -> bool:
        known = self._reading.get(end[2])
        return known is not None and known[2] == end[1]

    def _go_on(self, at_s: float) -> None:
        if at_s < self._now_s:
            raise ValueError(f"the store is at {self._now_s} s already, not at {at_s}")
        for own, rate in self._rates().items():
            self._lanes[own].had_bytes += rate * (at_s - self._now_s)
        self._now_s = at_s

    def _rates(self) -> dict[float, float]:
        """Rate of one reader of each lane, by own rate: max-min fair."""
        left = self._bytes_per_s
        readers = sum(lane.readers for lane in self._lanes.values())
        rates = {}
        for own in sorted(self._lanes):
            rates[own] = min(own, left / readers)
            left -= rates[own] * self._lanes[own].readers
            readers -= self._lanes[own].readers
        return rates
