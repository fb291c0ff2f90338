"""Money of a plan: lines that add up, unit costs, alternatives in the same denominator, capacity."""

import pytest

from builders.plans import BASE, gaps, planned, subjects, value
from clusterwright.lib.figures import Origin, evaluate
from clusterwright.plan.results.money import EconomicsPlan
from clusterwright.plan.results.refusals import Unplanned

PLAN = planned()
CHAT, TUNE = PLAN.workload("chat"), PLAN.workload("finetune")


def test_cost_lines_add_up_to_the_total():
    money = PLAN.economics
    assert isinstance(money, EconomicsPlan)
    assert sum(f.value for _, f in money.lines) == pytest.approx(money.total.value)
    compute = sum(f.value for label, f in money.lines if label.startswith("compute"))
    assert compute == pytest.approx(2.4 * 16 * 730)
    assert money.total.value == pytest.approx(2.4 * 16 * 730 + 0.6 * 3 * 730 + 900 + 4000 + 1500 + 9000)
    assert money.useful_gpu_hour.value == pytest.approx(money.total.value / (16 * 730 * 0.45))


def test_at_break_even_utilisation_ours_costs_the_same():
    """Below the share that the load implies, so that the declared share is the one compared at."""
    plan = planned("economics.utilisation=10%")
    for name in ("on-demand", "api"):
        for unit in plan.economics.units:
            other = next(a for a in unit.alternatives if a.name == name)
            if isinstance(other.unit_cost, Unplanned):
                continue
            at = {"economics.utilisation": other.break_even.value}
            assert evaluate(unit.unit_cost, at) == pytest.approx(evaluate(other.unit_cost, at), rel=1e-9)


def test_the_cost_at_the_declared_load_is_the_bill_over_its_accepted_tokens():
    chat = next(u for u in PLAN.economics.units if u.workload == "chat")
    assert chat.at_load.value == pytest.approx(PLAN.economics.total.value / (8 * 1250 * 730 * 3600 / 1e6 * 0.98))
    assert chat.declared.value < chat.at_load.value
    assert chat.unit_cost is chat.at_load
    assert chat.share is PLAN.economics.implied_utilisation
    at = f"compared with alternatives at {PLAN.economics.implied_utilisation.value:.1%}"
    assert any(at in n for n in PLAN.economics.notes)


def test_alternatives_are_compared_at_the_share_that_makes_ours_dearer():
    plan = planned("economics.utilisation=10%")
    chat = next(u for u in plan.economics.units if u.workload == "chat")
    assert chat.unit_cost is chat.declared
    assert chat.share.value == pytest.approx(0.10)
    other = next(a for a in chat.alternatives if a.name == "on-demand")
    rest = 0.6 * 3 * 730 + 900 + 4000 + 1500 + 9000
    hour = 3.29 / (0.97 * 0.98) + rest / (16 * 730 * 0.10)
    made = value(plan, "workloads.chat.service.replica_rate") * 1250 * 3600 / 4 / 1e6
    assert other.unit_cost.value == pytest.approx(hour / (made * 0.98))


def test_the_stores_with_a_price_and_the_cost_of_the_others_are_added():
    plan = planned("storage.stores.object.price=$0.02/GB-month", "storage.stores.object.capacity=200 TB")
    lines = dict(plan.economics.lines)
    assert lines["storage, priced stores"].value == pytest.approx(4000)
    assert lines["storage, other stores"].value == 4000
    assert plan.economics.total.value == pytest.approx(PLAN.economics.total.value + 4000)


def test_a_priced_store_without_capacity_is_missing_not_free():
    assert "storage.stores.object.month" in gaps(planned("storage.stores.object.price=$0.02/GB-month"))


def test_the_price_of_the_gpus_is_known_without_economics():
    plan = planned("economics=")
    assert isinstance(plan.economics, Unplanned)
    assert plan.compute_month.value == pytest.approx(2.4 * 16 * 730)


def test_idle_time_that_differs_from_what_is_declared_is_told():
    notes = planned("economics.shares.idle=52%").economics.notes
    assert any("52.7% of paid time, shares.idle declares 52.0%" in n for n in notes)


def test_an_api_is_compared_in_the_same_denominator():
    chat = next(u for u in PLAN.economics.units if u.workload == "chat")
    api = next(a for a in chat.alternatives if a.name == "api")
    assert api.unit_cost.value == pytest.approx(0.60 / 0.98)
    assert api.unit_cost.unit == "$/Mtok"
    tune = next(u for u in PLAN.economics.units if u.workload == "finetune")
    assert isinstance(next(a for a in tune.alternatives if a.name == "api").unit_cost, Unplanned)


def test_owned_hardware_costs_its_capital_and_power():
    """The worked example of the formula: $437k a node, 5 years, 10 %, 10.2 kW, PUE 1.25, 8 ¢/kWh, all hours useful."""
    text = BASE.replace(", price: $2.40/GPU-h}", ", ownership: owned, hardware: {power: 10.2 kW}}").replace(
        "  utilisation: 45%", "  utilisation: 100%"
    )
    costs = "{capital: $874000, depreciation: 5 years, interest: 10%, power: 8 ¢/kWh, pue: 1.25}"
    plan = planned(f"economics.costs={costs}", "pools.control=", "economics.shares={accepted: 100%}", text=text)
    assert plan.economics.useful_gpu_hour.value == pytest.approx(1.7724700215, rel=1e-9)


def test_colocation_and_power_are_never_both_counted():
    text = BASE.replace(", price: $2.40/GPU-h}", ", ownership: owned, hardware: {power: 10 kW}}")
    costs = "{capital: $874000, depreciation: 5 years, colocation: $170/kW-month, power: 8 ¢/kWh}"
    plan = planned(f"economics.costs={costs}", text=text)
    assert value(plan, "economics.compute") == pytest.approx(874000 / 5 / 12 + 20 * 170)
    assert any("colocation includes power" in text for text in plan.limits)


def test_a_pool_without_price_takes_the_catalogue_snapshot():
    plan = planned("pools.gpu.price=")
    assert plan.figures["pools.gpu.month"].value == pytest.approx(3 * 16 * 730)
    assert plan.figures["pools.gpu.month"].origin is Origin.CATALOGUE


def test_costs_that_are_not_stated_are_missing_not_free():
    plan = planned("economics.costs.support=")
    assert "economics.support" in gaps(plan)


def test_two_currencies_are_not_added():
    plan = planned("economics.costs.network=€900/month")
    assert isinstance(plan.economics, Unplanned)
    assert "currencies" in plan.economics.reason


def test_shares_that_contradict_the_utilisation_are_told():
    assert any("shares leave" in n for n in planned("economics.shares.idle=25%").economics.notes)
    assert not any("shares leave" in n for n in planned("economics.shares.idle=53%").economics.notes)


def test_neither_utilisation_nor_idle_share_means_no_unit_cost():
    plan = planned("economics.utilisation=")
    assert isinstance(plan.economics, Unplanned)
    assert isinstance(plan.workload("chat").capacity, Unplanned)


def test_an_unknown_denominator_is_named():
    assert "workloads.chat.unit_cost" in gaps(planned("workloads.chat.denominator=happy users"))


def test_capacity_is_target_work_over_useful_work_per_gpu_month():
    capacity = CHAT.capacity
    assert capacity.target_work.value == pytest.approx(8 * 1250 * 730 * 3600 / 1e6)
    useful = CHAT.service.replica_rate.value * 1250 / 4 * 730 * 3600 / 1e6 * 0.45
    assert capacity.useful_per_gpu_month.value == pytest.approx(useful)
    assert capacity.gpu_months.value == pytest.approx(capacity.target_work.value / useful)
    assert "workloads.chat.capacity" in subjects(planned("economics.utilisation=10%"))


def test_gpu_months_are_paid_ones_for_services_and_jobs_alike():
    training = TUNE.training
    useful = training.tokens_per_s.value / 4 * 730 * 3600 / 1e6 * training.goodput.value * 0.45
    assert TUNE.capacity.useful_per_gpu_month.value == pytest.approx(useful)
