"""Refitted constants as a catalogue file of the user's own, and everything as plain values."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from clusterwright.calibrating.bands import LEAST
from clusterwright.calibrating.refitting import Error, Outcome, Refit, Score
from clusterwright.model.calibrations import TimeBands
from clusterwright.physics.serving.constants import NAMES


def catalogue_text(outcome: Outcome, source: str, date: str) -> str:
    """A catalogue file (YAML) with one calibration per refit; `--catalogue` reads it.

    Args:
        source: where the measurements are from.
        date: day of the fit, ISO.
    """
    lines = [
        "# Written by `cw calibrate`. Give it with --catalogue; it goes before the shipped constants.",
        "calibrations:",
    ]
    for refit in outcome.refits:
        lines += entry_lines(refit, name_of(refit), source, date)
    return "\n".join(lines) + "\n"


def name_of(refit: Refit) -> str:
    """Engine, version and GPU as an entry's name."""
    engine, version, gpu = refit.key
    return "-".join(part for part in (engine, version, gpu, "own") if part).replace(" ", "-")


def entry_lines(refit: Refit, name: str, source: str, date: str) -> list[str]:
    """One entry of a catalogue file."""
    engine, version, gpu = refit.key
    held = refit.held
    fit = {
        "rows": refit.rows,
        "models": list(refit.models),
        "ttft_error": _rounded(held.ttft, "mean"),
        "tpot_error": _rounded(held.tpot, "mean"),
        "ttft_median": _rounded(held.ttft, "median"),
        "tpot_median": _rounded(held.tpot, "median"),
        "held_out": "every row, fitted without it and every fourth of the others",
        "bands": [_band(each) for each in refit.bands],
    }
    constants = {n: float(f"{getattr(refit.constants, n):.4g}") for n in NAMES}
    return [
        f"  {json.dumps(name)}:",
        f"    source: {json.dumps(source)}",
        f"    date: {date}",
        f"    engine: {engine}",
        f"    versions: {json.dumps([version] if version else [])}",
        f"    gpu: {json.dumps(gpu)}",
        f"    constants: {_flow(constants)}",
        f"    fit: {_flow({k: v for k, v in fit.items() if v is not None})}",
        f"    spans: {_flow({n: {'low': low, 'high': high} for n, (low, high) in refit.spans.items()})}",
    ]


def _band(band: TimeBands) -> dict[str, Any]:
    """Bands of a mode as plain values."""
    times = {name: each for name, each in (("ttft", band.ttft), ("tpot", band.tpot)) if each is not None}
    found: dict[str, Any] = {"mode": band.mode, "model": band.model}
    for name, each in times.items():
        low, high = (float(f"{end:.4g}") for end in (each.low, each.high))
        found[name] = {"low": low, "high": high, "rows": each.rows, "of": each.of}
    return found


def _flow(value: Any) -> str:
    """A value as YAML's flow form, which JSON is."""
    return json.dumps(value)


def _rounded(error: Error | None, what: str) -> float | None:
    return None if error is None else round(float(getattr(error, what)), 4)


def values_of(outcome: Outcome) -> dict[str, Any]:
    """Everything as plain values."""
    return {
        "refits": [
            {
                "engine": r.key[0],
                "version": r.key[1],
                "gpu": r.key[2],
                "models": list(r.models),
                "rows": r.rows,
                "better": r.better,
                "before": _score(r.before),
                "after": _score(r.after),
                "held_out": {"before": _score(r.before), "after": _score(r.held)},
                "bands": [_band(each) for each in r.bands],
                "constants": asdict(r.constants),
                "moved": [asdict(m) for m in r.moved],
                "fitted_range": {name: list(span) for name, span in r.spans.items()},
                "notes": list(r.notes),
            }
            for r in outcome.refits
        ],
        "refused": [
            {"engine": r.key[0], "version": r.key[1], "gpu": r.key[2], "rows": r.rows, "reason": r.reason}
            for r in outcome.refused
        ],
        "left_out": [asdict(each) for each in outcome.left],
    }


def _score(score: Score) -> dict[str, Any]:
    return {name: None if e is None else asdict(e) for name, e in (("ttft", score.ttft), ("tpot", score.tpot))}


def text_of(outcome: Outcome, most: int = 8) -> str:
    """The outcome for people: per engine and GPU the errors, the constants that moved, and what was not used."""
    lines: list[str] = []
    for r in outcome.refits:
        engine, version, gpu = r.key
        lines.append(f"{engine} {version or '(version not told)'} on {gpu}: {r.rows} rows, {', '.join(r.models)}")
        lines += [
            _errors("all rows", r.before, r.after),
            _errors("held out", r.before, r.held),
            *(_banded(each) for each in r.bands),
        ]
        if not r.better:
            lines.append("  the rows held out are predicted worse than before: keep the old constants")
        lines += [_move(m.name, m.before, m.after, m.at_bound) for m in r.moved[:most]]
        if len(r.moved) > most:
            lines.append(f"  and {len(r.moved) - most} constants that moved less")
        spans = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in r.spans.items())
        lines.append(f"  fitted range: {spans}; beyond it is extrapolated")
        lines += [f"  note: {note}" for note in r.notes]
        lines.append("")
    for refused in outcome.refused:
        engine, version, gpu = refused.key
        lines.append(f"not fitted: {engine} {version} on {gpu}: {refused.reason}")
    for each in outcome.left[:most]:
        lines.append(f"left out: {each.id}: {each.reason}")
    if len(outcome.left) > most:
        lines.append(f"left out: {len(outcome.left) - most} more rows (--format json lists them)")
    return "\n".join(lines).rstrip()


def _errors(name: str, before: Score, after: Score) -> str:
    parts = []
    for what, old, new in (("TTFT", before.ttft, after.ttft), ("TPOT", before.tpot, after.tpot)):
        if old is not None and new is not None:
            parts.append(
                f"{what} mean {old.mean:.1%} → {new.mean:.1%}, median {old.median:.1%} → {new.median:.1%} ({new.rows})"
            )
    return f"  {name}: " + "; ".join(parts)


def _banded(band: TimeBands) -> str:
    """Bands of a mode in words."""
    known = [(name, each) for name, each in (("TTFT", band.ttft), ("TPOT", band.tpot)) if each is not None]
    few = min(each.rows for _, each in known) < LEAST
    share = "all rows held out" if few else "nine of ten rows held out"
    apart = ", prefill apart" if band.mode == "disaggregated" else ""
    ranges = ", ".join(f"×{each.low:.2f} to ×{each.high:.2f} of {name}" for name, each in known)
    return f"  band{apart}: {share} lie at {ranges} as estimated"


def _move(name: str, before: float, after: float, at_bound: bool) -> str:
    end = "  (at its bound: the rows ask for more than hardware gives)" if at_bound else ""
    return f"  {name:<18} {before:8.3g} → {after:8.3g}{end}"
