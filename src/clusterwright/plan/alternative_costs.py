"""The cost of one accepted unit bought another way: by the GPU-hour or from an API, and where both cost the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.model.economics import Alternative
from clusterwright.plan.bills import Bill, Yield
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.money import AlternativeCost
from clusterwright.plan.results.refusals import Unplanned

#: Kinds of alternatives whose hours are paid while nothing runs, too.
_PAID_ALWAYS: Final = ("colocation", "on-premises")


def alternative_cost(
    sheet: Sheet, bill: Bill, share: Figure, ours: Figure, made: Yield, name: str, other: Alternative
) -> AlternativeCost:
    """One accepted unit as an alternative sells it, with the day of its price.

    Args:
        share: useful share that `ours`, our unit cost, was computed at.
    """
    cost = _priced(sheet, bill, share, ours, made, name, other)
    return replace(cost, dated=other.date.isoformat() if other.date else "undated")


def _priced(
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
    price = _gpu_price(sheet, path, bill, other, per_gpu)
    if price.unit.partition("/")[0] != bill.sign:
        return AlternativeCost(
            name, other.kind, sheet.miss(prefix, f"{name} is priced in another currency", path), None
        )
    busy, tied = _busy(sheet, prefix, path, share, name, other)
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
        *(f for _, f in bill.costs.other),
    )
    even, even_price, volume = _evens(sheet, prefix, bill, share, ours, made, price, busy)
    note = "network, storage, support and operations cost the same there"
    if tied:  # whatever we use more, they would too
        return AlternativeCost(name, other.kind, cost, None, note, even_price, None)
    return AlternativeCost(name, other.kind, cost, even, note, even_price, volume)


def _gpu_price(sheet: Sheet, path: str, bill: Bill, other: Alternative, per_gpu: bool) -> Figure:
    assert other.price is not None
    if per_gpu:
        return sheet.declared(f"{path}.price", other.price, "money/GPU-h")
    each = bill.sites[0].gpus_per_node
    node = sheet.declared(f"{path}.price", other.price, "money/node-h")
    unit = node.unit.replace("node", "GPU")
    return sheet.derive(f"{path}.gpu_price", unit, f"price of a node ÷ {each} GPUs", lambda p: p / each, node)


def _evens(
    sheet: Sheet, prefix: str, bill: Bill, share: Figure, ours: Figure, made: Yield, price: Figure, busy: Figure
) -> tuple[Figure, Figure, Figure]:
    """(useful share, price there, accepted units a month) at which both cost the same."""
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
        *(f for _, f in bill.costs.other),
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
    return even, even_price, volume


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
    blended = _blended(sheet, prefix, bill, made, made.tokens, read, write)
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


def _blended(
    sheet: Sheet, prefix: str, bill: Bill, made: Yield, tokens: tuple[Figure, Figure], read: Figure, write: Figure
) -> Figure:
    per_request = made.unit == "request"
    return sheet.derive(
        f"{prefix}.blended_price",
        f"{bill.sign}/{made.unit}",
        "input and output prices by the declared lengths",
        lambda r, w, i, o: (r * i + w * o) / (1e6 if per_request else i + o),
        read,
        write,
        *tokens,
    )
