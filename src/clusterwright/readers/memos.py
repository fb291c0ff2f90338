"""Cells that stand in a listing again and again (states, users, limits, lists of resources) are read once.

Equal cells then share one value too: a month of accounting repeats a few thousand texts millions of times. Only pure
functions may be remembered, and of values that nobody changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

#: Most texts that the memo of a column keeps; it then begins anew.
MOST: Final = 50_000
#: The same for a function that is remembered for as long as the program runs.
MOST_ALWAYS: Final = 8_192
#: Longest text that is kept.
LONGEST: Final = 256

V = TypeVar("V")


class Memo(dict[str, V], Generic[V]):
    """What a pure function of a text gave: `memo[text]` calls it for a text that is new, within bounds of memory.

    Args:
        read: the function; it must not depend on anything but the text.
    """

    __slots__ = ("_most", "_read")

    def __init__(self, read: Callable[[str], V], most: int = MOST) -> None:
        super().__init__()
        self._read = read
        self._most = most

    def __missing__(self, text: str) -> V:
        value = self._read(text)
        if len(text) <= LONGEST:
            if len(self) >= self._most:
                self.clear()
            self[text] = value
        return value


def remembered(read: Callable[[str], V]) -> Callable[[str], V]:
    """The same function of a text, called once for texts that come again."""
    return Memo(read, MOST_ALWAYS).__getitem__  # the look-up itself: a wrapper around it would cost more than a hit
