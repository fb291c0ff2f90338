"""How old the prices and constants are that a plan rests on; the day is an argument."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from clusterwright.catalogue.catalogues import Catalogue, stale
from clusterwright.catalogue.shelf_lives import OF_PRICE, SHELF_LIVES, AgeKind
from clusterwright.lib.figures import Figure, Origin
from clusterwright.model.entries import Entry
from clusterwright.model.prices import Price
from clusterwright.plan.results.plans import Plan

#: Published constants by the start of their name, first match counts; what is in none is a datasheet's.
_CONSTANTS: Final[tuple[tuple[str, AgeKind], ...]] = (
    ("published.node_failures", "failure rate"),
    ("published.training.reserve.", "datasheet"),
    ("published.training.", "calibration"),
    ("published.all_reduce.", "calibration"),
    ("published.all_gather.", "calibration"),
    ("published.reduce_scatter.", "calibration"),
    ("published.all_to_all", "calibration"),
    ("published.ring_share", "calibration"),
    ("published.calibration.", "calibration"),
)
_DATE: Final = re.compile(r"(20\d\d)(?:-(\d\d))?(?:-(\d\d))?")


@dataclass(frozen=True, slots=True)
class Aged:
    """A number that outlived its shelf life.

    Args:
        name: of the leaf.
        days: its age; life: what its kind is given; reason: why.
    """

    name: str
    kind: AgeKind
    dated: datetime.date
    days: int
    life: int
    reason: str


def aged_inputs(plan: Plan, catalogue: Catalogue, today: datetime.date) -> tuple[Aged, ...]:
    """Catalogue and published leaves of a plan that are too old on `today`, oldest first.

    Market prices beside a unit cost carry their own day and are left out. A constant is dated by the last date
    in its source, to the end of the month or year where it gives no day.
    """
    prices = {p.name: p for p in catalogue.prices()}
    used = {name: leaf for f in plan.figures.values() if _carries(f) for name, leaf in f.leaves.items()}
    found = [a for f in used.values() if f.own_origin is Origin.CATALOGUE for a in _aged(f, prices, today)]
    return tuple(sorted(found, key=lambda a: (-a.days, a.name)))


def _carries(figure: Figure) -> bool:
    return not figure.is_leaf and ".market." not in figure.name


def _aged(figure: Figure, prices: dict[str, Price], today: datetime.date) -> Iterator[Aged]:
    if figure.name.startswith("catalogue."):
        entry = prices.get(figure.name.removeprefix("catalogue.").rpartition(".")[0])
        if entry is not None:
            yield from _of_entry(figure.name, entry, OF_PRICE[entry.kind], today)
        return
    kind = next((kind for start, kind in _CONSTANTS if figure.name.startswith(start)), None)
    dated = _last_date(figure.basis)
    if kind is not None and dated is not None:
        yield from _judge(figure.name, kind, dated, today)


def _of_entry(name: str, entry: Entry, kind: AgeKind, today: datetime.date) -> Iterator[Aged]:
    life = SHELF_LIVES[kind].days
    if life is not None and stale(entry, today, datetime.timedelta(days=life)):
        yield from _judge(name, kind, entry.date, today)


def _judge(name: str, kind: AgeKind, dated: datetime.date, today: datetime.date) -> Iterator[Aged]:
    life, days = SHELF_LIVES[kind], (today - dated).days
    if life.days is not None and days > life.days:
        yield Aged(name, kind, dated, days, life.days, life.reason)


def _last_date(text: str) -> datetime.date | None:
    """The last date in a text; without a day the last of its month or year counts."""
    found = None
    for year, month, day in _DATE.findall(text):
        if day and month and 1 <= int(month) <= 12:
            found = datetime.date(int(year), int(month), min(int(day), 28))
        elif month and 1 <= int(month) <= 12:
            found = datetime.date(int(year), int(month), 28)
        else:
            found = datetime.date(int(year), 12, 31)
    return found
