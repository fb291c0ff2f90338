"""The cost of one accepted unit here, beside its alternatives and published prices in the same denominator."""

from __future__ import annotations

from clusterwright.lib.figures import Figure
from clusterwright.physics.money import per_million_tokens
from clusterwright.plan.alternative_costs import alternative_cost
from clusterwright.plan.bills import Bill, Yield
from clusterwright.plan.economics import Costs, Use
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.markets import market_costs
from clusterwright.plan.results.money import EconomicsPlan, UnitCost
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.sites import Site


def plan_economics(
    sheet: Sheet,
    costs: Costs,
    use: Use,
    yields: list[Yield | Unplanned],
    implied: Figure | None,
    sites: tuple[Site, ...],
) -> EconomicsPlan:
    """Costs of a month and of a unit."""
    sign = costs.compute.unit.partition("/")[0]
    lines = _lines(sheet, costs, use, sign)
    total = sheet.derive(
        "economics.total", f"{sign}/month", "sum of the lines", lambda *p: sum(p), *(f for _, f in lines)
    )
    hour = sheet.derive(
        "economics.useful_gpu_hour",
        f"{sign}/GPU-h",
        "total ÷ (paid GPU-hours × useful share)",
        lambda t, h, u: t / (h * u) if h * u else float("inf"),
        total,
        costs.paid_gpu_hours,
        use.useful,
    )
    bill = Bill(costs, use, implied, total, hour, sign, sites)
    units = [y if isinstance(y, Unplanned) else _unit(sheet, bill, y) for y in yields]
    if len({site.gpu.name for site in sites if site.gpu}) > 1:
        sheet.limit(
            "a unit cost takes the GPU-hours of all pools as equally dear, whatever their GPUs; what replicas cost at "
            "their own pool's price stands beside their load"
        )
    notes = list(use.notes)
    if implied is not None and use.useful.value > 1.05 * implied.value:
        notes.append(
            f"the declared load alone uses {implied.value:.1%} of paid GPU time, economics declares "
            f"{use.useful.value:.1%} useful: services are compared with alternatives at {implied.value:.1%}"
        )
    return EconomicsPlan(
        currency=costs.currency,
        lines=lines,
        total=total,
        paid_gpu_hours=costs.paid_gpu_hours,
        utilisation=use.useful,
        implied_utilisation=implied,
        useful_gpu_hour=hour,
        units=tuple(units),
        notes=tuple(notes),
    )


def _lines(sheet: Sheet, costs: Costs, use: Use, sign: str) -> tuple[tuple[str, Figure], ...]:
    """Compute split by what its time did, then the other costs."""
    base = (costs.compute, use.useful, use.retries, use.failed)
    parts = {
        "compute, useful": ("compute × useful share", lambda c, u, r, f: c * u),
        "compute, failed": ("compute × worked share × (1 − retries) × failed", lambda c, u, r, f: c * u * f / (1 - f)),
        "compute, retries": (
            "compute × worked share × retries; worked = useful ÷ ((1 − retries)(1 − failed))",
            lambda c, u, r, f: c * u * r / ((1 - r) * (1 - f)),
        ),
        "compute, idle": (
            "compute × (1 − worked share)",
            lambda c, u, r, f: c * (1 - u / ((1 - r) * (1 - f))),
        ),
    }
    split = [
        (label, sheet.derive(f"economics.{label.replace(', ', '_')}", f"{sign}/month", formula, function, *base))
        for label, (formula, function) in parts.items()
    ]
    return (*split, *costs.other)


def per_unit(hour: float, per_hour: float, accepted: float) -> float:
    """Money of one accepted unit from the money of a useful GPU-hour and what the hour makes."""
    return hour / (per_hour * accepted) if per_hour * accepted else float("inf")


def _unit(sheet: Sheet, bill: Bill, made: Yield) -> UnitCost | Unplanned:
    """Cost at the declared useful share and at that of the load; alternatives are held against the higher."""
    prefix = f"workloads.{made.workload}.unit_cost"
    if not made.per_hour.value:
        return Unplanned(prefix, "it makes nothing: at no rate does a replica meet the latency targets")
    unit, share = f"{bill.sign}/{made.unit}", bill.use.useful
    declared = sheet.derive(
        prefix,
        unit,
        "cost of a useful GPU-hour ÷ (units per useful GPU-hour × accepted share)",
        per_unit if made.unit != "Mtok" else lambda h, n, a: per_million_tokens(h, n * 1e6 / 3600, a),
        bill.hour,
        made.per_hour,
        bill.use.accepted,
    )
    compared, at_load = declared, None
    if made.tokens is not None and bill.implied is not None and bill.implied.value:
        at_load = sheet.derive(
            f"{prefix}_at_load",
            unit,
            "total ÷ (paid GPU-hours × share that the declared loads use × units per useful GPU-hour × accepted share)",
            lambda t, h, u, n, a: t / (h * u * n * a) if h * u * n * a else float("inf"),
            bill.total,
            bill.costs.paid_gpu_hours,
            bill.implied,
            made.per_hour,
            bill.use.accepted,
        )
        if at_load.value > declared.value:
            compared, share = at_load, bill.implied
    money = sheet.architecture.economics
    others = money.alternatives if money else {}
    found = [alternative_cost(sheet, bill, share, compared, made, n, a) for n, a in others.items()]
    market = market_costs(
        sheet,
        f"workloads.{made.workload}",
        made.site or bill.sites[0],
        sheet.architecture.workloads[made.workload].model,
        bill.sign,
        made.unit,
        share,
        made.per_hour,
        bill.use.accepted,
        made.tokens,
    )
    return UnitCost(made.workload, made.denominator, compared, tuple(found), declared, at_load, share, market)
