"""What a house profile means for a fit: prices by audience, SKUs as machines, assumptions as options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from clusterwright.catalogue.catalogues import fold
from clusterwright.lib.errors import InvalidInput, Problem
from clusterwright.plan.fitting.amounts import Wrong, hour_price, share
from clusterwright.plan.fitting.prices import Hours

if TYPE_CHECKING:
    from clusterwright.model.profiles import Profile, Written

Audience = Literal["internal", "customer"]
T = TypeVar("T")


@dataclass(frozen=True)
class House:
    """A profile that was understood.

    Args:
        costs, sales: (money, currency) per GPU-hour by folded name.
        margin: share of the selling price. defaults: option → text.
    """

    name: str = ""
    costs: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    sales: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    margin: float | None = None
    skus: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    def hours(self, audience: Audience) -> tuple[Hours, ...]:
        """Prices that count, first ones first: inside the house its costs, to a customer its selling prices only."""
        selling = [Hours(self.sales, "profile", "price of the SKU", for_sale=True)]
        if audience == "internal":
            basis = f"own cost, profile {self.name}".rstrip()
            return (Hours(self.costs, "profile", basis, False, self.sales, self.margin), *selling)
        if self.margin is not None:
            sold = {name: (cost / (1 - self.margin), currency) for name, (cost, currency) in self.costs.items()}
            selling.append(Hours(sold, "profile", "list price", for_sale=True))
        return tuple(selling)


def house_of(profile: Profile) -> House:
    """A profile with its prices and shares read.

    Raises:
        InvalidInput: with every value that cannot be read and its place.
    """
    problems = list[Problem]()

    def read(written: Written, path: str, reader: Callable[[str], T]) -> T | None:
        try:
            return reader(written.text)
        except Wrong as error:
            problems.append(Problem(written.place, path, str(error)))
            return None

    costs = {fold(n): read(w, f"prices.{n}", hour_price) for n, w in profile.prices.items()}
    sales = {
        fold(n): read(sku.price, f"skus.{n}.price", hour_price)
        for n, sku in profile.skus.items()
        if sku.price is not None
    }
    margin = None if profile.margin is None else read(profile.margin, "margin", _margin)
    if problems:
        raise InvalidInput(*problems)
    return House(
        profile.name,
        {name: price for name, price in costs.items() if price is not None},
        {name: price for name, price in sales.items() if price is not None},
        margin,
        {name: sku.shape.text for name, sku in profile.skus.items()},
        {name: written.text for name, written in profile.assumptions.items()},
    )


def _margin(text: str) -> float:
    value = share(text)
    if value >= 1:
        raise Wrong("a margin of the whole price leaves nothing for the cost")
    return value
