"""Host lists of one output, expanded within a bound: many rows with huge lists end in a refusal, not in a hang."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.hostlists import HostlistError, expand

#: Names that one output may expand to, repeats included: 20,000 nodes in a hundred partitions.
MOST_NAMES: Final = 2_000_000


class Hosts:
    """Expands host lists and counts the names."""

    def __init__(self) -> None:
        self._names = 0

    def expand(self, text: str) -> tuple[str, ...]:
        """Names of a list; HostlistError when it is none or when the output holds too many names."""
        if self._names > MOST_NAMES:
            raise HostlistError(f"more than {MOST_NAMES:,} names in one output")
        names = expand(text)
        self._names += len(names) + 1
        return names
