"""The layout of a service: the declared one, else the best of the search; what else is possible, and why not.

Where no layout holds, the plan still says what would happen with the one that comes closest: within the targets but not
for the load, else within the memory but not the targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from clusterwright.lib.figures import Figure
from clusterwright.physics.layouts import Layout as EngineLayout
from clusterwright.plan.engines import engine_layout, file_layout
from clusterwright.plan.fronts import Front, Lost, Point
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.layouts import failure_domain, level_of
from clusterwright.plan.results.layouts import Layout, Level, PlacementChoice
from clusterwright.plan.searching import memories
from clusterwright.plan.searching.calibrated import calibrated
from clusterwright.plan.searching.columns import gpus, layout_at
from clusterwright.plan.searching.fronts import order
from clusterwright.plan.searching.questions import Goal, ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving import ServingRow, ServingSearch, search_serving
from clusterwright.plan.sites import Site

#: What the best layout is best in, in words.
BEST_IN: Final[dict[Goal, str]] = {
    "cost": "the lowest cost per token",
    "latency": "the lowest time per token",
    "throughput": "the most tokens per GPU",
    "domain": "the fewest GPUs that one failing node stops",
}
_LEVELS: Final[tuple[Level, ...]] = ("gpu", "node", "nodes")


@dataclass(frozen=True)
class Found:
    """A search with what it says for the plan.

    Args:
        source: name of the calibration of the engine's constants, "" without one.
        best: layout to plan where none is declared, None where nothing fits; `why`: the reason for it.
    """

    search: ServingSearch
    source: str
    best: Layout | None
    why: str


@np.errstate(all="ignore")  # a load that no layout takes gives infinities
def find_layouts(sheet: Sheet, question: ServingQuestion, runs: Callable[[Layout], bool]) -> Found:
    """Search all layouts of a service on its pool.

    Args:
        runs: whether the engine runs a layout with what the search does not know (speculation).
    """
    constants, source = calibrated(question, sheet.catalogue.calibrations())
    with np.errstate(all="ignore"):  # what no replica can do is infinite
        search = search_serving(question, constants)
        best, why = _best(search, runs)
    return Found(search, source.name if source else "", None if best is None else file_layout(best), why)


def better(one: Found, other: Found) -> bool:
    """Whether one pool's best layout is better in the goal than another's; in money where both have a price."""
    priced = all(f.search.question.pool.price_per_gpu_h is not None for f in (one, other))

    def rank(found: Found) -> tuple[int, float]:
        row, question = found.search.best, found.search.question
        if row is None:
            return (1 if found.best is not None else 2), 0.0
        return 0, {
            "cost": row.cost_per_mtok_output if priced and row.cost_per_mtok_output else row.gpu_h_per_mtok,
            "latency": row.tpot_s,
            "throughput": -row.requests_s / row.layout.gpus,
            "domain": float(row.domain_gpus),
        }[question.goal]

    return rank(one) < rank(other)


def _best(search: ServingSearch, runs: Callable[[Layout], bool]) -> tuple[EngineLayout | None, str]:
    judged = search.judged
    for row in search.ranked:
        layout = layout_at(judged.sizes, int(row))
        if runs(file_layout(layout)):
            return layout, f"{BEST_IN[search.question.goal]} of {len(search.ranked)} possible layouts"
    if search.best is not None:
        return search.best.layout, f"{BEST_IN[search.question.goal]} without speculation"
    short = np.flatnonzero(judged.reason == Reason.LOAD)
    if len(short):
        row = int(order((judged.gpu_h_per_mtok,), short)[0])
        return layout_at(judged.sizes, row), "no layout carries the load on this pool; this one comes closest"
    nearest = search.nearest
    if nearest is not None:
        return nearest.layout, "no layout meets the targets; this one comes closest"
    unknown = _smallest(search)
    return unknown, "" if unknown is None else "the fewest GPUs that fit; its speed is not known"


def _smallest(search: ServingSearch) -> EngineLayout | None:
    """The layout with the fewest GPUs that fits where the GPU has no unit for the format, so that none was judged."""
    judged, question = search.judged, search.question
    rows = np.flatnonzero(judged.reason == Reason.FORMAT)
    decoder, length = memories.served(question), memories.longest_sequence(question)
    for row in order((gpus(judged.sizes).astype(np.float64),), rows):
        layout = layout_at(judged.sizes, int(row))
        if memories.plan(question, decoder, layout, length, advise=False).fits:
            return layout
    return None


@np.errstate(all="ignore")  # a load that no layout takes gives infinities
def other_levels(found: Found, chosen: PlacementChoice | None, site: Site) -> list[tuple[Layout, bool, str]]:
    """(layout, possible, reason) of the best layout in a GPU, in a node and over nodes, but where the chosen one lies.

    A level on which nothing is possible is shown by the widest layout among those that came furthest.
    """
    search, judged = found.search, found.search.judged
    wide = gpus(judged.sizes)
    levels = np.where(wide == 1, 0, np.where(wide <= site.gpus_per_node, 1, 2))
    choices = []
    for index, level in enumerate(_LEVELS):
        if chosen is not None and level == chosen.level:
            continue
        ranked = [int(row) for row in search.ranked if levels[row] == index]
        rows = np.flatnonzero(levels == index)
        if not ranked and not len(rows):
            continue
        row = ranked[0] if ranked else int(rows[np.lexsort((-wide[rows], -judged.reason[rows]))[0]])
        layout = layout_at(judged.sizes, row)
        choices.append((file_layout(layout), bool(ranked), _said(search.why_not(layout).text, layout, search)))
    return choices


def choice_of(
    site: Site, layout: Layout, possible: bool, reason: str, memory: Figure | None, *, chosen: bool = False
) -> PlacementChoice:
    """A choice for the plan's table of placements."""
    domain = failure_domain(layout, site, "replica")
    return PlacementChoice(level_of(layout, site), layout, possible, chosen, reason, domain, memory)


@np.errstate(all="ignore")  # a load that no layout takes gives infinities
def front_of(name: str, found: Found, taken: Layout | None) -> Front:
    """All possible layouts with the planned one among them."""
    search, question = found.search, found.search.question
    rows = search.table()
    fronted = {row.layout for row in search.pareto("gpu_h_per_mtok", "tpot_s")}
    own = engine_layout(question.engine, taken) if taken is not None else None
    best = rows[0].layout if rows else None
    points = [_point(row, row.layout in fronted, best=row.layout == best, planned=row.layout == own) for row in rows]
    verdict = None if own is None or own == best else search.why_not(own)
    if verdict is not None and verdict.row is not None and not any(point.planned for point in points):
        points.append(_point(verdict.row, False, best=False, planned=True))
    return Front(
        name,
        question.goal,
        f"{question.pool.currency}/Mtok output" if question.pool.price_per_gpu_h is not None else "GPU-h/Mtok output",
        tuple(sorted(points, key=lambda point: (point.cost, point.tpot_s))),
        len(search.judged.reason),
        len(search.ranked),
        tuple(
            Lost(lost.name, str(file_layout(lost.layout)), _said(lost.text, lost.layout, search), lost.row is not None)
            for lost in search.losers()
        ),
        "" if verdict is None or own is None else _said(verdict.text, own, search),
        question.tpot_s,
        found.source,
        question.survive_nodes,
    )


def _said(text: str, layout: EngineLayout, search: ServingSearch) -> str:
    """What the search says, with attention groups as the file counts them."""
    for each in (layout, *([search.best.layout] if search.best else [])):
        if each.attention_dp > 1:
            text = text.replace(str(each), str(file_layout(each)))
    return text


def _point(row: ServingRow, on_front: bool, *, best: bool, planned: bool) -> Point:
    cost = row.gpu_h_per_mtok if row.cost_per_mtok_output is None else row.cost_per_mtok_output
    return Point(
        str(file_layout(row.layout)), row.replicas, row.gpus, cost, row.tpot_s, row.ttft_s, on_front, best, planned
    )
