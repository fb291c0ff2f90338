"""The drawing of layouts: a dot per possible one, the front as a staircase, and the same in numbers."""

from __future__ import annotations

from dataclasses import replace

from builders.pages import Node, parse_page
from clusterwright.plan.fronts import Front, Lost, Point, TrainingFront, TrainingPoint
from clusterwright.report.html.fronts import render_fronts
from clusterwright.report.plan_layouts import layout_lines


def point(layout: str, cost: float, tpot_s: float, **marks: bool) -> Point:
    said = {"on_front": False, "best": False, "planned": False} | marks
    return Point(layout, 2, 16, cost, tpot_s, 0.5, **said)


FRONT = Front(
    "chat",
    "cost",
    "$/Mtok output",
    (
        point("TP4", 4.0, 0.026, on_front=True, best=True),
        point("TP2", 4.1, 0.031),
        point("TP8", 5.3, 0.014, on_front=True, planned=True),
    ),
    21,
    3,
    (Lost("one GPU a replica", "one GPU", "needs 1.5 GiB more"),),
    "1.3 × the cost",
    0.05,
    "vllm-h100",
)


JOB = TrainingFront(
    "pretrain",
    "cost",
    (
        TrainingPoint("TP4 DP16", 21.5, 71.2, on_front=True, best=True, planned=False),
        TrainingPoint("TP8 DP8", 25.0, 60.1, on_front=True, best=False, planned=True),
    ),
    300,
    2,
    (Lost("data parallel only", "DP64", "needs 40 GiB more"),),
    "0.86 of the tokens per second",
    "public runs",
)


def dots(drawing: Node) -> dict[str, Node]:
    """Layout → its dot."""
    found = [c for c in drawing.all("circle") if "gap" in c.attributes["class"]]
    return {dot.one("title").text.partition(":")[0]: dot for dot in found}


def page(front: Front = FRONT) -> Node:
    return parse_page(render_fronts([front]))


def test_a_job_is_a_table_of_its_fastest_layouts() -> None:
    drawn = parse_page(render_fronts([JOB]))
    assert not list(drawn.all("svg"))
    assert "TP8 DP8" in drawn.text
    assert "planned, not beaten in both" in drawn.text
    assert "needs 40 GiB more" in drawn.text


def test_every_layout_is_a_dot_with_its_numbers_on_desk_and_phone() -> None:
    for cls in ("wide", "narrow"):
        (drawing,) = page().all("svg", class_=cls)
        assert set(dots(drawing)) == {"TP4", "TP2", "TP8"}
        assert len(list(drawing.all("circle", class_="ring"))) == 1
        tip = dots(drawing)["TP8"].one("title").text
        assert "14 ms per token" in tip
        assert "$5.3/Mtok output" in tip


def test_cheap_is_left_and_fast_is_low() -> None:
    (drawing,) = page().all("svg", class_="wide")
    at = {layout: dot.attributes for layout, dot in dots(drawing).items()}
    assert float(at["TP4"]["cx"]) < float(at["TP8"]["cx"])
    assert float(at["TP8"]["cy"]) > float(at["TP4"]["cy"])


def test_the_front_is_a_staircase() -> None:
    (drawing,) = page().all("svg", class_="wide")
    (stairs,) = drawing.all("polyline")
    corners = [tuple(map(float, pair.split(","))) for pair in stairs.attributes["points"].split()]
    assert len(corners) == 3
    assert corners[0][1] == corners[1][1]
    assert corners[1][0] == corners[2][0]


def test_the_table_and_the_losers_say_it_in_words() -> None:
    text = page().text
    assert "1.3 × the cost" in text
    assert "needs 1.5 GiB more" in text
    assert "target 50 ms" in text
    assert "not beaten in both" in text


def test_one_layout_and_equal_costs_are_drawn() -> None:
    alone = replace(FRONT, points=FRONT.points[:1], tpot_target_s=None)
    (drawing,) = page(alone).all("svg", class_="wide")
    assert set(dots(drawing)) == {"TP4"}
    assert "nobody measured" in page(replace(alone, calibrated_on="")).text


def test_far_apart_costs_are_drawn_in_logarithms() -> None:
    assert "(log)" in page(replace(FRONT, points=(*FRONT.points, point("TP1", 90.0, 0.4)))).text


def test_nothing_possible_shows_the_reasons_alone() -> None:
    shown = page(replace(FRONT, points=()))
    assert not list(shown.all("circle"))
    assert "needs 1.5 GiB more" in shown.text
    assert render_fronts([replace(FRONT, points=(), losers=())]) == ""


def test_times_after_losses_are_said_to_be_such_in_page_and_text() -> None:
    after = replace(FRONT, lost_nodes=1)
    assert "times are those after them" in render_fronts([after])
    assert "times are those after them" not in render_fronts([FRONT])
    assert "time per token after the declared losses: " in layout_lines(after)[0]
    assert "after the declared losses" not in layout_lines(FRONT)[0]
