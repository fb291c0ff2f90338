"""Evidence for tests: records of one reading each, taken on the declared engine an hour ago."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from clusterwright.lib.quantities import Quantity, parse_quantity
from clusterwright.model.evidence import Evidence, Reading

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def reading(
    metric: str,
    value: Quantity | float | bool | str | None,
    nodes: Sequence[str],
    conditions: Mapping[str, str] | None = None,
    unreadable: str = "",
) -> Reading:
    """A reading; text with a digit and a space is a quantity."""
    if isinstance(value, str) and " " in value and value[0].isdigit():
        value = parse_quantity(value)
    return Reading(metric, value, tuple((conditions or {}).items()), tuple(nodes), unreadable)


def evidence(*readings: Reading, hours_ago: float = 1, **fields: Any) -> Evidence:
    """A record of readings over all of their hosts."""
    body = {
        "id": f"sha256:{abs(hash(readings)):064x}",
        "requirements": (),
        "tool": "test",
        "readings": readings,
        "basis": "measured",
        "engine": "slurm",
        "devices": "real",
        "nodes": tuple(dict.fromkeys(n for r in readings for n in r.nodes)),
        "started": NOW - timedelta(hours=hours_ago, minutes=10),
        "ended": NOW - timedelta(hours=hours_ago),
    }
    return Evidence(**(body | fields))
