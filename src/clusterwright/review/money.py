"""Money: one denominator, every cost once, utilisation that is useful, prices of today, terms with evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.catalogue.shelf_lives import OF_ALTERNATIVE, SHELF_LIVES
from clusterwright.lib.figures import Figure, Origin
from clusterwright.lib.quantities import CURRENCIES, Quantity
from clusterwright.model.economics import Economics
from clusterwright.model.findings import Severity
from clusterwright.plan.ages import aged_inputs
from clusterwright.plan.results.money import AlternativeCost, UnitCost
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import TrainingPlan
from clusterwright.review.rules import BUILD, Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject, counted, listed

_TABLE = RuleTable("economics")

#: Term from which evidence is asked for; our default: shorter ones can be left before a second refresh of prices.
LONG_TERM_DAYS: Final = 365.0


def _economics(subject: Subject) -> Economics:
    return subject.architecture.economics or Economics()


@_TABLE.rule(
    "denominators-differ",
    Severity.ERROR,
    80,
    why="Cost per accepted Mtok here against cost per GPU-hour there compares nothing.",
    satisfy="bring every alternative to the denominator of economics",
    example="economics: {denominator: accepted Mtok, alternatives: {api: {denominator: accepted Mtok, ...}}}",
    source="Clusterwright: the same denominator in every alternative",
)
def denominators_differ(subject: Subject) -> Iterator[Hit]:
    """An alternative has another denominator, or none."""
    economics = _economics(subject)
    if economics.denominator is None:
        return  # denominator-missing says so
    for name, other in economics.alternatives.items():
        path = f"economics.alternatives.{name}.denominator"
        if other.denominator is None:
            yield Hit(path, f"alternative {name} has no denominator; ours is {economics.denominator}")
        elif other.denominator.strip().lower() != economics.denominator.strip().lower():
            yield Hit(path, f"alternative {name} is per {other.denominator}; ours is {economics.denominator}")


@_TABLE.rule(
    "utilisation-allocated",
    Severity.ERROR,
    75,
    why="Allocated GPUs are paid for; only useful ones produce. A job that holds GPUs and waits is 100 % allocated.",
    satisfy="estimate the useful share: after idle, retries, failed runs and stalls",
    example="economics: {utilisation: 45%, utilisation_means: useful}",
    source="Clusterwright: unit cost divides by useful work",
)
def utilisation_allocated(subject: Subject) -> Iterator[Hit]:
    """Utilisation means allocated, not useful."""
    economics = _economics(subject)
    if economics.utilisation_means == "allocated":
        said = economics.utilisation or "utilisation"
        yield Hit("economics.utilisation_means", f"{said} is the allocated share of paid GPU time, not the useful one")


#: Part of paid time that may stay unexplained before it is a finding; our default, for rounded shares.
REST: Final = 0.05


@_TABLE.rule(
    "shares-not-whole",
    Severity.ERROR,
    65,
    why="Paid time is worked or idle, and worked time is kept, done again or lost; together they are all of it.",
    satisfy="correct the shares until worked and idle time make up the whole",
    example="economics: {utilisation: 45%, shares: {idle: 52%, retries: 3%, failed: 2%, accepted: 98%}}",
    source="arithmetic: useful ÷ ((1 − retries)(1 − failed)) + idle = 1, as Clusterwright's plan divides paid time",
)
def shares_not_whole(subject: Subject) -> Iterator[Hit]:
    """Worked and idle time exceed all paid time, or (a warning) leave much of it unexplained."""
    economics = _economics(subject)
    shares, useful = economics.shares, economics.utilisation
    if shares is None or shares.idle is None or useful is None or economics.utilisation_means == "allocated":
        return
    kept = (1 - _value(shares.retries)) * (1 - _value(shares.failed))
    if kept <= 0:
        return  # nothing-useful says so
    worked = useful.value / kept
    total = worked + shares.idle.value
    parts = f"useful {useful} means {worked:.0%} worked; with idle {shares.idle} that is {total:.0%} of paid time"
    if total > 1 + 1e-9 + REST / 10:
        yield Hit("economics.shares.idle", parts)
    elif total < 1 - REST:
        yield Hit("economics.shares.idle", f"{parts}: {1 - total:.0%} is unexplained", severity=Severity.WARNING)


def _value(share: Quantity | None) -> float:
    return share.value if share is not None else 0.0


@_TABLE.rule(
    "nothing-useful",
    Severity.ERROR,
    75,
    why="A cluster of which no hour does work that is kept has no cost per unit: it divides by nothing.",
    satisfy="correct the share; idle is of paid time, retries and failed of worked time",
    example="shares: {idle: 52%, retries: 3%, failed: 2%, accepted: 98%}",
    source="arithmetic: useful = (1 − idle)(1 − retries)(1 − failed)",
)
def nothing_useful(subject: Subject) -> Iterator[Hit]:
    """Idle time, retries or failed runs are all of the time, so that nothing useful is left."""
    shares = _economics(subject).shares
    words = {
        "idle": "of paid time is idle",
        "retries": "of worked time is done again",
        "failed": "of runs yield nothing",
    }
    for field, said in words.items():
        share = getattr(shares, field) if shares else None
        if share is not None and share.value >= 1:
            yield Hit(f"economics.shares.{field}", f"{share} {said}: no useful time is left")


@_TABLE.rule(
    "colocation-and-power-twice",
    Severity.ERROR,
    65,
    why="Colocation by the kilowatt includes the power; an energy price beside it counts it twice.",
    satisfy="give colocation or power, never both",
    example="costs: {colocation: $170/kW-month}",
    source="Clusterwright's plan: $/GPU-h takes colocation or power, never both",
)
def power_twice(subject: Subject) -> Iterator[Hit]:
    """Colocation and power are both priced, or a rented pool pays for either again."""
    costs = _economics(subject).costs
    if costs is None:
        return
    if costs.colocation is not None and costs.power is not None:
        yield Hit(
            "economics.costs.power", f"colocation {costs.colocation} includes power, and power {costs.power} is added"
        )
    rented = [n for n, p in subject.gpu_pools.items() if p.ownership == "rented" and p.price is not None]
    for field in ("power", "colocation"):
        if rented and len(rented) == len(subject.gpu_pools) and getattr(costs, field) is not None:
            message = (
                f"{field} {getattr(costs, field)} is added to rented pools ({listed(rented)}), whose price includes it"
            )
            yield Hit(f"economics.costs.{field}", message, severity=Severity.WARNING)


@_TABLE.rule(
    "owned-without-capital",
    Severity.ERROR,
    65,
    why="Owned hardware costs its purchase price over its life, with interest; without them it looks free.",
    satisfy="give capital, depreciation, interest, and power (with pue) or colocation",
    example="costs: {capital: $3496000, depreciation: 5 years, interest: 10%, power: 8 ¢/kWh, pue: 1.25}",
    source="Clusterwright's plan: capital recovery factor; NREL's simple LCOE uses the same",
)
def owned_capital(subject: Subject) -> Iterator[Hit]:
    """A pool is owned and capital, depreciation, interest or power is not priced."""
    owned = [n for n, p in subject.gpu_pools.items() if p.ownership == "owned"]
    costs = _economics(subject).costs
    if not owned:
        return
    for field in ("capital", "depreciation", "interest"):
        if costs is None or getattr(costs, field) is None:
            yield Hit(f"economics.costs.{field}", f"pool {listed(owned)} is owned and costs say nothing about {field}")
    if costs is None or (costs.power is None and costs.colocation is None):
        yield Hit("economics.costs.power", f"pool {listed(owned)} is owned and neither power nor colocation is priced")


@_TABLE.rule(
    "currencies-mixed",
    Severity.ERROR,
    60,
    why="Dollars and euros do not add up, and no exchange rate is part of the file.",
    satisfy="write all prices in one currency",
    example="price: $2.40/GPU-h",
    source="Clusterwright: prices are never converted silently",
)
def currencies_mixed(subject: Subject) -> Iterator[Hit]:
    """Prices are in more than one currency."""
    first: dict[str, tuple[str, Quantity]] = {}
    for path, price in _prices(subject):
        if price.currency:
            first.setdefault(price.currency, (path, price))
    if len(first) > 1:
        found = listed(f"{price} ({path})" for path, price in first.values())
        yield Hit(list(first.values())[1][0], f"prices are in {listed(first)}: {found}")


def _prices(subject: Subject) -> Iterator[tuple[str, Quantity]]:
    for name, pool in subject.pools.items():
        if pool.price is not None:
            yield f"pools.{name}.price", pool.price
    economics = _economics(subject)
    for section, path in ((economics.costs, "economics.costs"), (economics.exit, "economics.exit")):
        for field in type(section).model_fields if section is not None else ():
            value = getattr(section, field)
            if isinstance(value, Quantity):
                yield f"{path}.{field}", value
    for name, other in economics.alternatives.items():
        for field in ("price", "input_price", "output_price"):
            if (value := getattr(other, field)) is not None:
                yield f"economics.alternatives.{name}.{field}", value
    for name, store in subject.stores.items():
        for field in ("price", "egress_price"):
            if (value := getattr(store, field)) is not None:
                yield f"storage.stores.{name}.{field}", value


@_TABLE.rule(
    "price-stale",
    Severity.WARNING,
    50,
    why="GPU and token prices fall by the month; an old alternative makes the cluster look cheap.",
    satisfy="look the price up again and date it",
    example="alternatives: {api: {source: price list, date: 2026-10-01, ...}}",
    source="shelf lives of the catalogue (catalogue/shelf_lives.py): 90 days for rents and APIs, else a year",
)
def price_stale(subject: Subject) -> Iterator[Hit]:
    """The price of an alternative is undated, from the future, without source, or older than its shelf life."""
    for name, other in _economics(subject).alternatives.items():
        path = f"economics.alternatives.{name}"
        if other.source is None:
            yield Hit(f"{path}.source", f"the price of {name} has no source")
        if other.date is None:
            yield Hit(f"{path}.date", f"the price of {name} has no date")
        elif other.date > subject.today:
            yield Hit(f"{path}.date", f"the price of {name} is dated {other.date}, after today ({subject.today})")
        else:
            kind = OF_ALTERNATIVE[other.kind]
            life, days = SHELF_LIVES[kind], (subject.today - other.date).days
            if life.days is not None and days > life.days:
                old = f"the price of {name} is {counted(days, 'day')} old ({other.date})"
                yield Hit(f"{path}.date", f"{old}; one of this kind ({kind}) is good for {life.days}: {life.reason}")


@_TABLE.rule(
    "input-stale",
    Severity.NOTE,
    45,
    why="A plan is as old as the oldest price or constant that carries it.",
    satisfy="declare the price, or measure what the constant stands for",
    example="pools: {gpu: {price: $2.40/GPU-h, ...}}",
    source="shelf lives of the catalogue (catalogue/shelf_lives.py), each with its reason",
)
def input_stale(subject: Subject) -> Iterator[Hit]:
    """A catalogue price (a warning) or published constant that the plan uses is older than its shelf life."""
    for old in aged_inputs(subject.plan, subject.catalogue, subject.today):
        said = f"{old.name} is {counted(old.days, 'day')} old ({old.dated}); {old.kind}s are good for {old.life}"
        severity, weight = (Severity.WARNING, 50) if old.kind.endswith("price") else (None, None)
        path = _carried(subject, old.name)
        yield Hit(path, f"{said}: {old.reason}", severity=severity, weight=weight)


def _carried(subject: Subject, leaf: str) -> str:
    """Section of the first figure that a leaf carries, such as `pools.gpu`."""
    for name, figure in subject.plan.figures.items():
        if not figure.is_leaf and leaf in figure.leaves:
            return ".".join(name.split(".")[:2])
    return "economics"


@_TABLE.rule(
    "alternative-unpriced",
    Severity.ERROR,
    60,
    why="An alternative without a price is not compared.",
    satisfy="give price, or input_price and output_price for a model API",
    example="alternatives: {api: {kind: model-api, input_price: $0.60/Mtok, output_price: $0.60/Mtok, ...}}",
    source="Clusterwright: the same denominator in every alternative",
)
def alternative_unpriced(subject: Subject) -> Iterator[Hit]:
    """An alternative has no price."""
    for name, other in _economics(subject).alternatives.items():
        path = f"economics.alternatives.{name}"
        if other.kind in ("model-api", "serverless"):
            if other.price is None and (other.input_price is None or other.output_price is None):
                missing = "input_price" if other.input_price is None else "output_price"
                yield Hit(f"{path}.{missing}", f"alternative {name} has no price per token in and out")
        elif other.price is None:
            yield Hit(f"{path}.price", f"alternative {name} has no price")


@_TABLE.rule(
    "term-exceeds-evidence",
    Severity.WARNING,
    70,
    why="A multi-year term on estimated throughput bets the whole sum on a model's error band.",
    satisfy="benchmark the workload on rented GPUs first, or shorten the term",
    example="economics: {term: 6 months}",
    source="Clusterwright's default: one year; the plan says whether throughput is measured",
)
def term_exceeds(subject: Subject) -> Iterator[Hit]:
    """Capacity is bound for a year or longer on throughput that nobody has measured."""
    economics, contract = _economics(subject), subject.architecture.contract
    terms = {"economics.term": economics.term, "contract.term": contract.term if contract else None}
    path, term = max(((p, t) for p, t in terms.items() if t is not None), key=lambda x: x[1].value, default=("", None))
    if term is None or term.to("days") < LONG_TERM_DAYS:
        return
    weak = []
    for planned in subject.plan.workloads:
        rate = None
        if isinstance(planned.service, ServicePlan):
            rate = planned.service.replica_rate
        elif isinstance(planned.training, TrainingPlan):
            rate = planned.training.tokens_per_s
        if rate is None or isinstance(rate, Unplanned):
            weak.append(f"{planned.name} (unknown)")
        elif rate.origin is not Origin.MEASURED:
            weak.append(f"{planned.name} ({rate.origin.word})")
    if weak:
        yield Hit(path, f"a term of {term} rests on throughput that is not measured: {listed(weak)}")


@_TABLE.rule(
    "break-even-above-plan",
    Severity.WARNING,
    75,
    why="Below its break-even utilisation a cluster costs more than the alternative, every month.",
    satisfy="raise useful utilisation, lower cost, or take the alternative",
    example="economics: {utilisation: 45%, utilisation_means: useful}",
    source="Clusterwright's plan: utilisation at which both unit costs are equal",
)
def break_even(subject: Subject) -> Iterator[Hit]:
    """The useful utilisation at which an alternative costs the same is above what is declared, or the load uses."""
    plan, economics = subject.plan.economics, _economics(subject)
    if isinstance(plan, Unplanned):
        if economics.alternatives:
            yield undecided("economics", f"the unit cost ({plan.reason})", _supply(plan))
        return
    never = {w.name for w in subject.plan.workloads if isinstance(w.service, ServicePlan) and w.service.unreachable}
    for unit in plan.units:
        if isinstance(unit, Unplanned):
            if economics.alternatives and unit.subject.split(".")[1] not in never:
                yield undecided("economics", f"a unit cost ({unit.reason})", _supply(unit))
            continue
        for other in unit.alternatives:
            trains = subject.workloads[unit.workload].train is not None
            sold = not (trains and other.kind == "model-api")  # an API sells answers, not training runs
            if isinstance(other.unit_cost, Unplanned) and sold and _is_priced(economics, other.name):
                reason = other.unit_cost.reason
                yield undecided(f"economics.alternatives.{other.name}", f"what {unit.workload} costs there ({reason})")
            share = unit.share or plan.utilisation
            if not _is_dearer(unit, other, share):
                continue
            reach = _even(other)
            whose = "declared" if unit.unit_cost is unit.at_declared else "that the declared load uses"
            ours = f"ours {unit.unit_cost} at the {share.value:.0%} useful time {whose}"
            message = f"{unit.workload}: {other.name} costs {other.unit_cost}, {ours}"
            path = f"economics.alternatives.{other.name}"
            yield Hit(path, f"{message}; {reach}", weight=_gap(other))


def _is_priced(economics: Economics, name: str) -> bool:
    other = economics.alternatives.get(name)
    return other is not None and any((other.price, other.input_price and other.output_price))


def _is_dearer(unit: UnitCost, other: AlternativeCost, share: Figure) -> bool:
    """Whether ours costs more; of one without a break-even, which is as busy as ours, at any useful time."""
    if isinstance(other.unit_cost, Unplanned):
        return False
    if other.break_even is not None:
        return other.break_even.value > share.value
    return other.even_price is not None and other.unit_cost.value < unit.unit_cost.value


def _even(other: AlternativeCost) -> str:
    if other.break_even is None:
        return f"even at {other.even_price} there, whatever the useful time"
    point = other.break_even.value
    return f"even at {point:.0%} useful time" + (", which never is" if point > 1 else "")


def _gap(other: AlternativeCost) -> int:
    """Weight: an alternative that wins at any utilisation changes more than one that wins by a little."""
    return 85 if other.break_even is None or other.break_even.value > 1 else 75


def _supply(unplanned: Unplanned) -> str:
    return f"supply {listed(unplanned.missing)}" if unplanned.missing else ""


@_TABLE.rule(
    "utilisation-below-load",
    Severity.WARNING,
    55,
    why="Useful work cannot exceed what the declared load asks for; a higher utilisation lowers cost on paper only.",
    satisfy="lower utilisation to what the load implies, or declare the missing load",
    example="economics: {utilisation: 45%, utilisation_means: useful}",
    source="Clusterwright's plan: declared load ÷ capacity of all paid GPUs",
)
def utilisation_load(subject: Subject) -> Iterator[Hit]:
    """The declared utilisation is higher than the declared loads alone would use."""
    plan = subject.plan.economics
    if isinstance(plan, Unplanned) or plan.implied_utilisation is None:
        return
    implied = plan.implied_utilisation.value
    if plan.utilisation.value > implied * 1.05:
        message = f"economics plans with {plan.utilisation.value:.0%} useful; the declared loads use {implied:.0%}"
        yield Hit("economics.utilisation", message)


#: From how many times beyond the published range a price is rather a slip than a deal; our default. Published rents of
#: one GPU differ by five between the cheapest and the dearest seller, which the range holds already.
SLIP: Final = 3.0


@_TABLE.rule(
    "price-off-market",
    Severity.NOTE,
    25,
    why="A price far from the published range is a typing error, a wrong unit, a special deal, or an old one.",
    satisfy="check the price and its unit",
    example="price: $2.40/GPU-h",
    source="the catalogue's price snapshots (dated)",
    stages=BUILD,
)
def price_off(subject: Subject) -> Iterator[Hit]:
    """The price of a rented GPU is outside half to twice the published range; a warning from three times beyond it."""
    for name, pool in subject.gpu_pools.items():
        gpu, price = subject.gpu(name), _per_gpu(subject, name)
        if gpu is None or pool.price is None or price is None or pool.ownership == "owned":
            continue
        snapshots = [p for p in subject.catalogue.prices("rental", gpu.name) if p.low.currency == pool.price.currency]
        if not snapshots:
            continue
        low, high = min(p.low.value for p in snapshots), max(p.high.value for p in snapshots)
        if low / 2 <= price <= high * 2:
            continue
        sign, ask = CURRENCIES.get(pool.price.currency, ""), f"{pool.price} for {gpu.name}"
        if "GPU" not in {symbol for symbol, _ in pool.price.powers}:
            ask += f" is {sign}{price * 3600:.3g}/GPU-h"
        known = f"published are {sign}{low * 3600:.2f} to {sign}{high * 3600:.2f}/GPU-h"
        off = max(low / price, price / high) if price else float("inf")
        times = f", {off:.3g} times beyond" if price else ""
        severity, weight = (Severity.WARNING, 60) if off > SLIP else (None, None)
        yield Hit(f"pools.{name}.price", f"{ask}; {known}{times}", severity=severity, weight=weight)


def _per_gpu(subject: Subject, pool: str) -> float | None:
    """The price of one GPU of a pool per second, from a price per GPU, per node or of the whole pool."""
    price, each, gpus = subject.pools[pool].price, subject.gpus_per_node(pool), subject.gpus_in(pool)
    if price is None:
        return None
    powers = {symbol for symbol, _ in price.powers}
    count = 1 if "GPU" in powers else each if "node" in powers else gpus
    return float(price.value) / count if count else None


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
