"""A trace → distributions of arrivals, kinds of jobs, run times by size, and limits.

Only jobs that ran with a known number of GPUs count. Kinds are joint shares of queue, GPU type and size, so that large
jobs stay in the queues they came from; run times depend on the size alone.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, tzinfo
from typing import Final

import numpy as np

from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.scales import DAY_S
from clusterwright.traces.distributions import FEWEST, PROBABILITIES, choose, fit_all, weigh
from clusterwright.traces.fits import Arrivals, Fit, Kind, Limits, RunTimes
from clusterwright.traces.summaries import CLASSES, arrivals_by_hour, hours_of_week
from clusterwright.traces.tables import Floats, Trace

#: Most kinds that are kept; the rarest beyond them are counted to the most frequent kind of their size.
_MOST_KINDS: Final = 500
#: A week: below it hours of the week are not told apart.
_WEEK_DAYS: Final = 7.0


def fit_trace(trace: Trace, zone: tzinfo = UTC, *, source: str = "", dated: bool = True) -> Fit:
    """Distributions fitted to a trace.

    Args:
        zone: in which hours of the week are counted.
        dated: whether its times are POSIX seconds; else every hour is like the others.

    Raises:
        InvalidInput: when fewer than 30 jobs ran with a known number of GPUs, or all were submitted at once.
    """
    used = trace.take(trace.ran & (trace.gpus >= 0))
    if len(used) < FEWEST:
        raise InvalidInput(
            f"only {len(used)} jobs of {len(trace)} have a run time and a number of GPUs; {FEWEST} are needed"
        )
    days = float(used.submit_s[-1] - used.submit_s[0]) / DAY_S
    if days <= 0:
        raise InvalidInput("all jobs were submitted at the same time; arrivals cannot be fitted")
    return Fit(
        source=source, zone=str(zone) if dated else "", jobs=len(used), left_out=len(trace) - len(used), days=days,
        arrivals=_arrivals(used, zone, weekly=dated and days >= _WEEK_DAYS), kinds=_kinds(used),
        run_times=tuple(_run_times(used)), limits=_limits(used),
    )  # fmt: skip


def _arrivals(trace: Trace, zone: tzinfo, *, weekly: bool) -> Arrivals:
    span_h = float(trace.submit_s[-1] - trace.submit_s[0]) / 3600.0
    flat = (len(trace) - 1) / span_h
    if not weekly:
        return _renewal((flat,), np.diff(trace.submit_s) * flat / 3600.0)
    hourly = arrivals_by_hour(trace, zone)
    hourly = np.where(np.isnan(hourly), flat, hourly)
    # The expected number of jobs up to each submission: the time of a clock that runs with the rate of the hour.
    edges = np.arange(math.floor(trace.submit_s[0] / 900.0), math.ceil(trace.submit_s[-1] / 900.0) + 1) * 900.0
    expected = np.concatenate(([0.0], np.cumsum(hourly[hours_of_week(edges[:-1], zone)] * 0.25)))
    return _renewal(tuple(hourly.tolist()), np.diff(np.interp(trace.submit_s, edges, expected)))


def _renewal(hourly: tuple[float, ...], gaps: Floats) -> Arrivals:
    """The process whose times between events, in units of their mean, are these."""
    mean = float(gaps.mean())
    positive = gaps[gaps > 0] / mean
    fits = fit_all(weigh(positive, np.zeros(len(positive), dtype=np.bool_)))
    chosen = choose(fits)
    others = tuple(fitted for fitted in fits if fitted is not chosen)
    return Arrivals(hourly, float(gaps.std() / mean), 1.0 - len(positive) / len(gaps), chosen, others)


def _kinds(trace: Trace) -> tuple[Kind, ...]:
    columns = (trace.queue.codes, trace.flavor.codes, trace.gpus, trace.gpu_milli, trace.tasks, trace.gpus_per_task)
    counted = Counter(zip(*(column.tolist() for column in columns), strict=True))
    ranked = counted.most_common()
    kept = dict(ranked[:_MOST_KINDS])
    for kind, count in ranked[_MOST_KINDS:]:
        like = next((other for other in kept if other[2] == kind[2]), None)
        if like is None:
            kept[kind] = count
        else:
            kept[like] += count
    total = len(trace)
    return tuple(
        Kind(count / total, trace.queue.words[queue], trace.flavor.words[flavor], *numbers)
        for (queue, flavor, *numbers), count in kept.items()
    )


def _run_times(trace: Trace) -> list[RunTimes]:
    """Classes of sizes, as narrow as 30 jobs that ended in each allow."""
    ended = ~trace.censored & (trace.run_s > 0)
    found: list[RunTimes] = []
    low = 0
    for end in CLASSES[1:]:
        inside = ended & (trace.gpus >= low) & (trace.gpus < end)
        above = ended & (trace.gpus >= end)
        if min(np.count_nonzero(inside), np.count_nonzero(above)) >= FEWEST:
            found.append(_class(trace.take((trace.gpus >= low) & (trace.gpus < end)), (low, end - 1)))
            low = end
    found.append(_class(trace.take(trace.gpus >= low), (low, -1)))
    return found


def _class(trace: Trace, gpus: tuple[int, int]) -> RunTimes:
    positive = trace.run_s > 0
    ended = positive & ~trace.censored
    if not ended.any():
        raise InvalidInput(f"no job with {gpus[0]} GPUs or more ended after more than 0 s; run times cannot be fitted")
    fits = fit_all(weigh(trace.run_s[positive], trace.censored[positive]))
    chosen = choose(fits)
    zero = float(np.count_nonzero(~positive)) / len(trace)
    others = tuple(fitted for fitted in fits if fitted is not chosen)
    return RunTimes(gpus, len(trace), int(np.count_nonzero(trace.censored)), zero, chosen, others)


def _limits(trace: Trace) -> Limits:
    finite = np.isfinite(trace.limit_s) & (trace.limit_s > 0)
    used = finite & ~trace.censored & (trace.run_s > 0)
    ratio = trace.run_s[used] / trace.limit_s[used]
    return Limits(
        float(np.mean(np.isinf(trace.limit_s))), float(np.mean(np.isnan(trace.limit_s))),
        tuple(np.quantile(ratio, PROBABILITIES).tolist()) if len(ratio) else (),
    )  # fmt: skip
