"""Fragmentation by the formula of the paper, computed by hand on nodes of one or two GPUs."""

from __future__ import annotations

import numpy as np
import pytest

from clusterwright.queueing.fractions import Ask, NodeRows, NodeSpec, lay_out, of_whole_gpus
from clusterwright.queueing.fragmenting import NEVER, Gauge, TaskMix, fragmentation, typical_tasks

HALF = Ask(cpu_milli=1000, gpus=1, gpu_milli=500)
PAIR = Ask(cpu_milli=1000, gpus=2)
CPU = Ask(cpu_milli=1000)
MIX = TaskMix((HALF, PAIR, CPU), (6, 3, 1))


def node(*free: int, cpu_milli: int = 8000, model: str = "") -> NodeRows:
    rows = lay_out([NodeSpec("n", len(free), cpu_milli, 1000, model)])
    rows.free_milli[0] = free
    return rows


@pytest.mark.parametrize(
    ("rows", "milli"),
    [
        (node(1000, 1000), 0.1 * 2000),  # only the task without GPU has no use for it
        (node(1000, 400), 0.6 * 400 + 0.3 * 1400 + 0.1 * 1400),  # 400 is too little for a half, one GPU for a pair
        (node(400, 400), 800),  # nobody can use it, though 800 would be enough for a half
        (node(1000, 1000, cpu_milli=900), 2000),  # no CPU, no use
        (node(500, 0), 0.3 * 500 + 0.1 * 500),
        (node(0, 0), 0),
    ],
)
def test_fragmentation_is_what_each_task_cannot_use_weighted_by_how_often_it_comes(
    rows: NodeRows, milli: float
) -> None:
    assert fragmentation(rows, MIX) == pytest.approx([milli])


def test_a_model_that_the_task_does_not_take_is_of_no_use_to_it() -> None:
    mix = TaskMix((Ask(gpus=1, models=("T4", "A10")), Ask(gpus=1)), (1, 1))
    assert fragmentation(node(1000, model="T4"), mix) == pytest.approx([0])
    assert fragmentation(node(1000, model="G2"), mix) == pytest.approx([500])


def test_without_tasks_that_need_a_gpu_all_that_is_free_is_fragmented() -> None:
    assert fragmentation(node(1000, 400), TaskMix((CPU,), (1,))) == pytest.approx([1400])


def test_nodes_known_by_their_free_gpus_alone_can_be_measured() -> None:
    eights = TaskMix((Ask(gpus=8), Ask(gpus=1)), (1, 1))
    rows = of_whole_gpus(np.array([8, 7, 0]), np.array([8, 8, 8]))
    assert fragmentation(rows, eights) == pytest.approx([0, 3500, 0])


def test_more_free_gpus_than_installed_are_refused() -> None:
    with pytest.raises(ValueError, match="more GPUs free"):
        of_whole_gpus(np.array([9]), np.array([8]))


@pytest.mark.parametrize(
    ("ask", "left"),
    [
        (Ask(cpu_milli=2000, gpus=1, gpu_milli=300), [[(700, 600)], [(1000, 300)]]),
        (Ask(cpu_milli=2000, gpus=1), [[(0, 600)]]),
        (Ask(cpu_milli=2000), [[(1000, 600)]]),
    ],
)
def test_what_would_be_after_a_task_is_what_is_once_it_is_placed(ask: Ask, left: list[list[tuple[int, int]]]) -> None:
    rows = node(1000, 600, cpu_milli=2500)
    after = Gauge(MIX, rows).after(rows, ask)
    placed = [node(*gpus, cpu_milli=500) for (gpus,) in left]
    assert after.tolist() == [[int(Gauge(MIX, rows).now(rows)[0]) for rows in placed]]


def test_a_gpu_without_room_is_never_chosen() -> None:
    rows = node(1000, 200)
    assert Gauge(MIX, rows).after(rows, HALF)[0, 1] == NEVER


def test_typical_tasks_are_the_most_frequent_ones_that_cover_the_workload() -> None:
    asks = [HALF] * 6 + [PAIR] * 3 + [CPU]
    assert typical_tasks(asks, 0.6) == TaskMix((HALF,), (6,))
    assert typical_tasks(asks, 0.61) == TaskMix((HALF, PAIR), (6, 3))
    assert typical_tasks(asks, 1.0) == MIX


def test_of_equally_frequent_tasks_the_larger_is_typical_and_memory_makes_no_difference() -> None:
    small, large = Ask(1000, 1, 500, memory_mib=1), Ask(2000, 1, 500, memory_mib=2)
    mix = typical_tasks([small, large, Ask(1000, 1, 500, memory_mib=3), large], 0.5)
    assert mix == TaskMix((Ask(2000, 1, 500),), (2,))


def test_a_mix_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no task"):
        typical_tasks([])


@pytest.mark.parametrize(("gpus", "milli"), [(2, 500), (1, 0), (1, 1001)])
def test_an_impossible_share_is_refused(gpus: int, milli: int) -> None:
    with pytest.raises(ValueError, match="milli-GPU"):
        Ask(gpus=gpus, gpu_milli=milli)
