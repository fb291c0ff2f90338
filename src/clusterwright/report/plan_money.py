"""Money in lines of the plan: the month, useful hours, an accepted unit here, elsewhere and at published prices."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.figures import Figure, format_amount
from clusterwright.physics.sensitivities import Swing
from clusterwright.plan.results.money import AlternativeCost, EconomicsPlan, MarketCost, UnitCost
from clusterwright.plan.results.plans import Plan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.report.plan_words import line, rounded, show

#: Inputs of a unit cost that are shown with how far they move it.
_SWINGS: Final = 3


def unit_cost_lines(name: str, plan: Plan) -> list[str]:
    """An accepted unit of a workload here, in the alternatives and at published prices."""
    if not isinstance(plan.economics, EconomicsPlan):
        return []
    for unit in plan.economics.units:
        if isinstance(unit, UnitCost) and unit.workload == name:
            return [line("unit cost" if not i else "", text) for i, text in enumerate(_cost_of(unit))]
        if isinstance(unit, Unplanned) and unit.subject == f"workloads.{name}.unit_cost":
            return [line("unit cost", f"not planned: {unit.reason}")]
    return []


def _cost_of(unit: UnitCost) -> list[str]:
    """Here at both useful shares, then the alternatives at the share that makes ours dearer."""
    ours = f"{show(unit.at_declared)} per {unit.denominator}"
    against = "compared"
    if unit.at_load is not None:
        ours += f" at the declared useful share, {show(unit.at_load)} at the useful share of the declared load"
        dearer = "useful share of the declared load" if unit.unit_cost is unit.at_load else "declared useful share"
        against = f"compared at the {dearer}" + (f" ({show(unit.share)})" if unit.share else "")
    parts = []
    for other in unit.alternatives:
        if isinstance(other.unit_cost, Unplanned):
            parts.append(f"{other.name}: {other.unit_cost.reason}")
        else:
            parts.append(f"{other.name} {show(other.unit_cost)}{_even(other)}")
    lines = [ours, f"{against}: {'; '.join(parts)}"] if parts else [ours]
    if unit.market:
        lines.append(f"at published prices, compute alone: {'; '.join(_market(m) for m in unit.market)}")
    swings = [_swing(s, unit.unit_cost) for s in unit.swings[:_SWINGS]]
    return [*lines, f"moved most by: {'; '.join(swings)}"] if swings else lines


def _even(other: AlternativeCost) -> str:
    """At which useful share, price and volume both cost the same, and of when the price is."""
    point, said = other.break_even, list[str]()
    if point is not None:
        said.append(f"even at {show(point)} useful time" if point.value <= 1 else "ours never costs less")
    if other.even_price is not None:
        reached = point is not None and point.value <= 1
        said.append(
            f"{'even ' * (point is None)}at {show(other.even_price)} there"
            + (f" or from {show(other.even_volume)} on" if reached and other.even_volume else "")
        )
    if other.dated:
        said.append("price undated" if other.dated == "undated" else f"price of {other.dated}")
    return f" ({', '.join(said)})" if said else ""


def _market(market: MarketCost) -> str:
    band, middle = market.unit_cost.band, market.unit_cost
    ends = ""
    if band is not None and band[0] != band[1]:
        ends = " (" + " to ".join(format_amount(rounded(middle.value * b), middle.unit) for b in band) + ")"
    return f"{market.kind} {show(middle)}{ends}, prices of {market.dated}"


def _swing(swing: Swing, figure: Figure) -> str:
    """`serve.rate: $0.65 to $0.80/Mtok`, smaller first."""
    low, high = sorted((swing.low, swing.high))
    return f"{swing.name} {format_amount(low, figure.unit)} to {format_amount(high, figure.unit)}"


def economics_lines(plan: Plan) -> list[str]:
    """The month with its parts, and what a useful GPU-hour costs."""
    money = plan.economics
    if isinstance(money, Unplanned):
        known = plan.compute_month
        compute = [line("compute", f"{show(known)} for the pools with GPUs")] if known is not None else []
        return ["cost", *compute, line("", f"{'the rest ' if compute else ''}not planned: {money.reason}")]
    parts = " + ".join(f"{label} {show(figure).replace('/month', '')}" for label, figure in money.lines if figure.value)
    lines = ["cost", line("month", f"{show(money.total)} = {parts}")]
    implied = money.implied_utilisation
    use = f"{show(money.utilisation)} of paid GPU time"
    use += f"; the declared load alone uses {show(implied)}" if implied else ""
    lines.append(line("useful", f"{use}; a useful GPU-hour costs {show(money.useful_gpu_hour)}"))
    return lines + [line("note", note) for note in money.notes]
