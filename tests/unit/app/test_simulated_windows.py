"""Windows of a trace: what runs and waits at their beginning, how times are read, how long a cluster fills."""

from __future__ import annotations

from datetime import UTC
from math import inf, nan
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from builders.traces import trace_of
from clusterwright.app.simulated_windows import cut_trace, fill_time_s, moment_s, whole, whole_days_s
from clusterwright.lib.errors import InvalidInput


def job(submit_s, start_s, run_s, **fields):
    return {
        "submit_s": submit_s, "start_s": start_s, "run_s": run_s, "end_s": start_s + run_s, "gpus": 8,
        "id": f"{submit_s:g}", **fields,
    }  # fmt: skip


def test_a_window_begins_with_what_ran_and_what_waited():
    trace = trace_of(
        job(0, 0, 100),  # over
        job(10, 40, 1000, limit_s=2000.0),  # runs, 540 s are left
        job(20, 20, 600, limit_s=inf),  # runs, began before; 120 s are left
        job(30, 700, 50, limit_s=300.0),  # waits
        job(40, nan, 50, end_s=nan),  # nobody knows
        job(450, 450, 50, eligible_s=600.0),  # its own condition lets it come within the window
        job(500, 520, 10),
        job(900, 900, 10),  # after it
    )
    cut = cut_trace(trace, 500.0, 800.0)
    assert cut.trace.ids == ("20", "10", "30", "450", "500")
    assert np.rint((cut.trace.submit_s - cut.origin_s) * 1000).tolist() == [0, 0, 1, -49998, 2]
    assert cut.lead_s == pytest.approx(0.002)
    assert cut.window_s == 300
    assert cut.trace.run_s.tolist() == [120.002, 540.002, 50, 50, 10], "they end when they did"
    assert cut.trace.limit_s[:3].tolist() == [inf, 2000 - 460 + 0.002, 300]
    assert np.isnan(cut.trace.wait_s[:3]).all()
    assert not np.isnan(cut.trace.wait_s[4])
    assert "2 jobs run" in cut.remarks[0]
    assert "1 wait" in cut.remarks[0]
    assert cut.remarks[1].startswith("1 jobs came before the window and have no recorded start")


def test_a_window_before_which_nothing_was_is_the_trace():
    trace = trace_of(job(0, 5, 10), job(50, 60, 10))
    assert whole(trace).window_s == 70
    assert cut_trace(trace, None, 40.0).trace.ids == ("0",)
    late = cut_trace(trace, 40.0, None)
    assert (late.trace.ids, late.lead_s, late.origin_s, late.remarks) == (("50",), 0.0, 40.0, ())


def test_of_a_requeued_job_the_last_attempt_counts():
    trace = trace_of(
        job(0, 10, 100, end_s=1000.0, lost_s=300.0, attempts=2), job(1, 10, 900, end_s=1000.0, lost_s=50.0, attempts=2),
        job(600, 600, 10),
    )  # fmt: skip
    cut = cut_trace(trace, 500.0, None)
    assert cut.trace.run_s.tolist() == [500.002, 100, 10], (
        "the second one runs since 100 s, the first waits until 900 s"
    )


@pytest.mark.parametrize(("since_s", "until_s"), [(900.0, None), (None, 0.0), (60.0, 50.0)])
def test_a_window_without_anything_is_refused(since_s, until_s):
    with pytest.raises(InvalidInput, match="leave nothing"):
        cut_trace(trace_of(job(0, 5, 10), job(50, 60, 10)), since_s, until_s)


def test_times_are_dates_of_a_zone_or_since_the_first_submission():
    trace, berlin = trace_of(job(1000, 1000, 10)), ZoneInfo("Europe/Berlin")
    assert moment_s("--since", "", trace, UTC, dated=True) is None
    assert moment_s("--since", "2026-05-04", trace, UTC, dated=True) == 1777852800.0
    assert moment_s("--since", "2026-05-04T02:00", trace, berlin, dated=True) == 1777852800.0
    assert moment_s("--since", "2026-05-04T02:00+00:00", trace, berlin, dated=True) == 1777860000.0
    assert moment_s("--since", "2 h", trace, UTC, dated=False) == 8200.0
    with pytest.raises(InvalidInput, match="the trace has none"):
        moment_s("--since", "2026-05-04", trace, UTC, dated=False)
    with pytest.raises(InvalidInput, match="--until is 'noon'"):
        moment_s("--until", "noon", trace, UTC, dated=True)


def test_a_cluster_is_filled_when_99_percent_of_its_steady_load_is_there():
    """Equal run times: the occupancy grows in proportion until then. Exponential ones: 1 − exp(−t ÷ mean)."""
    assert fill_time_s(trace_of(*(job(n, n, 1000) for n in range(10)))) == pytest.approx(990)
    quantiles = -np.log(1 - (np.arange(20_000) + 0.5) / 20_000) * 100
    many = trace_of(*(job(0, 0, float(run)) for run in quantiles))
    assert fill_time_s(many) == pytest.approx(100 * np.log(100), rel=0.02)
    weighted = trace_of(job(0, 0, 10, gpus=1), job(0, 0, 1000, gpus=1000))
    assert fill_time_s(weighted) == pytest.approx(990, rel=1e-3)
    assert fill_time_s(trace_of(job(0, 0, nan, gpus=8), job(0, 0, 5, gpus=0))) == 0
    assert (whole_days_s(0.0), whole_days_s(1.0), whole_days_s(86400.0)) == (0, 86400, 86400)
