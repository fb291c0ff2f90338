"""The cost of one accepted unit here and in the alternatives, in the same denominator, with break-even utilisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.model.economics import Alternative
from clusterwright.physics.money import per_million_tokens
from clusterwright.plan.economics import Costs, Use
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.markets import market_costs
from clusterwright.plan.results.money import AlternativeCost, EconomicsPlan, UnitCost
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.sites import Site

#: Kinds of alternatives whose hours are paid while nothing runs, too.
_PAID_ALWAYS: Final = ("colocation", "on-premises")


@dataclass(frozen=True, slots=True)
class Yield:
    """What one useful GPU-hour of a workload makes.

    Args:
        denominator: as declared (`accepted Mtok`).
        per_hour: units of the denominator per useful GPU-hour, before acceptance.
        unit: singular, for `$/unit`.
        tokens: (input, output) mean tokens of a request, of a service.
        site: pool that it was planned on.
    """

    workload: str
    denominator: str
    per_hour: Figure
    unit: str
    tokens: tuple[Figure, Figure] | None = None
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class Bill:
    """A month's bill and how its time is used.

    Args:
        implied: useful share that the declared loads alone use, None if unknown.
        hour: money per useful GPU-hour at the declared useful share.
        sign: of the currency.
    """

    costs: Costs
    use: Use
    implied: Figure | None
    total: Figure
    hour: Figure
    sign: str
    sites: tuple[Site, ...]


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
    found = [_dated(_alternative(sheet, bill, share, compared, made, n, a), a) for n, a in others.items()]
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


def _dated(cost: AlternativeCost, other: Alternative) -> AlternativeCost:
    return replace(cost, dated=other.date.isoformat() if other.date else "undated")


def _alternative(
    sheet: Sheet, bill: Bill, share: Figure, ours: Figure, made: Yield, name: str, other: Alternative
) -> AlternativeCost:
    prefix = f"workloads.{made.workload}.alternatives.{name}"
    path = f"economics.alternatives.{name}"
    if other.kind == "model-api":
        return _api(sheet, prefix, path, bill, ours, made, name, other)
    if other.price is None:
        return AlternativeCost(
            name, other.kind, sheet.miss(prefix, f"alternative {name} has no price", f"{path}.price"), None
        )
    powers = {symbol for symbol, _ in other.price.powers}
    if "GPU" not in powers and "node" not in powers:
        reason = f"alternative {name} is priced in a unit that does not compare per GPU-hour"
        return AlternativeCost(name, other.kind, sheet.miss(prefix, reason, f"{path}.price"), None)
    return _hourly(sheet, prefix, path, bill, share, ours, made, name, other, "GPU" in powers)


def _hourly(
    sheet: Sheet,
    prefix: str,
    path: str,
    bill: Bill,
    share: Figure,
    ours: Figure,
    made: Yield,
    name: str,
    other: Alternative,
    per_gpu: bool,
) -> AlternativeCost:
    """GPU-hours bought elsewhere: their price for worked hours, our other costs beside it."""
    assert other.price is not None
    if per_gpu:
        price = sheet.declared(f"{path}.price", other.price, "money/GPU-h")
    else:
        each = bill.sites[0].gpus_per_node
        node = sheet.declared(f"{path}.price", other.price, "money/node-h")
        unit = node.unit.replace("node", "GPU")
        price = sheet.derive(f"{path}.gpu_price", unit, f"price of a node ÷ {each} GPUs", lambda p: p / each, node)
    if price.unit.partition("/")[0] != bill.sign:
        return AlternativeCost(
            name, other.kind, sheet.miss(prefix, f"{name} is priced in another currency", path), None
        )
    busy, tied = _busy(sheet, prefix, path, share, name, other)
    rest = [f for _, f in bill.costs.other]
    cost = sheet.derive(
        f"{prefix}.unit_cost",
        f"{bill.sign}/{made.unit}",
        "(price ÷ (utilisation × (1 − retries)(1 − failed)) + our other costs per useful GPU-hour) ÷ accepted units",
        lambda p, b, k, h, u, n, a, *r: (p / (b * k) + sum(r) / (h * u)) / (n * a),
        price,
        busy,
        bill.use.kept,
        bill.costs.paid_gpu_hours,
        share,
        made.per_hour,
        bill.use.accepted,
        *rest,
    )
    even = sheet.derive(
        f"{prefix}.break_even",
        "share",
        "our compute per paid GPU-hour × utilisation × (1 − retries)(1 − failed) ÷ its price",
        lambda c, h, p, b, k: c / h * b * k / p,
        bill.costs.compute,
        bill.costs.paid_gpu_hours,
        price,
        busy,
        bill.use.kept,
    )
    even_price = sheet.derive(
        f"{prefix}.even_price",
        price.unit,
        "(our unit cost × accepted units − our other costs per useful hour) × utilisation × (1 − retries)(1 − failed)",
        lambda o, b, k, h, u, n, a, *r: max(0.0, (o * n * a - sum(r) / (h * u)) * b * k),
        ours,
        busy,
        bill.use.kept,
        bill.costs.paid_gpu_hours,
        share,
        made.per_hour,
        bill.use.accepted,
        *rest,
    )
    volume = sheet.derive(
        f"{prefix}.even_volume",
        f"{made.unit}/month",
        "our compute ÷ what the worked hours of an accepted unit cost there",
        lambda c, p, b, k, n, a: c / (p / (b * k) / (n * a)),
        bill.costs.compute,
        price,
        busy,
        bill.use.kept,
        made.per_hour,
        bill.use.accepted,
    )
    note = "network, storage, support and operations cost the same there"
    if tied:  # whatever we use more, they would too
        return AlternativeCost(name, other.kind, cost, None, note, even_price, None)
    return AlternativeCost(name, other.kind, cost, even, note, even_price, volume)


def _busy(sheet: Sheet, prefix: str, path: str, share: Figure, name: str, other: Alternative) -> tuple[Figure, bool]:
    """Share of the paid hours there that are used, and whether it is ours because none is stated.

    Rented hours can be given back; a machine that is bought or stands in a colocation is paid also while it idles.
    """
    if other.utilisation is not None:
        return sheet.declared(f"{path}.utilisation", other.utilisation.value, "share"), False
    if other.kind in _PAID_ALWAYS:
        words = "as busy as ours: its hours are paid whether they work or not, and no utilisation is stated"
        return sheet.derive(f"{prefix}.utilisation", "share", words, lambda u: u, share), True
    reason = "hours are paid only while they work; none is stated"
    return sheet.assumed(f"alternatives.{name}.utilisation", 1.0, "share", reason), False


def _api(
    sheet: Sheet,
    prefix: str,
    path: str,
    bill: Bill,
    ours: Figure,
    made: Yield,
    name: str,
    other: Alternative,
) -> AlternativeCost:
    if made.tokens is None or made.unit not in ("Mtok", "request"):
        return AlternativeCost(
            name, other.kind, Unplanned(prefix, f"an API does not sell {made.denominator}"), None, "not comparable"
        )
    if other.input_price is None or other.output_price is None:
        missing = (f"{path}.input_price", f"{path}.output_price")
        return AlternativeCost(name, other.kind, sheet.miss(prefix, f"{name} lacks a token price", *missing), None)
    read = sheet.declared(f"{path}.input_price", other.input_price, "money/Mtok")
    write = sheet.declared(f"{path}.output_price", other.output_price, "money/Mtok")
    if {read.unit, write.unit} != {f"{bill.sign}/Mtok"}:
        return AlternativeCost(
            name, other.kind, sheet.miss(prefix, f"{name} is priced in another currency", path), None
        )
    per_request = made.unit == "request"
    blended = sheet.derive(
        f"{prefix}.blended_price",
        f"{bill.sign}/{made.unit}",
        "input and output prices by the declared lengths",
        lambda r, w, i, o: (r * i + w * o) / (1e6 if per_request else i + o),
        read,
        write,
        *made.tokens,
    )
    cost = sheet.derive(
        f"{prefix}.unit_cost",
        f"{bill.sign}/{made.unit}",
        "blended price ÷ accepted share",
        lambda b, a: b / a if a else float("inf"),
        blended,
        bill.use.accepted,
    )
    even = sheet.derive(
        f"{prefix}.break_even",
        "share",
        "total ÷ (paid GPU-hours × units per useful GPU-hour × blended price)",
        lambda t, h, n, b: t / (h * n * b) if h * n * b else float("inf"),
        bill.total,
        bill.costs.paid_gpu_hours,
        made.per_hour,
        blended,
    )
    even_price = sheet.derive(
        f"{prefix}.even_price",
        blended.unit,
        "our unit cost × accepted share",
        lambda o, a: o * a,
        ours,
        bill.use.accepted,
    )
    volume = sheet.derive(
        f"{prefix}.even_volume",
        f"{made.unit}/month",
        "our whole bill ÷ cost of an accepted unit there",
        lambda t, c: t / c,
        bill.total,
        cost,
    )
    note = "assumes equal quality and the same accepted share"
    return AlternativeCost(name, other.kind, cost, even, note, even_price, volume)
