"""What the same accepted unit costs at published prices: rented, owned with colocation or own power, from a model API.

Beside the alternatives that the file declares, and never in their place: the catalogue's prices are ranges of dated
snapshots. Ranges are bands. Colocation is counted without energy beside it, power without colocation: never both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.lib.quantities import CURRENCIES
from clusterwright.model.prices import ApiPrice, Price
from clusterwright.physics.money import gpu_hour
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.money import MarketCost
from clusterwright.plan.sites import Site

#: Interest, years and PUE of an owned GPU where the file states none: our defaults.
_INTEREST: Final = 0.10
_YEARS: Final = 5.0
_PUE: Final = 1.25


def market_costs(
    sheet: Sheet,
    prefix: str,
    site: Site,
    model: str,
    sign: str,
    unit: str,
    share: Figure,
    per_hour: Figure,
    accepted: Figure,
    tokens: tuple[Figure, Figure] | None,
) -> tuple[MarketCost, ...]:
    """Costs of one accepted unit at the catalogue's prices in the same currency; empty where it has none.

    Args:
        share: useful share of paid hours, of rented and owned GPUs alike.
        per_hour: units per useful GPU-hour, of a GPU like ours.
        tokens: mean input and output of a request, None for what no API sells.
    """
    found: list[MarketCost] = []
    for kind, hour, dated in _hours(sheet, prefix, site, sign):
        cost = sheet.derive(
            f"{prefix}.market.{kind}",
            f"{sign}/{unit}",
            "GPU-hour ÷ (useful share × units per useful GPU-hour × accepted share); compute alone",
            lambda p, u, n, a: p / (u * n * a) if u * n * a else float("inf"),
            hour,
            share,
            per_hour,
            accepted,
            band=hour.band,
        )
        found.append(MarketCost(kind, cost, dated))
    if tokens is not None and unit in ("Mtok", "request"):
        found += _apis(sheet, prefix, model, sign, unit, accepted, tokens)
    return tuple(found)


def _hours(sheet: Sheet, prefix: str, site: Site, sign: str) -> Iterator[tuple[str, Figure, str]]:
    """(kind, money per paid GPU-hour with its range as band, date of the oldest price in it)."""
    gpu = site.gpu
    if gpu is None:
        return
    rents = [p for p in sheet.catalogue.prices("rental", gpu.name) if _sign(p) == sign]
    if rents:
        yield "rental", _range(sheet, f"rental of {gpu.name}", rents, "money/GPU-h"), _oldest(rents)
    capex = [p for p in sheet.catalogue.prices("capex", gpu.name) if p.per == "gpu" and _sign(p) == sign][:1]
    load = _load(sheet, site)
    if not capex or load is None:
        return
    capital = _range(sheet, f"capital of {gpu.name}", capex, "money")
    terms = (
        sheet.assumed("market.interest", _INTEREST, "share", "of owned hardware"),
        sheet.assumed("market.years", _YEARS, "year", "over which hardware is written off"),
    )
    for kind, priced, unit in (("colocation", "colocation", "money/kW-month"), ("on-premises", "power", "money/kW-h")):
        known = [p for p in sheet.catalogue.prices(priced) if _sign(p) == sign][:1]  # type: ignore[arg-type]  # price kinds
        if known:
            yield (
                kind,
                _owned(sheet, prefix, kind, capital, load, _range(sheet, priced, known, unit), terms, sign),
                _oldest([*capex, *known]),
            )


def _load(sheet: Sheet, site: Site) -> Figure | None:
    """kW of one GPU with its share of the node: as declared, else of the shape."""
    hardware = site.pool.hardware
    if not site.gpus_per_node:
        return None
    if hardware is not None and hardware.power is not None:
        node = sheet.declared(f"{site.path}.hardware.power", hardware.power, "kW")
    elif site.shape is not None and site.shape.power is not None:
        node = sheet.published(site.shape, "power", site.shape.power, "kW")
    else:
        return None
    each = site.gpus_per_node
    return sheet.derive(f"{site.path}.power_per_gpu", "kW", f"power of a node ÷ {each} GPUs", lambda p: p / each, node)


def _owned(
    sheet: Sheet,
    prefix: str,
    kind: str,
    capital: Figure,
    load: Figure,
    price: Figure,
    terms: tuple[Figure, Figure],
    sign: str,
) -> Figure:
    name, unit = f"{prefix}.market.{kind}_hour", f"{sign}/GPU-h"
    if kind == "colocation":
        return sheet.derive(
            name,
            unit,
            "(capital × recovery factor + colocation × kW × 12) ÷ 8,760 h; energy billed apart is not in it",
            lambda c, i, n, k, p: gpu_hour(c, i, n, 0.0, 1.0, 0.0, p * k * 12, 1.0),
            capital,
            *terms,
            load,
            price,
            band=capital.band,
        )
    return sheet.derive(
        name,
        unit,
        "(capital × recovery factor + kW × PUE × 8,760 h × energy price) ÷ 8,760 h; building and staff are not in it",
        lambda c, i, n, k, p, u: gpu_hour(c, i, n, k, u, p, 0.0, 1.0),
        capital,
        *terms,
        load,
        price,
        sheet.assumed("market.pue", _PUE, "ratio", "of an own building"),
        band=capital.band,
    )


def _apis(
    sheet: Sheet, prefix: str, model: str, sign: str, unit: str, accepted: Figure, tokens: tuple[Figure, Figure]
) -> list[MarketCost]:
    """The cheapest and the dearest API of the model by blended price."""
    known = [p for p in sheet.catalogue.api_prices(model) if CURRENCIES.get(p.input.currency) == sign]
    costs = [(_api(sheet, prefix, sign, unit, accepted, tokens, p), p) for p in known]
    costs.sort(key=lambda found: (found[0].value, found[1].name))
    ends = costs if len(costs) < 2 else [costs[0], costs[-1]]
    return [MarketCost(f"API of {p.provider}", cost, p.date.isoformat()) for cost, p in ends]


def _api(
    sheet: Sheet, prefix: str, sign: str, unit: str, accepted: Figure, tokens: tuple[Figure, Figure], price: ApiPrice
) -> Figure:
    per_request = unit == "request"
    return sheet.derive(
        f"{prefix}.market.{price.name}",
        f"{sign}/{unit}",
        "input and output prices by the declared lengths ÷ accepted share",
        lambda r, w, i, o, a: (r * i + w * o) / (1e6 if per_request else i + o) / a if a else float("inf"),
        sheet.published(price, "input", price.input, "money/Mtok"),
        sheet.published(price, "output", price.output, "money/Mtok"),
        *tokens,
        accepted,
    )


def _range(sheet: Sheet, what: str, prices: list[Price], unit: str) -> Figure:
    """The middle of the newest snapshot with the range of all as its band."""
    newest = prices[0]
    middle = replace(newest.low, value=(newest.low.value + newest.high.value) / 2)
    low, high = min(p.low.value for p in prices), max(p.high.value for p in prices)
    note = f"{what}: {len(prices)} snapshots, {newest.low} to {newest.high} the newest"
    figure = sheet.published(newest, "market_price", middle, unit, note)
    banded = replace(figure, band=(low / middle.value, high / middle.value))
    sheet.figures[figure.name] = banded
    return banded


def _sign(price: Price) -> str:
    return CURRENCIES.get(price.low.currency, "")


def _oldest(prices: list[Price]) -> str:
    return min(p.date for p in prices).isoformat()
