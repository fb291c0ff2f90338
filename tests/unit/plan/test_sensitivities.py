"""Tornado of a unit cost, break-even by price and volume, dates of prices."""

import pytest

from builders.plans import BASE, document, planned
from clusterwright.lib.figures import Origin, derive, evaluate, leaf
from clusterwright.physics.sensitivities import tornado
from clusterwright.plan.sensitivities import evaluate_at, swings_of

PLAN = planned("economics.utilisation=10%")
CHAT = next(u for u in PLAN.economics.units if u.workload == "chat")


def test_a_tornado_ranks_by_width_and_drops_what_moves_nothing():
    def area(changed):
        return changed.get("wide", 3.0) * changed.get("high", 2.0) + 0 * changed.get("idle", 1.0)

    found = tornado(area, {"high": (1.9, 2.1), "wide": (1.0, 5.0), "idle": (0.0, 9.0)})
    assert [(s.name, s.low, s.high) for s in found] == [
        ("wide", 2, 10),
        ("high", pytest.approx(5.7), pytest.approx(6.3)),
    ]


def test_an_input_with_a_validated_band_stands_for_everything_below_it():
    price = leaf("price", 3.0, "$/GPU-h", Origin.DECLARED, "file")
    share = leaf("share", 0.5, "share", Origin.ASSUMED, "ours")
    speed = derive("speed", "Mtok/GPU-h", "estimate", lambda s: 8 * s, share, band=(0.5, 2.0))
    cost = derive("cost", "$/Mtok", "price ÷ speed", lambda p, v: p / v, price, speed)
    assert [(s.name, s.low, s.high) for s in swings_of(cost)] == [
        ("speed", pytest.approx(1.5), pytest.approx(0.375)),
        ("price", pytest.approx(0.675), pytest.approx(0.825)),
    ]
    assert evaluate_at(cost, {"speed": 2.0}) == 1.5


def test_a_share_never_exceeds_one():
    share = leaf("share", 0.9, "share", Origin.ASSUMED, "ours")
    cost = derive("cost", "$", "1 ÷ share", lambda s: 1 / s, share)
    assert swings_of(cost)[0].high == 1.0


def test_a_unit_cost_is_moved_most_by_speed_and_use():
    names = [s.name for s in CHAT.swings]
    assert "workloads.chat.service.replica_rate" in names[:2]
    widths = [s.width for s in CHAT.swings]
    assert widths == sorted(widths, reverse=True)
    for swing in CHAT.swings:
        if not swing.name.endswith("replica_rate"):  # known to be slower than measured: its band lies above it
            assert min(swing.low, swing.high) <= CHAT.unit_cost.value <= max(swing.low, swing.high)


@pytest.mark.parametrize("name", ["api", "on-demand"])
def test_at_the_even_price_both_cost_the_same(name):
    other = next(a for a in CHAT.alternatives if a.name == name)
    paths = {
        "api": ("economics.alternatives.api.input_price", "economics.alternatives.api.output_price"),
        "on-demand": ("economics.alternatives.on-demand.price",),
    }[name]
    leaves = other.unit_cost.leaves
    now = (
        leaves[paths[0]].value
        if name == "on-demand"
        else next(f.value for f in other.unit_cost.inputs if f.name.endswith("blended_price"))
    )
    factor = other.even_price.value / now
    moved = evaluate(other.unit_cost, {p: leaves[p].value * factor for p in paths})
    assert moved == pytest.approx(CHAT.unit_cost.value, rel=1e-9)


def test_from_the_even_volume_on_our_bill_is_smaller_than_the_apis():
    api = next(a for a in CHAT.alternatives if a.name == "api")
    assert api.even_volume.value * api.unit_cost.value == pytest.approx(PLAN.economics.total.value)
    assert api.even_volume.unit == "Mtok/month"


def test_prices_carry_their_days():
    declared = document(BASE).architecture.economics.alternatives
    assert {a.name: a.dated for a in CHAT.alternatives} == {
        name: other.date.isoformat() if other.date else "undated" for name, other in declared.items()
    }
