"""Cells that stand in a listing again and again (states, users, limits, lists of resources) are read once.

Equal cells then share one value too: a month of accounting repeats a few thousand texts millions of times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

#: Most texts that one memo keeps; it then begins anew.
MOST: Final = 50_000
#: Longest text that is kept.
LONGEST: Final = 256

V = TypeVar("V")


class Memo(dict[str, V], Generic[V]):
    """What a pure function of a text gave: `memo[text]` calls it for a text that is new, within bounds of memory.

    Args:
        read: the function; it must not depend on anything but the text.
    """

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[str], V]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: str) -> V:
        value = self._read(text)
        if len(text) <= LONGEST:
            if len(self) >= MOST:
                self.clear()
            self[text] = value
        return value
