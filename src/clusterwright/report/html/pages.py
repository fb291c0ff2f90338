"""The report as one file that asks for nothing: no network, no fonts, no storage, and a policy that forbids them."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from clusterwright.report.html.assumptions import render_assumptions
from clusterwright.report.html.elements import Html, h, markup
from clusterwright.report.html.findings import render_findings
from clusterwright.report.html.limits import render_limits
from clusterwright.report.html.plans import render_plan
from clusterwright.report.html.rehearsals import render_rehearsals
from clusterwright.report.html.steps import render_steps
from clusterwright.report.html.style import SCRIPT, STYLE
from clusterwright.report.html.summaries import render_head, sentence
from clusterwright.report.html.topology import render_topology
from clusterwright.report.html.verdicts import render_verdicts
from clusterwright.report.proofs import Proof


def render_proof(proof: Proof) -> str:
    """The whole report as one HTML document that needs nothing else; the same proof gives the same bytes."""
    sections = _sections(proof)
    body = markup(
        h("a", "Skip to the report", href="#report", cls="skip"),
        h(
            "div",
            render_head(proof),
            h(
                "nav",
                h("ul", (h("li", h("a", title, href=f"#{key}")) for key, title, _, _ in sections)),
                cls="contents",
                aria_label="Contents",
            ),
            h("main", (_section(*s) for s in sections), id="report", tabindex=-1),
            h(
                "footer",
                f"Written by Clusterwright {proof.version} from the inputs named above. This file is complete: it "
                "loads nothing and sends nothing.",
            ),
            cls="frame",
        ),
    )
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("meta", name="referrer", content="no-referrer"),
        h("meta", name="generator", content=f"Clusterwright {proof.version}"),
        h("meta", name="description", content=sentence(proof)),
        h("link", rel="icon", href="data:,"),
        h("title", f"Proof of {proof.cluster}"),
        Html(f"<style>{STYLE}</style>"),
    )
    script = Html(f"<script>{SCRIPT}</script>")
    return "<!DOCTYPE html>\n" + h("html", head, h("body", body, script), lang="en") + "\n"


def _digest(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


#: Nothing from outside; only this style sheet and this script, by their digests (Content Security Policy Level 3).
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_digest(STYLE)}'; script-src 'sha256-{_digest(SCRIPT)}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def _sections(proof: Proof) -> list[tuple[str, str, Html, str]]:
    """(anchor, title, content, class) of every section that has content."""
    made = [
        ("steps", "Steps", render_steps(proof), ""),
        ("findings", "What changes most", render_findings(proof), ""),
        ("topology", "Topology", render_topology(proof), ""),
        ("plan", "Plan", render_plan(proof.plan), ""),
        ("rehearsals", "Rehearsals", render_rehearsals(proof), "virtual"),
        ("verdict", "Verdict per claim", render_verdicts(proof), ""),
        ("assumptions", "Load-bearing assumptions", render_assumptions(proof), ""),
        ("limits", "Not run, and limits", render_limits(proof), ""),
    ]
    return [section for section in made if section[2]]


def _section(key: str, title: str, content: Html, cls: str) -> Html:
    return h(
        "section", h("h2", title, id=f"{key}-title"), content, id=key, cls=cls or None, aria_labelledby=f"{key}-title"
    )
