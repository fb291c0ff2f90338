"""Scores as lines of cells: the one table, bias, bars, worst rows, failures, and where the planner is weak."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from validation.scoring import (
    FIT,
    LEAST,
    SHARE,
    Failures,
    Row,
    Scored,
    band_of,
    mean_error,
    median_error,
    quantile,
    share,
    worst,
)

Line = tuple[str, ...]
T = TypeVar("T")

HEAD: Final = ("set", "group", "rows", "no answer", "mean", "median", "p90", "band", "in band", "")
BIAS_HEAD: Final = ("by", "name", "rows", "bias", "median", "")
BAR_HEAD: Final = ("bar", "reached", "at most", "")
WORST_HEAD: Final = ("worst", "group", "predicted", "measured", "error", "reason")
MISSED: Final = "MISSED"
#: p90 above which one row in ten is said to be far off.
_FAR: Final = 0.5
#: High ÷ low end above which a band of its own is said to be of little use.
_WIDE: Final = 8.0


def percent(value: float) -> str:
    """A share as people read it; a dash where there is none."""
    return "–" if not math.isfinite(value) else f"{value * 100:,.1f} %"


def group_lines(scored: Scored) -> list[Line]:
    """One line per group, per system, and one for the whole set where it has several groups."""
    groups = {**scored.groups(), **scored.systems()}
    lines = [_line(scored, name, rows) for name, rows in groups.items()]
    if len(scored.groups()) > 1:
        lines.append(_line(scored, "all", scored.rows, whole=True))
    return lines


def _line(scored: Scored, name: str, rows: Sequence[Row], *, whole: bool = False) -> Line:
    answered = [r for r in rows if r.predicted is not None]
    return (
        scored.name,
        name,
        f"{len(rows):,}",
        f"{len(rows) - len(answered):,}",
        percent(mean_error(answered) if answered else math.nan),
        percent(median_error(rows)),
        percent(quantile(rows, 0.9)),
        _band(scored, rows),
        percent(share(rows)) if scored.judged else "–",
        "" if whole else _verdict(scored, rows),
    )


def _band(scored: Scored, rows: Sequence[Row]) -> str:
    """The set's band, or what is the rule among the rows' own ones."""
    ends = band_of(rows)
    return scored.band if ends is None else f"×{ends[0]:.2f} to ×{ends[1]:.2f}"


def _verdict(scored: Scored, rows: Sequence[Row]) -> str:
    if not scored.judged:
        return "listed"
    if len(rows) < LEAST:
        return "too few"
    return "holds" if share(rows) >= SHARE else MISSED


def bias_lines(scored: Scored) -> list[Line]:
    """Median signed error by group, system and family, with the families that are far off."""
    outlying, lines = scored.outlying(), []
    kinds = (("group", scored.groups()), ("system", scored.systems()), ("family", scored.families()))
    for kind, parts in kinds:
        for name, rows in parts.items():
            answered = sorted(r.signed for r in rows if r.predicted is not None)
            if answered:
                bias = f"{answered[len(answered) // 2] * 100:+,.1f} %"
                off = "FAR OFF" if kind == "family" and name in outlying else ""
                lines.append((kind, name, f"{len(rows):,}", bias, percent(median_error(rows)), off))
    return lines


def bar_lines(scored: Scored) -> list[Line]:
    """Demands beside the band."""
    return [
        (name, percent(value), percent(limit), "holds" if value <= limit else MISSED)
        for name, value, limit in scored.bars
    ]


def worst_lines(scored: Scored) -> list[Line]:
    """The rows outside the band that are farthest off, with the reason."""
    return [
        (
            row.id,
            row.system or row.group,
            "–" if row.predicted is None else f"{_number(row.predicted)} {scored.unit}".strip(),
            f"{_number(row.measured)} {scored.unit}".strip(),
            "–" if row.predicted is None else f"{row.signed * 100:+,.0f} %",
            row.reason or "not explained",
        )
        for row in worst(scored.rows, scored.listed)
        if not row.inside
    ]


def _number(value: float) -> str:
    """Four digits, thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def failure_lines(failures: Failures) -> list[str]:
    """k of n, what was missed, and how many rows that ran are predicted to fit."""
    foreseen, all_ = len(failures.foreseen), len(failures.foreseen) + len(failures.missed)
    lines = []
    if all_:
        lines.append(f"{failures.name}: {foreseen} of {all_} foreseen ({', '.join(failures.foreseen) or 'none'})")
    lines += [f"missed {id_}: {why}" for id_, why in failures.missed]
    if failures.ran:
        kept = percent(failures.fits / failures.ran)
        word = "holds" if failures.passes else MISSED
        of = f"{failures.name}: {failures.fits} of the {failures.ran} that ran are predicted to fit"
        lines.append(f"{of} ({kept}; at least {FIT:.0%} wanted): {word}")
    return lines + list(failures.notes)


def weaknesses(scores: Sequence[Scored | Failures]) -> list[tuple[str, list[str]]]:
    """Where the planner is weak: (heading, sentences) of missed bars, of what is not judged, and of wide spreads."""
    sets = [s for s in scores if isinstance(s, Scored)]
    failures = [f for f in scores if isinstance(f, Failures)]
    parts = (
        ("Missed", [*_each(sets, _missed), *_each(failures, _unforeseen)]),
        ("Not judged, for want of rows or of a bar", list(_each(sets, _unjudged))),
        ("Wide or few", list(_each(sets, _tails))),
    )
    return [(heading, sentences) for heading, sentences in parts if sentences]


def _each(parts: Sequence[T], sentences: Callable[[T], Iterator[str]]) -> Iterator[str]:
    return (text for part in parts for text in sentences(part))


def _unforeseen(failures: Failures) -> Iterator[str]:
    for id_, why in failures.missed:
        yield f"{failures.name}: {id_} was not foreseen ({why})."
    if not failures.passes:
        yield f"{failures.name}: {failures.fits} of the {failures.ran} that ran are predicted to fit, {FIT:.0%} wanted."


def _missed(scored: Scored) -> Iterator[str]:
    for name, rows in scored.scored().items():
        if share(rows) < SHARE:
            inside = f"{percent(share(rows))} of {len(rows):,} rows in the band, {SHARE:.0%} wanted"
            yield f"{scored.name}, {name}: {inside}."
    for name, value, limit in scored.bars:
        if value > limit:
            yield f"{scored.name}: {name} is {percent(value)}, at most {percent(limit)} wanted."
    for name in scored.outlying():
        yield f"{scored.name}: {name} is off by over twice the median of the set."


def _unjudged(scored: Scored) -> Iterator[str]:
    if not scored.judged:
        mean = percent(mean_error(scored.rows))
        yield f"{scored.name}: {len(scored.rows):,} rows are listed, not judged; mean error {mean}."
    elif not scored.scored() and not scored.bars:
        yield f"{scored.name}: no group has {LEAST} rows, so nothing is judged."


def _tails(scored: Scored) -> Iterator[str]:
    far = quantile(scored.rows, 0.9)
    if scored.judged and len(scored.rows) >= LEAST and far > _FAR:
        yield f"{scored.name}: one row in ten is off by over {percent(far)}."
    for name, rows in scored.scored().items():
        ends = band_of(rows)
        if ends is not None and ends[1] / ends[0] > _WIDE:
            yield f"{scored.name}, {name}: a band as wide as ×{ends[0]:.2f} to ×{ends[1]:.2f} says little."
    middle = median_error(scored.rows)
    for name, rows in scored.families().items():
        if scored.judged and len(rows) < LEAST and middle > 0.02 and median_error(rows) > 2 * middle:
            count = f"{len(rows)} row" + "s" * (len(rows) > 1)
            yield f"{scored.name}: {name} ({count}) is off by {percent(median_error(rows))} in the median."
