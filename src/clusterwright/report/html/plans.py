"""The plan: what does not hold first, then memory, placement, load, cost, and what could not be planned."""

from __future__ import annotations

from clusterwright.lib.figures import Origin
from clusterwright.plan.results.plans import Plan
from clusterwright.report.html.costs import render_costs
from clusterwright.report.html.derivations import Derivations
from clusterwright.report.html.elements import Html, dotted, h, markup
from clusterwright.report.html.fronts import render_fronts
from clusterwright.report.html.loads import render_loads
from clusterwright.report.html.memory import render_memory
from clusterwright.report.html.placements import render_placements
from clusterwright.report.html.words import origin_badge


def render_plan(plan: Plan | None) -> Html:
    """Every part of the plan that was made, with the layouts that were searched; "" when nothing was planned."""
    if plan is None:
        return Html("")
    derivations = Derivations()
    body = markup(
        _misfits(plan),
        render_memory(plan, derivations),
        render_placements(plan),
        render_fronts(plan.fronts),
        render_loads(plan, derivations),
        render_costs(plan, derivations),
        _unplanned(plan),
    )
    return markup(_key(), body) if body else Html("")


def _key() -> Html:
    badges = ((origin_badge(o), " ") for o in Origin)
    return h(
        "p",
        "Every number carries its origin, weakest to strongest: ",
        badges,
        "A computed number shows the weakest origin among the numbers that carry it; click a line for its derivation.",
        cls="small",
    )


def _misfits(plan: Plan) -> Html:
    if not plan.misfits:
        return Html("")
    return markup(
        h("h3", "What does not hold"),
        (
            h(
                "article",
                h("p", h("b", m.message)),
                h("p", dotted(m.path), f" · {m.subject}", cls="meta"),
                cls="finding error",
            )
            for m in plan.misfits
        ),
    )


def _unplanned(plan: Plan) -> Html:
    if not plan.unplanned and not plan.limits:
        return Html("")
    return markup(
        h("h3", "Not planned") if plan.unplanned else None,
        h(
            "ul",
            (
                h(
                    "li",
                    dotted(u.subject),
                    f": {u.reason.rstrip('.')}.",
                    f" Needs: {', '.join(u.missing)}." if u.missing else "",
                )
                for u in plan.unplanned
            ),
        )
        if plan.unplanned
        else None,
        h("h3", "What this plan does not model") if plan.limits else None,
        h("ul", (h("li", said) for said in plan.limits)) if plan.limits else None,
    )
