"""What the scripts' outputs have in common: lines of JSON that name their format."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from clusterwright.model.observations import Lack, NoValue, Value
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.refusing import Refused, shorten
from clusterwright.readers.values import quantity

#: Longest line that is parsed: far above what the scripts write.
_LONGEST: Final = 4 * 2**20
_DEEPEST: Final = 12


def recognise_format(text: str, name: str) -> int:
    """100 when a line at the beginning names the format, whatever its version."""
    return 100 if f'"format": "{name}/' in text or f'"format":"{name}/' in text else 0


def read_reports(source: Source, builder: RunBuilder, name: str, version: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, report) of every line that holds one.

    Raises:
        Refused: for another version of the format, or when no line is a report.
    """
    found = False
    for line in source.lines():
        text = line.text.strip()
        if not text.startswith("{"):
            continue
        report = _load(text)
        if report is None:
            builder.reject(line.number, text, "not a whole JSON object")
            continue
        form = report.get("format")
        if not isinstance(form, str) or not form.startswith(f"{name}/"):
            continue
        if form != f"{name}/{version}":
            raise Refused(f"format {shorten(form)} is not known; this reads {name}/{version}", line.number, form)
        found = True
        yield line.number, report
    if not found:
        raise Refused(f"holds no report of {name}")


def _load(text: str) -> dict[str, Any] | None:
    if len(text) > _LONGEST or text.count("[") + text.count("{") > 200_000 or _depth(text) > _DEEPEST:
        return None
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _depth(text: str) -> int:
    depth = deepest = 0
    for char in text:
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def number_of(report: dict[str, Any], key: str, unit: str = "") -> Value:
    """A number of a report with its unit, or why there is none; true is no number, and nothing is ever below 0."""
    value = report.get(key)
    if value is None:
        return NoValue(Lack.ABSENT, key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NoValue(Lack.UNREADABLE, shorten(str(value), 40), "not a number")
    if abs(value) > 1e18 or not math.isfinite(value) or value < 0:
        return NoValue(Lack.UNREADABLE, shorten(str(value), 40), "not a possible value")
    return quantity(float(value), unit) if unit else float(value)


def text_of(report: dict[str, Any], key: str) -> str:
    """Text of a report, "" when there is none."""
    value = report.get(key)
    return shorten(value) if isinstance(value, str) else ""


def part_of(report: dict[str, Any], key: str) -> dict[str, Any]:
    """An object within a report, {} when there is none."""
    value = report.get(key)
    return value if isinstance(value, dict) else {}


def moment_of(report: dict[str, Any], key: str) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, "" when they are none or out of range."""
    value = report.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 4e9:
        return ""
    return datetime.fromtimestamp(value, UTC).isoformat()
