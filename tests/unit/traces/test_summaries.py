"""What a trace holds in numbers, against sums by hand."""

from __future__ import annotations

import math
from datetime import UTC
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from builders.traces import trace_of
from clusterwright.traces.building import TraceBuilder
from clusterwright.traces.summaries import hours_of_week, summarise

MONDAY = 4 * 86400.0  # 5 January 1970


def job(submit_s, run_s=3600.0, gpus=1, **more):
    return {"submit_s": MONDAY + submit_s, "run_s": run_s, "gpus": gpus, **more}


def test_gpu_hours_count_attempts_and_shares_and_leave_out_what_is_not_recorded():
    trace = trace_of(
        job(0, gpus=8), job(1, gpus=4, lost_s=1800.0), job(2, gpus=1, gpu_milli=500), job(3, gpus=-1),
        job(4, run_s=math.nan),
    )  # fmt: skip
    found = summarise(trace)
    assert (found.gpu_hours, found.lost_gpu_hours) == (8 + 4 * 1.5 + 0.5, 2.0)
    assert (found.jobs, found.never_ran, found.run_s.count) == (5, 1, 4)


def test_run_times_of_jobs_that_still_ran_are_no_run_times():
    found = summarise(trace_of(job(0, run_s=10.0), job(1, run_s=99999.0, censored=True)))
    assert (found.run_s.count, found.run_s.largest, found.censored) == (1, 10.0, 1)


def test_sizes_fall_into_classes():
    found = summarise(trace_of(*(job(k, gpus=gpus) for k, gpus in enumerate((0, 1, 2, 3, 8, 15, 5000, -1)))))
    sizes = {size.name: size.jobs for size in found.sizes}
    assert sizes == {"0": 1, "1": 1, "2-3": 2, "8-15": 2, "4096+": 1, "not recorded": 1}


def test_arrivals_are_rates_of_the_hours_that_the_window_covers():
    # Two whole weeks; every Monday at 9 h there are 4 jobs, else one a day at noon.
    days = [(week * 7 + day) * 86400.0 for week in range(2) for day in range(7)]
    jobs = [job(day + 12 * 3600.0) for day in days]
    jobs += [job(week * 7 * 86400.0 + 9 * 3600.0 + k) for week in range(2) for k in range(4)]
    jobs += [job(0.0), job(14 * 86400.0)]
    hourly = summarise(trace_of(*jobs)).hourly
    assert (hourly[9], hourly[12], hourly[3 * 24 + 12], hourly[13]) == (4.0, 1.0, 1.0, 0.0)


def test_hours_outside_the_window_have_no_rate():
    hourly = summarise(trace_of(job(0.0), job(7200.0))).hourly
    assert hourly[0] == 1.0
    assert all(math.isnan(rate) for rate in hourly[3:])


def test_hours_of_the_week_follow_the_local_clock():
    berlin = ZoneInfo("Europe/Berlin")
    winter, summer = 1736719200.0, 1752444000.0  # Sunday 2025-01-12 22:00 UTC, Sunday 2025-07-13 22:00 UTC
    assert hours_of_week(np.array([winter, summer]), berlin).tolist() == [167, 0]
    assert hours_of_week(np.array([MONDAY - 1, MONDAY]), UTC).tolist() == [167, 0]


def test_the_cv_of_regular_arrivals_is_0_and_of_bursts_large():
    assert summarise(trace_of(*(job(60.0 * k) for k in range(100)))).interarrival_cv == pytest.approx(0.0)
    bursts = [job(3600.0 * (k // 10)) for k in range(1000)]
    assert summarise(trace_of(*bursts)).interarrival_cv == pytest.approx(3.0, rel=0.02)


def test_waits_count_from_when_a_job_was_eligible_and_are_never_negative():
    trace = trace_of(
        job(0, start_s=MONDAY + 50), job(0, start_s=MONDAY + 50, eligible_s=MONDAY + 40),
        job(9, start_s=MONDAY + 5), job(9),
    )  # fmt: skip
    np.testing.assert_array_equal(trace.wait_s, [50.0, 10.0, 0.0, np.nan])


def test_the_window_reaches_to_the_last_thing_that_is_known():
    trace = trace_of(job(0, start_s=MONDAY + 10, run_s=500.0, censored=True), job(100))
    assert trace.window_s == (MONDAY, MONDAY + 510)


def test_an_empty_trace_has_a_summary():
    found = summarise(TraceBuilder().build())
    assert (found.jobs, found.hourly, found.window_s) == (0, (), (0.0, 0.0))
    assert math.isnan(found.gpu_hours)


def test_chosen_jobs_keep_their_columns():
    trace = trace_of(job(0, user="a"), job(1, user="b"), job(2, user="a"))
    chosen = trace.take(trace.user.are("a"))
    assert [(each.id, each.user) for each in chosen.jobs()] == [("1", "a"), ("3", "a")]
    assert trace.user.counts() == {"a": 2, "b": 1}
    assert chosen[1].submit_s == MONDAY + 2
