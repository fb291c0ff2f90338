"""Designs side by side: what differs, whether the difference can be relied on, and which input makes how much of it.

Two estimates that stand in both plans with the same value err together, and their band cancels. What is left are the
estimates that differ: if the two figures, each at the ends of the bands of those, still overlap, the difference is
inside the bands. One input at a time: the first design is planned again with that input alone as in the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.figures import Figure
from clusterwright.model.differences import Said, adopt, find_differences
from clusterwright.model.documents import Document
from clusterwright.plan.headlines import Better, Headline, Key, headlines_of
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.plans import Plan
from clusterwright.plan.sensitivities import evaluate_at

#: same; beyond: the bands do not overlap; inside: they do; formula: no banded estimate differs, so that the difference
#: follows from the inputs by the formulas; words: no number; missing: not in both.
Trust = Literal["same", "beyond", "inside", "formula", "words", "missing"]
#: Changes that are planned one at a time for a pair of designs; more are taken together by section.
MOST_ALONE: Final = 12
#: Relative difference from which two figures differ.
_DIFFERS: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Side:
    """One design.

    Args:
        name: file, or the changes that were made.
    """

    name: str
    document: Document
    plan: Plan


@dataclass(frozen=True, slots=True)
class Cell:
    """One design's value in a row, beside the first design's.

    Args:
        value: None where this plan has none.
        ratio: to the first design's; None without two numbers.
    """

    value: Figure | str | None
    ratio: float | None
    trust: Trust


@dataclass(frozen=True, slots=True)
class Row:
    """One row, a cell per design; that of the first is `same`."""

    key: Key
    better: Better
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        """Whether any design differs from the first."""
        return any(cell.trust != "same" for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Alone:
    """The first design with one input (or the inputs of one section) of another.

    Args:
        inputs: that were taken over.
        effects: row → the figure so ÷ that of the first design, of rows that move.
        words: row → words so, of rows whose words change.
        problem: why that mixture cannot be planned, "" where it can.
    """

    name: str
    inputs: tuple[Said, ...]
    effects: Mapping[Key, float]
    words: Mapping[Key, str]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Designs side by side.

    Args:
        inputs: of each design but the first: where its file differs from the first's.
        alone: of each design but the first: what each of those does alone, largest effect first.
    """

    sides: tuple[Side, ...]
    rows: tuple[Row, ...]
    inputs: tuple[tuple[Said, ...], ...]
    alone: tuple[tuple[Alone, ...], ...]


def compare_designs(
    sides: Sequence[Side], catalogue: Catalogue, progress: Callable[[int, int], None] = lambda done, total: None
) -> Comparison:
    """Compare every design with the first.

    Args:
        progress: called with plans made and plans to make.
    """
    first, others = sides[0], sides[1:]
    tables = [headlines_of(side.document, catalogue, side.plan) for side in sides]
    inputs = tuple(find_differences(first.document, other.document) for other in others)
    groups = [_groups(said) for said in inputs]
    done, total = 0, sum(len(g) for g in groups)
    alone = []
    for other, wanted in zip(others, groups, strict=True):
        found = []
        for name, said in wanted:
            progress(done, total)
            found.append(_alone(first, other, catalogue, tables[0], name, said))
            done += 1
        alone.append(
            tuple(sorted(found, key=lambda a: -max((abs(math.log(r)) for r in a.effects.values()), default=0)))
        )
    return Comparison(tuple(sides), _rows(tables), inputs, tuple(alone))


def _rows(tables: Sequence[Sequence[Headline]]) -> tuple[Row, ...]:
    by_key = [{row.key: row for row in table} for table in tables]
    order = sorted(dict.fromkeys(key for table in by_key for key in table), key=_subjects(by_key))
    rows = []
    for key in order:
        found = [table.get(key) for table in by_key]
        better: Better = next((row.better for row in found if row is not None), "")
        cells = tuple(_cell(found[0], row) for row in found)
        rows.append(Row(key, better, cells))
    return tuple(rows)


def _subjects(tables: Sequence[Mapping[Key, Headline]]) -> Callable[[Key], int]:
    """Rows of one subject stand together, the cluster's last."""
    subjects = list(dict.fromkeys(key[0] for table in tables for key in table if key[0] != "cluster"))
    return lambda key: subjects.index(key[0]) if key[0] in subjects else len(subjects)


def _cell(first: Headline | None, row: Headline | None) -> Cell:
    if row is None or first is None:
        return Cell(None if row is None else row.value, None, "same" if row is first else "missing")
    one, two = first.value, row.value
    if isinstance(one, str) or isinstance(two, str):
        return Cell(two, None, "same" if one == two else "words")
    ratio = ratio_of(one.value, two.value)
    return Cell(two, ratio, trust_of(one, two))


def ratio_of(one: float, two: float) -> float | None:
    """two ÷ one; None where that says nothing."""
    if one == two:
        return 1.0
    if not one or not math.isfinite(one) or not math.isfinite(two):
        return None
    return two / one


def trust_of(one: Figure, two: Figure) -> Trust:
    """Whether the difference of two figures can be relied on."""
    if math.isclose(one.value, two.value, rel_tol=_DIFFERS) or one.value == two.value:
        return "same"
    in_one, in_two = _banded(one), _banded(two)
    same = {name for name, figure in in_one.items() if name in in_two and figure.value == in_two[name].value}
    own = [figure for name, figure in in_one.items() if name not in same]
    others = [figure for name, figure in in_two.items() if name not in same]
    if not own and not others:
        return "formula"
    low, high = _ends(one, own)
    other_low, other_high = _ends(two, others)
    return "inside" if low <= other_high and other_low <= high else "beyond"


def _banded(figure: Figure) -> dict[str, Figure]:
    """Estimates with a validated band in a tree, nothing below one of them."""
    if figure.band is not None:
        return {figure.name: figure}
    return {name: found for below in figure.inputs for name, found in _banded(below).items()}


def _ends(figure: Figure, estimates: Sequence[Figure]) -> tuple[float, float]:
    """Lowest and highest value of a figure with each estimate in turn at the ends of its band."""
    values = [figure.value]
    for estimate in estimates:
        for factor in estimate.band or ():
            try:
                values.append(evaluate_at(figure, {estimate.name: estimate.value * factor}))
            except (ArithmeticError, ValueError):
                continue
    return min(values), max(values)


def _groups(inputs: Sequence[Said]) -> list[tuple[str, tuple[Said, ...]]]:
    """Inputs one by one; where they are many, by the two keys, or the one key, that they have in common at the top."""
    for depth in (None, 2, 1):
        groups: dict[tuple[str, ...], list[Said]] = {}
        for said in inputs:
            groups.setdefault(said.path[:depth], []).append(said)
        if len(groups) <= MOST_ALONE or depth == 1:
            break
    return [(".".join(key), tuple(said)) for key, said in groups.items()]


def _alone(
    first: Side, other: Side, catalogue: Catalogue, table: Sequence[Headline], name: str, said: tuple[Said, ...]
) -> Alone:
    try:
        document = adopt(first.document, other.document, [each.path for each in said])
    except InvalidInput as error:
        return Alone(name, said, {}, {}, str(error.problems[0].message))
    made = {row.key: row.value for row in headlines_of(document, catalogue, plan_architecture(document, catalogue))}
    effects: dict[Key, float] = {}
    words: dict[Key, str] = {}
    for row in table:
        now = made.get(row.key)
        if isinstance(row.value, Figure) and isinstance(now, Figure):
            ratio = ratio_of(row.value.value, now.value)
            if ratio is not None and ratio > 0 and not math.isclose(ratio, 1, rel_tol=_DIFFERS):
                effects[row.key] = ratio
        elif isinstance(now, str) and now != row.value:
            words[row.key] = now
        elif now is None:
            words[row.key] = "not planned"
    return Alone(name, said, effects, words)
