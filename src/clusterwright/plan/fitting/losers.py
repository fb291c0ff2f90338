"""Layouts that people try first and why they are not the best, read off the search that was made."""

from __future__ import annotations

import numpy as np

from clusterwright.physics.layouts import Layout
from clusterwright.plan.searching.columns import SIZES
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving import ServingSearch, WhyNot
from clusterwright.plan.searching.serving_columns import Judged
from clusterwright.plan.searching.serving_reasons import explain, popular


def losers(search: ServingSearch) -> tuple[WhyNot, ...]:
    """What `ServingSearch.losers` says; layouts that were searched are not judged again."""
    best = search.best
    return tuple(
        _why_not(search, name, layout)
        for name, layout in popular(search.question)
        if best is None or layout != best.layout
    )


def _why_not(search: ServingSearch, name: str, layout: Layout) -> WhyNot:
    position = _position(search, layout)
    if position is None:
        return search.why_not(layout, name)
    reason = Reason(int(search.judged.reason[position]))
    row = search.row(position) if reason == Reason.NONE else None
    text = explain(search.question, layout, _alone(search.judged, position), row, search.best)
    return WhyNot(name, layout, reason, text, row)


def _position(search: ServingSearch, layout: Layout) -> int | None:
    sizes = search.judged.sizes
    same = np.ones(len(search.judged.reason), dtype=bool)
    for name in SIZES:
        same &= sizes[name] == getattr(layout, name)
    found = np.flatnonzero(same)
    return int(found[0]) if len(found) else None


def _alone(judged: Judged, position: int) -> Judged:
    """One row as columns of one."""
    at = slice(position, position + 1)
    return Judged(
        {name: values[at] for name, values in judged.sizes.items()},
        judged.reason[at],
        {0: judged.memories[position]} if position in judged.memories else {},
        {name: values[at] for name, values in judged.figures.items()},
    )
