"""A unit at published prices: rented, owned in colocation or with own power, from an API."""

from pathlib import Path

import pytest

from builders.plans import planned
from clusterwright.app.loading import load_document
from clusterwright.files.catalogue import load_catalogue
from clusterwright.physics.money import gpu_hour
from clusterwright.plan.planning import plan_architecture

EXAMPLE = Path(__file__).parents[3] / "examples" / "two-workers" / "cluster.yaml"
CATALOGUE = load_catalogue()
PLAN = plan_architecture(load_document([EXAMPLE], ["pools.gpu.shape=dgx-h100"]), CATALOGUE)
CHAT = next(u for u in PLAN.economics.units if u.workload == "chat")
MARKET = {m.kind: m for m in CHAT.market}


def test_rent_is_the_middle_of_the_newest_snapshot_and_its_band_the_range_of_all():
    (rental,) = next(u for u in planned().economics.units if u.workload == "chat").market
    assert rental.kind == "rental"
    plan = planned()
    chat = next(u for u in plan.economics.units if u.workload == "chat")
    made = plan.figures["workloads.chat.per_useful_gpu_hour"].value
    assert rental.unit_cost.value == pytest.approx(3 / (chat.share.value * made * 0.98))
    assert rental.unit_cost.band == (pytest.approx(2 / 3), pytest.approx(4 / 3))


def test_an_owned_gpu_pays_colocation_or_power_never_both():
    leaves = {kind: MARKET[kind].unit_cost.leaves for kind in ("colocation", "on-premises")}
    assert any("colocation" in name for name in leaves["colocation"])
    assert not any("power-us" in name for name in leaves["colocation"])
    assert any("power-us" in name for name in leaves["on-premises"])
    assert not any("colocation" in name for name in leaves["on-premises"])


def test_an_owned_gpu_hour_is_the_annuity_and_its_power():
    hour = PLAN.figures["workloads.chat.market.on-premises_hour"].value
    capital, energy = (45810 + 51613) / 2, (0.0821 + 0.0933) / 2
    assert hour == pytest.approx(gpu_hour(capital, 0.10, 5, 10.2 / 8, 1.25, energy, 0, 1), rel=1e-6)


def test_apis_are_the_cheapest_and_the_dearest_of_the_model():
    apis = [m for kind, m in MARKET.items() if kind.startswith("API")]
    known = CATALOGUE.api_prices("meta-llama/Llama-3.3-70B-Instruct")
    assert len(known) > 2
    assert len(apis) == 2
    assert apis[0].unit_cost.value < apis[1].unit_cost.value
    assert {a.dated for a in apis} <= {p.date.isoformat() for p in known}


def test_every_market_price_is_dated():
    assert all(m.dated.startswith("20") for m in CHAT.market)
    assert set(MARKET) >= {"rental", "colocation", "on-premises"}
