"""Values out of JSON documents: what stands there may be of any type, and a missing key is no value."""

from __future__ import annotations

import math
from typing import Any

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue
from clusterwright.readers.refusing import shorten
from clusterwright.readers.values import quantity, read_number, unreadable

_NOTHING = NoValue(Lack.ABSENT, "null")


def get(value: Any, *path: str) -> Any:
    """What stands at a path of keys, None where there is nothing (or no object on the way)."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; other items are left out."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def number(value: Any) -> float | NoValue:
    """A finite number, also where it is written as text; `null` is absent, everything else unreadable."""
    if isinstance(value, bool):
        return unreadable(str(value), "not a number")
    if isinstance(value, int | float):
        try:
            found = float(value)
        except OverflowError:
            return unreadable(str(value)[:40], "far too large")
        return found if math.isfinite(found) else unreadable(str(value), "not a finite number")
    if value is None:
        return _NOTHING
    if isinstance(value, str):
        return read_number(value)
    return unreadable(shorten(str(type(value).__name__)), "not a number")


def amount(value: Any, unit: str) -> Quantity | NoValue:
    """A number whose unit is known from its key or the tool's version."""
    found = number(value)
    return found if isinstance(found, NoValue) else quantity(found, unit)


def plain(value: Any) -> float | None:
    """A finite number, or None; for checks and sums."""
    found = number(value)
    return None if isinstance(found, NoValue) else found


def text(value: Any) -> str:
    """A short text of a scalar, "" for everything else."""
    if isinstance(value, str):
        return shorten(value)
    return str(value)[:60] if isinstance(value, bool | int | float) else ""
