"""The drawing of cost against useful time: a line per way to get the unit, rings where ours is the same."""

from __future__ import annotations

import re

import pytest

from builders.pages import Node, parse_page
from builders.proofs import EXAMPLE, example_proof, planned_proof
from clusterwright.plan.cost_curves import CostCurve, cost_curve
from clusterwright.plan.results.money import EconomicsPlan, UnitCost
from clusterwright.report.html import render_proof
from clusterwright.report.html.cost_curves import render_cost_curves


@pytest.fixture(scope="module")
def money() -> EconomicsPlan:
    plan = planned_proof(EXAMPLE).plan
    assert plan is not None
    assert isinstance(plan.economics, EconomicsPlan)
    return plan.economics


@pytest.fixture(scope="module")
def units(money: EconomicsPlan) -> list[UnitCost]:
    return [unit for unit in money.units if isinstance(unit, UnitCost)]


@pytest.fixture(scope="module")
def page(units: list[UnitCost], money: EconomicsPlan) -> Node:
    return parse_page(render_cost_curves(units, money))


@pytest.fixture(scope="module")
def curves(units: list[UnitCost], money: EconomicsPlan) -> list[CostCurve]:
    found = [cost_curve(unit, money) for unit in units]
    return [curve for curve in found if curve is not None]


@pytest.mark.parametrize("cls", ["wide", "narrow"])
def test_every_way_is_a_line_and_every_break_even_a_ring(page: Node, curves: list[CostCurve], cls: str) -> None:
    drawings = list(page.all("svg", class_=cls))
    assert len(drawings) == len(curves) > 0
    for drawing, curve in zip(drawings, curves, strict=True):
        assert len(list(drawing.all("polyline"))) == len(curve.lines)
        tips = [ring.one("title").text for ring in drawing.all("circle", class_="ring")]
        assert sorted(tip.partition(" costs the same")[0] for tip in tips) == sorted(
            line.name for line, _ in curve.crossings
        )


def test_lines_differ_without_colour(page: Node, curves: list[CostCurve]) -> None:
    for drawing, curve in zip(page.all("svg", class_="wide"), curves, strict=True):
        dashes = [line.attributes.get("stroke-dasharray") for line in drawing.all("polyline")]
        assert len(set(dashes)) == min(len(curve.lines), 9)
        letters = {text.text for text in drawing.all("text") if re.fullmatch("[A-Z]", text.text)}
        assert letters == {chr(ord("A") + number) for number in range(len(curve.lines))}


def test_nothing_of_a_drawing_lies_outside_of_it(page: Node) -> None:
    for cls in ("wide", "narrow"):
        for drawing in page.all("svg", class_=cls):
            width, height = (float(drawing.attributes[name]) for name in ("width", "height"))
            for polyline in drawing.all("polyline"):
                for point in polyline.attributes["points"].split():
                    x, y = (float(number) for number in point.split(","))
                    assert 0 <= x <= width
                    assert 0 <= y <= height
            for text in drawing.all("text"):
                assert 0 <= float(text.attributes["x"]) <= width
                assert 0 <= float(text.attributes["y"]) <= height


def test_the_text_and_the_table_say_what_the_drawing_shows(page: Node, curves: list[CostCurve]) -> None:
    said = [p.text for p in page.all("p") if "useful time of the plan" in p.text]
    tables = list(page.all("table"))
    for text, grid, curve in zip(said, tables, curves, strict=True):
        for line, share in curve.crossings:
            assert f"{100 * share:.3g} %" in text
            assert line.name.lower() in text.lower()
        assert len(list(grid.one("tbody").all("tr"))) == len(curve.lines)
    for drawing in page.all("svg", class_="wide"):
        assert drawing.attributes["role"] == "img"
        assert next(iter(drawing.all("title"))).text
        assert drawing.one("desc").text


def test_a_report_has_it_only_where_prices_are_known() -> None:
    assert "how much of the paid time is useful" in render_proof(planned_proof(EXAMPLE))
    assert "how much of the paid time is useful" not in render_proof(example_proof())
