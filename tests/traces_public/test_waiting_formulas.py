"""Waits in a pool of equal GPUs are those of M/M/c: the mean and the share of jobs that wait, within 1 %.

A mean wait under load needs tens of millions of jobs to be known to 1 %, for waits of neighbours are alike. So two
steps: the product starts every job of some streams at the very time of the recursion of Kiefer and Wolfowitz (1955);
and that recursion, on 100 million jobs of many streams at once, has the waits that Erlang's formula gives. Seeds are
fixed, and two standard errors over the streams are held below 1 %, too.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from builders.oracles import Job
from builders.replays import starts_of, strict_pool
from clusterwright.physics.waiting import erlang_c, mean_wait_s

SERVERS, LOAD, SERVICE_S = 64, 0.9, 3600.0
STREAMS, WARM_UP, COUNTED = 6400, 4_000, 16_000


@cache
def recursion() -> tuple[float, float, float, float]:
    """Mean wait in s and its standard error, share of jobs that wait and its standard error, over the streams."""
    rng = np.random.Generator(np.random.PCG64(7))
    free_at, now, rows = np.zeros((STREAMS, SERVERS)), np.zeros(STREAMS), np.arange(STREAMS)
    waits, waited = np.zeros(STREAMS), np.zeros(STREAMS)
    for step in range(WARM_UP + COUNTED):
        now += rng.exponential(SERVICE_S / (SERVERS * LOAD), STREAMS)
        first = free_at.argmin(axis=1)
        start = np.maximum(now, free_at[rows, first])
        free_at[rows, first] = start + rng.exponential(SERVICE_S, STREAMS)
        if step >= WARM_UP:
            waits += start - now
            waited += start > now
    means, shares = waits / COUNTED, waited / COUNTED
    root = STREAMS**0.5
    return float(means.mean()), float(means.std() / root), float(shares.mean()), float(shares.std() / root)


def test_the_formulas_have_the_published_values() -> None:
    assert erlang_c(SERVERS, LOAD) == pytest.approx(0.3107, abs=5e-5)
    assert mean_wait_s(SERVERS, LOAD, SERVICE_S) == pytest.approx(174.7, abs=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_every_job_starts_when_the_recursion_starts_it(seed: int) -> None:
    rng = np.random.Generator(np.random.PCG64(seed))
    times = np.cumsum(rng.exponential(SERVICE_S / (SERVERS * LOAD), 5_000))
    services, free_at = rng.exponential(SERVICE_S, len(times)), np.zeros(SERVERS)
    jobs = [Job(f"{i:05d}", float(t), float(s), 1) for i, (t, s) in enumerate(zip(times, services, strict=True))]
    expected = {}
    for job in jobs:
        first = int(free_at.argmin())
        expected[job.id] = max(job.submit_s, float(free_at[first]))
        free_at[first] = expected[job.id] + job.run_s
    assert starts_of(jobs, strict_pool([8] * (SERVERS // 8))) == expected


def test_the_share_of_jobs_that_wait_is_erlangs_within_1_percent() -> None:
    _, _, share, error = recursion()
    assert 2 * error < 0.01 * erlang_c(SERVERS, LOAD)
    assert share == pytest.approx(erlang_c(SERVERS, LOAD), rel=0.01)


def test_the_mean_wait_is_erlangs_within_1_percent() -> None:
    mean, error, _, _ = recursion()
    expected = mean_wait_s(SERVERS, LOAD, SERVICE_S)
    assert 2 * error < 0.01 * expected
    assert mean == pytest.approx(expected, rel=0.01)
