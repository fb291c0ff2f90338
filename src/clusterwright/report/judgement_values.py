"""What outputs prove, as plain values."""

from __future__ import annotations

from typing import Any

from clusterwright.judging.causes import Chain
from clusterwright.judging.happenings import Happening
from clusterwright.judging.outliers import Outlier
from clusterwright.judging.outputs import Judged, JudgedOutput, Kept
from clusterwright.judging.yardsticks import Yardstick
from clusterwright.model.evidence import Reading, Verdict
from clusterwright.report.transcripts import value_values


def judgement_values(judged: Judged) -> dict[str, Any]:
    """Everything that was found, as plain values."""
    return {
        "exit_code": judged.exit_code,
        "architecture": judged.name or None,
        "remarks": list(judged.remarks),
        "coverage": None if judged.coverage is None else _coverage_values(judged),
        "verdicts": [_verdict_values(v) for v in judged.verdicts],
        "outliers": [_outlier_values(o) for group in judged.groups for o in group.outliers],
        "causes": [_chain_values(c) for c in judged.causes],
        "devices_of_two_hosts": [
            {"devices": list(t.devices), "nodes": list(t.nodes), "files": list(t.paths)} for t in judged.twice
        ],
        "outputs": [_output_values(o) for o in judged.outputs],
        "kept": [_kept_values(k) for k in judged.kept],
    }


def _chain_values(chain: Chain) -> dict[str, Any]:
    return {
        "root": _event_values(chain.root),
        "consequences": [
            {**_event_values(c.event), "after_s": c.after_s, "doubt": c.doubt or None} for c in chain.consequences
        ],
    }


def _event_values(event: Happening) -> dict[str, Any]:
    return {
        "event": event.name,
        "nodes": list(event.nodes),
        "device": event.device or None,
        "file": event.path,
        "line": event.line,
        "time": event.first.text if event.first is not None else None,
    }


def _kept_values(kept: Kept) -> dict[str, Any]:
    return {
        "source": kept.source,
        "remark": kept.remark or None,
        "records": [
            {
                "evidence": e.id,
                "tool": e.tool,
                "nodes": list(e.nodes),
                "ended": e.ended.isoformat(),
                "readings": [_reading_values(r) for r in e.readings],
            }
            for e in kept.evidence
        ],
    }


def _coverage_values(judged: Judged) -> dict[str, Any]:
    coverage = judged.coverage
    if coverage is None:
        return {}
    return {
        "met": coverage.met,
        "not_met": coverage.not_met,
        "not_measured": coverage.not_measured,
        "not_applicable": coverage.not_applicable,
        "oldest_age_s": coverage.oldest_age_s,
    }


def _verdict_values(verdict: Verdict) -> dict[str, Any]:
    return {
        "id": verdict.id,
        "metric": verdict.requirement.metric,
        "required": verdict.requirement.required,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "evidence": verdict.evidence_id or None,
        "age_s": verdict.age_s,
        "next_step": verdict.next_step or None,
    }


def _outlier_values(outlier: Outlier) -> dict[str, Any]:
    return {
        "node": outlier.node,
        "metric": outlier.metric,
        "conditions": dict(outlier.conditions),
        "value": value_values(outlier.value),
        "usual": value_values(outlier.usual),
        "score": None if outlier.score == float("inf") else outlier.score,
        "worse": outlier.worse,
        "peers": outlier.peers,
    }


def _output_values(output: JudgedOutput) -> dict[str, Any]:
    evidence, refusal = output.evidence, output.transcript.refusal
    return {
        "file": output.path,
        "kind": output.transcript.kind or None,
        "outcome": output.transcript.outcome.value,
        "refusal": None if refusal is None else str(refusal),
        "evidence": evidence.id,
        "raw_digest": evidence.raw_digest,
        "nodes": list(evidence.nodes),
        "nodes_named": output.named or None,
        "started": evidence.started.isoformat(),
        "ended": evidence.ended.isoformat(),
        "timed": output.timed,
        "environment": dict(evidence.environment),
        "proves": output.meaning.proves,
        "does_not_prove": output.meaning.does_not,
        "notices": [
            {"code": n.code, "weight": n.weight.value, "message": n.message, "line": n.line} for n in output.notices
        ],
        "readings": [_reading_values(r) for r in evidence.readings],
        "ceilings": [_yardstick_values(y) for y in output.yardsticks],
        "advice": [
            {
                "where": a.where or None,
                "what": a.what,
                "do": a.do,
                "why": a.why or None,
                "source": a.source,
                "line": a.line,
                "others": [{"source": source, "do": do} for source, do in a.others],
                "harmless": a.harmless,
            }
            for a in output.advice
        ],
    }


def _reading_values(reading: Reading) -> dict[str, Any]:
    return {
        "metric": reading.metric,
        "value": None if reading.value is None else value_values(reading.value),
        "conditions": dict(reading.conditions),
        "nodes": list(reading.nodes),
        "unreadable": reading.unreadable or None,
    }


def _yardstick_values(y: Yardstick) -> dict[str, Any]:
    ceiling = y.ceiling
    bounded = ceiling is not None and ceiling.bound != float("inf")
    return {
        "operation": y.operation,
        "message_size_bytes": y.size,
        "busbw_gbytes_s": y.busbw,
        "system": y.system or None,
        "bound_gbytes_s": ceiling.bound if ceiling is not None and bounded else None,
        "reference_gbytes_s": None if ceiling is None else ceiling.reference,
        "published_gbytes_s": None if ceiling is None or ceiling.published is None else ceiling.published.busbw,
        "assumed": y.assumed or None,
        "lacks": y.lacks or None,
    }
