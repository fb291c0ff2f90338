"""What was done, what failed and what was not run, with the reason."""

from __future__ import annotations

from typing import Final

from clusterwright.report.html.elements import Html, h
from clusterwright.report.html.words import duration_words
from clusterwright.report.proofs import Proof, Step, StepState

_STATES: Final[dict[StepState, tuple[str, str]]] = {
    "done": ("good", "✓"),
    "failed": ("bad", "✕"),
    "not run": ("none", "–"),
}


def render_steps(proof: Proof) -> Html:
    """Every step in order. Done says that the step ran, not that its subject is in order."""
    return h("ol", (_step(s) for s in proof.steps), cls="steps") if proof.steps else Html("")


def _step(step: Step) -> Html:
    colour, icon = _STATES[step.state]
    took = h("span", duration_words(step.seconds), cls="soft small") if step.state != "not run" else h("span")
    return h(
        "li",
        h("span", h("span", h("span", icon, aria_hidden="true"), step.state, cls=f"outcome {colour}")),
        h(
            "span",
            h("b", step.name[:1].upper() + step.name[1:]),
            h("span", f": {step.reason}" if step.reason else ""),
            cls="reason",
        ),
        took,
    )
