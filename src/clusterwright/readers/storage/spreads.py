"""Repeated runs of one job: how far apart they are, and whether one of them is an outlier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, median
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Notice, Run, Weight

#: Spread (largest minus smallest, over the mean) from which one number no longer stands for the runs; our default.
WIDE: Final = 0.10
_OUTLIER: Final = 2.0
_MOST: Final = 1_000


def compare_runs(runs: Sequence[Run], *names: str) -> list[Run]:
    """The runs with a notice on each where values of one name and subject differ between them."""
    found: dict[tuple[str, object], list[tuple[int, Quantity]]] = {}
    for index, run in enumerate(runs[:_MOST]):
        for o in run.observations:
            if o.name in names and isinstance(o.value, Quantity):
                found.setdefault((o.name, o.subject), []).append((index, o.value))
    notices = [n for (name, _), rows in found.items() if len(rows) > 1 for n in _notices(name, rows)]
    return [replace(run, notices=(*run.notices, *notices)) for run in runs] if notices else list(runs)


def _notices(name: str, rows: list[tuple[int, Quantity]]) -> list[Notice]:
    values = [q.value for _, q in rows]
    low, high, middle = min(values), max(values), mean(values)
    if middle <= 0 or high - low < WIDE * middle:
        return []
    least = next(q for _, q in rows if q.value == low)
    most = next(q for _, q in rows if q.value == high)
    said = f"{len(rows)} runs of {name}: {least} to {most}, spread {(high - low) / middle:.0%} of the mean"
    notices = [Notice("runs-differ", said + "; one number does not stand for them", Weight.WARNING)]
    for index, q in rows:
        rest = median(v for i, v in enumerate(values) if rows[i][0] != index)
        if q.value > 0 and not 1 / _OUTLIER < q.value / rest < _OUTLIER and len(rows) > 2:
            notices.append(
                Notice("outlier-run", f"run {index + 1} gives {name} {q}, the median of the others is {_like(rest, q)}")
            )
    return notices[:20]


def _like(value: float, example: Quantity) -> str:
    return str(Quantity(value, example.powers))
