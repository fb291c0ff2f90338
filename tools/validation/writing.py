"""Scores as text for a terminal and as the page *How good are these numbers*."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from validation.scoring import (
    LEAST,
    SHARE,
    Failures,
    Row,
    Scored,
    mean_error,
    median_error,
    quantile,
    share,
    worst,
)

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]

_HEAD: Final = ("set", "group", "rows", "no answer", "mean", "median", "p90", "in band", "")
_INTRODUCTION: Final = """\
# How good are these numbers

Written by `make validate` from public measurements that are not part of this repository (their sources are named in
each set); do not edit. An error is |predicted ÷ measured − 1|. *In band* is the share of rows within the band of the
set; a group of at least {least} rows must reach {share:.0f} %, smaller ones are listed and not scored. *No answer*
counts rows that the planner refuses; they are never in the band. Bias is the median of predicted ÷ measured − 1.
"""


def percent(value: float) -> str:
    """A share as people read it; a dash where there is none."""
    return "–" if math.isnan(value) or math.isinf(value) else f"{value * 100:.1f} %"


def group_rows(scored: Scored) -> list[tuple[str, ...]]:
    """One line per group and one for the whole set."""
    groups = scored.groups()
    lines = [_line(scored.name, name, rows) for name, rows in groups.items()]
    if len(groups) > 1:
        lines.append(_line(scored.name, "all", scored.rows, judged=False))
    return lines


def _line(set_: str, name: str, rows: Sequence[Row], *, judged: bool = True) -> tuple[str, ...]:
    answered = [r for r in rows if r.predicted is not None]
    inside = share(rows)
    word = "" if not judged else "not scored" if len(rows) < LEAST else "holds" if inside >= SHARE else "MISSED"
    mean = mean_error(answered) if answered else math.nan
    return (
        set_,
        name,
        str(len(rows)),
        str(len(rows) - len(answered)),
        percent(mean),
        percent(median_error(rows)),
        percent(quantile(rows, 0.9)),
        percent(inside),
        word,
    )


def bias_rows(scored: Scored) -> list[tuple[str, ...]]:
    """Median signed error by family, engine or system, with what is far off."""
    outlying = scored.outlying()
    lines = []
    for kind, groups in (("group", scored.groups()), ("family", scored.families())):
        for name, rows in groups.items():
            answered = sorted(r.signed for r in rows if r.predicted is not None)
            if not answered:
                continue
            bias = answered[len(answered) // 2]
            off = "FAR OFF" if kind == "family" and name in outlying else ""
            lines.append((kind, name, str(len(rows)), f"{bias * 100:+.1f} %", percent(median_error(rows)), off))
    return lines


def bar_rows(scored: Scored) -> list[tuple[str, ...]]:
    """Demands beside the band."""
    return [
        (name, percent(value), percent(limit), "holds" if value <= limit else "MISSED")
        for name, value, limit in scored.bars
    ]


def worst_rows(scored: Scored) -> list[tuple[str, ...]]:
    """The ten rows that are farthest off, with the reason."""
    unit = scored.unit
    return [
        (
            row.id,
            row.group,
            "–" if row.predicted is None else f"{row.predicted:.4g} {unit}".strip(),
            f"{row.measured:.4g} {unit}".strip(),
            "–" if row.predicted is None else f"{row.signed * 100:+.0f} %",
            row.reason or "not known",
        )
        for row in worst(scored.rows)
        if not row.inside
    ]


def failure_lines(failures: Failures) -> list[str]:
    """k of n, what was missed, and how many rows that ran are predicted to fit."""
    foreseen, all_ = len(failures.foreseen), len(failures.foreseen) + len(failures.missed)
    lines = [f"{failures.name}: {foreseen} of {all_} failures foreseen ({', '.join(failures.foreseen) or 'none'})"]
    lines += [f"missed {id_}: {why}" for id_, why in failures.missed]
    if failures.ran:
        kept = failures.fits / failures.ran
        word = "holds" if kept >= 0.95 else "MISSED"
        lines.append(f"of {failures.ran} rows that ran, {failures.fits} are predicted to fit ({percent(kept)}): {word}")
    return lines + list(failures.notes)


def as_text(scores: Sequence[Scored | Failures], shapes: Table, vectors: Table) -> str:
    """Everything for a terminal."""
    sets = [s for s in scores if isinstance(s, Scored)]
    blocks = [_text_table((_HEAD, [line for s in sets for line in group_rows(s)]))]
    for scored in sets:
        blocks.append(f"{scored.name}: band {scored.band}; split: {scored.split}")
        blocks += _text_parts(scored)
    for failures in scores:
        if isinstance(failures, Failures):
            blocks.append("\n".join(failure_lines(failures)))
    blocks += ["models: parameters, ours and published", _text_table(shapes)]
    blocks += ["formula vectors", _text_table(vectors)]
    return "\n\n".join(blocks)


def _text_parts(scored: Scored) -> list[str]:
    parts = []
    if scored.bars:
        parts.append(_text_table((("bar", "reached", "limit", ""), bar_rows(scored))))
    parts.append(_text_table((("by", "name", "rows", "bias", "median", ""), bias_rows(scored))))
    off = worst_rows(scored)
    if off:
        parts.append(_text_table((("worst", "group", "predicted", "measured", "error", "reason"), off)))
    return [*parts, *scored.notes]


def _text_table(table: Table) -> str:
    head, lines = table
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    return "\n".join(
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in [head, *lines]
    )


def as_page(scores: Sequence[Scored | Failures], shapes: Table, vectors: Table) -> str:
    """Everything as Markdown."""
    sets = [s for s in scores if isinstance(s, Scored)]
    blocks = [_INTRODUCTION.format(least=LEAST, share=SHARE * 100), "## In one table"]
    blocks.append(_page_table((_HEAD, [line for s in sets for line in group_rows(s)])))
    blocks += ["## Where it is weak", "\n".join(weaknesses(scores)) or "No bar is missed."]
    for scored in sets:
        blocks += [f"## {scored.name}", f"Band: {scored.band}. Split: {scored.split}."]
        if scored.bars:
            blocks.append(_page_table((("bar", "reached", "limit", ""), bar_rows(scored))))
        blocks.append(_page_table((("by", "name", "rows", "bias", "median", ""), bias_rows(scored))))
        off = worst_rows(scored)
        if off:
            blocks.append(_page_table((("worst", "group", "predicted", "measured", "error", "reason"), off)))
        blocks += list(scored.notes)
    failures = [f for f in scores if isinstance(f, Failures)]
    if failures:
        blocks.append("## Failures that could be known")
        blocks += ["\n".join(f"- {line}" for line in failure_lines(f)) for f in failures]
    blocks += ["## Parameters of models", _page_table(shapes), "## Vectors of formulas", _page_table(vectors)]
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def weaknesses(scores: Sequence[Scored | Failures]) -> list[str]:
    """One line per missed bar, family far off, set without a score and failure that was not foreseen."""
    lines = []
    for scored in scores:
        if isinstance(scored, Failures):
            lines += [f"- {scored.name}: {id_} was not foreseen: {why}" for id_, why in scored.missed]
            continue
        for line in group_rows(scored):
            if line[-1] == "MISSED":
                lines.append(
                    f"- {scored.name}, {line[1]}: {line[-2]} of {line[2]} rows in the band, {SHARE:.0%} wanted."
                )
        if all(len(rows) < LEAST for rows in scored.groups().values()):
            lines.append(f"- {scored.name}: no group has {LEAST} rows, so nothing is scored.")
        lines += [
            f"- {scored.name}: {name} is {value}, at most {limit} wanted."
            for name, value, limit, word in bar_rows(scored)
            if word == "MISSED"
        ]
        lines += [f"- {scored.name}: {name} is off by over twice the median of the set." for name in scored.outlying()]
    return lines


def _page_table(table: Table) -> str:
    head, lines = table
    rows = [head, tuple("---" for _ in head), *lines]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows)
