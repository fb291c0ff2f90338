"""A quick look before patterns: which of the listings of this family can stand in some lines at all."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.readers.cleaning import Line


def holds(lines: Sequence[Line], *words: str) -> bool:
    """Whether one of the words stands in a line."""
    text = "\n".join([line.text for line in lines])
    return any(word in text for word in words)
