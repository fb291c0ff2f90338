"""What a month costs, what it yields, and what the same accepted unit costs elsewhere.

Paid time divides into idle, repeated, failed and useful work; the shares add up to one, so the cost lines add up to the
total. With useful share U, retries r and failed runs f, worked time is U ÷ ((1 − r)(1 − f)) and idle time the rest.
Unit cost = total ÷ (paid GPU-hours × U × units per useful GPU-hour × accepted share).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.lib.quantities import CURRENCIES, Quantity
from clusterwright.model.economics import Costs as Running
from clusterwright.model.economics import Economics
from clusterwright.model.pools import Pool
from clusterwright.physics.money import HOURS_PER_MONTH, capital_recovery
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.sites import Site


@dataclass(frozen=True, slots=True)
class Use:
    """How paid GPU time is used; shares.

    Args:
        useful: of paid time that does work which is kept.
        kept: of worked time, (1 − retries)(1 − failed).
        retries, failed: of worked time.
        accepted: of outputs.
    """

    useful: Figure
    kept: Figure
    retries: Figure
    failed: Figure
    accepted: Figure
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Costs:
    """Money per month.

    Args:
        compute: pools with GPUs, of owned ones capital and power.
        other: pools without GPUs, network, storage, support, operations as far as known, by label.
        paid_gpu_hours: of worker pools, per month.
    """

    currency: str
    compute: Figure
    other: tuple[tuple[str, Figure], ...]
    paid_gpu_hours: Figure


def read_use(sheet: Sheet) -> Use | Unplanned:
    """Shares of paid time: the declared utilisation, else what the declared shares leave."""
    money = sheet.architecture.economics
    shares = money.shares if money else None
    values = {k: getattr(shares, k) if shares else None for k in ("idle", "retries", "failed", "accepted")}
    if money is None or (money.utilisation is None and values["idle"] is None):
        return Unplanned(
            "economics.use",
            "the file states neither a utilisation nor an idle share",
            ("economics.utilisation", "economics.shares.idle"),
        )

    def share(name: str, default: float, reason: str) -> Figure:
        value = values[name]
        if value is not None:
            return sheet.declared(f"economics.shares.{name}", value.value, "share")
        return sheet.assumed(f"economics.{name}", default, "share", reason)

    retries = share("retries", 0.0, "no share of retries is stated")
    failed = share("failed", 0.0, "no share of failed runs is stated")
    accepted = share("accepted", 1.0, "no share of accepted outputs is stated")
    kept = sheet.derive(
        "economics.kept", "share", "(1 − retries)(1 − failed)", lambda r, f: (1 - r) * (1 - f), retries, failed
    )
    useful = _useful(sheet, money, values["idle"], kept)
    if not useful.value:
        return Unplanned("economics.use", "the declared shares leave no useful time", ("economics.shares",))
    return Use(useful, kept, retries, failed, accepted, _contradictions(money, kept))


def _useful(sheet: Sheet, money: Economics, idle: Quantity | None, kept: Figure) -> Figure:
    if money.utilisation is not None:
        stated = sheet.declared("economics.utilisation", money.utilisation.value, "share")
        if money.utilisation_means != "allocated":
            return stated
        return sheet.derive(
            "economics.useful", "share", "allocated share × (1 − retries)(1 − failed)", lambda u, k: u * k, stated, kept
        )
    declared_idle = sheet.declared("economics.shares.idle", idle.value if idle else 0.0, "share")
    return sheet.derive(
        "economics.useful",
        "share",
        "(1 − idle)(1 − retries)(1 − failed)",
        lambda i, k: (1 - i) * k,
        declared_idle,
        kept,
    )


def _contradictions(money: Economics, kept: Figure) -> tuple[str, ...]:
    """Utilisation and idle share say the same twice; the utilisation counts, and where they differ that is told."""
    idle = money.shares.idle if money.shares else None
    if money.utilisation is None or idle is None or not kept.value:
        return ()
    stated = money.utilisation.value * (kept.value if money.utilisation_means == "allocated" else 1)
    left, follows = (1 - idle.value) * kept.value, 1 - stated / kept.value
    if abs(left - stated) <= 0.02:
        if abs(follows - idle.value) < 0.0005:
            return ()
        return (
            f"idle time follows from the utilisation: {follows:.1%} of paid time, shares.idle declares "
            f"{idle.value:.1%}; costs use {follows:.1%}",
        )
    return (
        f"the declared utilisation means {stated:.0%} useful time, the declared shares leave {left:.0%}; "
        f"costs use {stated:.0%}, which is {follows:.1%} idle where {idle.value:.1%} are declared",
    )


def plan_compute(sheet: Sheet, sites: tuple[Site, ...]) -> tuple[Figure | None, list[Figure]]:
    """(money per month of the pools with GPUs, None without a price or in several currencies; of each other pool)."""
    money = sheet.architecture.economics
    compute, beside = list[Figure](), list[Figure]()
    for name, pool in sheet.architecture.pools.items():
        site = next((s for s in sites if s.name == name), None)
        cost = _pool_month(sheet, name, pool, site, money)
        if isinstance(cost, Unplanned):
            sheet.miss(cost.subject, cost.reason, *cost.missing)
        elif cost is not None:
            (compute if site else beside).append(cost)
    compute += _owned_month(sheet, money, sites)
    if not compute or not sites or len({f.unit for f in compute}) > 1:
        return None, [*compute, *beside]
    total = sheet.derive(
        "economics.compute",
        compute[0].unit,
        "pools with GPUs; of owned ones capital and power",
        lambda *p: sum(p),
        *compute,
    )
    return total, beside


def plan_costs(sheet: Sheet, sites: tuple[Site, ...]) -> Costs | Unplanned:
    """Money per month of everything that the file or the catalogue prices."""
    money = sheet.architecture.economics
    total, beside = plan_compute(sheet, sites)
    if total is None:
        signs = {f.unit for f in beside}
        if len(signs) > 1:
            return _several(sheet, signs)
        return sheet.miss("economics", "no pool with GPUs has a price", "pools.*.price")
    other = [*_beside(sheet, beside), *_other_lines(sheet, money)]
    signs = {total.unit} | {f.unit for _, f in other}
    if len(signs) > 1:
        return _several(sheet, signs)
    sign = total.unit.partition("/")[0]
    gpus = sheet.planned("economics.gpus", sum(s.gpus for s in sites), "GPUs", "GPUs of all worker pools")
    paid = sheet.derive("economics.paid_gpu_hours", "GPU-h/month", "GPUs × 730 h", lambda n: n * HOURS_PER_MONTH, gpus)
    code = next((c for c, s in CURRENCIES.items() if s == sign), sign)
    return Costs(code, total, tuple(other), paid)


def _several(sheet: Sheet, signs: set[str]) -> Unplanned:
    return sheet.miss("economics", f"prices are in several currencies ({', '.join(sorted(signs))})", "economics")


def _beside(sheet: Sheet, pools: list[Figure]) -> list[tuple[str, Figure]]:
    """Pools without GPUs as one line."""
    if not pools:
        return []
    total = sheet.derive(
        "economics.other_nodes", pools[0].unit, "sum of the pools without GPUs", lambda *p: sum(p), *pools
    )
    return [("control and other nodes", total)]


def _pool_month(
    sheet: Sheet, name: str, pool: Pool, site: Site | None, money: Economics | None
) -> Figure | Unplanned | None:
    """Money per month of a pool; None for an owned one, which capital and power pay for."""
    path = f"pools.{name}"
    nodes = sheet.planned(f"{path}.count", pool.node_count, "nodes", str(sheet.document.places.of(f"{path}.nodes")))
    if pool.price is None:
        if pool.ownership == "owned" and money and money.costs and money.costs.capital:
            return None
        return _catalogue_month(sheet, name, site, nodes)
    powers = {symbol for symbol, _ in pool.price.powers}
    if "GPU" in powers:
        if site is None:
            return Unplanned(f"{path}.month", f"pool {name} has a price per GPU and no known GPUs", (f"{path}.price",))
        price = sheet.declared(f"{path}.price", pool.price, "money/GPU-h")
        each = sheet.planned(f"{path}.gpus_per_node", site.gpus_per_node, "GPUs", f"GPUs of a node of pool {name}")
        return _month(
            sheet, path, "price × nodes × GPUs × 730 h", lambda p, n, g: p * n * g * HOURS_PER_MONTH, price, nodes, each
        )
    if "node" in powers:
        price = sheet.declared(f"{path}.price", pool.price, "money/node-h")
        return _month(sheet, path, "price × nodes × 730 h", lambda p, n: p * n * HOURS_PER_MONTH, price, nodes)
    price = sheet.declared(f"{path}.price", pool.price, "money/month")
    return _month(sheet, path, "price of the pool", lambda p: p, price)


def _month(
    sheet: Sheet, path: str, formula: str, function: Callable[..., float], price: Figure, *rest: Figure
) -> Figure:
    sign = price.unit.partition("/")[0]
    return sheet.derive(f"{path}.month", f"{sign}/month", formula, function, price, *rest)


def _catalogue_month(sheet: Sheet, name: str, site: Site | None, nodes: Figure) -> Figure | Unplanned:
    path = f"pools.{name}"
    if site is None or site.gpu is None:
        return Unplanned(f"{path}.month", f"pool {name} has no price", (f"{path}.price",))
    known = sheet.catalogue.prices("rental", site.gpu.name)
    if not known:
        return Unplanned(
            f"{path}.month", f"pool {name} has no price and the catalogue none of {site.gpu.name}", (f"{path}.price",)
        )
    price = known[0]
    middle = Quantity((price.low.value + price.high.value) / 2, price.low.powers)
    figure = sheet.published(price, "price", middle, "money/GPU-h", f"{price.low} to {price.high}, no price declared")
    gpus = site.gpus_per_node
    return _month(
        sheet,
        path,
        f"catalogue price × nodes × {gpus} GPUs × 730 h",
        lambda p, n: p * n * gpus * HOURS_PER_MONTH,
        figure,
        nodes,
    )


def _owned_month(sheet: Sheet, money: Economics | None, sites: tuple[Site, ...]) -> list[Figure]:
    """Capital, and colocation or power, of owned hardware per month. Colocation includes power: never both."""
    costs = money.costs if money else None
    if costs is None or costs.capital is None:
        return []
    if costs.depreciation is None:
        sheet.miss(
            "economics.capital", "capital without a time over which it is paid back", "economics.costs.depreciation"
        )
        return []
    power = _power_month(sheet, costs, sites)
    return [_capital_month(sheet, costs, costs.capital, costs.depreciation), *([power] if power else [])]


def _capital_month(sheet: Sheet, costs: Running, price: Quantity, time: Quantity) -> Figure:
    capital = sheet.declared("economics.costs.capital", price, "money")
    years = sheet.declared("economics.costs.depreciation", time, "year")
    interest = (
        sheet.declared("economics.costs.interest", costs.interest.value, "share")
        if costs.interest is not None
        else sheet.assumed("economics.interest", 0.0, "share", "no interest is stated")
    )
    return sheet.derive(
        "economics.capital",
        f"{capital.unit}/month",
        "capital × i/(1 − (1 + i)^−n) ÷ 12",
        lambda c, n, i: c * capital_recovery(i, n) / 12,
        capital,
        years,
        interest,
    )


def _power_month(sheet: Sheet, costs: Running, sites: tuple[Site, ...]) -> Figure | None:
    path = "economics.costs"
    if costs.colocation is None and costs.power is None:
        return None
    owned = tuple(site for site in sites if _bought(site))
    unknown = [site.name for site in owned if not _states_power(site)]
    if unknown:
        what = "colocation" if costs.colocation is not None else "power"
        reason = f"the power of a node is unknown, and {what} not in the total: pools {', '.join(unknown)}"
        sheet.miss("economics.power", reason, *(f"pools.{name}.hardware.power" for name in unknown))
        return None
    load = _power_kw(sheet, owned)
    if load is None:
        sheet.limit("power and colocation are of owned pools without a price of their own; the file has none")
        return None
    if costs.colocation is not None:
        if costs.power is not None:
            sheet.limit("colocation includes power: the declared price of energy is not counted beside it")
        price = sheet.declared(f"{path}.colocation", costs.colocation, "money/kW-month")
        sign = price.unit.partition("/")[0]
        return sheet.derive(
            "economics.colocation", f"{sign}/month", "power of owned nodes × price", lambda k, p: k * p, load, price
        )
    assert costs.power is not None
    price = sheet.declared(f"{path}.power", costs.power, "money/kW-h")
    sign = price.unit.partition("/")[0]
    pue = (
        sheet.declared(f"{path}.pue", costs.pue, "")
        if costs.pue is not None
        else sheet.assumed("economics.pue", 1.0, "", "no PUE is stated")
    )
    return sheet.derive(
        "economics.power",
        f"{sign}/month",
        "sustained power × PUE × 730 h × price",
        lambda k, u, p: k * u * HOURS_PER_MONTH * p,
        load,
        pue,
        price,
    )


def _bought(site: Site) -> bool:
    """Whether capital and power pay for it; rent and a price per hour include power."""
    return site.pool.ownership == "owned" and site.pool.price is None


def _states_power(site: Site) -> bool:
    own = site.pool.hardware.power if site.pool.hardware else None
    return own is not None or (site.shape is not None and site.shape.power is not None)


def _power_kw(sheet: Sheet, sites: tuple[Site, ...]) -> Figure | None:
    parts = []
    for site in sites:
        hardware = site.pool.hardware
        declared = hardware.power if hardware else None
        if declared is not None:
            each = sheet.declared(f"{site.path}.hardware.power", declared, "kW")
        else:
            assert site.shape is not None
            assert site.shape.power is not None
            each = sheet.published(site.shape, "power", site.shape.power, "kW")
        count = len(site.nodes)
        parts.append(
            sheet.derive(f"{site.path}.power", "kW", f"power of a node × {count}", lambda p, n=count: p * n, each)
        )
    return (
        sheet.derive("economics.load", "kW", "sum of the owned GPU pools", lambda *p: sum(p), *parts) if parts else None
    )


def _other_lines(sheet: Sheet, money: Economics | None) -> list[tuple[str, Figure]]:
    lines: list[tuple[str, Figure]] = []
    costs = money.costs if money else None
    for label in ("network", "storage", "support", "operations"):
        value = getattr(costs, label) if costs else None
        stored = _stores_month(sheet) if label == "storage" else None
        if stored is not None:
            lines.append(("storage, priced stores", stored))
        if value is not None:
            said = label if stored is None else "storage, other stores"
            lines.append((said, sheet.declared(f"economics.costs.{label}", value, "money/month")))
        elif stored is None:
            sheet.miss(
                f"economics.{label}",
                f"the cost of {label} is not stated and not in the total",
                f"economics.costs.{label}",
            )
    return lines


def _stores_month(sheet: Sheet) -> Figure | None:
    stores = sheet.architecture.storage.stores if sheet.architecture.storage else {}
    parts = []
    for name, store in stores.items():
        if store.price is None:
            continue
        if store.capacity is None:
            sheet.miss(
                f"storage.stores.{name}.month",
                f"store {name} has a price and no capacity; its cost is not in the total",
                f"storage.stores.{name}.capacity",
            )
            continue
        price = sheet.declared(f"storage.stores.{name}.price", store.price, "money/GB-month")
        size = sheet.declared(f"storage.stores.{name}.capacity", store.capacity, "GB")
        sign = price.unit.partition("/")[0]
        parts.append(
            sheet.derive(
                f"storage.stores.{name}.month", f"{sign}/month", "price × capacity", lambda p, s: p * s, price, size
            )
        )
    if not parts:
        return None
    return sheet.derive("economics.storage", parts[0].unit, "sum of the priced stores", lambda *p: sum(p), *parts)
