"""Layouts of a service: the front is not beaten, the planned one is among them, and losers have their reasons."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.plan.fronts import Front
from clusterwright.plan.planning import plan_architecture

EXAMPLE = Path(__file__).parents[3] / "examples" / "two-workers" / "cluster.yaml"


@cache
def fronts(*overrides: str) -> tuple[Front, ...]:
    plan = plan_architecture(load_document([EXAMPLE], overrides), load_catalogue())
    return tuple(w.layouts for w in plan.workloads if isinstance(w.layouts, Front))


def test_services_have_a_front_and_training_has_none() -> None:
    (front,) = fronts()
    assert front.workload == "chat"
    assert front.unit == "$/Mtok output"
    assert front.tried >= len(front.points) > 1


def test_no_point_beats_one_on_the_front_in_both() -> None:
    (front,) = fronts()
    best = [point for point in front.points if point.on_front]
    assert best
    for one in best:
        assert not any(
            other.cost <= one.cost
            and other.tpot_s <= one.tpot_s
            and (other.cost, other.tpot_s) != (one.cost, one.tpot_s)
            for other in front.points
        )


def test_the_planned_layout_is_marked_and_what_it_loses_by_is_said() -> None:
    (front,) = fronts("workloads.chat.serve.parallel.tp=8")
    assert [point.layout for point in front.points if point.planned] == ["TP8"]
    assert "×" in front.planned_reason
    assert [point.best for point in front.points].count(True) == 1


def test_a_price_scales_costs_and_moves_nothing_else() -> None:
    (one,), (two,) = fronts(), fronts("pools.gpu.price=$4.80/GPU-h")
    assert [p.cost for p in two.points] == pytest.approx([2 * p.cost for p in one.points])
    assert [(p.layout, p.tpot_s, p.gpus) for p in one.points] == [(p.layout, p.tpot_s, p.gpus) for p in two.points]


def test_without_a_price_costs_are_gpu_hours() -> None:
    (front,) = fronts("pools.gpu.price=")
    assert front.unit == "GPU-h/Mtok output"


def test_popular_layouts_that_lose_have_a_reason() -> None:
    (front,) = fronts()
    assert all(lost.reason for lost in front.losers)
    assert "TP16" in {lost.layout for lost in front.losers}


def test_what_is_not_known_has_no_front() -> None:
    assert fronts("workloads.chat.serve.engine=tgi 3.0") == ()
    assert fronts("workloads.chat.model=nobody/nothing") == ()
