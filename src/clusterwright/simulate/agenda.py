"""What is due, in one order: by time, then by kind, then in the order in which it was entered."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any


class Order(IntEnum):
    """Kinds of entries at one instant: what attempts do goes before what nodes do."""

    ATTEMPT = 0
    NODE = 1


#: Called with the instant in ms, the number of the entry and what it is about.
Call = Callable[[int, int, Any], None]


class Agenda:
    """Entries by (time, kind, number); the same entries in the same order come out in the same order.

    Nothing is taken out before its time: who entered something keeps its number, and passes over an entry whose number
    no longer counts.
    """

    __slots__ = ("_count", "entries")

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, int, Call, Any]] = []
        self._count = 0

    def enter(self, at_ms: int, order: int, call: Call, what: Any) -> int:
        """Have something called at an instant; returns its number."""
        self._count += 1
        heappush(self.entries, (at_ms, order, self._count, call, what))
        return self._count

    def run_until(self, now_ms: int) -> bool:
        """Call everything that is due, what is entered meanwhile for now included; whether there was anything."""
        entries, found = self.entries, False
        while entries and entries[0][0] <= now_ms:
            _, _, number, call, what = heappop(entries)
            call(now_ms, number, what)
            found = True
        return found
