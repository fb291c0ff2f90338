"""Submit, start, end and run time of one job: do they agree, and what follows where one is not recorded."""

from __future__ import annotations

from math import isnan, nan
from typing import Final, NamedTuple

from clusterwright.traces.counting import Tally
from clusterwright.traces.rules import LONGEST_S, MOST_SKEW_S
from clusterwright.traces.stamps import within_range

#: End − start and run time may differ by this without a remark, in seconds: both are printed in whole seconds.
_ROUNDING_S: Final = 1.0


class Times(NamedTuple):
    """Times of a job that agree with each other; NaN where not recorded."""

    submit_s: float
    start_s: float
    end_s: float
    run_s: float


def settle(
    tally: Tally, line: int, text: str, *, submit_s: float, start_s: float = nan, end_s: float = nan, run_s: float = nan
) -> Times | None:
    """Times that agree, or None when the row was rejected; what was odd is in the tally.

    A run time that is not recorded follows from start and end, an end from start and run time.

    Args:
        line, text: of the row, for the samples.
    """
    if isnan(submit_s):
        tally.reject("no-submit", line, text)
        return None
    for what, moment_s in (("submit", submit_s), ("start", start_s), ("end", end_s)):
        if not isnan(moment_s) and not within_range(moment_s):
            tally.reject("bad-time", line, text, f"{what} is {moment_s:g} s since 1970")
            return None
    if end_s < start_s:
        tally.reject("end-before-start", line, text, f"by {start_s - end_s:.0f} s")
        return None
    if isnan(run_s):
        run_s = end_s - start_s
    if not _run_possible(tally, line, text, run_s):
        return None
    if start_s < submit_s:
        if submit_s - start_s > MOST_SKEW_S:
            tally.reject("start-before-submit", line, text, f"by {submit_s - start_s:.0f} s")
            return None
        tally.remark("clock-skew", line, text, f"by {submit_s - start_s:.3g} s")
    if isnan(end_s):
        end_s = start_s + run_s
    elif abs(end_s - start_s - run_s) > _ROUNDING_S:
        tally.remark("run-differs", line, text, f"run {run_s:g} s, end − start {end_s - start_s:g} s")
    return Times(submit_s, start_s, end_s, run_s)


def _run_possible(tally: Tally, line: int, text: str, run_s: float) -> bool:
    if run_s < 0:
        tally.reject("negative-run", line, text, f"{run_s:g} s")
    elif run_s > LONGEST_S:
        tally.reject("run-too-long", line, text, f"{run_s:g} s")
    else:
        if run_s == 0:
            tally.remark("zero-run", line, text)
        return True
    return False
