"""What a GPU-hour costs: as stated, from the house profile, or the catalogue's snapshot with its day and range."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from clusterwright.catalogue.catalogues import Catalogue, fold
from clusterwright.catalogue.shelf_lives import SHELF_LIVES
from clusterwright.model.prices import Price
from clusterwright.plan.fitting.machines import Machine

#: (kind of seller, name, "" of a survey).
Seller = tuple[str, str]
PriceOrigin = Literal["stated", "profile", "catalogue"]
#: Sellers in the order in which their price stands for a GPU-hour: what most who ask can get comes first.
_SELLERS: Final = ("survey", "specialist", "marketplace", "hyperscaler", "public", "vendor", "model-api")


@dataclass(frozen=True)
class HourPrice:
    """Money per GPU-hour.

    Args:
        low, high: range of the source, equal where it gives one number.
        basis: where it comes from, in words.
        age_days: of a published price; stale when beyond its shelf life.
        for_sale: a price that a customer may see; costs and list prices of others are not.
        seller: who publishes it, "" where it was stated.
        sold: what the house sells it for, where `value` is its own cost.
    """

    value: float
    currency: str
    origin: PriceOrigin
    basis: str
    low: float
    high: float
    age_days: int | None = None
    stale: bool = False
    for_sale: bool = False
    sold: float | None = None
    seller: str = ""


@dataclass(frozen=True)
class Hours:
    """Prices per GPU-hour by name of GPU, node or SKU, folded; "" holds for every machine.

    Args:
        values: (money, currency).
        origin: where they come from. for_sale: prices that a customer may see.
        sold, margin: of the house where these are its costs: selling prices by name, and share of the price kept.
    """

    values: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    origin: PriceOrigin = "stated"
    basis: str = "--price"
    for_sale: bool = True
    sold: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    margin: float | None = None

    def of(self, machine: Machine) -> HourPrice | None:
        """The price of a machine by the closest of its names."""
        keys = names_of(machine)
        for key in (*keys, ""):
            if key in self.values:
                value, currency = self.values[key]
                sold = self._sold([*keys, ""], value)
                return HourPrice(
                    value, currency, self.origin, self.basis, value, value, for_sale=self.for_sale, sold=sold
                )
        return None

    def _sold(self, keys: list[str], cost: float) -> float | None:
        found = next((self.sold[key][0] for key in keys if key in self.sold), None)
        return cost / (1 - self.margin) if found is None and self.margin is not None else found


def names_of(machine: Machine) -> list[str]:
    """Folded names by which a price may be given for a machine, the closest first."""
    names = (machine.sku, machine.asked, machine.shape.name if machine.shape else "", machine.gpu.name)
    return [fold(name) for name in (*names, *machine.gpu.aliases) if name]


def prices_of(
    machines: Sequence[Machine],
    known: tuple[Hours, ...],
    catalogue: Catalogue,
    today: datetime.date,
    *,
    published: bool,
) -> list[HourPrice | None]:
    """The first of `known` that has a price for each machine, else the catalogue's; None where nobody gives one.

    Machines that are compared are priced at one seller where one lists all of them: between a survey's price and a
    list price the difference is the seller's, not the machine's.

    Args:
        published: whether prices that others publish may stand in; never on a customer's page.
    """
    stated = [next((found for hours in known if (found := hours.of(m)) is not None), None) for m in machines]
    if not published:
        return list(stated)
    open_gpus = [m.gpu.name for m, price in zip(machines, stated, strict=True) if price is None]
    seller = common_seller(catalogue, open_gpus)
    return [
        price if price is not None else rental(catalogue, m.gpu.name, today, seller)
        for m, price in zip(machines, stated, strict=True)
    ]


def common_seller(catalogue: Catalogue, gpus: Sequence[str]) -> Seller | None:
    """The first seller that lists each of these GPUs that anybody lists; None where there is none."""
    sold = [found for gpu in dict.fromkeys(gpus) if (found := {_seller(p) for p in _on_demand(catalogue, gpu)})]
    shared = set[Seller]().union(*sold).intersection(*sold)
    return min(shared, key=lambda seller: (_SELLERS.index(seller[0]), seller[1]), default=None)


def rental(catalogue: Catalogue, gpu: str, today: datetime.date, seller: Seller | None = None) -> HourPrice | None:
    """The published rental price on demand, of a seller where one is named: surveys before single sellers, newer
    before older; middle of the range.
    """
    found = [p for p in _on_demand(catalogue, gpu) if seller is None or _seller(p) == seller]
    if not found:
        return None
    best = min(found, key=lambda p: (_SELLERS.index(p.provider_class), -p.date.toordinal()))
    return _published(best, today)


def _on_demand(catalogue: Catalogue, gpu: str) -> list[Price]:
    return [p for p in catalogue.prices("rental", gpu) if p.commitment == "on-demand"]


def _seller(price: Price) -> Seller:
    return price.provider_class, price.provider or ""


def rentals(catalogue: Catalogue, gpu: str, today: datetime.date) -> tuple[HourPrice, ...]:
    """Every published rental price of a GPU, cheapest first."""
    return tuple(sorted((_published(p, today) for p in catalogue.prices("rental", gpu)), key=lambda p: p.value))


def _published(price: Price, today: datetime.date) -> HourPrice:
    low, high = price.low.value * 3600, price.high.value * 3600
    days = (today - price.date).days
    life = SHELF_LIVES["rental price"].days
    seller = price.provider or {"survey": "survey of specialists"}.get(price.provider_class, price.provider_class)
    basis = f"{seller}, {price.commitment}, {price.date.isoformat()}"
    stale = life is not None and days > life
    return HourPrice((low + high) / 2, price.low.currency, "catalogue", basis, low, high, days, stale, seller=seller)
