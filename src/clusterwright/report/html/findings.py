"""What a review says: the five findings that change most in full, the rest folded by area, waived ones listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.model.documents import Document
from clusterwright.model.findings import AREAS, Finding, Severity
from clusterwright.report.html.elements import Html, dotted, fold, h, markup
from clusterwright.report.html.words import count_words
from clusterwright.report.proofs import Proof

#: How many findings are shown before the rest is folded.
FIRST: Final = 5
_SEVERITIES: Final[dict[Severity, tuple[str, str]]] = {
    Severity.ERROR: ("bad", "✕"),
    Severity.WARNING: ("open", "!"),
    Severity.NOTE: ("none", "i"),
}


def render_findings(proof: Proof) -> Html:
    """All findings; "" when there are none, which the head says."""
    if proof.review is None or not (proof.review.findings or proof.review.waived):
        return Html("")
    standing, waived = proof.review.findings, proof.review.waived
    first, rest = standing[:FIRST], standing[FIRST:]
    return markup(
        h("p", _counts(standing, waived)),
        (_finding(f, proof.document, "h3") for f in first),
        h("h3", "The rest, by area") if rest else None,
        (_area(a, [f for f in rest if f.area == a], proof.document) for a in AREAS),
        _waived(waived, proof.document),
    )


def _counts(standing: Sequence[Finding], waived: Sequence[Finding]) -> str:
    undecided = sum(1 for f in standing if f.undecided)
    by_severity = [(s, sum(1 for f in standing if f.severity is s and not f.undecided)) for s in reversed(Severity)]
    said = ", ".join(count_words(n, s.word) for s, n in by_severity if n or s is Severity.ERROR)
    more = f"; {count_words(undecided, 'rule')} could not be decided because an input is missing" if undecided else ""
    accepted = f"; {count_words(len(waived), 'finding')} waived" if waived else ""
    head = said[:1].upper() + said[1:]
    return f"{head}{more}{accepted}. Those that would change most come first."


def _finding(finding: Finding, document: Document | None, heading: str) -> Html:
    colour, icon = ("open", "?") if finding.undecided else _SEVERITIES[finding.severity]
    word = "undecided" if finding.undecided else finding.severity.word
    owner = f"owner {finding.owner}" if finding.owner else "no owner is declared for this area"
    source = document.places.line_of(finding.place) if document else ""
    return h(
        "article",
        h(heading, h("span", h("span", icon, aria_hidden="true"), word, cls=f"outcome {colour}"), " ", finding.message),
        h("p", h("b", "Do: "), finding.action) if finding.action else None,
        h("code", source.strip(), cls="source") if source.strip() else None,
        h(
            "p",
            h("span", str(finding.place), cls="mono"),
            " · ",
            dotted(finding.path or "whole file"),
            f" · {finding.area} · {owner} · rule ",
            h("span", finding.rule, cls="mono"),
            cls="meta",
        ),
        cls=f"finding {finding.severity.word}",
    )


def _area(area: str, findings: Sequence[Finding], document: Document | None) -> Html:
    if not findings:
        return Html("")
    worst = max(f.severity for f in findings)
    summary = (
        area.capitalize(),
        h("span", f" · {count_words(len(findings), 'finding')}, worst: {worst.word}", cls="soft"),
    )
    return fold(summary, (_finding(f, document, "h4") for f in findings), cls="fold")


def _waived(findings: Sequence[Finding], document: Document | None) -> Html:
    if not findings:
        return Html("")
    return markup(
        h("h3", "Waived: accepted knowingly, until a date"),
        h(
            "ul",
            (
                h(
                    "li",
                    h("b", f.message),
                    f" Waived: {f.waived} ",
                    h("span", f"({f.place}, rule {f.rule})", cls="soft small"),
                )
                for f in findings
            ),
        ),
    )
