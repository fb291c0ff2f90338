"""Which doubtful input of a training run moves its money how far: each alone by ten per cent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from clusterwright.physics.training.runs import Checkpointing, Run, plan_run
from clusterwright.physics.training.shares import trained_parameters
from clusterwright.physics.training.speed import repeated
from clusterwright.plan.fitting.effects import STEP, Effect
from clusterwright.plan.fitting.interruptions import covered_by
from clusterwright.plan.fitting.training_fits import TrainingFit
from clusterwright.plan.fitting.training_searches import roomy
from clusterwright.plan.fitting.wants import TrainingWants, Wants

#: What one may doubt of a step's time → terms of the step that grow with it.
PARTS: Final = {
    "time of matrix products": ("dense products", "expert products", "head"),
    "time of attention": ("attention",),
    "time of recurrent states": ("state scan",),
    "time of passes over memory": ("elementwise passes",),
    "launches and small kernels per layer": ("launches",),
    "time of widening 4-bit weights": ("dequantisation",),
    "time of bytes between GPUs": (
        "tensor exchange", "context exchange", "expert exchange", "stage exchange", "gradients and weights",
    ),
    "time of the optimizer": ("optimizer",),
    "time of transfers to the host": ("host transfers",),
}  # fmt: skip
#: Terms that come once per step: no pipeline waits for them.
_ONCE: Final = ("gradients and weights", "optimizer", "host transfers")
#: Smaller effects are left out.
_LEAST: Final = 5e-5


def training_effects(fit: TrainingFit, wants: Wants) -> tuple[Effect, ...]:
    """Assumptions of the best layout by effect on the money of its work (GPU-hours without a price), largest first."""
    if fit.best is None:
        return ()
    found = [*_times(fit), *_losses(fit, wants), *_memory(fit), *_scaled(fit, wants)]
    return tuple(sorted((e for e in found if e.size >= _LEAST), key=lambda e: -e.size))


def part_shares(fit: TrainingFit) -> dict[str, float]:
    """Share of a step's time by part, with what runs again and what waits in the pipeline for it; they add up to 1."""
    row = fit.chosen
    terms = dict(row.step.terms)
    again = {k: float(v) for k, v in repeated(row.recipe, _layers(fit), float(row.layout.pp)).items()}
    busy = sum(v for k, v in terms.items() if k not in (*_ONCE, "pipeline bubble"))
    waiting = 1 + terms["pipeline bubble"] / busy
    shares = dict[str, float]()
    for part, names in PARTS.items():
        seconds = sum(terms[name] * (1.0 if name in _ONCE else (1 + again.get(name, 0.0)) * waiting) for name in names)
        shares[part] = seconds / row.step_s
    return shares


def _layers(fit: TrainingFit) -> int:
    assert fit.search is not None
    return len(fit.search.question.decoder.layers)


def _times(fit: TrainingFit) -> Iterator[Effect]:
    held = "calibrated" if fit.measured else "assumed"
    for part, share in part_shares(fit).items():
        origin = "assumed" if part == "time of transfers to the host" else held
        yield Effect(part, origin, 1 - STEP * share, 1 + STEP * share)


def _losses(fit: TrainingFit, wants: Wants) -> Iterator[Effect]:
    own, losses = wants.training or TrainingWants(), fit.lost
    rate, kept = losses.failures, losses.run.goodput
    nodes, spare = fit.chosen.nodes, losses.spares

    def effect(name: str, option: str, low: Run, high: Run) -> Effect:
        ends = (kept / run.goodput if run.goodput else math.inf for run in (low, high))
        return Effect(name, wants.origin(option) if option else "assumed", *ends)

    minutes, store = own.restart_s / 60, losses.run.checkpoint_bytes / losses.run.write_s / 1e9
    yield effect(f"failures, {rate:g} per 1,000 node-days", "failures", *(_run(fit, rate=f) for f in _BOTH))
    yield effect(f"restart after a failure, {minutes:.3g} min", "restart", *(_run(fit, restart=f) for f in _BOTH))
    words = f"rate of checkpoint storage, {store:.3g} GB/s"
    yield effect(words, "checkpoint-rate", *(_run(fit, store=f) for f in _BOTH))
    stall = f"stall of a checkpoint, {losses.run.stall_s:.2g} s"
    yield effect(stall, "", *(_run(fit, host=1 / f) for f in _BOTH))
    if spare is not None and rate:
        base, low, high = (covered_by(nodes, spare, rate, own.repair_s * f) for f in (1.0, *_BOTH))
        hours = own.repair_s / 3600
        ends = (base / share if share else math.inf for share in (low, high))
        yield Effect(f"repair of a node, {hours:.3g} h", wants.origin("repair"), *ends)


_BOTH: Final = (1 - STEP, 1 + STEP)


def _run(fit: TrainingFit, *, rate: float = 1.0, restart: float = 1.0, store: float = 1.0, host: float = 1.0) -> Run:
    """The run with its losses changed by factors."""
    assert fit.search is not None
    question, row = fit.search.question, fit.chosen
    losses = question.losses
    assert losses is not None
    plain = Checkpointing(losses.write_bytes_s * store, losses.asynchronous)
    return plan_run(
        0.0,
        row.tokens_s,
        float(trained_parameters(question.decoder, row.recipe.adapter_rank)),
        row.gpus,
        row.gpus / question.pool.gpus_per_node,
        losses.per_1000_node_days * rate,
        losses.restart_s * restart,
        replace(plain, host_bytes_s=plain.host_bytes_s * host),
    )


def _memory(fit: TrainingFit) -> Iterator[Effect]:
    """Another layout where memory is not as estimated: a faster one that then fits, or one that still does."""
    assert fit.search is not None
    rows = [roomy(fit.search, factor) for factor in _BOTH]
    ends = [math.inf if row is None else row.step_s / fit.chosen.step_s for row in rows]
    yield Effect("memory of the fullest GPU", "estimated", min(ends[0], 1.0), ends[1])


def _scaled(fit: TrainingFit, wants: Wants) -> Iterator[Effect]:
    if fit.wanted is not None:
        yield Effect("tokens of the run", wants.origin("tokens"), *_BOTH)
    if fit.price is not None:
        yield Effect("price of a GPU-hour", fit.price.origin, *_BOTH)
