"""Rows with a prediction and a measurement → one table: how often, how far, where worst.

An error is |predicted ÷ measured − 1| unless the set gives its band in the measurement's own unit. Groups (an engine, a
system) with at least LEAST rows are scored; smaller ones are listed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Final

#: Rows from which a group is scored.
LEAST: Final = 20
#: Share of a scored group that must lie inside the band.
SHARE: Final = 0.80
#: Share of the rows that ran that must be predicted to fit.
FIT: Final = 0.95


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement with what the planner says.

    Args:
        id: of the row in its set.
        group: what is scored together (engine or system).
        predicted, measured: in the set's unit; predicted None where the planner refuses, with `reason`.
        inside: whether the row is within the set's band.
        family: of the model, for the bias table.
        system: that it ran on, where `group` is something else; scored beside the groups.
        reason: why it is off, where known, or why there is no prediction.
        factors: its own band as factors on the prediction, where rows of a set have one each.
    """

    id: str
    group: str
    predicted: float | None
    measured: float
    inside: bool
    family: str = ""
    reason: str = ""
    system: str = ""
    factors: tuple[float, float] | None = None

    @property
    def error(self) -> float:
        """|predicted ÷ measured − 1|; infinite without a prediction."""
        if self.predicted is None:
            return math.inf
        return abs(self.predicted / self.measured - 1) if self.measured else abs(self.predicted)

    @property
    def signed(self) -> float:
        """predicted ÷ measured − 1."""
        return math.inf if self.predicted is None else self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True)
class Scored:
    """One set of rows.

    Args:
        name: of the set.
        band: in a few words.
        split: how rows to fit on and rows to score are apart, in words.
        bars: (name, value as reached, limit) of demands beside the share in the band; value must not exceed limit.
        judged: whether shares in the band count; a set that is only listed has no bar of its own.
        listed: how many of the worst rows are named.
    """

    name: str
    band: str
    split: str
    rows: tuple[Row, ...]
    bars: tuple[tuple[str, float, float], ...] = ()
    notes: tuple[str, ...] = ()
    unit: str = ""
    judged: bool = True
    listed: int = 10

    def groups(self) -> dict[str, tuple[Row, ...]]:
        """Rows by group, largest first."""
        return by(self.rows, lambda row: row.group)

    def systems(self) -> dict[str, tuple[Row, ...]]:
        """Rows by system where rows name one, largest first."""
        return by((r for r in self.rows if r.system), lambda row: row.system)

    def scored(self) -> dict[str, tuple[Row, ...]]:
        """Groups and systems that are large enough to be scored; none where the set is only listed."""
        if not self.judged:
            return {}
        parts = {**self.groups(), **self.systems()}
        return {name: rows for name, rows in parts.items() if len(rows) >= LEAST}

    def families(self) -> dict[str, tuple[Row, ...]]:
        """Rows by model family, largest first."""
        return by((r for r in self.rows if r.family), lambda row: row.family)

    @property
    def passes(self) -> bool:
        """Whether every scored group has its share in the band, every bar holds and no large family is far off."""
        return (
            all(share(rows) >= SHARE for rows in self.scored().values())
            and all(value <= limit for _, value, limit in self.bars)
            and not self.outlying()
        )

    def outlying(self) -> tuple[str, ...]:
        """Families of at least LEAST rows whose median error is over twice that of the whole set; none if listed."""
        if not self.judged:
            return ()
        middle = median(r.error for r in self.rows) if self.rows else 0.0
        return tuple(
            name
            for name, rows in self.families().items()
            if len(rows) >= LEAST and median(r.error for r in rows) > 2 * middle
        )


@dataclass(frozen=True, slots=True)
class Failures:
    """Start-up failures that a planner can know, ids fixed beforehand, and whether each was foreseen.

    Args:
        fits, ran: rows that ran, and those of them that are predicted to fit.
    """

    name: str
    foreseen: tuple[str, ...]
    missed: tuple[tuple[str, str], ...]
    fits: int = 0
    ran: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def passes(self) -> bool:
        """Whether FIT of the rows that ran are predicted to fit."""
        return not self.ran or self.fits >= FIT * self.ran


def by(rows: Iterable[Row], key) -> dict[str, tuple[Row, ...]]:  # type: ignore[no-untyped-def]
    """Rows by a key, largest group first, then by name."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return {k: tuple(found[k]) for k in sorted(found, key=lambda k: (-len(found[k]), k))}


def share(rows: Sequence[Row]) -> float:
    """Share of rows inside the band."""
    return sum(r.inside for r in rows) / len(rows)


def mean_error(rows: Sequence[Row]) -> float:
    """Mean error of the rows that have a prediction."""
    return fmean(r.error for r in rows if r.predicted is not None)


def median_error(rows: Sequence[Row]) -> float:
    """Median error of all rows; a row without a prediction is infinitely far off."""
    return median(r.error for r in rows)


def quantile(rows: Sequence[Row], level: float) -> float:
    """Error that a share `level` of the rows stays within."""
    ordered = sorted(r.error for r in rows)
    return ordered[min(len(ordered) - 1, math.ceil(level * len(ordered)) - 1)]


def band_of(rows: Sequence[Row]) -> tuple[float, float] | None:
    """Medians of the two ends of the rows' own bands, None where they have none."""
    found = [row.factors for row in rows if row.factors is not None]
    if not found:
        return None
    return median(low for low, _ in found), median(high for _, high in found)


def worst(rows: Sequence[Row], count: int = 10) -> tuple[Row, ...]:
    """The rows with the largest errors, largest first."""
    return tuple(sorted(rows, key=lambda r: -r.error)[:count])
