"""What bought and colocated machines cost beside rented ones."""

from __future__ import annotations

import pytest

from builders.plans import BASE, planned, value

OWNED = BASE.replace(", price: $2.40/GPU-h}", ", ownership: owned, hardware: {power: 10 kW}}")
COSTS = "economics.costs={capital: $874000, depreciation: 5 years, colocation: $170/kW-month}"
RENTED = "pools.rented={nodes: r-1, shape: hgx-h100, price: $2/GPU-h, ownership: rented, hardware: {power: 10 kW}}"


def other(name: str, *changes: str):
    unit = next(u for u in planned(*changes).economics.units if u.workload == "chat")
    return next(a for a in unit.alternatives if a.name == name), unit


def test_only_owned_nodes_pay_for_their_place_and_power():
    alone, beside = planned(COSTS, text=OWNED), planned(COSTS, RENTED, text=OWNED)
    assert value(alone, "economics.colocation") == value(beside, "economics.colocation") == pytest.approx(20 * 170)
    assert value(beside, "economics.compute") == pytest.approx(value(alone, "economics.compute") + 2 * 8 * 730)


def test_the_pool_whose_power_is_unknown_is_named_with_what_is_not_in_the_total():
    plan = planned(COSTS, text=OWNED.replace(", hardware: {power: 10 kW}", ""))
    said = next(u for u in plan.unplanned if u.subject == "economics.power")
    assert "colocation not in the total: pools gpu" in said.reason
    assert said.missing == ("pools.gpu.hardware.power",)


def test_a_price_of_a_place_that_no_pool_takes_is_not_dropped_in_silence():
    assert any("power and colocation are of owned pools" in text for text in planned(COSTS).limits)


@pytest.mark.parametrize("kind", ["colocation", "on-premises"])
def test_machines_that_are_paid_while_idle_are_as_busy_as_ours(kind):
    own = f"economics.alternatives.own={{kind: {kind}, price: $3.29/GPU-h}}"
    found, unit = other("own", own)
    rented, _ = other("on-demand")
    assert found.break_even is None
    assert found.unit_cost.value > rented.unit_cost.value
    price = found.even_price.value
    even, _ = other("own", own.replace("3.29", f"{price:.12f}"))
    assert even.unit_cost.value == pytest.approx(unit.unit_cost.value, rel=1e-6)


def test_a_declared_utilisation_of_theirs_is_taken():
    own = "economics.alternatives.own={kind: on-premises, price: $3.29/GPU-h, utilisation: 100%}"
    assert other("own", own)[0].unit_cost.value == pytest.approx(other("on-demand")[0].unit_cost.value)


def test_pools_of_different_gpus_share_a_bill_and_the_plan_says_so():
    many = planned("pools.other={nodes: o-1, price: $1/GPU-h, hardware: {gpu: mystery, gpus: 8}}")
    assert not any("equally dear" in text for text in planned(RENTED).limits)
    assert any("equally dear" in text for text in many.limits)
