"""The house profile: what it says, what is wrong in it, who sees what."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.app.fitting_profile import load_profile
from clusterwright.catalogue.catalogues import fold
from clusterwright.files.catalogue import load_catalogue
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.profiles import parse_profile
from clusterwright.model.sources import Source
from clusterwright.plan.fitting.house import House, house_of
from clusterwright.plan.fitting.machines import find_machine

TEXT = """\
name: Example Cloud
prices: {h100: $2.00, h200: 2.40}
margin: 20%
skus:
  big: {shape: dgx-h100, price: $3.00}
  bigger: {shape: dgx-h200}
assumptions: {engine: vllm 0.11, survive: 1}
"""


def house(text: str = TEXT) -> House:
    return house_of(parse_profile(Source("profile.yaml", text)))


def test_prices_skus_and_assumptions_are_read() -> None:
    found = house()
    assert found.costs == {"h100": (2.0, "USD"), "h200": (2.4, "USD")}
    assert (found.margin, found.skus["big"], found.defaults["survive"]) == (0.2, "dgx-h100", "1")


def test_a_sku_is_a_machine() -> None:
    machine = find_machine(load_catalogue(), "Big", skus=house().skus)
    assert (machine.sku, machine.gpu.name, machine.gpus_per_node) == ("big", "h100-sxm-80", 8)


@pytest.mark.parametrize(
    ("sku", "inside", "customer"), [("big", 2.0, 3.0), ("bigger", 2.4, 3.0), ("h100", 2.0, 2.5), ("b200", None, None)]
)
def test_the_house_counts_its_costs_and_a_customer_sees_selling_prices(
    sku: str, inside: float | None, customer: float | None
) -> None:
    machine = find_machine(load_catalogue(), sku, skus=house().skus)

    def first(audience: str) -> float | None:
        hours = house().hours(audience)  # type: ignore[arg-type]
        found = next((p for h in hours if (p := h.of(machine)) is not None), None)
        return None if found is None else found.value

    assert first("internal") == inside
    assert first("customer") == pytest.approx(customer)


def test_inside_the_house_the_selling_price_stands_beside_the_cost() -> None:
    machine = find_machine(load_catalogue(), "big", skus=house().skus)
    price = house().hours("internal")[0].of(machine)
    assert price is not None
    assert (price.value, price.sold, price.for_sale) == (2.0, 3.0, False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("prcies: {h100: 2}", "profile.yaml:1:1: prcies: unknown key 'prcies' (did you mean 'prices'?)"),
        ("assumptions: {engin: vllm}", "assumptions.engin: unknown key 'engin' (did you mean 'engine'?)"),
        ("prices: {h100: cheap}", "profile.yaml:1:16: prices.h100: 'cheap' is no price"),
        ("margin: 1", "leaves nothing"),
        ("margin: 130%", "no share"),
        ("skus: {big: {price: $3}}", "'shape' is missing"),
        ("skus: [big]", "wants a mapping"),
        ("name: a\nname: b", "written twice"),
        ("prices: &x {h100: 2}", "anchor"),
        ("prices: {h100: [2]}", "one value"),
        ("", "empty"),
        ("a: b: c", "':'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        house(text)
    assert says in str(caught.value)


def test_where_the_profile_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = tmp_path / ".config" / "clusterwright" / "profile.yaml"
    usual.parent.mkdir(parents=True)
    usual.write_text("name: usual", encoding="utf-8")
    other = tmp_path / "other.yaml"
    other.write_text("name: other", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLUSTERWRIGHT_PROFILE", raising=False)
    assert load_profile().name == "usual"
    monkeypatch.setenv("CLUSTERWRIGHT_PROFILE", str(other))
    assert load_profile().name == "other"
    assert load_profile(str(usual)).name == "usual"
    assert load_profile("").name == ""
    with pytest.raises(InvalidInput, match="no such file"):
        load_profile(str(tmp_path / "nowhere.yaml"))


def test_the_example_is_a_profile() -> None:
    example = Path(__file__).parents[4] / "examples" / "profile.yaml"
    found = house_of(parse_profile(Source("profile.yaml", example.read_text(encoding="utf-8"))))
    catalogue = load_catalogue()
    assert {fold(sku) for sku in found.skus} == set(found.sales)
    assert all(find_machine(catalogue, sku, skus=found.skus).shape for sku in found.skus)
