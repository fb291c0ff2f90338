"""What to ask back about a training run, each with what the answer would change, computed on the layout found."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from clusterwright.physics.layouts import Layout
from clusterwright.plan.fitting.effects import Asked
from clusterwright.plan.fitting.interruptions import covered_by
from clusterwright.plan.fitting.training_fits import TrainingFit
from clusterwright.plan.fitting.training_searches import recipe_of
from clusterwright.plan.fitting.wants import TrainingWants, Wants
from clusterwright.plan.searching.questions import TrainingQuestion
from clusterwright.plan.searching.training import TrainingRow, search_training
from clusterwright.plan.searching.training_columns import estimators

#: Failures per 1,000 node-days of the better of two published clusters (RSC-2, arXiv:2410.21680).
_BETTER: Final = 2.34
#: Smaller changes are not asked about.
_LEAST: Final = 5e-3
#: Tokens that money and days of a run are said for where nobody said how many.
_PER: Final = 1e9


def training_questions(fit: TrainingFit, wants: Wants) -> tuple[Asked, ...]:
    """What to ask back, the answer that would change most first."""
    found = list[Asked | None]([_tokens(fit, wants), _price(fit)])
    if fit.best is not None:
        own = wants.training or TrainingWants()
        found += [ask(fit, wants, own) for ask in (_gpus, _batch, _precision, _method, _spares, _failures)]
        found += [_measure(fit), _network(fit)]
    return tuple(sorted((a for a in found if a is not None), key=lambda a: -a.effect))


def _tokens(fit: TrainingFit, wants: Wants) -> Asked | None:
    if wants.origin("tokens") != "assumed" or wants.budget is not None:
        return None
    why = "days and money of the run follow from it"
    if fit.best is not None:
        hours = fit.gpu_h_per_mtok.value * _PER / 1e6
        why += f": each billion takes {hours / fit.gpus:,.3g} hours, {hours:,.3g} GPU-hours"
    return Asked("How many tokens?", "--tokens", why, 3.0)


def _gpus(fit: TrainingFit, wants: Wants, own: TrainingWants) -> Asked | None:
    monthly = wants.budget is not None and wants.budget.monthly
    if {"gpus", "deadline"} & wants.stated or wants.power_w is not None or monthly:
        return None
    layout = fit.chosen.layout
    row = _row(fit, _question(fit), replace(layout, dp=layout.dp * 2), alone=False)
    why = "the fewest that fit are taken"
    if fit.bought_days is not None:
        why += f", and spend the budget in {fit.bought_days:,.0f} days"
    if row is not None:
        time = row.step_s / fit.chosen.step_s
        why += f"; twice as many take {time:.2f} × the days and {2 * time:.2f} × the GPU-hours"
    return Asked("By when, or on how many GPUs?", "--deadline, --gpus", why, 2.0)


def _batch(fit: TrainingFit, wants: Wants, own: TrainingWants) -> Asked | None:
    if wants.origin("batch-size") != "assumed":
        return None
    question, said = _question(fit), list[str]()
    effect = 0.0
    for words, size in (
        ("half as many", question.recipe.global_batch // 2),
        ("twice", question.recipe.global_batch * 2),
    ):
        row = _row(fit, _with(question, global_batch=max(size, 1)))
        if row is not None:
            factor = _factor(row, fit.chosen)
            said.append(f"{words} take {factor:.2f} ×")
            effect = max(effect, abs(math.log(factor)))
    if effect < _LEAST:
        return None
    count = question.recipe.global_batch
    why = f"{count:,} are taken; {' and '.join(said)} the GPU-hours a token (of the same layout)"
    return Asked("How many sequences make a step?", "--batch-size", why, effect)


def _precision(fit: TrainingFit, wants: Wants, own: TrainingWants) -> Asked | None:
    question = _question(fit)
    if wants.origin("precision") != "assumed" or own.method == "qlora" or question.pool.gpu.dense.fp8 is None:
        return None
    row = _row(fit, _with(question, precision="fp8"))
    if row is None:
        return None
    factor = _factor(row, fit.chosen)
    why = f"products are in {own.precision}; in fp8, then {factor:.2f} × the GPU-hours (of the same layout)"
    return Asked("May products run in fp8, as far as your loss curves allow?", "--precision fp8", why, _worth(factor))


def _method(fit: TrainingFit, wants: Wants, own: TrainingWants) -> Asked | None:
    """Adapters where the run is too short to be pretraining: fewer tokens than the model has parameters."""
    question = _question(fit)
    long = fit.wanted is not None and fit.wanted > question.decoder.parameters
    if wants.origin("method") != "assumed" or long or wants.inverse:
        return None
    recipe = recipe_of(replace(own, method="lora", offload="none"))
    pool = fit.machine.pool(None, question.pool.price_per_gpu_h, question.pool.currency)
    row = search_training(replace(question, recipe=recipe, gpus=None, pool=pool, deadline_s=None)).best
    if row is None:
        return None
    count = f"{row.gpus:,} GPU{'s' * (row.gpus != 1)}"
    factor = _factor(row, fit.chosen)
    why = f"all are; adapters (LoRA) fit {count} and take {factor:.2f} × the GPU-hours a token"
    return Asked("Must all weights be trained?", "--method lora", why, _worth(factor * row.gpus / fit.chosen.gpus))


def _spares(fit: TrainingFit, wants: Wants, own: TrainingWants) -> Asked | None:
    lost = fit.lost
    if lost.spares is not None or not lost.needed:
        return None
    waiting = 1 - covered_by(fit.chosen.nodes, 0, lost.failures, own.repair_s)
    if waiting < _LEAST:
        return None
    nodes = f"{lost.needed} spare node{'s' * (lost.needed > 1)}"
    why = (
        "a failed node is taken to be replaced at once; with none to replace it the job waits "
        f"{waiting:.0%} of the time; {nodes} cover {lost.target * 100:.4g}% of it"
    )
    return Asked("How many nodes stand by?", f"--survive {lost.needed}", why, _worth(1 - waiting))


def _failures(fit: TrainingFit, wants: Wants, own: TrainingWants) -> Asked | None:
    losses = _question(fit).losses
    if wants.origin("failures") != "assumed" or losses is None:
        return None
    row = _row(fit, replace(_question(fit), losses=replace(losses, per_1000_node_days=_BETTER)))
    low = fit.lost.goodput.low
    if row is None or row.run is None or not row.run.goodput or not low:
        return None
    better, worse = fit.lost.run.goodput / row.run.goodput, fit.lost.goodput.value / low
    if max(worse - 1, 1 - better) < _LEAST:
        return None
    why = (
        f"a published cluster's rate stands for yours, {losses.per_1000_node_days:g} a day; "
        f"at {_BETTER:g} then {better:.3f} × the days, at 3.6 × as many {worse:.3f} ×"
    )
    return Asked("How many of 1,000 nodes fail a day?", "--failures", why, math.log(worse))


def _price(fit: TrainingFit) -> Asked | None:
    if fit.price is not None and fit.price.origin != "catalogue":
        return None
    if fit.price is None:
        return Asked("What does a GPU-hour cost you?", "--price", "no price is known: nothing is counted in money", 0.5)
    old = f", {fit.price.age_days} days old" if fit.price.age_days else ""
    why = f"a published rental price stands for yours ({fit.price.basis}{old}); money scales with it"
    effect = max(abs(math.log(fit.price.high / fit.price.low)), 0.3)
    return Asked("What does a GPU-hour cost you?", "--price", why, effect)


def _measure(fit: TrainingFit) -> Asked:
    low, high = fit.chosen.step.band
    why = (
        f"tokens per second may be {1 - low:.0%} less to {high - 1:.0%} more; "
        "a measured step_time in the file of --write takes their place in cw plan"
    )
    return Asked("Can a few steps be measured?", "cw plan", why, math.log(high))


def _network(fit: TrainingFit) -> Asked | None:
    if fit.machine.nic_gbytes_s is not None:
        return None
    why = "no network between nodes is known: jobs wider than a node are left out"
    return Asked(f"Which NICs do nodes of {fit.machine.gpu.name} have?", "--nic", why, 0.1)


def _question(fit: TrainingFit) -> TrainingQuestion:
    assert fit.search is not None
    return fit.search.question


def _with(question: TrainingQuestion, **changed: object) -> TrainingQuestion:
    return replace(question, recipe=replace(question.recipe, **changed))  # type: ignore[arg-type]


def _row(
    fit: TrainingFit, question: TrainingQuestion, layout: Layout | None = None, *, alone: bool = True
) -> TrainingRow | None:
    """What one layout does under another question, with the micro-batch and recomputation that suit it; None where it
    does not fit.

    Args:
        alone: on as many GPUs as there are; else on as many as it takes.
    """
    assert fit.search is not None
    if not alone:
        question = replace(question, gpus=None, pool=replace(question.pool, nodes=None))
    changed = replace(fit.search, question=replace(question, deadline_s=None), held=estimators(question))
    return changed.why_not(layout or fit.chosen.layout).row


def _factor(row: TrainingRow, than: TrainingRow) -> float:
    return row.gpu_h_per_mtok / than.gpu_h_per_mtok


def _worth(factor: float) -> float:
    return min(abs(math.log(factor)), 10.0) if factor > 0 else 10.0
