"""What to change when no layout of training holds: every change is searched anew, the least that is given up first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from clusterwright.lib.scales import DAY_S
from clusterwright.physics.failures import RSC1_PER_1000_NODE_DAYS
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.advice import changes
from clusterwright.physics.training.memory import training_memory
from clusterwright.physics.training.recipes import Recipe
from clusterwright.plan.fitting.interruptions import covered_by, needed_spares
from clusterwright.plan.fitting.training_fits import TrainingFit
from clusterwright.plan.fitting.training_searches import dividing_batches, recipe_of, roomy
from clusterwright.plan.fitting.wants import TrainingWants, Wants
from clusterwright.plan.searching.columns import layout_at
from clusterwright.plan.searching.machines import reported_gib, system
from clusterwright.plan.searching.questions import TrainingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.training import TrainingRow, TrainingSearch, search_training

#: What advice calls a change of the recipe → (with its option or setting, what it gives up, 0 for nothing). Others are
#: left to the search, which tries every layout, micro-batch and recomputation.
_CHANGES: Final = {
    "chunk the logits": ("logits in chunks (a chunked cross-entropy)", 0),
    "16-bit accumulated gradients": ("16-bit gradients (Megatron --main-grads-dtype bf16)", 1),
    "16-bit moments": ("16-bit moments (Megatron --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16)", 1),
    "optimizer on the host": ("the optimizer on the host (--offload optimizer)", 1),
    "optimizer and parameters on the host": ("parameters and optimizer on the host (--offload parameters)", 1),
    "divide weights and gradients too": ("weights divided, too (--framework torchtitan)", 0),
}
_SHORTEST: Final = 1024


#: (words, with fields of what then holds; questions of which the first that has an answer counts; what it gives up).
Tried = tuple[str, Iterable[TrainingQuestion], int]


@dataclass(frozen=True)
class TrainingRemedy:
    """One change with what it brings.

    Args:
        what: in words, with its option. row: the layout that then holds.
        cost: 0 for the same training, higher for what is given up.
        days: to the target where one is stated.
    """

    what: str
    row: TrainingRow
    cost: int
    days: float | None


def training_remedies(fit: TrainingFit, wants: Wants) -> tuple[TrainingRemedy, ...]:
    """Changes after which the machine holds, the least that is given up first, then the fewest GPU-hours."""
    if fit.best is not None or fit.search is None:
        return ()
    own = wants.training or TrainingWants()
    found = list(_spared(fit.search, wants, own))
    for what, questions, cost in _tried(fit, fit.search, own):
        made = (_made(what, question, cost, wants, own) for question in questions)
        found += [remedy for remedy in made if remedy is not None][:1]
    return tuple(sorted(found, key=lambda r: (r.cost, r.row.gpu_h_per_mtok)))


def _tried(fit: TrainingFit, search: TrainingSearch, own: TrainingWants) -> Iterator[Tried]:
    if fit.verdict == "too big":
        yield from _recipes(search)
        yield from _methods(search, own)
    else:
        yield from _faster(search)
    yield from _larger(fit, search.question)


def _made(what: str, question: TrainingQuestion, cost: int, wants: Wants, own: TrainingWants) -> TrainingRemedy | None:
    """What a question brings, None where nothing holds in time and within a budget, with the nodes that are missing."""
    row = roomy(search_training(question))
    if row is None:
        return None
    days = None if row.days is None else row.days / _covered(row, wants.serving.survive_nodes, wants, own)
    if days is not None and question.deadline_s is not None and days * DAY_S > question.deadline_s:
        return None
    if _unpaid(row, question, wants, own):
        return None
    return TrainingRemedy(what.format(row=row, recipe=row.recipe, days=days or 0.0), row, cost, days)


def _unpaid(row: TrainingRow, question: TrainingQuestion, wants: Wants, own: TrainingWants) -> bool:
    """Whether money given once does not pay for the tokens that were asked for."""
    budget, price = wants.budget, question.pool.price_per_gpu_h
    if budget is None or budget.monthly or price is None or own.tokens is None:
        return False
    nodes = row.nodes + wants.serving.survive_nodes
    hours = row.gpu_h_per_mtok / _covered(row, wants.serving.survive_nodes, wants, own) * nodes / row.nodes
    return hours * price * own.tokens / 1e6 > budget.value


def _covered(row: TrainingRow, kept: int, wants: Wants, own: TrainingWants) -> float:
    """Share of the time in which no node is missing; all of it where nobody spoke of spare nodes."""
    if wants.origin("survive") == "assumed":
        return 1.0
    return covered_by(row.nodes, kept, _failures(own), own.repair_s)


def _failures(own: TrainingWants) -> float:
    return RSC1_PER_1000_NODE_DAYS if own.failures is None else own.failures


def _spared(search: TrainingSearch, wants: Wants, own: TrainingWants) -> Iterator[TrainingRemedy]:
    """More spare nodes, where only waiting for missing ones makes a run late."""
    row, deadline = roomy(search), search.question.deadline_s
    if row is None or row.days is None or deadline is None or _unpaid(row, search.question, wants, own):
        return
    kept = needed_spares(row.nodes, _failures(own), own.repair_s, wants.spares_target)
    if kept is None:
        return
    days = row.days / _covered(row, kept, wants, own)
    if days * DAY_S <= deadline:
        yield TrainingRemedy(f"{kept} spare node{'s' * (kept != 1)} (--survive {kept})", row, 2, days)


def _recipes(search: TrainingSearch) -> Iterator[Tried]:
    """Other recipes with which the layout that lacks least memory fits; the best layout for each is searched."""
    question = search.question
    closest = _closest(search)
    if closest is None:
        return
    layout, recipe = closest
    gib = reported_gib(question.pool.gpu) * question.memory_share
    for change in changes(question.decoder, layout, recipe, gib, system(question.pool), speed=search.held.speed):
        words = _CHANGES.get(change.text)
        if words is None or not change.fits:
            continue
        how = change.recipe
        framework = "torchtitan" if how.sharding == "fsdp" and recipe.sharding != "fsdp" else how.framework
        how = replace(how, framework=framework, recompute="none", modules=question.recipe.modules)
        yield words[0], (replace(question, gpus=search.gpus, recipe=replace(how, micro_batch=1)),), words[1]


def _closest(search: TrainingSearch) -> tuple[Layout, Recipe] | None:
    """The layout that lacks least memory, with its recipe."""
    rows = np.flatnonzero(search.judged.reason == Reason.MEMORY)
    if not len(rows):
        return None
    row = int(rows[np.argmin(search.judged.memory_gib[rows])])
    return layout_at(search.judged.sizes, row), search.judged.recipe_at(row)


def _states_gib(question: TrainingQuestion, layout: Layout, recipe: Recipe) -> float:
    """What weights, gradients and optimizer take, however short sequences are."""
    terms = dict(training_memory(question.decoder, layout, recipe).peak.terms)
    return sum(terms[name] for name in ("weights", "gradients", "optimizer", "gathered layers"))


def _methods(search: TrainingSearch, own: TrainingWants) -> Iterator[Tried]:
    """Other ways to train on the same GPUs, by what they give up."""
    question, closest = search.question, _closest(search)
    gib = reported_gib(question.pool.gpu) * question.memory_share
    hopeless = closest is not None and _states_gib(question, *closest) > gib

    def asked(**changed: object) -> tuple[TrainingQuestion]:
        recipe = recipe_of(replace(own, framework="", **changed))  # type: ignore[arg-type]
        return (replace(question, recipe=replace(recipe, global_batch=question.recipe.global_batch)),)

    if own.offload != "parameters" and own.trainer == "megatron":
        yield "all states on the host (--framework torchtitan --offload parameters)", asked(offload="parameters"), 1
    if not hopeless:
        yield "sequences of {recipe.sequence:,} (--sequence)", _shorter(question), 4
    if own.method == "full":
        yield "adapters in place of all weights (--method lora)", asked(method="lora", offload="none"), 5
    if own.method != "qlora":
        yield "adapters over 4-bit weights (--method qlora)", asked(method="qlora", offload="none", precision="bf16"), 6


def _shorter(question: TrainingQuestion) -> Iterator[TrainingQuestion]:
    """Half the length again and again, with as many tokens a step."""
    recipe = question.recipe
    while recipe.sequence // 2 >= _SHORTEST:
        recipe = replace(recipe, sequence=recipe.sequence // 2, global_batch=recipe.global_batch * 2)
        yield replace(question, recipe=recipe)


def _faster(search: TrainingSearch) -> Iterator[Tried]:
    """What makes a batch divide, or a run end in time."""
    question = search.question
    recipe, dense = question.recipe, question.pool.gpu.dense
    if not search.judged.possible.any():
        batches = (replace(recipe, global_batch=size) for size in dividing_batches(recipe.global_batch, search.gpus))
        words = "{recipe.global_batch:,} sequences a step (--batch-size)"
        yield words, (replace(question, recipe=each) for each in batches), 2
    if recipe.precision in ("bf16", "fp16") and dense.fp8 is not None and recipe.base != "nf4":
        yield "products in fp8 (--precision fp8)", (replace(question, recipe=replace(recipe, precision="fp8")),), 3
    if question.deadline_s is not None:
        yield "{days:.3g} days of time (--deadline)", (replace(question, deadline_s=None),), 4


def _larger(fit: TrainingFit, question: TrainingQuestion) -> Iterator[Tried]:
    if question.gpus is not None:
        pool = fit.machine.pool(None, question.pool.price_per_gpu_h, question.pool.currency)
        yield "another number of GPUs (--gpus {row.gpus})", (replace(question, gpus=None, pool=pool),), 2
