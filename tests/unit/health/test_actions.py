"""What counters and states ask for; who goes out of service and comes back."""

from datetime import UTC, datetime, timedelta

import pytest

from clusterwright.health.actions import (
    IBTA,
    NVSENTINEL,
    Breaker,
    Do,
    Drain,
    drain_reason,
    for_link_down,
    for_retired_pages,
    for_row_remapping,
    for_thermal_margin,
    judge_symbol_errors,
    may_return,
    set_by_rule,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("pending", "failure", "do"),
    [
        (False, False, Do.NOTHING),
        (True, False, Do.RESET_GPU),
        (True, True, Do.REPLACE_GPU),
        (None, True, Do.REPLACE_GPU),
        (False, None, Do.MEASURE),
        (None, False, Do.MEASURE),
        (None, None, Do.MEASURE),
    ],
)
def test_row_remapping(pending, failure, do):
    assert for_row_remapping(pending, failure).do is do


@pytest.mark.parametrize(
    ("retired", "pending", "do"),
    [(0, False, Do.NOTHING), (3, True, Do.RESET_GPU), (60, False, Do.REPLACE_GPU), (None, False, Do.MEASURE)],
)
def test_retired_pages(retired, pending, do):
    assert for_retired_pages(retired, pending).do is do


def test_a_link_down_for_thirty_seconds_takes_the_node_out():
    assert for_link_down(30.0, up_again=True).do is Do.TAKE_OUT
    assert for_link_down(29.9, up_again=True).do is Do.CHECK_CABLE
    assert for_link_down(5.0, up_again=False).do is Do.MEASURE
    assert for_link_down(None, up_again=True).do is Do.MEASURE


def test_symbol_errors_are_judged_by_both_sources_in_their_units():
    per_second, per_hour = judge_symbol_errors(360, 3600.0)
    assert (per_second.source, per_second.per, per_second.limit, per_second.exceeded) == (NVSENTINEL, "s", 10.0, False)
    assert (per_hour.source, per_hour.per, per_hour.limit, per_hour.exceeded) == (IBTA, "h", 120.0, True)
    assert per_second.rate == pytest.approx(0.1)
    assert per_hour.rate == pytest.approx(360.0)


def test_a_counter_without_a_time_is_no_rate():
    with pytest.raises(ValueError, match="above 0 s"):
        judge_symbol_errors(5, 0.0)


@pytest.mark.parametrize(
    ("product", "margin", "do"),
    [
        ("NVIDIA H100 80GB HBM3", -2.0, Do.NOTHING),
        ("NVIDIA H100 80GB HBM3", -2.5, Do.CHECK_COOLING),
        ("NVIDIA GB200", -2.5, Do.CHECK_COOLING),
        ("NVIDIA B200", -2.5, Do.NOTHING),
        ("NVIDIA B200", -3.5, Do.CHECK_COOLING),
        ("NVIDIA H100 80GB HBM3", None, Do.MEASURE),
        ("NVIDIA L4", 10.0, Do.MEASURE),
    ],
)
def test_the_thermal_margin_depends_on_the_product(product, margin, do):
    assert for_thermal_margin(product, margin).do is do


def test_drain_reasons_tell_rules_from_people():
    reason = drain_reason("node_problem", "Xid 79\non 0000:1b:00.0")
    assert reason == "[node_problem] Xid 79 on 0000:1b:00.0"
    assert set_by_rule(reason)
    assert not set_by_rule("bad fan, do not touch")
    with pytest.raises(ValueError, match="maintenance"):
        drain_reason("bad", "x")


def by_rule(hours_ago=5):
    return Drain(drain_reason("node_problem", "Xid 79"), by_person=False, at=NOON - hours_ago * HOUR)


def test_a_node_that_a_person_took_out_is_never_returned():
    fresh = NOON - HOUR
    assert not may_return(
        Drain("[node_problem] x", by_person=True, at=NOON - 5 * HOUR), True, fresh, NOON, HOUR * 24
    ).allowed
    assert not may_return(Drain("fan", by_person=False, at=NOON - 5 * HOUR), True, fresh, NOON, HOUR * 24).allowed


def test_return_needs_evidence_that_passed_after_the_drain_and_is_fresh():
    day = HOUR * 24
    assert may_return(by_rule(), True, NOON - HOUR, NOON, day).allowed
    assert not may_return(by_rule(), None, None, NOON, day).allowed
    assert not may_return(by_rule(), False, NOON - HOUR, NOON, day).allowed
    assert not may_return(by_rule(), True, NOON - 6 * HOUR, NOON, day).allowed
    assert not may_return(by_rule(), True, NOON - 2 * HOUR, NOON, HOUR).allowed
    assert not may_return(by_rule(), True, NOON + HOUR, NOON, day).allowed


def test_the_breaker_holds_both_limits():
    breaker = Breaker(most_nodes=5, most_share=0.1)
    assert breaker.may_take_out(1, 4, 100).allowed
    assert not breaker.may_take_out(1, 5, 100).allowed
    assert breaker.may_take_out(1, 1, 20).allowed
    assert not breaker.may_take_out(1, 2, 20).allowed
    assert not breaker.may_take_out(1, 0, 0).allowed
