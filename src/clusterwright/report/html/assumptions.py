"""Assumed numbers that carry a result, ranked by what they move."""

from __future__ import annotations

import math
from typing import Final

from clusterwright.lib.figures import SWING
from clusterwright.report.html.elements import Html, dotted, fold, h, markup, table
from clusterwright.report.html.words import origin_badge
from clusterwright.report.proofs import Assumption, Proof

#: How many are shown before the rest is folded.
FIRST: Final = 10
_HEADS: Final = ("Number", "Value", "Origin", "Source", "Moves most", f"Effect of ±{SWING:.0%}")


def render_assumptions(proof: Proof) -> Html:
    """The assumptions as a table, the strongest in sight, the rest folded."""
    if not proof.assumptions:
        return Html("")
    first, rest = proof.assumptions[:FIRST], proof.assumptions[FIRST:]
    return markup(
        h(
            "p",
            "Defaults of the planner that a headline result rests on, the one that moves a result most first. Declare "
            "or measure it, and the plan stands on firmer ground.",
        ),
        _table(first, "Assumed numbers that carry a result"),
        fold(f"{len(rest)} more", _table(rest, "The other assumed numbers"), cls="fold") if rest else None,
    )


def _table(assumptions: tuple[Assumption, ...], caption: str) -> Html:
    rows = (
        (
            dotted(a.leaf.name),
            str(a.leaf),
            origin_badge(a.leaf.origin),
            a.leaf.basis,
            (dotted(a.moves.name), f", now {a.moves}"),
            "decides it" if math.isinf(a.effect) else f"±{a.effect:.1%}",
        )
        for a in assumptions
    )
    return table(_HEADS, rows, caption=caption, numeric=(1, 5), cls="stack")
