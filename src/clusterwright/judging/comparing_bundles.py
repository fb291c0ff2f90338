"""The same test before and after: what changed in the results, and what changed in the system.

Values are of the same thing when metric, conditions (without the image, which is what may have changed) and hosts are
the same. A change counts as one only when both sides were repeated and their values do not overlap; with fewer than
three on a side the difference is shown and nothing is concluded from it.

Source: exact probability that the values of two groups of sizes m and n do not overlap by chance, 2/C(m+n, n)
(Mann and Whitney 1947: the two most extreme arrangements).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb
from statistics import median
from typing import Final

from clusterwright.judging.alignment import Alike, align
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Evidence
from clusterwright.model.metrics import METRICS

#: Values on each side from which on a change can be told from spread.
FEWEST: Final = 3

Value = Quantity | float | bool | str


@dataclass(frozen=True, slots=True)
class Change:
    """One metric under one set of conditions on the same hosts, before and after.

    Args:
        requirements: claims that the evidence of either side was taken for.
        before, after: values in the order of their evidence; () when that side has none.
        relative: (after − before) / before of the medians; None where no side has a magnitude or before is zero.
        chance: probability of values that do not overlap without any change; None where they overlap or are facts.
        verdict: `same`, `better`, `worse`, `different`, `within spread`, `too few`, `only before` or `only after`.
    """

    metric: str
    conditions: tuple[tuple[str, str], ...]
    nodes: tuple[str, ...]
    requirements: tuple[str, ...]
    before: tuple[Value, ...]
    after: tuple[Value, ...]
    relative: float | None
    chance: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class EnvironmentChange:
    """A property of the system that is not the same on both sides; () where a side does not say."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BundleComparison:
    """What differs between two sets of evidence.

    Args:
        changes: worse first, then what cannot be decided, then the rest.
        unmeasured: readings without value, as (side, metric, reason).
    """

    changes: tuple[Change, ...]
    environment: tuple[EnvironmentChange, ...]
    unmeasured: tuple[tuple[str, str, str], ...] = ()


_ORDER: Final = (
    "worse", "different", "only before", "too few", "within spread", "only after", "better", "same",
)  # fmt: skip


def compare_bundles(before: Sequence[Evidence], after: Sequence[Evidence]) -> BundleComparison:
    """Compare two sets of evidence."""
    left, right = _collect(before), _collect(after)
    changes = [_change(key, left.get(key), right.get(key)) for key in dict.fromkeys((*left, *right))]
    lost = [
        (side, reading.metric, reading.unreadable or "no value")
        for side, records in (("before", before), ("after", after))
        for record in records
        for reading in record.readings
        if reading.value is None
    ]
    return BundleComparison(
        tuple(sorted(changes, key=lambda c: _ORDER.index(c.verdict))),
        tuple(_environment_changes(before, after)),
        tuple(dict.fromkeys(lost)),
    )


@dataclass(slots=True)
class _Side:
    values: list[Value]
    requirements: dict[str, None]


_Key = tuple[Alike, tuple[str, ...]]


def _collect(records: Iterable[Evidence]) -> dict[_Key, _Side]:
    found: dict[_Key, _Side] = {}
    for record in records:
        for reading in record.readings:
            if reading.value is None:
                continue
            key = (align(reading), tuple(sorted(reading.nodes or record.nodes)))
            side = found.setdefault(key, _Side([], {}))
            side.values.append(reading.value)
            side.requirements.update(dict.fromkeys(record.requirements))
    return found


def _change(key: _Key, before: _Side | None, after: _Side | None) -> Change:
    alike, nodes = key
    left = tuple(before.values) if before else ()
    right = tuple(after.values) if after else ()
    named = dict.fromkeys((*(before.requirements if before else ()), *(after.requirements if after else ())))
    verdict, chance = _decide(alike.metric, left, right)
    relative = _relative(left, right)
    return Change(alike.metric, alike.conditions, nodes, tuple(named), left, right, relative, chance, verdict)


def _decide(metric: str, before: Sequence[Value], after: Sequence[Value]) -> tuple[str, float | None]:
    if not after:
        return "only before", None
    if not before:
        return "only after", None
    left, right = _numbers(before), _numbers(after)
    better = METRICS[metric].better
    if left is None or right is None:
        return ("same" if set(map(str, before)) == set(map(str, after)) else "different"), None
    if set(left) == set(right) and len(set(left)) == 1:
        return "same", None
    if METRICS[metric].kind == "count":
        return _direction(better, max(left), max(right)), None
    if min(len(left), len(right)) < FEWEST:
        return "too few", None
    if max(left) >= min(right) and max(right) >= min(left):
        return "within spread", None
    chance = 2 / comb(len(left) + len(right), len(left))
    return _direction(better, median(left), median(right)), chance


def _direction(better: str, before: float, after: float) -> str:
    if before == after:
        return "same"
    if better == "equal":
        return "different"
    return "better" if (after > before) == (better == "more") else "worse"


def _numbers(values: Sequence[Value]) -> list[float] | None:
    """Magnitudes, None when one is a flag or text."""
    found = []
    for value in values:
        if isinstance(value, bool | str):
            return None
        found.append(value.value if isinstance(value, Quantity) else float(value))
    return found


def _relative(before: Sequence[Value], after: Sequence[Value]) -> float | None:
    left, right = _numbers(before), _numbers(after)
    if not left or not right or not median(left):
        return None
    return (median(right) - median(left)) / median(left)


def _environment_changes(before: Sequence[Evidence], after: Sequence[Evidence]) -> Iterable[EnvironmentChange]:
    left, right = _environment(before), _environment(after)
    for name in sorted(left.keys() | right.keys()):
        old, new = tuple(sorted(left.get(name, ()))), tuple(sorted(right.get(name, ())))
        if old != new:
            yield EnvironmentChange(name, old, new)


def _environment(records: Iterable[Evidence]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        for name, text in record.environment:
            found.setdefault(name, set()).add(text)
        if record.engine:
            found.setdefault("engine", set()).add(record.engine)
        found.setdefault("nodes", set()).update(record.nodes)
    return found
