"""Training throughput against published tables, every model predicted by constants fitted on the others.

Runs that the page itself marks as a known regression are scored but not fitted on. torchtitan's runs (another
framework, GPUs at 500 W) get two factors more, fitted on its other models: listed apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from clusterwright.model.decoders import Decoder
from clusterwright.model.huggingface.configs import UnknownArchitecture
from clusterwright.model.huggingface.parsing import parse_config
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.calibration import CALIBRATED, Calibration
from clusterwright.physics.training.fitting import Measured, fit_constants
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.speed import BAND, StepTime, step_time
from clusterwright.physics.training.work import training_work
from validation.scoring import Row, Scored, mean_error, median_error
from validation.torchtitan_tables import TitanRun, torchtitan
from validation.training_recipes import FP8_WEIGHTS, set_by_recipe
from validation.training_systems import SYSTEMS
from validation.training_tables import CONFIGS, Run, megatron_bridge

#: Bars of the set: mean and median error with the model left out.
MEAN, MEDIAN = 0.203, 0.137
DATE: Final = "2026-12-01"
_BAND: Final = f"{BAND[0]} to {BAND[1]} × the estimate"
#: Rates that differ by more than this are not the same result.
_ALIKE: Final = 0.20


def score(cases: Path) -> list[Scored]:
    """Megatron-Bridge with the model left out and with the system left out, torchtitan with the model left out."""
    return [score_megatron_bridge(cases), score_systems(cases), score_torchtitan(cases)]


def score_megatron_bridge(cases: Path) -> Scored:
    """Tokens per second per GPU, leave-one-model-out."""
    runs, decoders = megatron_bridge(cases), read_decoders(cases)
    rows: list[Row] = []
    for model in dict.fromkeys(run.model for run in runs):
        fitted = fit_on(runs, decoders, left_out=model)
        rows += [_row(run, runs, decoders, fitted) for run in runs if run.model == model]
    known = [row for row in rows if row.predicted is not None]
    return Scored(
        "training throughput",
        _BAND,
        "every model predicted by constants fitted on the other models",
        tuple(rows),
        bars=(("mean error", mean_error(known), MEAN), ("median error", median_error(known), MEDIAN)),
        unit="tokens/s per GPU",
    )


def score_systems(cases: Path) -> Scored:
    """Tokens per second per GPU on a system that no constant was fitted on."""
    runs, decoders = megatron_bridge(cases), read_decoders(cases)
    rows: list[Row] = []
    for system in dict.fromkeys(run.system for run in runs):
        fitted = fit_on([run for run in runs if run.system != system], decoders)
        rows += [_row(run, runs, decoders, fitted) for run in runs if run.system == system]
    return Scored(
        "training throughput, unseen system",
        _BAND,
        "every system predicted by constants fitted on the other systems",
        tuple(rows),
        unit="tokens/s per GPU",
    )


def score_torchtitan(cases: Path) -> Scored:
    """torchtitan's runs: constants of Megatron-Bridge, two factors of the framework fitted on its other models."""
    runs, decoders, rows = torchtitan(cases), read_decoders(cases), []
    for run in runs:
        factors = fit_framework([r for r in runs if r.model != run.model], decoders)
        predicted = _titan_step(run, decoders, factors).tokens_per_s / run.layout.gpus
        inside = BAND[0] <= run.tokens_per_s / predicted <= BAND[1]
        why = "" if inside or run.layout.cp == 1 else "no model that the factors are fitted on splits its sequence so"
        rows.append(Row(run.id, run.system, predicted, run.tokens_per_s, inside, run.model, why))
    split = "two factors of the framework fitted on its other models; the rest from Megatron-Bridge on DGX-H100"
    return Scored("training throughput, torchtitan", _BAND, split, tuple(rows), unit="tokens/s per GPU")


def fit_framework(runs: Sequence[TitanRun], decoders: Mapping[str, Decoder]) -> tuple[float, float]:
    """Factors on a micro-batch and on its attention with the smallest mean |log error|, on a grid of 3 %."""
    measured_s = np.array([r.recipe.global_batch * r.recipe.sequence / r.layout.gpus / r.tokens_per_s for r in runs])
    one, two = (np.array([_titan_step(r, decoders, (1.0, a)).step_s for r in runs]) for a in (1.0, 2.0))
    attention = two - one
    slower = 1.03 ** np.arange(-10, 40)[:, None, None]
    more = 1.03 ** np.arange(-10, 80)[None, :, None]
    error = np.abs(np.log(slower * (one + (more - 1) * attention) / measured_s)).mean(axis=2)
    best = np.unravel_index(int(error.argmin()), error.shape)
    return float(slower[best[0], 0, 0]), float(more[0, best[1], 0])


def _titan_step(run: TitanRun, decoders: Mapping[str, Decoder], factors: tuple[float, float]) -> StepTime:
    known = replace(CALIBRATED, frameworks={"torchtitan": factors})
    constants = known.constants("DGX-H100", run.recipe.precision, moe=False, framework="torchtitan")
    return step_time(decoders[run.model], run.layout, run.recipe, SYSTEMS[run.system], constants)


def score_work(cases: Path) -> list[tuple[str, float]]:
    """(row, our FLOP per token ÷ what its printed TFLOP/s and tokens/s say)."""
    decoders = read_decoders(cases)
    found = []
    for run in megatron_bridge(cases):
        decoder = decoders.get(run.model)
        if decoder is None or not run.tflops or run.kind == "lora":
            continue
        flop = training_work(decoder, run.sequence, drafts=recipe_of(run, decoder).drafts).total
        found.append((f"{run.id} {run.model}", flop / (run.tflops * 1e12 / run.tokens_per_s)))
    return found


def read_decoders(cases: Path) -> dict[str, Decoder]:
    """Decoders of the models in the tables that the parser knows."""
    found = {}
    for model, name in CONFIGS.items():
        config = json.loads((cases / "model_configs" / f"{name}_config.json").read_text())
        try:
            found[model] = parse_config(config, name=name.replace("--", "/"))
        except UnknownArchitecture:
            continue
    return found


def fit_on(runs: list[Run], decoders: Mapping[str, Decoder], left_out: str = "") -> Calibration:
    """Constants of all models but one."""
    used = [
        measured(run, decoders[run.model])
        for run in runs
        if run.model != left_out and run.model in decoders and not run.marked
    ]
    return fit_constants(used, "NVIDIA Megatron-Bridge performance summary and archive, 25.09 to 26.08", DATE)


def measured(run: Run, decoder: Decoder) -> Measured:
    """A published run as the fit takes it."""
    step = run.gbs * run.sequence / run.gpus / run.tokens_per_s
    return Measured(decoder, layout_of(run), recipe_of(run, decoder), SYSTEMS[run.system], run.release, step)


def layout_of(run: Run) -> Layout:
    """Parallel sizes of a run."""
    return Layout(tp=run.tp, pp=run.pp, dp=run.dp, ep=run.ep, cp=run.cp, vp=run.vp)


def recipe_of(run: Run, decoder: Decoder) -> Recipe:
    """What the table and the vendor's recipe say of a run; offload is in neither."""
    return Recipe(
        sharding="fsdp" if run.fsdp else "distributed",
        precision=run.precision,  # type: ignore[arg-type]  # one of the five formats by construction
        fp8_weights=run.precision in FP8_WEIGHTS,
        sequence=run.sequence,
        micro_batch=run.mbs,
        global_batch=run.gbs,
        drafts=bool(decoder.drafts) and run.mtp,
        adapter_rank=16 if run.kind == "lora" else None,
        logits="fused",
        **set_by_recipe(run),
    )


def _row(run: Run, runs: Sequence[Run], decoders: Mapping[str, Decoder], fitted: Calibration) -> Row:
    decoder, group = decoders.get(run.model), run.system
    if decoder is None:
        return Row(run.id, group, None, run.tokens_per_s, False, run.model, "no decoder of this architecture")
    recipe = recipe_of(run, decoder)
    constants = fitted.constants(run.system, run.precision, run.release, decoder.is_moe, graphs=recipe.graphs)
    step = step_time(decoder, layout_of(run), recipe, SYSTEMS[run.system], constants)
    predicted = step.tokens_per_s / run.gpus
    inside = BAND[0] <= run.tokens_per_s / predicted <= BAND[1]
    text = f"{run.id} {run.model} {run.precision} {layout_of(run)}"
    reason = "" if inside else reason_of(run, runs, predicted)
    return Row(text, group, predicted, run.tokens_per_s, inside, run.model, reason)


def reason_of(run: Run, runs: Sequence[Run], predicted: float) -> str:
    """What the tables themselves show about a row that is off: a mark, the same layout elsewhere, the spread."""
    if run.marked:
        return "regression that the page marks"
    beside = [r for r in runs if (r.model, r.precision, r.kind) == (run.model, run.precision, run.kind) and r != run]
    here = [r for r in beside if r.system == run.system]
    same = [r for r in here if layout_of(r) == layout_of(run)]
    closest = min(same, key=lambda r: abs(r.tokens_per_s / predicted - 1), default=None)
    if closest is not None and abs(closest.tokens_per_s / run.tokens_per_s - 1) > _ALIKE:
        return f"the same layout reaches {closest.tokens_per_s:,.0f} in {closest.id}"
    parts = []
    nodes = -(-run.ep // SYSTEMS[run.system].domain)
    if nodes > 1:
        parts.append(f"experts over {nodes} NVLink domains")
    if here:
        low, high = (f(r.tokens_per_s for r in here) for f in (min, max))
        parts.append(f"other layouts and releases reach {low:,.0f} to {high:,.0f} here")
    elif beside:
        best = max(beside, key=lambda r: r.tokens_per_s)
        parts.append(f"the only such run on this system; {best.system} reaches {best.tokens_per_s:,.0f}")
    if len({r.release for r in runs if r.model == run.model}) == 1:
        parts.append("a model of one release only, whose kernels no other model shows")
    return "; ".join(parts)
