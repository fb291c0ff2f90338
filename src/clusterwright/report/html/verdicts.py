"""The verdict per claim: requirement, outcome with reason, rehearsal column, who provides evidence, what to run."""

from __future__ import annotations

from collections import Counter
from typing import Final

from clusterwright.lib.figures import Origin
from clusterwright.model.evidence import Outcome, RehearsalOutcome, Verdict
from clusterwright.model.metrics import CLAIM_CLASSES
from clusterwright.report.html.elements import Child, Html, h, markup
from clusterwright.report.html.summaries import coverage_line
from clusterwright.report.html.words import (
    CLAIMS,
    condition_words,
    duration_words,
    metric_words,
    origin_badge,
    outcome_word,
    place_words,
    rehearsal_word,
    scope_words,
    threshold_words,
    value_words,
)
from clusterwright.report.proofs import Proof

_HEADS: Final = ("Claim", "Requirement", "Outcome", "Rehearsal", "Next, and by whom")
_RIGHTS: Final = {"user": "as an ordinary user", "admin": "as administrator", "root": "as root"}
_PROVIDERS: Final = {"renter": "the renter", "provider": "the provider", "both": "renter and provider"}


def render_verdicts(proof: Proof) -> Html:
    """Every verdict in one table, grouped by claim class, with buttons that filter by outcome."""
    if not proof.verdicts:
        return Html("")
    groups = (_group(proof, c, tuple(v for v in proof.verdicts if v.requirement.claim == c)) for c in CLAIM_CLASSES)
    return markup(
        h("p", coverage_line(proof), " Evidence of one class never proves a claim of another."),
        _filters(proof),
        h(
            "div",
            h(
                "table",
                h("caption", "Requirements against evidence. A rehearsal never makes a claim met."),
                (h("col", cls=c) for c in ("c-claim", "c-asks", "c-outcome", "c-seen", "c-next")),
                h("thead", h("tr", (h("th", t, scope="col") for t in _HEADS))),
                groups,
                id="claims",
            ),
            cls="scroll stack",
            tabindex=0,
            role="region",
            aria_label="Verdicts",
        ),
    )


def _filters(proof: Proof) -> Html:
    counts = Counter(v.outcome for v in proof.verdicts)
    buttons = [h("button", f"all {len(proof.verdicts)}", type="button", value="", aria_pressed="true")]
    buttons += [
        h("button", f"{o.value} {counts[o]}", type="button", value=_key(o), aria_pressed="false")
        for o in Outcome
        if counts[o]
    ]
    return markup(
        h(
            "ul",
            (h("li", b) for b in buttons),
            cls="filters",
            data_filters="#claims",
            data_says="claims-shown",
            aria_label="Show claims by outcome",
            hidden=True,
        ),
        h("p", id="claims-shown", role="status", cls="hidden-text"),
    )


def _key(outcome: Outcome) -> str:
    return outcome.value.replace(" ", "-")


def _group(proof: Proof, claim: str, verdicts: tuple[Verdict, ...]) -> Html:
    if not verdicts:
        return Html("")
    title, says = CLAIMS[claim]
    counts = Counter(v.outcome for v in verdicts)
    said = ", ".join(f"{counts[o]} {o.value}" for o in Outcome if counts[o])
    head = h(
        "tr",
        h("th", title, h("span", f" · {says} · {said}", cls="soft"), scope="rowgroup", colspan=len(_HEADS)),
        cls="group",
    )
    return h("tbody", head, (_row(proof, v) for v in verdicts))


def _row(proof: Proof, verdict: Verdict) -> Html:
    cells = (
        h("th", _claim(verdict), scope="row"),
        *(
            h("td", content, data_label=name)
            for name, content in zip(
                _HEADS[1:],
                (
                    _requirement(proof, verdict),
                    _outcome(verdict),
                    _rehearsal(verdict),
                    _next(verdict),
                ),
                strict=True,
            )
        ),
    )
    return h("tr", cells, data_outcome=_key(verdict.outcome), id=f"claim-{_slug(verdict.id)}")


def _slug(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name)


def _claim(verdict: Verdict) -> Child:
    informational = h("p", "informational", cls="soft small") if not verdict.requirement.required else None
    return (verdict.id, informational)


def _requirement(proof: Proof, verdict: Verdict) -> Child:
    requirement = verdict.requirement
    conditions = condition_words(requirement)
    fresh = f"evidence at most {requirement.max_age} old" if requirement.max_age else ""
    declared = requirement.source or ""
    place = place_words(proof.document, f"acceptance.requirements.{verdict.id}") or place_words(
        proof.document, declared
    )
    source = ", ".join(s for s in (declared, place) if s)
    return (
        h(
            "p",
            f"{metric_words(requirement.metric)} ",
            h("b", threshold_words(requirement)),
            " ",
            origin_badge(Origin.DECLARED),
        ),
        h("p", "; ".join(s for s in (scope_words(requirement.scope), conditions, fresh) if s), cls="small"),
        h("p", source, cls="soft small") if source else None,
    )


def _outcome(verdict: Verdict) -> Child:
    reading = verdict.reading
    seen = None
    if reading is not None:
        seen = h("p", h("b", value_words(reading.value)), " ", origin_badge(Origin.MEASURED))
    age = f"evidence {verdict.evidence_id[:19]}" if verdict.evidence_id else ""
    if verdict.age_s is not None:
        age += f", {duration_words(verdict.age_s)} old"
    return (
        h("p", outcome_word(verdict.outcome)),
        seen,
        h("p", verdict.reason, cls="small") if verdict.reason else None,
        h("p", age, cls="soft small mono") if age else None,
    )


def _rehearsal(verdict: Verdict) -> Child:
    if verdict.rehearsal is RehearsalOutcome.NOT_RUN and not verdict.rehearsed:
        return h("p", "not run", cls="soft")
    seen = h("p", verdict.rehearsed, " ", origin_badge(Origin.REHEARSED), cls="small") if verdict.rehearsed else None
    return (h("p", rehearsal_word(verdict.rehearsal)), seen)


def _next(verdict: Verdict) -> Child:
    """What to run, where, by whom and with which rights; where nothing is to be run, who gives the evidence."""
    requirement = verdict.requirement
    who = f"{_PROVIDERS[requirement.provider]}, {_RIGHTS[requirement.rights]}"
    return h("p", verdict.next_step or f"evidence from {who}", cls="small")
