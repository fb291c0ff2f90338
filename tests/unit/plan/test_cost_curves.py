"""Cost of a unit against the useful share: lines, crossings, and that they agree with the plan's own numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from clusterwright.app.loading import load_document
from clusterwright.files.catalogue import load_catalogue
from clusterwright.lib.figures import Figure
from clusterwright.plan.cost_curves import CostCurve, CostLine, cost_curve
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.money import EconomicsPlan, UnitCost
from clusterwright.plan.results.refusals import Unplanned

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def economics(name: str) -> EconomicsPlan:
    document = load_document([EXAMPLES / name / "cluster.yaml"])
    found = plan_architecture(document, load_catalogue()).economics
    assert isinstance(found, EconomicsPlan)
    return found


@pytest.fixture(scope="module")
def priced() -> list[tuple[UnitCost, EconomicsPlan, CostCurve]]:
    """Every unit of the examples that has a curve."""
    found = []
    for name in ("single-server", "two-workers", "training-1024"):
        money = economics(name)
        for unit in money.units:
            curve = cost_curve(unit, money) if isinstance(unit, UnitCost) else None
            if curve is not None and isinstance(unit, UnitCost):
                found.append((unit, money, curve))
    assert len(found) >= 3
    return found


def test_lines_go_through_what_the_plan_says_at_its_share(
    priced: list[tuple[UnitCost, EconomicsPlan, CostCurve]],
) -> None:
    for unit, _, curve in priced:
        assert curve.lines[0].at(curve.share) == pytest.approx(unit.unit_cost.value)
        costs = [a.unit_cost for a in unit.alternatives] + [m.unit_cost for m in unit.market]
        values = [cost.value for cost in costs if isinstance(cost, Figure)]
        assert [line.at(curve.share) for line in curve.lines[1:]] == pytest.approx(values)


def test_crossings_are_the_break_even_shares_of_the_plan(
    priced: list[tuple[UnitCost, EconomicsPlan, CostCurve]],
) -> None:
    """The plan derives them from prices, the curve from costs: two ways to the same number."""
    seen = 0
    for unit, _, curve in priced:
        crossed = {line.name: share for line, share in curve.crossings}
        for other in unit.alternatives:
            if not isinstance(other.break_even, Figure) or isinstance(other.unit_cost, Unplanned):
                continue
            name = next(line.name for line in curve.lines if line.name.startswith(other.name))
            if other.break_even.value <= 1:
                assert crossed[name] == pytest.approx(other.break_even.value)
                seen += 1
            else:
                assert name not in crossed
    assert seen >= 2


def test_ours_costs_less_above_a_crossing_and_more_below(
    priced: list[tuple[UnitCost, EconomicsPlan, CostCurve]],
) -> None:
    for _, _, curve in priced:
        for line, share in curve.crossings:
            assert curve.lines[0].at(share) == pytest.approx(line.at(share))
            assert curve.lines[0].at(share * 0.99) > line.at(share * 0.99)
            if share * 1.01 <= 1:
                assert curve.lines[0].at(share * 1.01) < line.at(share * 1.01)
            assert share > curve.least


def test_what_falls_alike_never_crosses() -> None:
    here = CostLine("here", 0.0, 2.0)
    assert here.crossing(CostLine("rental", 0.0, 1.0)) is None
    assert here.crossing(CostLine("same", 0.0, 2.0)) is None
    assert here.crossing(CostLine("cheap API", 1.0, 0.0)) is None
    assert here.crossing(CostLine("API", 4.0, 0.0)) == 0.5
    assert here.crossing(CostLine("hours elsewhere", 2.0, 1.0)) == 0.5


def test_nothing_is_drawn_where_no_price_is_known() -> None:
    money = economics("two-workers")
    unit = next(u for u in money.units if isinstance(u, UnitCost))
    assert cost_curve(unit, money) is not None
    assert cost_curve(replace(unit, share=None), money) is None
    assert cost_curve(replace(unit, alternatives=(), market=()), money) is None
    assert cost_curve(replace(unit, unit_cost=replace(unit.unit_cost, value=float("inf"))), money) is None
    assert unit.share is not None
    assert cost_curve(replace(unit, share=replace(unit.share, value=0.0)), money) is None
