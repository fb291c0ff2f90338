"""Simulated futures as plain values; the schema that docs/simulate.md describes. Times in s, shares from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, Line
from clusterwright.ledger.ratios import allocated_share, goodput_share, useful_of_allocated
from clusterwright.report.replications import (
    FIELDS,
    LEVELS,
    Calibration,
    Estimate,
    Paired,
    Replication,
    Simulated,
    estimate_level,
    estimate_of,
    group_names,
    pair,
)
from clusterwright.report.simulations import comparisons, cost_per_hour, not_saved_gpu_h, sums

#: Version of the schema; it grows when a field changes its meaning or goes.
SCHEMA: Final = "clusterwright/simulation/v1"


def simulated_values(found: Simulated) -> dict[str, Any]:
    """One architecture's futures; the same input and seeds give the same values."""
    rs = found.replications
    total, installed = sums(found)
    return {
        "schema": SCHEMA,
        "origin": "simulated",
        "cluster": found.name,
        "label": found.label,
        "source": found.source,
        "replayed": found.replayed,
        "partial": found.partial,
        "days": found.days,
        "warm_up_s": found.warm_up_s,
        "seed": found.seed,
        "seeds": found.seeds,
        "pools": [{"name": name, "nodes": nodes, "gpus_per_node": each} for name, nodes, each in found.pools],
        "gpus": found.gpus,
        "jobs": found.jobs,
        "left_out": dict(found.left_out),
        "never_fit": [
            {"jobs": n.jobs, "gpus": n.gpus, "queue": n.queue, "example": n.example, "why": n.why}
            for n in found.never_fit
        ],
        "remarks": list(found.remarks),
        "calibration": _calibration(found.calibration),
        "reliable": found.trusted,
        "groups": [_group(rs, field, name) for field in FIELDS for name in group_names(rs, field)],
        "ledger": {
            "gpu_hours": {
                line.value: _estimate(estimate_of(rs, lambda r, x=line: r.lines.of(x) / GPU_MS_PER_GPU_H))  # type: ignore[misc]
                for line in Line
            },
            "not_saved_yet_gpu_hours": _estimate(estimate_of(rs, not_saved_gpu_h)),
            "installed_gpu_ms": installed,
            "sum_of_lines_gpu_ms": total,
        },
        "allocated_share": _estimate(estimate_of(rs, lambda r: allocated_share(r.lines))),
        "useful_share": _estimate(estimate_of(rs, lambda r: goodput_share(r.lines))),
        "useful_of_allocated": _estimate(estimate_of(rs, lambda r: useful_of_allocated(r.lines))),
        "ettr": _estimate(estimate_of(rs, lambda r: r.ettr)),
        "ettr_saved": _estimate(estimate_of(rs, lambda r: r.ettr_saved)),
        "fairness": _estimate(estimate_of(rs, lambda r: r.fairness)),
        "slowdown_spread": _estimate(estimate_of(rs, lambda r: r.spread)),
        "cost": {
            "currency": found.currency or None,
            "installed": _estimate(estimate_of(rs, lambda r: r.cost)),
            "per_successful_gpu_hour": _estimate(cost_per_hour(found)),
        },
        "failures": {
            cause: sum(r.failures.get(cause, 0) for r in rs) / len(rs)
            for cause in dict.fromkeys(c for r in rs for c in r.failures)
        },
        "preemptions": _estimate(estimate_of(rs, lambda r: float(r.preemptions))),
        "restarted_jobs": _estimate(estimate_of(rs, lambda r: float(r.requeued))),
        "futures": [_future(r) for r in rs],
        "rests_on": [
            {"name": f.name, "value": f.value, "unit": f.unit, "origin": f.origin.word, "basis": f.basis}
            for f in found.figures
        ],
        "limits": list(found.limits),
    }


def sweep_values(path: str, futures: Sequence[Simulated]) -> dict[str, Any]:
    """A sweep: the same values for each value of the parameter."""
    return {
        "schema": SCHEMA,
        "origin": "simulated",
        "sweep": path,
        "partial": any(f.partial for f in futures),
        "values": [{"value": f.label.partition("=")[2], **simulated_values(f)} for f in futures],
    }


def pair_values(first: Simulated, second: Simulated, changes: Sequence[str]) -> dict[str, Any]:
    """Two futures side by side."""
    pairs = (
        (title, pair(first.replications, second.replications, read)) for title, read, _ in comparisons(first.currency)
    )
    return {
        "schema": SCHEMA,
        "origin": "simulated",
        "changes": list(changes),
        "partial": first.partial or second.partial,
        "reliable": first.trusted,
        "differences": {title: _pair(found) for title, found in pairs if found is not None},
        "as_it_is": simulated_values(first),
        "changed": simulated_values(second),
    }


def _group(rs: Sequence[Replication], field: str, name: str) -> dict[str, Any]:
    groups = [g for r in rs if (g := r.group(field, name)) is not None]
    return {
        "by": field,
        "name": name,
        "jobs": sum(g.jobs for g in groups) / len(groups),
        "succeeded": sum(g.succeeded for g in groups) / len(groups),
        "unfinished": sum(g.unfinished for g in groups) / len(groups),
        "waiting_at_end": sum(g.waiting for g in groups) / len(groups),
        "wait_s": {level: _estimate(estimate_level(rs, field, name, "wait_s", level)) for level in LEVELS},
        "slowdown": {level: _estimate(estimate_level(rs, field, name, "slowdown", level)) for level in LEVELS},
    }


def _estimate(found: Estimate | None) -> dict[str, Any] | None:
    if found is None:
        return None
    low, high = found.interval or (None, None)
    return {"value": found.value, "low": low, "high": high, "lower_bound": found.bound}


def _pair(found: Paired) -> dict[str, Any]:
    return {
        "as_it_is": _estimate(found.first),
        "changed": _estimate(found.second),
        "difference": _estimate(found.difference),
        "clear": found.clear,
    }


def _future(found: Replication) -> dict[str, Any]:
    return {
        "seed": found.seed,
        "simulated_s": found.simulated_s,
        "partial": found.partial,
        "ended": dict(found.fared),
        "failures": dict(found.failures),
        "preemptions": found.preemptions,
        "lines_gpu_ms": {line.value: ms for line, ms in found.lines.by_line().items()},
    }


def _calibration(found: Calibration | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "within_tolerance": found.holds,
        "tolerance_share": found.tolerance.share,
        "tolerance_s": found.tolerance.least_s,
        "fewest_jobs": found.tolerance.fewest_jobs,
        "groups": [
            {
                "by": row.field,
                "name": row.name,
                "jobs": row.jobs,
                "real_s": {"median": row.real_s[0], "p90": row.real_s[1]},
                "simulated_s": {"median": row.simulated_s[0], "p90": row.simulated_s[1]},
                "within": found.within(row),
            }
            for row in found.compared
        ],
    }
