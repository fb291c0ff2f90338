"""Random streams of jobs start when a plain scheduler of a few lines starts them, too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.oracles import Cycle, Job, best_effort, easy, replay, strict
from builders.replays import Pool, easy_pool, simulated_starts_of, starts_of, strict_pool

pools = st.lists(st.sampled_from([2, 4, 8]), min_size=1, max_size=6)


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    out = []
    for number in range(draw(st.integers(1, 24))):
        run_s = draw(st.integers(1, 12))
        slack = draw(st.sampled_from([0, 0, 1, 5, 20, None]))
        job = Job(
            id=f"{number:03d}",
            submit_s=draw(st.integers(0, 20)),
            run_s=run_s,
            gpus=draw(st.sampled_from([1, 1, 2, 3, 4, 8])),
            tasks=draw(st.sampled_from([1, 1, 1, 2, 3, 5])),
            limit_s=None if slack is None else run_s + slack,
            priority=draw(st.integers(0, 2)),
        )
        out.append(job)
    return out


@pytest.mark.parametrize(("cycle", "pool"), [(strict, strict_pool), (best_effort, Pool), (easy, easy_pool)])
@given(nodes=pools, stream=jobs())
@settings(deadline=None, max_examples=100)
def test_random_streams_start_as_a_plain_scheduler_starts_them(
    cycle: Cycle, pool: Callable[[list[int]], Pool], nodes: list[int], stream: list[Job]
) -> None:
    expected = replay(stream, nodes, cycle)
    assert starts_of(stream, pool(nodes)) == expected
    assert simulated_starts_of(stream, pool(nodes)) == expected
