"""The layout of a job: declared, else the fastest of the search that fits also where memory is underestimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from clusterwright.model.hardware import Gpu
from clusterwright.model.workloads import Train
from clusterwright.physics.training.calibration import CALIBRATED
from clusterwright.physics.training.memory import BAND
from clusterwright.physics.training.recipes import Recipe
from clusterwright.plan.fronts import Lost, TrainingFront, TrainingPoint
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel
from clusterwright.plan.recipes import training_layout
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.searching.columns import layout_at
from clusterwright.plan.searching.machines import reported_gib
from clusterwright.plan.searching.questions import Goal, TrainingQuestion
from clusterwright.plan.searching.reasons import WORDS, Reason
from clusterwright.plan.searching.training import TrainingRow, TrainingSearch, search_training
from clusterwright.plan.serving_questions import searched_pool
from clusterwright.plan.sites import Site

#: Possible layouts that are kept, fastest first: a large job has thousands.
_MOST: Final = 60


@dataclass(frozen=True)
class Found:
    """A search with what it says for the plan.

    Args:
        best: layout to plan where none is declared; why: the reason for it.
    """

    search: TrainingSearch
    best: Layout
    why: str


@np.errstate(all="ignore")  # a load that no layout takes gives infinities
def find_layouts(
    sheet: Sheet, train: Train, recipe: Recipe, model: PlannedModel, site: Site, gpu: Gpu, goal: Goal
) -> Found | None:
    """Search all layouts of a job, batch and recomputation as the file says; None without rates of the GPU."""
    question = TrainingQuestion(
        model.decoder, searched_pool(sheet, site, gpu), recipe, gpus=train.gpus, free=(), goal=goal
    )
    try:
        search = search_training(question)
    except ValueError:
        return None
    return Found(search, *_best(search, train))


def _best(search: TrainingSearch, train: Train) -> tuple[Layout, str]:
    rows, judged = search.ranked, search.judged
    if len(rows):
        have = reported_gib(search.question.pool.gpu)
        safe = rows[judged.memory_gib[rows] * BAND[1] <= have]
        chosen = int(safe[0] if len(safe) else rows[0])
        words = "the fastest" if len(safe) == len(rows) else "the fastest that surely fits" if len(safe) else "tight"
        return _said(search, chosen), f"{words} of {len(rows)} possible layouts"
    large = np.flatnonzero(judged.reason == Reason.MEMORY)
    if len(large):
        least = int(large[int(np.nanargmin(judged.memory_gib[large]))])
        return _said(search, least), "no layout fits; this one needs the least memory"
    reasons = [reason for reason in search.reasons() if reason != Reason.NONE]
    why = WORDS[max(reasons)] if reasons else "no layout was tried"
    return Layout(dp=train.gpus), f"data parallel, since no layout is possible: {why}"


def _said(search: TrainingSearch, row: int) -> Layout:
    found = layout_at(search.judged.sizes, row)
    return Layout(tp=found.tp, pp=found.pp, dp=found.dp, cp=found.cp, ep=found.ep, vp=found.vp)


@np.errstate(all="ignore")  # a load that no layout takes gives infinities
def front_of(name: str, found: Found, taken: Layout) -> TrainingFront:
    """The fastest layouts, those that no other beats in both time and memory, and the planned one among them."""
    search = found.search
    own = training_layout(taken)
    rows = list(search.table(_MOST))
    fronted = {row.layout: row for row in search.pareto("step_s", "memory_gib")}
    rows += [row for layout, row in fronted.items() if all(layout != kept.layout for kept in rows)]
    best = training_layout(found.best)
    verdict = None if own == best else search.why_not(own)
    if verdict is not None and verdict.row is not None and all(row.layout != own for row in rows):
        rows.append(verdict.row)
    points = (_point(row, row.layout in fronted, best=row.layout == best, planned=row.layout == own) for row in rows)
    return TrainingFront(
        name,
        search.question.goal,
        tuple(sorted(points, key=lambda point: point.step_s)),
        len(search.judged.reason),
        len(search.ranked),
        tuple(Lost(lost.name, str(lost.layout), lost.text, lost.row is not None) for lost in search.losers()),
        "" if verdict is None else verdict.text,
        CALIBRATED.fitted_on,
    )


def _point(row: TrainingRow, on_front: bool, *, best: bool, planned: bool) -> TrainingPoint:
    return TrainingPoint(str(row.layout), row.step_s, row.memory_gib, on_front, best, planned)
