"""Numbers as a source prints them; what is none is None, never 0."""

from __future__ import annotations

from math import isfinite
from typing import Final

from clusterwright.traces.rules import MOST_GPUS

#: What sources print where there is no number.
NO_NUMBERS: Final = frozenset({"", "-", "none", "null", "n/a", "na", "nan", "(null)", "unknown"})


def read_number(text: str) -> float | None:
    """A finite number; None for any other text (also for `1_000`, which Python would read)."""
    if "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def read_count(text: str) -> int | None:
    """A whole number from 0 to a million, also written `8.0`; None for any other text."""
    number = read_number(text)
    return int(number) if number is not None and 0 <= number <= MOST_GPUS and number == int(number) else None


def is_blank(text: str) -> bool:
    """Whether the text says that there is no number."""
    return text.strip().lower() in NO_NUMBERS
