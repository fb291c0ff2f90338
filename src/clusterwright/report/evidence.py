"""Evidence as text and as plain values: lists, one record, comparisons, verification."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, Final

from clusterwright.judging.comparing_bundles import BundleComparison, Change, Value
from clusterwright.lib.hostlists import HostlistError, fold
from clusterwright.model.evidence import Evidence, Reading
from clusterwright.model.records import Record

_ID: Final = 12
_METRICS: Final = 4


def render_list(pairs: Sequence[tuple[Record, Evidence]]) -> str:
    """One line per record, oldest first."""
    if not pairs:
        return "no evidence"
    rows = [("NO", "ID", "TAKEN", "TOOL", "NODES", "METRICS")]
    for record, evidence in pairs:
        metrics = list(dict.fromkeys(r.metric for r in evidence.readings if r.value is not None))
        shown = ", ".join(metrics[:_METRICS]) + (f" and {len(metrics) - _METRICS} more" if metrics[_METRICS:] else "")
        empty = sum(r.value is None for r in evidence.readings)
        rows.append(
            (
                str(record.sequence),
                short(record.id),
                evidence.ended.strftime("%Y-%m-%d %H:%M"),
                evidence.tool,
                _nodes(evidence.nodes),
                shown + (f" ({empty} without value)" if empty else ""),
            )
        )
    sizes = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return "\n".join("  ".join([*(c.ljust(s) for c, s in zip(row, sizes, strict=False)), row[-1]]) for row in rows)


def render_record(record: Record, evidence: Evidence, width: int = 120) -> str:
    """Everything in a record."""
    content = record.content
    lines = [
        f"record {record.sequence}  {record.id}",
        f"  after       {record.previous}",
        f"  tool        {evidence.tool} ({content.get('kind', '')}, {content.get('outcome', '')})",
        f"  taken       {evidence.started.isoformat()} to {evidence.ended.isoformat()}, {content.get('timed', '')}",
        f"  nodes       {_nodes(evidence.nodes) or 'not known'}",
        f"  engine      {evidence.engine or 'not said'}, {evidence.devices} devices, {evidence.basis}",
        f"  by          {content.get('by', '')}",
    ]
    lines += [f"  for         {', '.join(evidence.requirements)}"] if evidence.requirements else []
    lines += [f"  raw         {r['name']}  {r['bytes']} bytes  {r['digest']}" for r in content.get("raw", ())]
    lines += [f"  {name:<11} {text}" for name, text in evidence.environment]
    for reading in evidence.readings:
        lines += textwrap.wrap(
            _reading(reading), width, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
        )
    if record.withheld:
        lines.append(f"  {len(record.withheld)} values are withheld; what stands there are stand-ins")
    return "\n".join(lines)


def record_summary(record: Record, evidence: Evidence) -> dict[str, Any]:
    """A record as plain values, without salts."""
    return {
        "sequence": record.sequence,
        "id": record.id,
        "previous": record.previous,
        "withheld": list(record.withheld),
        "nodes": list(evidence.nodes),
        **{key: value for key, value in record.content.items() if key != "raw"},
        "raw": [{k: v for k, v in raw.items() if k != "line_secret"} for raw in record.content.get("raw", ())],
    }


def render_comparison(comparison: BundleComparison, width: int = 120) -> str:
    """What changed in the system, then what changed in the results, worse first."""
    lines = []
    for change in comparison.environment:
        lines.append(f"{change.name}: {_texts(change.before)} → {_texts(change.after)}")
    if not lines:
        lines.append("nothing that the evidence says about the system changed")
    lines.append("")
    for change_ in comparison.changes:
        lines += textwrap.wrap(_change(change_), width, subsequent_indent="    ", break_on_hyphens=False)
    if not comparison.changes:
        lines.append("no value on either side")
    for side, metric, why in comparison.unmeasured:
        lines += textwrap.wrap(
            f"not measured {side}: {metric}: {why}", width, subsequent_indent="    ", break_on_hyphens=False
        )
    return "\n".join(lines)


def comparison_values(comparison: BundleComparison) -> dict[str, Any]:
    """The comparison as plain values."""
    return {
        "environment": [{"name": c.name, "before": c.before, "after": c.after} for c in comparison.environment],
        "changes": [
            {
                "metric": c.metric,
                "conditions": dict(c.conditions),
                "nodes": c.nodes,
                "requirements": c.requirements,
                "before": [_say(v) for v in c.before],
                "after": [_say(v) for v in c.after],
                "relative": c.relative,
                "chance": c.chance,
                "verdict": c.verdict,
            }
            for c in comparison.changes
        ],
        "not_measured": [{"side": s, "metric": m, "reason": why} for s, m, why in comparison.unmeasured],
    }


def short(id_: str) -> str:
    """The beginning of a digest, enough to name a record."""
    return id_.removeprefix("sha256:")[:_ID]


def _change(change: Change) -> str:
    relative = "" if change.relative is None else f" ({change.relative:+.1%})"
    chance = "" if change.chance is None else f", by chance {change.chance:.2g}"
    where = f" on {_nodes(change.nodes)}" if change.nodes else ""
    under = "".join(f", {name.replace('_', ' ')} {text}" for name, text in change.conditions)
    before = "; ".join(map(_say, change.before)) or "nothing"
    after = "; ".join(map(_say, change.after)) or "nothing"
    return f"{change.verdict}: {change.metric} {before} → {after}{relative}{chance}{under}{where}"


def _reading(reading: Reading) -> str:
    value = f"not measured: {reading.unreadable or 'no value'}" if reading.value is None else _say(reading.value)
    under = "".join(f", {name.replace('_', ' ')} {text}" for name, text in reading.conditions)
    return f"{reading.metric} {value}{under}" + (f" on {_nodes(reading.nodes)}" if reading.nodes else "")


def _say(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _texts(texts: Sequence[str]) -> str:
    return ", ".join(texts) or "not said"


def _nodes(nodes: Sequence[str]) -> str:
    try:
        return fold(nodes)
    except (HostlistError, ValueError):
        return ",".join(nodes)
