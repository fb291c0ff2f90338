"""Latency against concurrency of a planned replica."""

from __future__ import annotations

import pytest

from builders.plans import planned
from clusterwright.report.html.load_curves import render_curve
from clusterwright.report.plan_figures import plan_values
from clusterwright.report.plans import render_plan

PLAN = planned()
CURVE = PLAN.workload("chat").service.curve


def test_more_in_flight_wait_longer_and_complete_more():
    for one, two in zip(CURVE.points, CURVE.points[1:], strict=False):
        assert one.concurrency < two.concurrency
        assert one.ttft_s < two.ttft_s
        assert one.tpot_s < two.tpot_s
        assert one.requests_s < two.requests_s


def test_the_largest_within_the_targets_keeps_them_and_one_more_does_not():
    slower = planned("workloads.chat.target.tpot_p95=30 ms").workload("chat").service.curve
    kept = next(p for p in slower.points if p.concurrency == slower.within)
    assert kept.tpot_s <= 0.030
    assert slower.within < CURVE.within
    assert next(p for p in slower.points if p.concurrency > slower.within).tpot_s > 0.030


def test_by_littles_law_all_in_flight_are_somewhere():
    for point in CURVE.points:
        assert point.requests_s * (point.ttft_s + 250 * point.tpot_s) == pytest.approx(point.concurrency)


def test_targets_that_one_request_misses_are_said():
    curve = planned("workloads.chat.target={ttft_p95: 1 ms, tpot_p95: 50 ms}").workload("chat").service.curve
    assert curve.within == 0
    assert planned("workloads.chat.target=").workload("chat").service.curve.within is None


def test_text_shows_a_few_points_json_all_and_the_page_draws_them():
    text = render_plan(PLAN)
    assert "last within the targets" in text
    assert sum(" req/s" in line and "TTFT" in line for line in text.splitlines()) <= 6
    chat = next(w for w in plan_values(PLAN)["workloads"] if w["name"] == "chat")
    assert len(chat["service"]["curve"]["points"]) == len(CURVE.points)
    page = str(render_curve(CURVE, "t", "k"))
    assert page.count("<circle") == 4 * len(CURVE.points)  # two times, for a desk and for a phone
    assert f"{CURVE.within} in flight are the most" in page
