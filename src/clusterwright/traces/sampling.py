"""Distributions → a trace: jobs like those to which they were fitted. The same generator gives the same jobs."""

from __future__ import annotations

from dataclasses import fields
from math import inf, nan
from typing import Any, Final

import numpy as np

from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.scales import DAY_S
from clusterwright.traces.distributions import PROBABILITIES
from clusterwright.traces.fits import Arrivals, Fit
from clusterwright.traces.tables import Counts, Floats, Trace, Words

#: Most jobs of one sample: ten times the largest trace that is replayed.
MOST_JOBS: Final = 10_000_000
MOST_DAYS: Final = 36_525
#: Gaps among which the first one is drawn by its length.
_CANDIDATES: Final = 10_000
_FLOATS: Final = ("eligible_s", "start_s", "end_s", "cpus", "memory_gib", "priority")


def sample(fit: Fit, rng: np.random.Generator, days: float) -> Trace:
    """Jobs submitted in `days` days from Monday 0 h on, in s since then; how long each runs, but no start.

    Args:
        days: more than 0, at most a century.

    Raises:
        InvalidInput: when no day, or more than ten million jobs, are asked for.
    """
    if not 0 < days <= MOST_DAYS:
        raise InvalidInput(f"days is {days:g}, must be more than 0 and at most {MOST_DAYS:,}")
    submit_s = draw_arrivals(fit.arrivals, rng, days)
    count = len(submit_s)
    shares = np.array([kind.share for kind in fit.kinds])
    kinds = rng.choice(len(fit.kinds), count, p=shares / shares.sum())
    gpus = np.array([kind.gpus for kind in fit.kinds], dtype=np.int32)[kinds]
    run_s = _run_times(fit, rng, gpus)
    columns: dict[str, Any] = {
        name: np.array([getattr(kind, name) for kind in fit.kinds], dtype=np.int32)[kinds]
        for name in ("gpu_milli", "tasks", "gpus_per_task")
    }
    columns |= {name: np.full(count, nan) for name in _FLOATS}
    columns |= {name: _words([getattr(kind, name) for kind in fit.kinds], kinds) for name in ("queue", "flavor")}
    for column in fields(Trace):
        if column.type == "Words" and column.name not in columns:
            columns[column.name] = Words(np.zeros(count, dtype=np.int32))
    return Trace(
        ids=tuple(map(str, range(1, count + 1))), submit_s=submit_s, run_s=run_s, lost_s=np.zeros(count),
        limit_s=_limits(fit, rng, run_s), gpus=gpus, attempts=np.ones(count, dtype=np.int32),
        censored=np.zeros(count, dtype=np.bool_), line=np.zeros(count, dtype=np.int32), **columns,
    )  # fmt: skip


def draw_arrivals(arrivals: Arrivals, rng: np.random.Generator, days: float) -> Floats:
    """Times of submission in s from Monday 0 h on, ascending, (jobs,) float64.

    A renewal process in equilibrium: the first time is what is left of a gap that began before (drawn with a chance in
    proportion to its length, then cut uniformly), so that the mean number of jobs is that of the rates however bursty
    they are.
    """
    hours = int(np.ceil(days * 24.0))
    rates = np.resize(np.array(arrivals.hourly), hours)
    edges_s = np.minimum(np.arange(hours + 1) * 3600.0, days * DAY_S)
    expected = np.concatenate(([0.0], np.cumsum(rates * np.diff(edges_s) / 3600.0)))
    if expected[-1] > MOST_JOBS:
        raise InvalidInput(f"{days:g} days are some {expected[-1]:,.0f} jobs; at most {MOST_JOBS:,} are drawn at once")
    longer = _gaps(arrivals, rng, _CANDIDATES)
    begun = longer[np.searchsorted(np.cumsum(longer), rng.random() * longer.sum())]
    moments = [np.array([rng.random() * begun])]
    while moments[-1][-1] < expected[-1]:
        missing = int((expected[-1] - moments[-1][-1]) * 1.05) + 100
        moments.append(moments[-1][-1] + np.cumsum(_gaps(arrivals, rng, missing)))
    clock = np.concatenate(moments)
    clock = clock[clock < expected[-1]]
    hour = np.searchsorted(expected, clock, side="right") - 1  # the last of equal ones: hours without jobs are passed
    within = (clock - expected[hour]) / (expected[hour + 1] - expected[hour])
    return np.asarray(edges_s[hour] + within * (edges_s[hour + 1] - edges_s[hour]))


def _gaps(arrivals: Arrivals, rng: np.random.Generator, count: int) -> Floats:
    """Times between submissions, in units of their mean."""
    mean = arrivals.chosen.mean * (1.0 - arrivals.zero_share)
    drawn = arrivals.chosen.draw(rng, count) / mean
    return np.where(rng.random(count) < arrivals.zero_share, 0.0, drawn) if arrivals.zero_share else drawn


def _run_times(fit: Fit, rng: np.random.Generator, gpus: Counts) -> Floats:
    run_s = np.zeros(len(gpus))
    for of_class in fit.run_times:
        low, high = of_class.gpus
        places = np.flatnonzero((gpus >= low) & ((gpus <= high) | (high < 0)))
        drawn = of_class.chosen.draw(rng, len(places))
        run_s[places] = np.where(rng.random(len(places)) < of_class.zero_share, 0.0, drawn)
    return run_s


def _limits(fit: Fit, rng: np.random.Generator, run_s: Floats) -> Floats:
    """Run time ÷ a ratio of the fit; a job of 0 s has the limit that the shortest other one would have."""
    limits, count = fit.limits, len(run_s)
    which = rng.random(count)
    if not limits.ratio:
        return np.where(which < limits.unlimited_share, inf, nan)
    ratio = np.maximum(np.interp(rng.random(count), PROBABILITIES, limits.ratio), 1e-6)
    limit_s = np.maximum(run_s, 1.0) / ratio
    unlimited = which < limits.unlimited_share
    unknown = (which >= limits.unlimited_share) & (which < limits.unlimited_share + limits.unknown_share)
    return np.where(unlimited, inf, np.where(unknown, nan, limit_s))


def _words(words: list[str], kinds: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Words:
    known = {"": 0}
    codes = np.array([known.setdefault(word, len(known)) for word in words], dtype=np.int32)
    return Words(codes[kinds], tuple(known))
