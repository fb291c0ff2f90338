"""What a unit of accepted work costs, by component, beside the alternatives with the same denominator."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.figures import Figure, format_amount, format_value
from clusterwright.plan.results.money import AlternativeCost, EconomicsPlan, UnitCost
from clusterwright.plan.results.plans import Plan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.report.html.cost_curves import render_cost_curves
from clusterwright.report.html.derivations import Derivations
from clusterwright.report.html.drawing import box, legend, share, strip
from clusterwright.report.html.elements import Child, Html, fold, h, markup
from clusterwright.report.html.words import origin_badge

_COLOURS: Final = tuple(f"k{i}" for i in range(1, 11))


def render_costs(plan: Plan, derivations: Derivations) -> Html:
    """Bars per unit and the month's bill; "" when the economics were not planned."""
    money = plan.economics
    if isinstance(money, Unplanned):
        return Html("")
    colours = {label: _COLOURS[i % len(_COLOURS)] for i, (label, _) in enumerate(money.lines)}
    units = [u for u in money.units if isinstance(u, UnitCost)]
    unknown = [u for u in money.units if isinstance(u, Unplanned)]
    return markup(
        h("h3", "Cost of a unit of accepted work") if units else None,
        (_unit(u, money, colours) for u in units),
        render_cost_curves(units, money),
        (_numbers(u, derivations) for u in units),
        h("ul", (h("li", f"{u.subject} is not computed: {u.reason}") for u in unknown), cls="small")
        if unknown
        else None,
        h("h3", "A month"),
        derivations.ledger(
            [
                *money.lines,
                ("total", money.total),
                ("paid GPU-hours", money.paid_gpu_hours),
                ("useful share that unit costs are computed with", money.utilisation),
                ("share that the declared loads alone would use", money.implied_utilisation),
                ("one useful GPU-hour", money.useful_gpu_hour),
            ]
        ),
        h("ul", (h("li", n) for n in money.notes), cls="small") if money.notes else None,
    )


def _unit(unit: UnitCost, money: EconomicsPlan, colours: dict[str, str]) -> Html:
    known = [(a, a.unit_cost) for a in unit.alternatives if isinstance(a.unit_cost, Figure)]
    widest = max([unit.unit_cost.value, *(f.value for _, f in known)])
    parts = _parts(unit.unit_cost, money)
    ours = _bar_of(unit.unit_cost, parts, widest, colours)
    return markup(
        h("h4", f"{unit.workload}, per {unit.denominator}"),
        h(
            "div",
            _label(_here(unit), unit.unit_cost, None),
            ours,
            legend(
                (colours[name], (f"{name} ", h("b", format_amount(part, unit.unit_cost.unit))))
                for name, part in parts
                if part
            ),
            ((_label(f"{a.name}, {a.kind}", f, a), _plain_bar(a, f, widest)) for a, f in known),
            cls="bars",
        ),
        (
            h("p", f"{a.name}: not comparable, {a.unit_cost.reason}", cls="small")
            for a in unit.alternatives
            if isinstance(a.unit_cost, Unplanned)
        ),
    )


def _here(unit: UnitCost) -> str:
    return f"here, at {format_value(100 * unit.share.value)} % useful time" if unit.share else "here"


def _label(name: str, figure: Figure, alternative: AlternativeCost | None) -> Html:
    even = alternative.break_even if alternative else None
    said = ""
    if even is not None:
        said = (
            f", same cost at {format_value(100 * even.value)} % useful time"
            if even.value <= 1
            else ", ours never costs less"
        )
    note = h("span", f" {alternative.note}", cls="soft small") if alternative and alternative.note else None
    return h(
        "div",
        h("span", h("b", name), said, note),
        h("span", h("b", str(figure)), " ", origin_badge(figure.origin)),
        cls="label",
    )


def _parts(unit_cost: Figure, money: EconomicsPlan) -> list[tuple[str, float]]:
    """(label, money per unit): every unit carries each line of the month's bill in the same share."""
    total = money.total.value
    return [(label, unit_cost.value * figure.value / total if total else 0.0) for label, figure in money.lines]


def _bar_of(unit_cost: Figure, parts: list[tuple[str, float]], widest: float, colours: dict[str, str]) -> Html:
    shapes: list[Child] = []
    x = 0.0
    for label, part in parts:
        width = max(0.0, part) / widest if widest else 0.0
        tip = f"{label} {format_amount(part, unit_cost.unit)}"
        shapes.append(box(share(x), 2, share(width), 20, f"{colours[label]} gap", tip=tip))
        x += width
    said = ", ".join(f"{label} {format_amount(part, unit_cost.unit)}" for label, part in parts)
    return strip(24, *shapes, label=f"{unit_cost}: {said}")


def _plain_bar(alternative: AlternativeCost, figure: Figure, widest: float) -> Html:
    return strip(
        24,
        box(0, 2, share(figure.value / widest if widest else 0), 20, "k0"),
        label=f"{alternative.name} {figure}",
    )


def _numbers(unit: UnitCost, derivations: Derivations) -> Html:
    rows: list[tuple[Child, Figure | None]] = [("here, at the declared useful share", unit.at_declared)]
    if unit.at_load is not None:
        rows.append(("here, at the useful share of the declared loads", unit.at_load))
    for a in unit.alternatives:
        if isinstance(a.unit_cost, Figure):
            rows += [(a.name, a.unit_cost), (f"useful share at which ours costs the same as {a.name}", a.break_even)]
    summary = (f"Unit cost of {unit.workload} ", h("span", "every number with its derivation", cls="soft"))
    return fold(summary, derivations.ledger(rows), cls="fold")
