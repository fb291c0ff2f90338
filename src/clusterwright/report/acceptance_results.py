"""What came back of an acceptance: one page with the verdict on every claim and the next command for what is open."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, Final

from clusterwright.judging.acceptance_runs import State, UnitResult, result_nodes
from clusterwright.judging.acceptance_verdicts import Imported
from clusterwright.lib.hostlists import fold
from clusterwright.lib.scales import DAY_S
from clusterwright.model.evidence import Outcome, Verdict

SCHEMA: Final = "clusterwright/acceptance-result/v1"
_ORDER: Final = (Outcome.NOT_MET, Outcome.NOT_MEASURED, Outcome.MET, Outcome.NOT_APPLICABLE)
_WORDS: Final = {0: "accepted", 1: "not accepted", 3: "not decided"}


def render_results(imported: Imported, width: int = 120) -> str:
    """The verdict for people."""
    width = min(max(width, 80), 160)
    blocks = [_wrap(headline(imported), width)]
    if imported.silent:
        blocks.append(_wrap(f"Nothing came back from {fold(imported.silent)}.", width))
    for outcome in _ORDER:
        verdicts = [v for v in imported.verdicts if v.outcome is outcome]
        lines = [line for v in verdicts for line in _claim(v, width)]
        if lines:
            blocks.append("\n".join([f"{outcome.value} ({len(verdicts)}):", *lines]))
    blocks.append(_items("Negative controls:", _controls(imported), width))
    blocks.append(_items("Runs:", _runs(imported.findings.units), width))
    blocks.append(_items("Not of the plan:", imported.findings.unplanned, width))
    blocks.append(_items("Other files:", [f"{p}: {what}" for p, what in imported.others], width))
    blocks.append(_items("Remarks:", imported.remarks, width))
    return "\n\n".join(b for b in blocks if b)


def headline(imported: Imported) -> str:
    """The verdict in one sentence, with coverage and the age of the oldest evidence."""
    c = imported.coverage
    total = c.met + c.not_met + c.not_measured + c.not_applicable
    age = f"; oldest evidence {c.oldest_age_s / DAY_S:.1f} days" if c.oldest_age_s is not None else ""
    return (
        f"{imported.plan.cluster}: {_WORDS[imported.exit_code]}. Of {total} required claims {c.met} met, {c.not_met} "
        f"not met, {c.not_measured} not measured, {c.not_applicable} not applicable{age}"
    )


def _claim(verdict: Verdict, width: int) -> list[str]:
    mark = "" if verdict.requirement.required else " (informational)"
    lines = [_wrap(f"{verdict.id}{mark}: {verdict.reason}", width, "  ")]
    if verdict.next_step:
        lines.append(_wrap(f"next: {verdict.next_step}", width, "    "))
    return lines


def _controls(imported: Imported) -> list[str]:
    words = {True: "held", False: "NOT held", None: "open"}
    return [f"{c.test} (of {c.of}): {words[c.held]}: {c.text}" for c in imported.findings.controls]


def _runs(units: Sequence[UnitResult]) -> list[str]:
    by_test: dict[str, list[UnitResult]] = {}
    for unit in units:
        by_test.setdefault(unit.test, []).append(unit)
    return [f"{test}: {_tell_test(found)}" for test, found in by_test.items()]


def _tell_test(units: Sequence[UnitResult]) -> str:
    parts = []
    for state in State:
        some = [u for u in units if u.state is state]
        if not some:
            continue
        reasons = dict.fromkeys(u.reason for u in some if u.reason and u.state is not State.ABSENT)
        why = f": {'; '.join(reasons)}" if reasons else ""
        parts.append(f"{state.value} {len(some)} of {len(units)} ({result_nodes(some)}){why}")
    return ", ".join(parts)


def _items(head: str, items: Sequence[str], width: int) -> str:
    if not items:
        return ""
    return "\n".join([head, *(_wrap(item, width, "  ") for item in items)])


def _wrap(text: str, width: int, indent: str = "") -> str:
    return "\n".join(
        textwrap.wrap(
            text,
            width,
            initial_indent=indent,
            subsequent_indent=indent and indent + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def results_markdown(imported: Imported) -> str:
    """The verdict as Markdown."""
    lines = [f"# {headline(imported)}", ""]
    if imported.silent:
        lines += [f"Nothing came back from {fold(imported.silent)}.", ""]
    lines += ["| Claim | Outcome | Reason | Next |", "|---|---|---|---|"]
    for outcome in _ORDER:
        for v in imported.verdicts:
            if v.outcome is outcome:
                lines.append(f"| {_cell(v.id)} | {v.outcome.value} | {_cell(v.reason)} | {_cell(v.next_step)} |")
    for head, items in (
        ("Negative controls", _controls(imported)),
        ("Runs", _runs(imported.findings.units)),
        ("Not of the plan", imported.findings.unplanned),
        ("Other files", [f"{p}: {what}" for p, what in imported.others]),
        ("Remarks", imported.remarks),
    ):
        if items:
            lines += ["", f"## {head}", "", *(f"- {item}" for item in items)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def results_values(imported: Imported) -> dict[str, Any]:
    """The verdict as plain values."""
    coverage = imported.coverage
    return {
        "schema": SCHEMA,
        "cluster": imported.plan.cluster,
        "verdict": _WORDS[imported.exit_code],
        "coverage": {
            "met": coverage.met,
            "not_met": coverage.not_met,
            "not_measured": coverage.not_measured,
            "not_applicable": coverage.not_applicable,
            "oldest_age_s": coverage.oldest_age_s,
        },
        "silent_nodes": list(imported.silent),
        "claims": [
            {
                "id": v.id,
                "required": v.requirement.required,
                "outcome": v.outcome.value,
                "reason": v.reason,
                "value": str(v.reading.value) if v.reading is not None else None,
                "evidence": v.evidence_id or None,
                "age_s": v.age_s,
                "next": v.next_step or None,
            }
            for v in imported.verdicts
        ],
        "controls": [{"test": c.test, "of": c.of, "held": c.held, "text": c.text} for c in imported.findings.controls],
        "runs": [
            {
                "test": u.test,
                "unit": u.unit,
                "nodes": list(u.nodes),
                "state": u.state.value,
                "reason": u.reason or None,
                "attempts": u.attempts,
            }
            for u in imported.findings.units
        ],
        "unplanned": list(imported.findings.unplanned),
        "others": [{"path": p, "what": what} for p, what in imported.others],
        "remarks": list(imported.remarks),
    }
