"""Host lists of one output, expanded within a bound: many rows with huge lists end in a refusal, not in a hang."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.hostlists import HostlistError, expand

#: Names that one output may expand to, repeats included: 20,000 nodes in 25 partitions.
MOST_NAMES: Final = 500_000


class Hosts:
    """Expands host lists and counts the names.

    Args:
        most: names that may be expanded in all.
    """

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most = most
        self._names = 0

    def expand(self, text: str) -> tuple[str, ...]:
        """Names of a list; HostlistError when it is none or when the output holds too many names."""
        if self._names > self._most:
            raise HostlistError(f"more than {self._most:,} names in one output")
        names = expand(text)
        self._names += len(names) + 1
        return names
