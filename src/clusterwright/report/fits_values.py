"""Answers of fits as plain values."""

from __future__ import annotations

from typing import Any

from clusterwright.plan.fitting.answers import ServingAnswer
from clusterwright.plan.fitting.bands import Band
from clusterwright.plan.fitting.commands import before, command_of
from clusterwright.plan.fitting.prices import HourPrice
from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.fitting.spanning import over_nodes
from clusterwright.plan.searching.serving import ServingRow
from clusterwright.report.fits import basis_lines, told_instead, verdict


def serving_values(answer: ServingAnswer) -> dict[str, Any]:
    """Everything that the page says; times in seconds, memory in GiB, ranges as low and high."""
    internal = answer.audience == "internal"
    question = answer.first.question
    return {
        "question": "serving",
        "holds": answer.holds,
        "verdict": verdict(answer),
        "model": {"asked": answer.name, "name": answer.decoder.name, "parameters": answer.decoder.parameters},
        "asked": {
            "rate": question.rate,
            "concurrency": question.concurrency,
            "mean_in": question.lengths.mean_in,
            "mean_out": question.lengths.mean_out,
            "p95_in": question.lengths.p95_in,
            "p95_out": question.lengths.p95_out,
            "reused_share": question.lengths.reused_share,
            "ttft_s": question.ttft_s,
            "tpot_s": question.tpot_s,
            "quantile": question.quantile,
            "survive_nodes": question.survive_nodes,
            "context": question.max_model_len,
            "engine": question.engine,
            "version": None if question.version is None else ".".join(str(part) for part in question.version),
            "planned_instead": told_instead(answer) or None,
            "weights": question.weights,
            "kv": question.kv_format,
            "stated": sorted(answer.wants.stated),
            "profile": sorted(answer.wants.profiled) if internal else [],
        },
        "machines": [_fit(fit, internal) for fit in answer.fits],
        "close": list(answer.close),
        "effects": [
            {"what": e.name, "origin": e.origin, "gpus_at_10_less": finite(e.low), "gpus_at_10_more": finite(e.high)}
            for e in answer.effects
        ],
        "ask": [{"question": a.question, "option": a.option, "why": a.why} for a in answer.asked],
        "lost": [
            {"name": w.name, "layout": str(w.layout), "reason": w.reason.name, "why": w.text} for w in answer.lost
        ],
        "remedies": [{"what": r.what, "gpus": r.row.gpus, "layout": str(r.row.layout)} for r in answer.remedies],
        "basis": list(basis_lines(answer, internal)),
    }


def _fit(fit: ServingFit, internal: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "asked": fit.machine.asked,
        "gpu": fit.machine.gpu.name,
        "node": None if fit.machine.shape is None else fit.machine.shape.name,
        "gpus_per_node": fit.machine.gpus_per_node,
        "verdict": fit.verdict,
        "why_not": fit.missed or None,
        "price": price_values(fit.price),
    }
    if fit.best is None:
        return found
    best = fit.best
    found |= {
        "layout": str(best.layout),
        "gpus_per_replica": best.layout.gpus,
        "replicas_for_load": band_values(fit.needed),
        "replicas": band_values(fit.replicas),
        "gpus": band_values(fit.gpus),
        "nodes": band_values(fit.nodes),
        "domain_gpus": best.domain_gpus,
        "longest_request": band_values(fit.context),
        "at_once": band_values(fit.places),
        "in_flight": best.concurrency,
        "ttft_s": band_values(fit.ttft_s),
        "tpot_s": band_values(fit.tpot_s),
        "requests_s_per_replica": band_values(fit.requests_s),
        "output_tokens_s_per_replica": band_values(fit.tokens_s),
        "per_hour": band_values(fit.per_h),
        "per_mtok_out": band_values(fit.per_mtok_out),
        "per_mtok": band_values(fit.per_mtok),
        "memory_gib": dict(best.memory.terms),
        "reported_gib": best.memory.reported_gib,
        "command": list(command_of(fit)),
        "before_command": before(fit) or None,
        "over_nodes": over_nodes(fit) or None,
        "extra_config": best.memory.extra_config or None,
        "sizes": [_size(row) for row in fit.sizes],
    }
    if internal:
        found["times"] = {
            "ttft_error": fit.basis.ttft_error,
            "tpot_error": fit.basis.tpot_error,
            "ttft_band": list(fit.basis.ttft),
            "tpot_band": list(fit.basis.tpot),
            "band_of": fit.basis.held,
            "basis": fit.basis.basis,
            "beyond": list(fit.basis.beyond),
        }
    return found


def _size(row: ServingRow) -> dict[str, Any]:
    return {
        "layout": str(row.layout),
        "gpus": row.layout.gpus,
        "at_once": row.memory.max_concurrency,
        "requests_s": row.requests_s,
        "ttft_s": row.ttft_s,
        "tpot_s": row.tpot_s,
        "gpu_h_per_mtok_out": row.gpu_h_per_mtok,
    }


def price_values(price: HourPrice | None) -> dict[str, Any] | None:
    """A price with its range and where it comes from."""
    if price is None:
        return None
    return {
        "per_gpu_hour": price.value,
        "low": price.low,
        "high": price.high,
        "currency": price.currency,
        "basis": price.basis,
        "age_days": price.age_days,
        "stale": price.stale,
        "sold_per_gpu_hour": price.sold,
    }


def band_values(band: Band | None) -> dict[str, float | None] | None:
    """A figure with its range; an end that does not exist is None."""
    return None if band is None else {"value": band.value, "low": band.low, "high": band.high}


def finite(value: float) -> float | None:
    """A number that JSON has; None for what has no end."""
    return value if abs(value) < 1e12 else None
