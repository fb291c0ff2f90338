"""Host lists of one output, expanded within a bound: many rows with huge lists end in a refusal, not in a hang."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.lib.hostlists import HostlistError, expand

#: Names that one output may expand to, repeats included: 20,000 nodes in 25 partitions.
MOST_NAMES: Final = 500_000
#: A single name, for which there is nothing to expand.
_ONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,60}[A-Za-z0-9]", re.ASCII)


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
        names = (text,) if _ONE.fullmatch(text) else expand(text)
        self._names += len(names) + 1
        return names
