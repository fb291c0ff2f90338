"""Rehearsals on the embedded engine, in a section of their own: they never make a claim on the cluster met."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.lib.figures import Origin
from clusterwright.model.evidence import Check, Reading, Rehearsal, RehearsalOutcome, Verdict
from clusterwright.report.html.elements import Child, Html, fold, h, markup, table
from clusterwright.report.html.timelines import render_timeline
from clusterwright.report.html.words import (
    count_words,
    duration_words,
    metric_words,
    origin_badge,
    rehearsal_word,
    threshold_words,
    value_words,
)
from clusterwright.report.proofs import Proof


def render_rehearsals(proof: Proof) -> Html:
    """Every rehearsal with its checks, times beside targets, and what happened when; "" when none was meant to run."""
    if not proof.rehearsals:
        return Html("")
    virtual = any(r.devices == "virtual" for r in proof.rehearsals)
    band = "VIRTUAL · REHEARSED, NOT MEASURED" if virtual else "REHEARSED, NOT MEASURED ON THE DECLARED ENGINE"
    explained = (
        "Real processes on this machine stood in for the cluster's nodes; no GPU took part. "
        if virtual
        else "Real processes ran on this machine's GPUs under the embedded engine, not under the declared one. "
    )
    return markup(
        h("p", h("span", band), cls="band"),
        h(
            "p",
            explained,
            "A rehearsal shows that the mechanism works. It proves nothing about speed or health of hardware and makes "
            "no claim met.",
        ),
        (_rehearsal(proof, r) for r in proof.rehearsals),
    )


def _rehearsal(proof: Proof, rehearsal: Rehearsal) -> Html:
    title = rehearsal.name.replace("-", " ")
    took = f"{duration_words(rehearsal.seconds)}, {rehearsal.devices} devices" if rehearsal.seconds else ""
    about = ", ".join(s for s in (f"workload {rehearsal.workload}" if rehearsal.workload else "", took) if s)
    return markup(
        h("h3", title[:1].upper() + title[1:], " ", rehearsal_word(rehearsal.outcome)),
        h("p", about, cls="soft small") if about else None,
        h("p", rehearsal.reason) if rehearsal.reason else None,
        render_timeline(rehearsal),
        _readings(rehearsal, proof.verdicts),
        _checks(rehearsal.checks),
        _logs(rehearsal.log_directory),
    )


def _logs(directory: str) -> Html:
    if not directory:
        return Html("")
    return h("p", "State and logs, beside this report: ", h("code", directory), cls="small")


def _checks(checks: Sequence[Check]) -> Html:
    """What did not hold in sight, what held folded."""
    held, failed = [c for c in checks if c.holds], [c for c in checks if not c.holds]
    count = f"all {len(held)} checks" if not failed else count_words(len(held), "check")
    return markup(
        _check_table(failed, "What was expected and not seen") if failed else None,
        fold(f"{count} passed", _check_table(held, "What was expected and what was seen"), cls="fold")
        if held
        else None,
    )


def _check_table(checks: Sequence[Check], caption: str) -> Html:
    rows = ((c.name, c.expected, c.seen, _holds(c.holds)) for c in checks)
    return table(("Check", "Expected", "Seen", "Result"), rows, caption=caption, cls="stack")


def _holds(holds: bool) -> Html:
    word = RehearsalOutcome.PASSED if holds else RehearsalOutcome.FAILED
    return rehearsal_word(word)


def _readings(rehearsal: Rehearsal, verdicts: Sequence[Verdict]) -> Html:
    if not rehearsal.readings:
        return Html("")
    rows = (
        (
            metric_words(r.metric),
            (value_words(r.value), " ", origin_badge(Origin.REHEARSED), _conditions(r)),
            _targets(rehearsal, r, verdicts),
        )
        for r in rehearsal.readings
    )
    return table(
        ("What", "In the rehearsal", "Target on the cluster"),
        rows,
        caption="Rehearsed beside the declared targets: a time on virtual nodes neither meets nor misses one",
        cls="stack",
    )


def _conditions(reading: Reading) -> Child:
    """What the value depends on in the rehearsal, so that nobody takes it for the declared setting."""
    said = ", ".join(f"{name} {text}" for name, text in reading.conditions)
    return h("p", f"here: {said}", cls="soft small") if said else None


def _targets(rehearsal: Rehearsal, reading: Reading, verdicts: Sequence[Verdict]) -> Child:
    about = [
        v
        for v in verdicts
        if v.requirement.metric == reading.metric and v.requirement.scope.workload in (None, rehearsal.workload or None)
    ]
    if not about:
        return "none declared"
    return [
        h(
            "p",
            threshold_words(v.requirement),
            " ",
            origin_badge(Origin.DECLARED),
            h("span", f" {v.id}", cls="soft small"),
        )
        for v in about
    ]
