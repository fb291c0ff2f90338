"""Rehearsals on the embedded engine, in a section of their own: they never make a claim on the cluster met."""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.lib.figures import Origin
from clusterwright.model.evidence import Check, Reading, Rehearsal, RehearsalOutcome, Verdict
from clusterwright.report.html.drawing import line, share, strip, words
from clusterwright.report.html.elements import Child, Html, h, markup, table
from clusterwright.report.html.words import (
    duration_words,
    metric_words,
    origin_badge,
    rehearsal_word,
    threshold_words,
    value_words,
)
from clusterwright.report.proofs import Proof

_LANES = 3
_LANE = 24.0


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
        _timeline(rehearsal),
        _readings(rehearsal, proof.verdicts),
        _checks(rehearsal.checks),
        h("p", "Logs: ", h("code", rehearsal.log_directory), cls="small") if rehearsal.log_directory else None,
    )


def _checks(checks: Sequence[Check]) -> Html:
    if not checks:
        return Html("")
    rows = ((c.name, c.expected, c.seen, _holds(c.holds)) for c in sorted(checks, key=lambda c: c.holds))
    return table(
        ("Check", "Expected", "Seen", "Result"), rows, caption="What was expected and what was seen", cls="stack"
    )


def _holds(holds: bool) -> Html:
    word = RehearsalOutcome.PASSED if holds else RehearsalOutcome.FAILED
    return rehearsal_word(word)


def _readings(rehearsal: Rehearsal, verdicts: Sequence[Verdict]) -> Html:
    if not rehearsal.readings:
        return Html("")
    rows = (
        (
            metric_words(r.metric),
            (value_words(r.value), " ", origin_badge(Origin.REHEARSED)),
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


def _timeline(rehearsal: Rehearsal) -> Html:
    """Numbered marks on a line, and the same numbers with time and words in the list below it."""
    events = sorted(rehearsal.timeline)
    if not events:
        return Html("")
    end = max(rehearsal.seconds, events[-1][0]) or 1.0
    lanes = _lanes([t / end for t, _ in events])
    base = _LANE * (max(lanes) + 1) + 8
    shapes: list[Child] = [line(share(0.02), base, share(0.98), base, "axis", width=2)]
    for number, ((t, said), lane) in enumerate(zip(events, lanes, strict=True), 1):
        x, y = share(_at(t / end)), base - 14 - _LANE * lane
        shapes += [
            line(x, base, x, y, "axis"),
            h("circle", h("title", f"{t:.1f} s: {said}"), cx=x, cy=y, r=9, cls=_mark(said)),
            words(x, y + 4, str(number), "s11 mid t-on t-bold"),
        ]
    for tick in range(5):
        anchor = "" if tick == 0 else " end" if tick == 4 else " mid"
        shapes.append(words(share(_at(tick / 4)), base + 18, duration_words(end * tick / 4), f"s11 t-soft{anchor}"))
    listed = (h("li", h("b", f"{t:.1f} s "), said) for t, said in events)
    said = "; ".join(f"{t:.1f} s {what}" for t, what in events)
    return h(
        "figure",
        h("div", strip(base + 24, *shapes, label=f"Timeline: {said}"), cls="line"),
        h("ol", listed),
        cls="timeline",
    )


def _at(share_of_time: float) -> float:
    return 0.02 + 0.96 * share_of_time


def _lanes(positions: Sequence[float]) -> list[int]:
    """A lane for each mark so that marks in one lane keep 7 % of the width apart; the last lane takes what is left."""
    free_from = [-1.0] * _LANES
    lanes = []
    for position in positions:
        lane = next((i for i, until in enumerate(free_from) if position >= until), _LANES - 1)
        free_from[lane] = position + 0.07
        lanes.append(lane)
    return lanes


def _mark(said: str) -> str:
    lowered = said.lower()
    if "kill" in lowered or "lost" in lowered:
        return "lost"
    return "virtual"
