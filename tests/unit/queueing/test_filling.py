"""Filling a cluster: what arrives, what fits, and what is counted."""

from __future__ import annotations

import numpy as np
import pytest

from clusterwright.queueing.filling import Filling, by_arrived, draw_arrivals, fill
from clusterwright.queueing.fractions import Ask, NodeSpec, lay_out
from clusterwright.queueing.fragmenting import TaskMix
from clusterwright.queueing.preferring import POLICIES

WHOLE, HALF, PAIR = Ask(gpus=1), Ask(gpus=1, gpu_milli=500), Ask(gpus=2)
MIX = TaskMix((WHOLE,), (1,))


def test_what_does_not_fit_arrives_all_the_same_and_later_tasks_still_start() -> None:
    rows = lay_out([NodeSpec("n", 2)])
    filling = fill(rows, [HALF, PAIR, WHOLE], np.array([0, 1, 2]), POLICIES["best-fit"], MIX)
    assert filling.rows.tolist() == [0, -1, 0]
    assert filling.arrived_milli.tolist() == [500, 2500, 3500]
    assert filling.allocated_milli.tolist() == [500, 500, 1500]
    assert filling.fragmented_milli.tolist() == [500, 500, 500]
    assert filling.capacity_milli == 2000
    assert rows.free_milli.tolist() == [[1000, 1000]]


def test_nothing_arriving_is_an_empty_filling() -> None:
    filling = fill(lay_out([NodeSpec("n", 2)]), [WHOLE], np.array([], dtype=np.int64), POLICIES["fgd"], MIX)
    assert len(filling.rows) == len(filling.fragmented_milli) == 0


@pytest.mark.parametrize("ask", [Ask(2000, 1), Ask(0, 1, memory_mib=20), Ask(0, 1, models=("T4",)), Ask(2000)])
def test_cpu_memory_and_model_keep_a_task_out(ask: Ask) -> None:
    rows = lay_out([NodeSpec("n", 1, cpu_milli=1000, memory_mib=10, model="G2")])
    assert fill(rows, [ask], np.array([0]), POLICIES["fgd"], MIX).rows.tolist() == [-1]


def test_a_light_workload_is_repeated_until_the_next_task_would_pass_the_load() -> None:
    asks = [WHOLE] * 10 + [HALF] * 20 + [Ask()] * 5
    arrivals = draw_arrivals(asks, 100_000, 1.3, np.random.default_rng(3))
    assert sorted(arrivals[:35]) == list(range(35))
    assert 130_000 - 1000 < sum(asks[i].total_milli for i in arrivals) <= 130_000


def test_a_heavy_workload_is_thinned_to_the_load_at_random() -> None:
    asks = [WHOLE] * 200 + [Ask()] * 50
    first, second = (draw_arrivals(asks, 100_000, 1.3, np.random.default_rng(seed)) for seed in (1, 2))
    for arrivals in (first, second):
        assert len(set(arrivals.tolist())) == len(arrivals)
        assert sum(asks[i].total_milli for i in arrivals) == 130_000
    assert set(first.tolist()) != set(second.tolist())


def test_a_workload_without_gpus_cannot_fill_a_cluster() -> None:
    with pytest.raises(ValueError, match="no task asks for a GPU"):
        draw_arrivals([Ask(1000)], 1000, 1.3, np.random.default_rng(0))


def test_a_curve_is_the_mean_over_the_arrivals_at_each_percent_or_next_to_it() -> None:
    arrived = np.array([4, 6, 10, 14, 30])
    allocated = np.array([4, 6, 10, 10, 30])
    filling = Filling(np.zeros(5, dtype=np.int64), arrived, allocated, np.zeros(5), 1000)
    # 0.4 % rounds to 0; 0.6, 1.0 and 1.4 % to 1; nothing is at 2, and 1 and 3 are next to it.
    expected = [0.4, (0.6 + 1.0 + 1.0) / 3, (0.6 + 1.0 + 1.0 + 3.0) / 4, 3.0]
    assert by_arrived(filling, filling.allocated_milli, range(4)) == pytest.approx(expected)
    assert np.isnan(by_arrived(filling, filling.allocated_milli, [7])).all()
