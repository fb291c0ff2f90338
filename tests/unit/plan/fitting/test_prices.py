"""Published prices of machines that are compared."""

from __future__ import annotations

import datetime

import pytest

from clusterwright.files.catalogue import load_catalogue
from clusterwright.plan.fitting.machines import find_machine
from clusterwright.plan.fitting.prices import HourPrice, Hours, prices_of
from clusterwright.report.fits_words import sellers_words

TODAY = datetime.date(2026, 6, 30)


def prices(*names: str, known: tuple[Hours, ...] = (), published: bool = True) -> list[HourPrice | None]:
    catalogue = load_catalogue()
    machines = [find_machine(catalogue, name) for name in names]
    return prices_of(machines, known, catalogue, TODAY, published=published)


def sellers(*names: str) -> list[str]:
    return [price.seller if price else "" for price in prices(*names)]


def test_one_machine_has_the_price_that_most_can_get() -> None:
    assert sellers("h100") == ["survey of specialists"]


@pytest.mark.parametrize(
    ("names", "seller"),
    [(("h100", "h200", "b200"), "survey of specialists"), (("h100", "gb200-nvl72"), "CoreWeave")],
)
def test_machines_that_are_compared_are_priced_at_one_seller_who_lists_them_all(
    names: tuple[str, ...], seller: str
) -> None:
    assert sellers(*names) == [seller] * len(names)
    assert f"of one seller ({seller})" in sellers_words(prices(*names))


def test_a_machine_that_nobody_lists_leaves_the_others_comparable() -> None:
    found = prices("h100", "gb200-nvl72", "mi300x")
    assert found[2] is None
    assert [price.seller for price in found if price] == ["CoreWeave", "CoreWeave"]


def test_stated_prices_go_first_and_do_not_choose_the_seller() -> None:
    own = Hours({"gb200nvl72": (7.0, "USD")})
    found = prices("h100", "gb200-nvl72", known=(own,))
    assert [(price.value, price.seller) for price in found if price] == [(3.0, "survey of specialists"), (7.0, "")]
    assert sellers_words(found) == ""


def test_nothing_published_stands_on_a_customers_page() -> None:
    assert prices("h100", "b200", published=False) == [None, None]


def test_prices_of_different_sellers_are_said_to_be() -> None:
    survey, listed = prices("h100")[0], prices("l40s")[0]
    assert survey is not None
    assert listed is not None
    assert "different sellers" in sellers_words([survey, listed])
