"""The search for training: the best layout, the ranked table, fronts, why not, what popular layouts lost by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.calibration import SpeedConstants
from clusterwright.physics.training.memory import TrainingMemory, training_memory
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.runs import Run
from clusterwright.physics.training.speed import StepTime, step_time
from clusterwright.plan.searching.columns import Floats, Ints, gpus, layout_at, of_layouts, widths
from clusterwright.plan.searching.fronts import front, order
from clusterwright.plan.searching.job_sizes import job_sizes
from clusterwright.plan.searching.machines import reported_gib, system
from clusterwright.plan.searching.questions import TrainingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.training_columns import (
    Estimators,
    Judged,
    days_of,
    estimators,
    judge,
    run_of,
    tokens_per_step,
)
from clusterwright.plan.searching.training_reasons import crossing, explain, popular

#: Micro-batches that `why_not` tries where the search may choose.
_MICRO: Final = 8
#: Columns that fronts may be drawn over → whether more is better.
AXES: Final[dict[str, bool]] = {"step_s": False, "memory_gib": False, "gpus": False, "tokens_s": True}


@dataclass(frozen=True)
class TrainingRow:
    """One possible layout with the least recomputation that fits.

    Args:
        memory, step: of the scalar estimators, with their terms. fits_surely: also at the upper end of the memory
            estimate's band.
        tokens_s: of the job; tokens_s_per_gpu; mfu of the dense peak in the recipe's precision.
        run: what checkpoints and failures take; None where no losses are stated.
        days: to the target with that; None without a target. goodput: 1 where no losses are stated.
        gpu_h_per_mtok: GPU-hours per million tokens, goodput counted; cost_per_mtok, cost: money, None without a price
            (and without a target).
        domain_gpus: that stop when one GPU fails: the job.
    """

    layout: Layout
    recipe: Recipe
    memory: TrainingMemory
    step: StepTime
    memory_gib: float
    fits_surely: bool
    step_s: float
    tokens_s: float
    tokens_s_per_gpu: float
    mfu: float
    run: Run | None
    days: float | None
    goodput: float
    gpus: int
    nodes: int
    gpu_h_per_mtok: float
    cost_per_mtok: float | None
    cost: float | None
    domain_gpus: int


@dataclass(frozen=True)
class WhyNot:
    """Why a layout is not the best.

    Args:
        reason: NONE where it is possible, and then `text` says by how much it loses, if it does.
        row: its figures where it is possible, with the best micro-batch.
    """

    name: str
    layout: Layout
    reason: Reason
    text: str
    row: TrainingRow | None


@dataclass(frozen=True)
class TrainingSearch:
    """Answers of one search.

    Args:
        gpus: of the job, as asked or as found.
        judged: every layout that was tried, as columns.
    """

    question: TrainingQuestion
    gpus: int
    judged: Judged
    held: Estimators

    @cached_property
    def ranked(self) -> Ints:
        """Positions of possible layouts, best first: by step time, then by memory left."""
        return order((self.judged.step_s, self.judged.memory_gib), np.flatnonzero(self.judged.possible))

    @property
    def best(self) -> TrainingRow | None:
        """The best layout, None where none is possible."""
        return self.row(int(self.ranked[0])) if len(self.ranked) else None

    def table(self, count: int | None = None) -> tuple[TrainingRow, ...]:
        """Possible layouts, best first."""
        return tuple(self.row(int(i)) for i in self.ranked[:count])

    def pareto(self, first: str, second: str) -> tuple[TrainingRow, ...]:
        """Layouts that no other beats in both figures (names from AXES), the best of the first one first."""
        found = front(self._axis(first), self._axis(second), np.flatnonzero(self.judged.possible))
        return tuple(self.row(int(i)) for i in found)

    def why_not(self, layout: Layout, name: str = "") -> WhyNot:
        """Why a layout is not the best, with the micro-batch that suits it; any layout may be asked for."""
        recipe = self.question.recipe
        micro = widths(_MICRO) if "micro_batch" in self.question.free else [recipe.micro_batch]
        sizes = of_layouts([layout] * len(micro)) | {"micro_batch": np.array(micro)}
        judged = judge(self.question, self.held, layout.gpus, sizes)
        if judged.possible.any():
            row = self._row(judged, int(np.nanargmin(np.where(judged.possible, judged.step_s, np.nan))))
            return WhyNot(
                name or str(layout), layout, Reason.NONE, explain(self.question, judged, 0, row, self.best), row
            )
        nearest = int(np.argmax(judged.reason))
        text, reason = explain(self.question, judged, nearest, None, self.best), Reason(int(judged.reason[nearest]))
        if reason == Reason.DOMAIN:
            text += crossing(self.question, self.held.speed, layout, self.best)
        return WhyNot(name or str(layout), layout, reason, text, None)

    def losers(self) -> tuple[WhyNot, ...]:
        """Popular layouts that are not the best, with the reason in numbers."""
        best = self.best
        asked = popular(self.question, self.gpus)
        return tuple(self.why_not(layout, name) for name, layout in asked if best is None or layout != best.layout)

    def rank(self, layout: Layout, micro_batch: int) -> int | None:
        """Position among possible layouts, 0 for the best; None where it is not one of them."""
        sizes = self.judged.sizes
        same = sizes["micro_batch"] == micro_batch
        for name in ("tp", "pp", "dp", "ep", "cp", "vp", "etp"):
            same = same & (sizes[name] == getattr(layout, name))
        found = np.flatnonzero(same[self.ranked])
        return int(found[0]) if len(found) else None

    def reasons(self) -> dict[Reason, int]:
        """How many layouts each reason excludes."""
        counts = np.bincount(self.judged.reason)  # np.unique would import masked arrays
        return {Reason(code): int(count) for code, count in enumerate(counts) if count}

    def row(self, position: int) -> TrainingRow:
        """Figures of a possible layout by its position in the columns."""
        return self._row(self.judged, position)

    def _axis(self, name: str) -> Floats:
        if name not in AXES:
            raise ValueError(f"no column {name}; of {', '.join(AXES)}")
        judged = self.judged
        if name == "gpus":
            return gpus(judged.sizes).astype(np.float64)
        if name == "tokens_s":
            return -tokens_per_step(self.question) / judged.step_s
        values: Floats = getattr(judged, name)
        return values

    def _row(self, judged: Judged, row: int) -> TrainingRow:
        question = self.question
        layout, recipe = layout_at(judged.sizes, row), judged.recipe_at(row)
        step_s, wide = float(judged.step_s[row]), layout.gpus
        run = run_of(question, step_s, wide)
        goodput = 1.0 if run is None else run.goodput
        tokens_s = tokens_per_step(question) / step_s
        days = None
        if question.tokens is not None:
            days = float(days_of(question, np.array([step_s]), np.array([wide]))[0])
        hours, price = wide / (tokens_s * goodput * 3600) * 1e6, question.pool.price_per_gpu_h
        memory = training_memory(question.decoder, layout, recipe, self.held.memory)
        step = step_time(question.decoder, layout, recipe, system(question.pool), self.held.speed)
        return TrainingRow(
            layout=layout,
            recipe=recipe,
            memory=memory,
            step=step,
            memory_gib=float(judged.memory_gib[row]),
            fits_surely=memory.peak.total_gib * memory.band[1] <= reported_gib(question.pool.gpu),
            step_s=step_s,
            tokens_s=tokens_s,
            tokens_s_per_gpu=tokens_s / wide,
            mfu=step.mfu,
            run=run,
            days=days,
            goodput=goodput,
            gpus=wide,
            nodes=-(-wide // question.pool.gpus_per_node),
            gpu_h_per_mtok=hours,
            cost_per_mtok=None if price is None else price * hours,
            cost=None if price is None or question.tokens is None else price * hours * question.tokens / 1e6,
            domain_gpus=wide,
        )


def search_training(question: TrainingQuestion, speed: SpeedConstants | None = None) -> TrainingSearch:
    """All layouts of a job on a pool, judged and ranked.

    Without a number of GPUs it takes the fewest on which a layout fits, and ends by the deadline where there is one,
    for latency the most; where none does, the search is that of the last number tried, with no possible layout.

    Args:
        speed: constants of step time; as calibrated for the GPU where None.

    Raises:
        ValueError: if the catalogue has no rates of the GPU.
    """
    held = estimators(question, speed)
    tried = [question.gpus] if question.gpus is not None else job_sizes(question)
    if question.goal == "latency":
        tried = tried[::-1]
    for wide in tried:
        judged = judge(question, held, wide)
        if judged.possible.any() or wide == tried[-1]:
            return TrainingSearch(question, wide, judged, held)
    raise AssertionError("job_sizes gives at least one size")
