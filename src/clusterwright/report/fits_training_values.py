"""The answer about training as plain values and as flat rows."""

from __future__ import annotations

import math
from typing import Any

from clusterwright.plan.fitting.training_fits import TrainingFit
from clusterwright.plan.fitting.training_settings import beside_settings, place_of, settings_of
from clusterwright.plan.fitting.trainings import TrainingAnswer
from clusterwright.report.fits_training import global_batch, training_basis, training_verdict
from clusterwright.report.fits_values import band_values, finite, price_values
from clusterwright.report.tables_out import Cell, banded_cells, first_cells


def training_values(answer: TrainingAnswer) -> dict[str, Any]:
    """Everything that the page says; times in seconds but where a name says otherwise, memory in GiB."""
    internal, own = answer.audience == "internal", answer.wants.training
    assert own is not None
    return {
        "question": "training",
        "holds": answer.holds,
        "verdict": training_verdict(answer),
        "model": {"asked": answer.name, "name": answer.decoder.name, "parameters": answer.decoder.parameters},
        "asked": {
            "tokens": own.tokens,
            "sequence": own.sequence,
            "global_batch": global_batch(answer),
            "precision": own.precision,
            "framework": own.trainer,
            "method": own.method,
            "rank": own.rank if own.adapters else None,
            "offload": own.offload,
            "deadline_s": own.deadline_s,
            "gpus": answer.wants.gpus,
            "survive_nodes": answer.wants.serving.survive_nodes,
            "stated": sorted(answer.wants.stated),
            "profile": sorted(answer.wants.profiled) if internal else [],
        },
        "machines": [_trained(fit) for fit in answer.fits],
        "effects": [
            {"what": e.name, "origin": e.origin, "work_at_10_less": finite(e.low), "work_at_10_more": finite(e.high)}
            for e in answer.effects
        ],
        "ask": [{"question": a.question, "option": a.option, "why": a.why} for a in answer.asked],
        "lost": [
            {"name": w.name, "layout": str(w.layout), "reason": w.reason.name, "why": w.text} for w in answer.lost
        ],
        "remedies": [
            {
                "what": r.what,
                "gpus": r.row.gpus,
                "layout": str(r.row.layout),
                "memory_gib": r.row.memory_gib,
                "fits_surely": r.row.fits_surely,
                "tokens_s": r.row.tokens_s,
                "days": r.days,
            }
            for r in answer.remedies
        ],
        "basis": list(training_basis(answer, internal)),
    }


def _trained(fit: TrainingFit) -> dict[str, Any]:
    found: dict[str, Any] = {
        "asked": fit.machine.asked,
        "gpu": fit.machine.gpu.name,
        "verdict": fit.verdict,
        "why_not": fit.missed or None,
        "price": price_values(fit.price),
    }
    if fit.best is None:
        return found
    best = fit.best
    return found | {
        "layout": str(best.layout),
        "gpus": best.gpus,
        "nodes": best.nodes,
        "micro_batch": best.recipe.micro_batch,
        "global_batch": best.recipe.global_batch,
        "recompute": best.recipe.recompute,
        "memory_gib": band_values(fit.memory_gib),
        "memory_terms_gib": dict(best.memory.peak.terms),
        "fits_surely": best.fits_surely,
        "host_gib_per_gpu": best.memory.host_gib,
        "step_s": dict(best.step.terms),
        "tokens_s": band_values(fit.tokens_s),
        "mfu": best.mfu,
        "goodput": band_values(fit.lost.goodput),
        "interruptions": _interruptions(fit),
        "ideal_days": band_values(fit.ideal_days),
        "days": band_values(fit.days),
        "gpu_h_per_mtok": band_values(fit.gpu_h_per_mtok),
        "per_mtok": band_values(fit.per_mtok),
        "cost": band_values(fit.cost),
        "tokens": fit.tokens,
        "tokens_days": fit.bought_days,
        "settings": {"of": place_of(fit), "options": list(settings_of(fit)), "beside": list(beside_settings(fit))},
    }


def _interruptions(fit: TrainingFit) -> dict[str, Any]:
    lost, run = fit.lost, fit.lost.run
    never = not math.isfinite(lost.mttf_h.value)
    return {
        "failures_per_1000_node_days": lost.failures,
        "origin": lost.origin,
        "mttf_h": None if never else band_values(lost.mttf_h),
        "checkpoint_bytes": run.checkpoint_bytes,
        "checkpoint_interval_s": run.interval_s,
        "checkpoint_stall_s": run.stall_s,
        "checkpoint_write_s": run.write_s,
        "spare_nodes": lost.spares,
        "spare_nodes_needed": lost.needed,
        "spare_target": lost.target,
        "nodes_complete_share": lost.covered,
    }


def training_rows(answer: TrainingAnswer) -> list[dict[str, Cell]]:
    """One row per machine, best first."""
    said = training_verdict(answer)
    return [first_cells(answer, fit, place, said) | _row(fit) for place, fit in enumerate(answer.fits, 1)]


def _row(fit: TrainingFit) -> dict[str, Cell]:
    if fit.best is None:
        return {}
    best, lost = fit.best, fit.lost
    found: dict[str, Cell] = {"layout": str(best.layout), "GPUs": best.gpus, "nodes": best.nodes}
    found |= {"spare nodes": lost.spares, "spare nodes needed": lost.needed}
    found |= {"micro-batch": best.recipe.micro_batch, "recomputation": best.recipe.recompute}
    found |= banded_cells("memory of the fullest GPU, GiB", fit.memory_gib)
    found |= {"fits at the upper end": "yes" if best.fits_surely else "no"}
    found |= {"host memory, GiB per GPU": best.memory.host_gib or None}
    found |= {"step, s": best.step_s, "MFU": best.mfu}
    found |= banded_cells("tokens/s", fit.tokens_s) | banded_cells("goodput", lost.goodput)
    if math.isfinite(lost.mttf_h.value):
        found |= banded_cells("time between failures, h", lost.mttf_h)
    found |= {"checkpoint interval, s": lost.run.interval_s, "checkpoint stall, s": lost.run.stall_s}
    if fit.days is not None:
        found |= banded_cells("days without losses", fit.ideal_days) | banded_cells("days", fit.days)
    if fit.price is not None:
        currency = fit.price.currency
        found |= {f"price, {currency}/GPU-h": fit.price.value} | banded_cells(f"{currency}/Mtok", fit.per_mtok)
        if fit.cost is not None:
            found |= banded_cells(f"whole run, {currency}", fit.cost)
    return found | {"settings": " ".join(settings_of(fit))}
