"""Every layout of training judged; those that are possible with the least recomputation that fits, and their time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from clusterwright.lib.scales import DAY_S, GIB
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.calibration import CALIBRATED, SpeedConstants
from clusterwright.physics.training.memory import host_bytes, training_memory_arrays
from clusterwright.physics.training.recipes import MEMORY, MemoryConstants, Recipe
from clusterwright.physics.training.runs import Checkpointing, Run, plan_run
from clusterwright.physics.training.shares import trained_parameters
from clusterwright.physics.training.speed import step_time_arrays
from clusterwright.physics.training.work import work_of
from clusterwright.plan.searching.columns import Bools, Floats, Ints, gpus
from clusterwright.plan.searching.machines import reported_gib, system
from clusterwright.plan.searching.questions import TrainingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.shapes import shape_of
from clusterwright.plan.searching.training_layouts import structural, training_layouts

#: What selective recomputation drops where the recipe names nothing of its own: what is cheap to compute again.
CHEAP: Final = ("core_attn", "layernorm", "moe_act", "mla_up_proj")
#: Share of a host's memory that offloaded states may take: our default; the rest is for the system, data loaders and
#: buffers that are pinned.
HOST_SHARE: Final = 0.8


@dataclass(frozen=True)
class Judged:
    """Layouts as columns, (n,) each.

    Args:
        sizes: by name of a field of `Layout`, and `micro_batch`.
        reason: see `Reason`.
        recompute: position in `recipes` of the least recomputation that fits, else of the last that was tried.
        memory_gib: of the fullest GPU under it, nan where a rule speaks against the layout before.
        step_s: nan where it does not fit.
    """

    sizes: Mapping[str, Ints]
    reason: Ints
    recompute: Ints
    memory_gib: Floats
    step_s: Floats
    recipes: tuple[Recipe, ...]

    @property
    def possible(self) -> Bools:
        """Rows that nothing speaks against."""
        return np.asarray(self.reason == Reason.NONE)

    def recipe_at(self, row: int) -> Recipe:
        """The recipe of one row."""
        return replace(self.recipes[int(self.recompute[row])], micro_batch=int(self.sizes["micro_batch"][row]))


@dataclass(frozen=True)
class Estimators:
    """Constants of memory and of step time."""

    speed: SpeedConstants
    memory: MemoryConstants = MEMORY


def estimators(question: TrainingQuestion, speed: SpeedConstants | None = None) -> Estimators:
    """Constants as calibrated for the pool's GPU where none are given."""
    recipe = question.recipe
    known = speed or CALIBRATED.constants(
        system(question.pool).name,
        recipe.precision,
        question.release,
        moe=question.decoder.is_moe,
        framework=recipe.framework,
        graphs=recipe.graphs,
    )
    return Estimators(known)


def recipes(question: TrainingQuestion) -> tuple[Recipe, ...]:
    """Recipes by how much they compute again, least first."""
    recipe = question.recipe
    if "recompute" not in question.free:
        return (recipe,)
    modules = recipe.modules if recipe.recompute == "selective" else CHEAP
    return (
        replace(recipe, recompute="none"),
        replace(recipe, recompute="selective", modules=modules),
        replace(recipe, recompute="full", recompute_layers=None),
    )


def judge(
    question: TrainingQuestion, held: Estimators, job_gpus: int, sizes: Mapping[str, Ints] | None = None
) -> Judged:
    """Every layout of the space on so many GPUs, or these."""
    shape, how = shape_of(question.decoder), recipes(question)
    columns = training_layouts(question, shape, job_gpus) if sizes is None else sizes
    reason = structural(question, shape, columns)
    n = len(reason)
    recompute, memory, seconds = np.zeros(n, dtype=np.int64), np.full(n, np.nan), np.full(n, np.nan)
    gib = reported_gib(question.pool.gpu) * question.memory_share
    left = np.flatnonzero(reason == Reason.NONE)
    for position, recipe in enumerate(how):
        if not len(left):
            break
        rows = {name: column[left] for name, column in columns.items()}
        micro = rows.pop("micro_batch")
        memory[left] = training_memory_arrays(question.decoder, rows, recipe, held.memory, micro_batch=micro)
        recompute[left] = position
        fits = memory[left] <= gib
        fitting = left[fits]
        seconds[fitting] = step_time_arrays(
            question.decoder,
            {name: column[fits] for name, column in rows.items()},
            recipe,
            system(question.pool),
            held.speed,
            micro_batch=micro[fits],
        )
        left = left[~fits]
    reason[left] = int(Reason.MEMORY)
    if host_gib(question, job_gpus) > host_room_gib(question):
        reason[reason == Reason.NONE] = int(Reason.HOST)
    if question.tokens is not None and question.deadline_s is not None:
        late = (reason == Reason.NONE) & (days_of(question, seconds, gpus(columns)) * DAY_S > question.deadline_s)
        reason[late] = int(Reason.DEADLINE)
    return Judged(columns, reason, recompute, memory, seconds, how)


def host_gib(question: TrainingQuestion, job_gpus: int) -> float:
    """GiB that the host of each of so many GPUs holds of what is offloaded."""
    return host_bytes(question.decoder, Layout(dp=job_gpus), question.recipe) / GIB


def host_room_gib(question: TrainingQuestion) -> float:
    """GiB that the host of a GPU has for it, without end where nobody knows."""
    return math.inf if question.pool.host_gib is None else question.pool.host_gib * HOST_SHARE


def tokens_per_step(question: TrainingQuestion) -> float:
    """Tokens of one global batch."""
    return float(question.recipe.global_batch * question.recipe.sequence)


def flop_per_token(question: TrainingQuestion) -> float:
    """Model FLOP of one token, forward and backward."""
    return work_of(question.decoder, question.recipe).total


def run_of(question: TrainingQuestion, step_s: float, job_gpus: int) -> Run | None:
    """The run to the target (of no length without one) with what it loses; None where no losses are stated."""
    losses = question.losses
    if losses is None:
        return None
    return plan_run(
        question.tokens or 0.0,
        tokens_per_step(question) / step_s,
        float(trained_parameters(question.decoder, question.recipe.adapter_rank)),
        job_gpus,
        job_gpus / question.pool.gpus_per_node,
        losses.per_1000_node_days,
        losses.restart_s,
        Checkpointing(losses.write_bytes_s, losses.asynchronous),
    )


def days_of(question: TrainingQuestion, step_s: Floats, job_gpus: Ints) -> Floats:
    """(n,) days to the target, with the goodput of jobs of that size; nan without a step time."""
    ideal = (question.tokens or 0.0) / tokens_per_step(question) * step_s / DAY_S
    if question.losses is None:
        return ideal
    goodput = np.ones(len(step_s))
    for wide in sorted(set(job_gpus.tolist())):
        run = run_of(question, 1.0, wide)
        assert run is not None
        goodput[job_gpus == wide] = run.goodput
    return np.where(goodput > 0, ideal / np.maximum(goodput, 1e-300), np.inf)
