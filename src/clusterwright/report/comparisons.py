"""Designs side by side as text, Markdown and plain values."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final

from clusterwright.lib.figures import Figure, format_band
from clusterwright.model.differences import Said
from clusterwright.plan.comparing import Alone, Cell, Comparison, Row, Trust
from clusterwright.plan.headlines import Key
from clusterwright.report.plan_words import MARKS, show

#: What the trust in a difference is called.
WORDS: Final[Mapping[Trust, str]] = {
    "same": "",
    "beyond": "beyond the bands",
    "inside": "inside the bands: do not rely on it",
    "formula": "follows from the inputs",
    "words": "",
    "missing": "not in both",
}
#: Marks of a difference that is better, worse, or neither.
_MARKS: Final = {1: "+ ", -1: "− ", 0: "  "}
_LONGEST: Final = 60
_NARROWEST: Final = 60
#: Narrowest column of a design.
_LEAST: Final = 14
#: Effects that are shown of one input.
_EFFECTS: Final = 4


def render_comparison(found: Comparison, width: int = 120, *, whole: bool = False) -> str:
    """For people: rows that differ, inputs that differ, and what each of them does alone.

    Args:
        width: columns of the terminal.
        whole: rows that do not differ, too.
    """
    wide = max(width, _NARROWEST)
    blocks = [_folded(_sides(found), wide), _table(found, whole, wide)]
    for index, side in enumerate(found.sides[1:]):
        title = f" of {side.name}" if len(found.sides) > 2 else ""
        blocks.append(_folded(_inputs(found.inputs[index], title), wide))
        blocks.append(_folded(_alone(found, index, title), wide))
    blocks.append(_folded([_legend()], wide))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _folded(lines: list[str], width: int) -> list[str]:
    return [
        folded
        for line in lines
        for folded in textwrap.wrap(
            line, width, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False,
            drop_whitespace=True, replace_whitespace=False,
        )
    ]  # fmt: skip


def _sides(found: Comparison) -> list[str]:
    lines = []
    for letter, side in zip(_letters(), found.sides, strict=False):
        plan = side.plan
        holds = f"{len(plan.misfits)} {'thing does' if len(plan.misfits) == 1 else 'things do'} not hold"
        parts = f"{len(plan.unplanned)} {'part' if len(plan.unplanned) == 1 else 'parts'} not planned"
        said = [text for count, text in ((plan.misfits, holds), (plan.unplanned, parts)) if count]
        lines.append(f"{letter}  {side.name}: {', '.join(said) or 'everything planned holds'}")
        lines += [f"     ✕ {misfit.subject}: {misfit.message}" for misfit in plan.misfits]
    return lines


def _letters() -> Iterable[str]:
    return (chr(ord("A") + i) for i in range(26))


def _table(found: Comparison, whole: bool, width: int) -> list[str]:
    lonely = {} if whole else _only_in(found)
    shown = [row for row in found.rows if (whole or row.differs) and row.key[0] not in lonely]
    said = [f"{subject} is only in {letters}" for subject, letters in lonely.items()]
    if not shown:
        return said or ["nothing that is planned differs"]
    pair = len(found.sides) == 2
    head = ["", *(letter for letter, _ in zip(_letters(), found.sides, strict=False)), *(["difference", ""] * pair)]
    lines = [head]
    subject = ""
    for row in shown:
        if row.key[0] != subject:
            subject = row.key[0]
            lines.append([subject, *[""] * (len(head) - 1)])
        lines.append(_row(row, pair=pair))
    hidden = sum(not row.differs for row in found.rows) if not whole else 0
    same = [f"{hidden} more {'row is' if hidden == 1 else 'rows are'} the same (--all)"] if hidden else []
    return _aligned(lines, len(found.sides), width) + said + same


def _only_in(found: Comparison) -> dict[str, str]:
    """Workloads that not every design has → letters of those that have them."""
    names = {workload.name for side in found.sides for workload in side.plan.workloads}
    have = {
        name: [letter for letter, side in zip(_letters(), found.sides, strict=False) if side.plan.workload(name)]
        for name in sorted(names)
    }
    return {name: " and ".join(letters) for name, letters in have.items() if len(letters) < len(found.sides)}


def _aligned(lines: list[list[str]], designs: int, width: int) -> list[str]:
    """Cells in columns; those of designs share what the others leave and are folded."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    others = widths[0] + sum(widths[1 + designs :]) + 2 * (len(widths) - 1)
    most = max(_LEAST, (width - others) // designs)
    for i in range(1, 1 + designs):
        widths[i] = min(widths[i], most)
    text = []
    for line in lines:
        folded = [
            textwrap.wrap(cell, size) if 0 < i <= designs else [cell]
            for i, (cell, size) in enumerate(zip(line, widths, strict=True))
        ]
        for part in range(max(len(cell) for cell in folded)):
            cells = [cell[part] if part < len(cell) else "" for cell in folded]
            text.append("  ".join(c.ljust(size) for c, size in zip(cells, widths, strict=True)).rstrip())
    return text


def _row(row: Row, *, pair: bool) -> list[str]:
    cells = [cell_text(cell) for cell in row.cells]
    if pair:
        other = row.cells[1]
        return [f"  {row.key[1]}", *cells, _difference(row, other), WORDS[other.trust]]
    texts = [cells[0]]
    for cell, text in zip(row.cells[1:], cells[1:], strict=True):
        change = _difference(row, cell).strip()
        note = "?" if cell.trust == "inside" else ""
        texts.append(f"{text} ({change}{note})" if change else text)
    return [f"  {row.key[1]}", *texts]


def cell_text(cell: Cell) -> str:
    """The value as it is printed, with origin mark and band."""
    if cell.value is None:
        return "not planned"
    if isinstance(cell.value, str):
        return cell.value
    band = f" {format_band(cell.value.band)}" if cell.value.band else ""
    return show(cell.value) + band


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _difference(row: Row, cell: Cell) -> str:
    if cell.ratio is None or cell.trust == "same":
        return ""
    rises = 1 if cell.ratio > 1 else -1
    side = {"more": rises, "less": -rises, "": 0}[row.better]
    return _MARKS[side] + change_text(cell.ratio)


def change_text(ratio: float) -> str:
    """`12 % more`, `3.2 times`, `40 % less`."""
    if ratio >= 3:
        return f"{ratio:.3g} times"
    percent = f"{abs(ratio - 1) * 100:.3g} %"
    return f"{percent} {'more' if ratio > 1 else 'less'}"


def _inputs(inputs: tuple[Said, ...], title: str) -> list[str]:
    if not inputs:
        return [f"inputs that differ{title}: none"]
    rows = [(said.name, _short(said.first or "nothing"), _short(said.second or "nothing")) for said in inputs]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    lines = [f"  {name:{widths[0]}}  {one:{widths[1]}}  →  {two}" for name, one, two in rows]
    return [f"inputs that differ{title}", *lines]


def _alone(found: Comparison, index: int, title: str) -> list[str]:
    alone = found.alone[index]
    if not alone:
        return []
    lines = [f"what each does alone{title}, the rest as in A"]
    for each in alone:
        lines.append(f"  {each.name}: {_effects(each)}")
    rest = [f"{key[0]} {key[1]} {change_text(r)}" for key, r in together(found, index) if not 0.995 < r < 1.005]
    if rest:
        lines.append(f"  acting on each other, beyond the product of these: {'; '.join(rest[:_EFFECTS])}")
    return lines


def _effects(each: Alone) -> str:
    if each.problem:
        return f"cannot stand alone: {each.problem}"
    moved = sorted(each.effects.items(), key=lambda item: -abs(math.log(item[1])))
    said = [f"{key[0]} {key[1]} {change_text(ratio)}" for key, ratio in moved[:_EFFECTS]]
    said += [f"{key[0]} {key[1]}: {text}" for key, text in list(each.words.items())[:2]]
    left = len(moved) - _EFFECTS
    return "; ".join(said) + (f"; and {left} more" if left > 0 else "") if said else "nothing that is planned"


def together(found: Comparison, index: int) -> list[tuple[Key, float]]:
    """(row, its whole ratio ÷ product of what each input does alone) of one design; 1 where inputs do not interact."""
    result = []
    for row in found.rows:
        ratio = row.cells[index + 1].ratio
        singles = [each.effects[row.key] for each in found.alone[index] if row.key in each.effects]
        if ratio is not None and ratio > 0 and (singles or row.cells[index + 1].trust != "same"):
            result.append((row.key, ratio / math.prod(singles)))
    return result


def _legend() -> str:
    marks = " ".join(f"{mark} {origin.word}" for origin, mark in sorted(MARKS.items()))
    return f"+ better, − worse, than A. {marks}. An estimate that is the same in both errs in both: its band cancels."


def render_comparison_markdown(found: Comparison, *, whole: bool = False) -> str:
    """The same as Markdown tables."""
    lines = ["# Comparison", ""]
    for letter, side in zip(_letters(), found.sides, strict=False):
        state = f"{len(side.plan.misfits)} do not hold" if side.plan.misfits else "everything planned holds"
        lines.append(f"- **{letter}** {_escape(side.name)}: {state}")
    letters = [letter for letter, _ in zip(_letters(), found.sides, strict=False)]
    pair = len(letters) == 2
    head = ["", "", *letters, *(["difference", "can it be relied on"] if pair else [])]
    lines += ["", _cells(head), _cells(["---"] * len(head))]
    for row in found.rows:
        if whole or row.differs:
            lines.append(_cells([row.key[0], *(part.strip() for part in _row(row, pair=pair))]))
    for index, side in enumerate(found.sides[1:]):
        lines += ["", f"## Inputs that differ: {_escape(side.name)}", "", _cells(["path", "A", letters[index + 1]])]
        lines.append(_cells(["---"] * 3))
        lines += [_cells([f"`{s.name}`", s.first or "nothing", s.second or "nothing"]) for s in found.inputs[index]]
        lines += ["", "## What each does alone", ""]
        lines += [f"- `{each.name}`: {_escape(_effects(each))}" for each in found.alone[index]]
    return "\n".join(lines)


def _cells(texts: Iterable[str]) -> str:
    return "| " + " | ".join(_escape(text) for text in texts) + " |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def comparison_values(found: Comparison) -> dict[str, Any]:
    """Everything as plain values."""
    return {
        "designs": [
            {
                "name": side.name,
                "holds": not side.plan.misfits,
                "misfits": [misfit.message for misfit in side.plan.misfits],
                "unplanned": [gap.subject for gap in side.plan.unplanned],
            }
            for side in found.sides
        ],
        "rows": [
            {"subject": row.key[0], "label": row.key[1], "better": row.better, "cells": [_cell(c) for c in row.cells]}
            for row in found.rows
        ],
        "inputs": [[_said(said) for said in inputs] for inputs in found.inputs],
        "alone": [[_alone_values(each) for each in alone] for alone in found.alone],
        "interaction": [
            [{"subject": key[0], "label": key[1], "ratio": ratio} for key, ratio in together(found, index)]
            for index in range(len(found.inputs))
        ],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    value: Any = cell.value
    if isinstance(value, Figure):
        value = {
            "name": value.name,
            "value": value.value if math.isfinite(value.value) else "infinite",
            "unit": value.unit,
            "origin": value.origin.word,
            "band": list(value.band) if value.band else None,
        }
    return {"value": value, "ratio": cell.ratio, "trust": cell.trust}


def _said(said: Said) -> dict[str, Any]:
    return {"path": said.name, "first": said.first, "second": said.second}


def _alone_values(each: Alone) -> dict[str, Any]:
    return {
        "name": each.name,
        "inputs": [_said(said) for said in each.inputs],
        "problem": each.problem,
        "effects": [{"subject": k[0], "label": k[1], "ratio": ratio} for k, ratio in each.effects.items()],
        "words": [{"subject": k[0], "label": k[1], "now": text} for k, text in each.words.items()],
    }
