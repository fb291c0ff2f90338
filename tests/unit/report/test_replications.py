"""Replications as one answer: intervals, bounds, pairs, and calibration."""

from __future__ import annotations

import pytest

from clusterwright.ledger.totals import Lines
from clusterwright.report.replications import (
    Calibration,
    Compared,
    Estimate,
    Group,
    Replication,
    calibrate,
    estimate,
    estimate_level,
    pair,
)
from clusterwright.report.simulations import say_time, span
from clusterwright.simulate.calibrating import Tolerance


def replication(seed: int, **changes) -> Replication:
    made = {
        "seed": seed, "simulated_s": 1.0, "partial": False, "groups": (), "lines": Lines({}), "fared": {},
        "failures": {}, "preemptions": 0, "requeued": 0, "ettr": None, "ettr_saved": None, "fairness": None,
        "spread": None, "succeeded": 0, "succeeded_gpu_h": 0.0, "cost": None,
    }  # fmt: skip
    return Replication(**{**made, **changes})


def group(jobs: int, waiting: int, *waits_s: float) -> Group:
    return Group("all", "", jobs, jobs, 0, waiting, waiting, waits_s, ())


def test_an_interval_is_students():
    """Of 1, 2, 3: mean 2, standard error 1 ÷ √3, t with two degrees of freedom 4.303."""
    found = estimate([1.0, 2.0, 3.0])
    assert found is not None
    assert found.value == 2.0
    assert found.half == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    assert found.interval == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-3)


def test_one_value_has_no_interval_and_none_has_no_estimate():
    assert estimate([5.0]) == Estimate(5.0, None)
    assert estimate([None, 5.0, None]) == Estimate(5.0, None)
    assert estimate([None]) is None


def test_equal_values_have_no_spread_however_they_round():
    found = estimate([0.1] * 7)
    assert found is not None
    assert found.half == 0.0


def test_a_quantile_that_waiting_jobs_can_move_is_a_lower_bound():
    levels = (1.0, 2.0, 3.0, 4.0, 5.0)
    runs = [replication(0, groups=(group(100, 6, *levels),))]
    assert not estimate_level(runs, "all", "", "wait_s", "p90").bound
    assert estimate_level(runs, "all", "", "wait_s", "p95").bound
    assert say_time(estimate_level(runs, "all", "", "wait_s", "max")) == "≥5 s"


def test_differences_are_of_the_pairs():
    """Two futures that spread widely and differ by exactly 1 each: the difference has no spread."""
    first = [replication(n, ettr=10.0**n) for n in range(4)]
    second = [replication(n, ettr=10.0**n + 1) for n in reversed(range(4))]
    found = pair(first, second, lambda r: r.ettr)
    assert found is not None
    assert found.difference.value == pytest.approx(1.0)
    assert found.difference.half == pytest.approx(0.0, abs=1e-9)
    assert found.first.half > 100
    assert found.clear
    assert pair(first, [replication(9, ettr=1.0)], lambda r: r.ettr) is None


@pytest.mark.parametrize(
    ("real", "simulated", "within"),
    [((0.0, 0.0), (600.0, 600.0), True), ((0.0, 0.0), (601.0, 0.0), False), ((3600.0, 7200.0), (5400.0, 3600.0), True),
     ((3600.0, 7200.0), (5401.0, 7200.0), False), ((3600.0, 7200.0), (3600.0, 3599.0), False)],
)  # fmt: skip
def test_a_group_is_within_half_of_the_real_wait_or_ten_minutes(real, simulated, within):
    row = Compared("size", "8", 30, real, simulated)
    found = Calibration((row,), Tolerance())
    assert (found.within(row), found.holds) == (within, within)


def test_few_jobs_are_shown_and_not_judged():
    row = Compared("size", "8", 29, (0.0, 0.0), (9e9, 9e9))
    found = Calibration((row,), Tolerance())
    assert (found.within(row), found.holds, found.judged) == (None, None, ())


def test_simulated_waits_are_the_mean_of_the_futures():
    rows = [Compared("all", "", 40, (1.0, 2.0), (float(n), 4.0)) for n in (1, 3)]
    found = calibrate([replication(n, compared=(row,)) for n, row in enumerate(rows)], Tolerance())
    assert found is not None
    assert found.compared == (Compared("all", "", 40, (1.0, 2.0), (2.0, 4.0)),)
    assert calibrate([replication(0)], Tolerance()) is None


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (90, "90 s"), (780, "13 min"), (8640, "2.4 h"), (855360, "9.9 d")]
)
def test_times_are_said_in_the_unit_that_people_use(seconds, said):
    assert span(seconds) == said
