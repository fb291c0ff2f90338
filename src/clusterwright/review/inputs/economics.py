"""Readiness of unit economics: a denominator, every cost, how paid time is used, and what it is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.review.requiring import PRACTICE, asked_as_a_whole, each_pool, missing, require, the_file
from clusterwright.review.rules import ALWAYS, BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject, listed

_TABLE = RuleTable("economics")


@_TABLE.rule(
    "economics-missing",
    Severity.ERROR,
    75,
    why="A cluster without a cost per accepted unit can be neither compared with buying the result nor defended.",
    satisfy="write economics: denominator, utilisation and what it means, shares, costs, term, alternatives, exit",
    example="economics: {denominator: accepted Mtok, utilisation: 45%, utilisation_means: useful, term: 6 months, ...}",
    source=PRACTICE,
    stages=BUILD,
)
def economics_missing(subject: Subject) -> Iterator[Hit]:
    """The file has no section economics: denominator, utilisation, costs and alternatives are open."""
    if asked_as_a_whole(subject, "economics"):
        open_points = "denominator, utilisation, shares, costs, term, alternatives, exit"
        yield Hit("economics", f"the file says nothing about economics: {open_points}")


require(
    _TABLE,
    "denominator-missing",
    the_file,
    {"economics.denominator": "which unit costs are divided by"},
    catches="Economics has no denominator.",
    why="Dollars per GPU-hour compare prices, not results.",
    satisfy="name the unit of accepted work",
    example="economics: {denominator: accepted Mtok}",
    weight=70,
)
require(
    _TABLE,
    "utilisation-missing",
    the_file,
    {
        "economics.utilisation": "which share of paid GPU time will do useful work",
        "economics.utilisation_means": "whether that means useful or merely allocated",
    },
    catches="Expected utilisation, or what it means, is not stated.",
    why="Cost per unit is inversely proportional to it; no other number moves the comparison as much.",
    satisfy="give utilisation and utilisation_means: useful",
    example="economics: {utilisation: 45%, utilisation_means: useful}",
    weight=75,
)
require(
    _TABLE,
    "term-missing",
    the_file,
    {"economics.term": "for how long capacity is bound"},
    catches="The term is not stated.",
    why="A price without its term cannot be compared; a term without evidence is a bet.",
    satisfy="give economics.term",
    example="economics: {term: 6 months}",
    weight=50,
    stages=ALWAYS,
)


@_TABLE.rule(
    "pool-price-missing",
    Severity.ERROR,
    60,
    why="Capacity without a price looks free in every comparison.",
    satisfy="give the price of what is not owned; owned hardware is priced under economics.costs",
    example="price: $2.40/GPU-h\nownership: rented",
    source=PRACTICE,
    stages=BUILD,
)
def pool_price_missing(subject: Subject) -> Iterator[Hit]:
    """A pool that is not owned has no price."""
    for path, label, pool in each_pool(subject):
        if pool.price is None and pool.ownership != "owned":
            yield Hit(f"{path}.price", f"{label} does not say what it costs")


require(
    _TABLE,
    "pool-ownership-missing",
    each_pool,
    {"ownership": "whether it is rented, reserved or owned"},
    catches="A pool does not say whether it is rented, reserved or owned.",
    why="Rent ends with the contract, ownership brings capital, power and resale: costs, term and exit follow from it.",
    satisfy="say rented, reserved or owned",
    example="ownership: rented",
    weight=50,
)


@_TABLE.rule(
    "cost-left-out",
    Severity.ERROR,
    65,
    why="GPUs are the visible part; staff alone can exceed them on a small cluster.",
    satisfy="give each cost; $0/month when it is in another price",
    example="costs: {network: $900/month, storage: $4000/month, support: $1500/month, operations: $9000/month}",
    source=PRACTICE,
    stages=BUILD,
)
def cost_left_out(subject: Subject) -> Iterator[Hit]:
    """Network, storage, support or operations are left out of the costs; priced stores need no other word."""
    if asked_as_a_whole(subject, "economics"):
        return  # economics-missing says so
    fields = {
        "economics.costs.network": "what the network costs",
        "economics.costs.storage": _storage_words(subject),
        "economics.costs.support": "what support costs",
        "economics.costs.operations": "what operating it costs (staff and tooling)",
    }
    yield from missing(the_file(subject), {field: words for field, words in fields.items() if words})


def _storage_words(subject: Subject) -> str:
    """What is not said about the cost of storage; "" where each store that is paid for has price and capacity.

    Local disks and memory are paid for with their nodes.
    """
    shared = {n: s for n, s in subject.stores.items() if s.kind in ("object", "file", "block")}
    open_stores = [n for n, s in shared.items() if s.price is None or s.capacity is None]
    if shared and not open_stores:
        return ""
    return (
        f"what {listed(open_stores)} costs (price and capacity, or costs.storage)" if shared else "what storage costs"
    )


require(
    _TABLE,
    "share-left-out",
    the_file,
    {
        "economics.shares.idle": "how much paid time is idle",
        "economics.shares.retries": "how much work is done again",
        "economics.shares.failed": "how many runs yield nothing",
        "economics.shares.accepted": "which share of outputs is accepted",
    },
    catches="Idle time, retries, failed runs or accepted outputs are left out.",
    why="Every one of them is paid for; a unit cost without them is the cost on the best day.",
    satisfy="give each share",
    example="shares: {idle: 25%, retries: 3%, failed: 2%, accepted: 98%}",
    weight=60,
)


@_TABLE.rule(
    "alternative-missing",
    Severity.ERROR,
    65,
    why="A cluster is one of several ways to the same result; without the others its cost means nothing.",
    satisfy="add the alternative with its price, denominator, source and date",
    example="alternatives: {api: {kind: model-api, input_price: $0.60/Mtok, output_price: $0.60/Mtok, ...}}",
    source=PRACTICE,
    stages=BUILD,
)
def alternative_missing(subject: Subject) -> Iterator[Hit]:
    """Rental, or for inference a model API, is not compared; colocation and ownership are a note."""
    economics = subject.architecture.economics
    if asked_as_a_whole(subject, "economics"):
        return  # economics-missing says so
    kinds = {a.kind for a in economics.alternatives.values()} if economics else set[str]()
    wanted = [("rental", "renting GPUs", Severity.ERROR)]
    if any(w.serve is not None for w in subject.workloads.values()):
        wanted.append(("model-api", "a model API", Severity.ERROR))
    for kind, words, severity in wanted:
        if kind not in kinds:
            yield Hit("economics.alternatives", f"the cluster is not compared with {words} ({kind})", severity=severity)
    rest = [k for k in ("colocation", "on-premises") if k not in kinds]
    if rest:
        yield Hit(
            "economics.alternatives",
            f"not compared with {' and '.join(rest)}",
            "add them when the term is long enough to own hardware, else leave it",
            weight=20,
            severity=Severity.NOTE,
        )


require(
    _TABLE,
    "exit-missing",
    the_file,
    {
        "economics.exit.termination": "what ending early costs",
        "economics.exit.migration": "what moving away costs",
        "economics.exit.cleanup": "who wipes the disks",
    },
    catches="The way out is not priced.",
    why="The cheapest contract is the one that can be left; data and weights have to be moved and wiped.",
    satisfy="give termination, migration and cleanup",
    example="exit: {termination: $0, migration: $5000, cleanup: provider wipes disks and confirms in writing}",
    weight=35,
)


@_TABLE.rule(
    "spend-unmapped",
    Severity.ERROR,
    50,
    why="Spend that cannot be mapped to accepted outputs cannot be defended, cut or grown.",
    satisfy="map spend to accepted outputs and say mapped_to_outputs: true",
    example="economics: {mapped_to_outputs: true}",
    source=PRACTICE,
    stages=BUILD,
)
def spend_unmapped(subject: Subject) -> Iterator[Hit]:
    """Spend is not mapped to accepted outputs."""
    economics = subject.architecture.economics
    if asked_as_a_whole(subject, "economics"):
        return  # economics-missing says so
    if economics is None or economics.mapped_to_outputs is not True:
        said = (
            "says that it is not" if economics and economics.mapped_to_outputs is False else "does not say that it is"
        )
        yield Hit("economics.mapped_to_outputs", f"spend should be mapped to accepted outputs; the file {said}")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
