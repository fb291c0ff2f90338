"""Readiness of unit economics: a denominator, every cost, how paid time is used, and what it is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.review.requiring import PRACTICE, each_pool, require, the_file
from clusterwright.review.rules import ALWAYS, BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject

_TABLE = RuleTable("economics")

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
    stages=ALWAYS,
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
    stages=ALWAYS,
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
    satisfy="give ownership, and the price of what is not owned; owned hardware is priced under economics.costs",
    example="price: $2.40/GPU-h\nownership: rented",
    source=PRACTICE,
    stages=ALWAYS,
)
def pool_price_missing(subject: Subject) -> Iterator[Hit]:
    """A pool has no ownership, or is not owned and has no price."""
    for path, label, pool in each_pool(subject):
        if pool.ownership is None:
            yield Hit(f"{path}.ownership", f"{label} does not say whether it is rented, reserved or owned")
        if pool.price is None and pool.ownership != "owned":
            yield Hit(f"{path}.price", f"{label} does not say what it costs")


require(
    _TABLE,
    "cost-left-out",
    the_file,
    {
        "economics.costs.network": "what the network costs",
        "economics.costs.storage": "what storage costs",
        "economics.costs.support": "what support costs",
        "economics.costs.operations": "what operating it costs (staff and tooling)",
    },
    catches="Network, storage, support or operations are left out of the costs.",
    why="GPUs are the visible part; staff alone can exceed them on a small cluster.",
    satisfy="give each cost; $0/month when it is in another price",
    example="costs: {network: $900/month, storage: $4000/month, support: $1500/month, operations: $9000/month}",
    weight=65,
    stages=ALWAYS,
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
    stages=ALWAYS,
)


@_TABLE.rule(
    "alternative-missing",
    Severity.ERROR,
    65,
    why="A cluster is one of several ways to the same result; without the others its cost means nothing.",
    satisfy="add the alternative with its price, denominator, source and date",
    example="alternatives: {api: {kind: model-api, input_price: $0.60/Mtok, output_price: $0.60/Mtok, ...}}",
    source=PRACTICE,
)
def alternative_missing(subject: Subject) -> Iterator[Hit]:
    """Rental, or for inference a model API, is not compared; colocation and ownership are a note."""
    economics = subject.architecture.economics
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
    if economics is None or economics.mapped_to_outputs is not True:
        said = (
            "says that it is not" if economics and economics.mapped_to_outputs is False else "does not say that it is"
        )
        yield Hit("economics.mapped_to_outputs", f"spend should be mapped to accepted outputs; the file {said}")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
