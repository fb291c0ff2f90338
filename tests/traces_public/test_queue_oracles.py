"""Jobs of the Philly trace start when a plain, quadratic scheduler starts them, job by job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from builders.oracles import Cycle, Job, best_effort, easy, replay, strict
from builders.philly import NODE_GPUS, PHILLY, philly_jobs
from builders.replays import Pool, easy_pool, simulated_starts_of, starts_of, strict_pool

pytestmark = pytest.mark.skipif(not PHILLY.exists(), reason=f"the public Philly trace is not there: {PHILLY}")

#: First job, jobs, how much faster they come, nodes of 8 GPUs. Most of the jobs wait in each.
SLICES = {
    "a day, few nodes": (20_000, 1_500, 1.0, 24),
    "four times faster": (20_000, 1_500, 4.0, 24),
    "many wide jobs": (5_000, 1_500, 8.0, 40),
    "a long queue": (60_000, 1_500, 30.0, 48),
}


@pytest.fixture(scope="module", params=SLICES.values(), ids=SLICES)
def stream(request: pytest.FixtureRequest) -> tuple[list[Job], list[int]]:
    first, count, times_faster, nodes = request.param
    return philly_jobs(first, count, times_faster=times_faster), [NODE_GPUS] * nodes


@pytest.mark.parametrize(("cycle", "pool"), [(strict, strict_pool), (best_effort, Pool), (easy, easy_pool)])
def test_a_slice_of_the_trace_starts_as_a_plain_scheduler_starts_it(
    stream: tuple[list[Job], list[int]], cycle: Cycle, pool: Callable[[list[int]], Pool]
) -> None:
    jobs, nodes = stream
    expected = replay(jobs, nodes, cycle)
    assert sum(expected[job.id] > job.submit_s for job in jobs) > len(jobs) / 4
    assert starts_of(jobs, pool(nodes)) == expected
    assert simulated_starts_of(jobs, pool(nodes)) == expected


def test_the_whole_trace_starts_first_in_first_out_as_a_plain_scheduler_starts_it() -> None:
    jobs = [replace(job, priority=0) for job in philly_jobs()]
    nodes = [NODE_GPUS] * 96
    assert len(jobs) == 82_247
    expected = replay(jobs, nodes, strict)
    assert sum(expected[job.id] > job.submit_s for job in jobs) > len(jobs) / 4
    assert starts_of(jobs, strict_pool(nodes)) == expected
