"""Values of Slurm's JSON in all its versions: plain numbers, {"set", "infinite", "number"}, words as text or as list.

Source: OpenAPI data_parser plugins v0.0.37 to v0.0.44 (Slurm 21.08 to 25.11). Numbers that mean "no value" in older
versions (NO_VAL) are absent, never a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from clusterwright.readers.slurm.amounts import INFINITE, NO_VALUE

_MOST_TEXT: Final = 4000
_LATEST: Final = 4_102_444_800  # the year 2100


def number(value: Any) -> float | None:
    """The number; None where it is not set, infinite, or no number."""
    if isinstance(value, dict):
        if value.get("set") is not True or value.get("infinite") is True:
            return None
        value = value.get("number")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return None if value in NO_VALUE or value in INFINITE or not -1e300 < value < 1e300 else float(value)


def infinite(value: Any) -> bool:
    """Whether the number means that there is no limit."""
    if isinstance(value, dict):
        return value.get("infinite") is True
    return isinstance(value, int) and not isinstance(value, bool) and value in INFINITE


def plain(value: Any) -> str:
    """A whole number as text; "" where there is none."""
    found = number(value)
    return "" if found is None else f"{found:.15g}"


def epoch(value: Any) -> str:
    """A time as UTC text; "" for 0 and where there is none."""
    found = number(value)
    if found is None or not 0 < found < _LATEST:
        return ""
    return datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def words(value: Any) -> tuple[str, ...]:
    """Words of a text or of a list of texts."""
    items = value if isinstance(value, list) else [value]
    return tuple(item.strip()[:_MOST_TEXT] for item in items if isinstance(item, str) and item.strip())


def text(value: Any) -> str:
    """A text, or the words of a list joined with commas."""
    return ",".join(words(value))


def entries(value: Any) -> Iterator[dict[str, Any]]:
    """Objects of a list, or the values of an object whose keys are names (an old form)."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (item for item in items if isinstance(item, dict))


def inner(value: Any, *path: str) -> Any:
    """What stands at a path of keys; None where one is missing."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
