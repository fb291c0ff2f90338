"""Collectives beside what their system can reach."""

from __future__ import annotations

import pytest

from clusterwright.app.loading import load_catalogue
from clusterwright.judging.deriving import derive
from clusterwright.judging.yardsticks import measure, refuse_impossible
from clusterwright.lib.quantities import parse_quantity
from clusterwright.model.observations import Observation, Run, Transcript

CATALOGUE = load_catalogue()
GIB = 2**30


def judged(gpu, ranks, nodes, *rows, operation="all-reduce"):
    seen = tuple(
        Observation("busbw", parse_quantity(f"{rate} GB/s"), (("size", str(size)), ("place", place)))
        for size, rate, place in rows
    )
    conditions = (
        ("operation", operation), ("gpu", gpu), ("ranks", float(ranks)), ("node_count", float(nodes)),
        ("nodes", ",".join(f"n{i}" for i in range(nodes))),
    )  # fmt: skip
    transcript = Transcript("nccl-tests", (Run("all_reduce_perf", conditions=conditions, observations=seen),))
    derivation = derive(transcript)
    return derivation, measure(transcript, derivation, CATALOGUE)


def test_the_largest_message_stands_beside_bound_and_published_result():
    _, (y,) = judged("NVIDIA H200", 8, 1, (GIB, 300, "out"), (16 * GIB, 470, "out"), (16 * GIB, 468, "in"))
    assert (y.size, y.busbw) == (16 * GIB, 468)
    assert y.ceiling.bound == pytest.approx(700)
    assert y.ceiling.published.busbw == 480
    assert not y.assumed


def test_over_nodes_the_nic_is_assumed_and_said_to_be():
    _, (y,) = judged("NVIDIA H100 80GB HBM3", 16, 2, (16 * GIB, 470, "out"))
    assert y.ceiling.bound == pytest.approx(750)
    assert "50 GB/s of NIC per GPU" in y.assumed
    assert not y.impossible


def test_one_gpu_a_node_has_one_nic_and_no_nvlink():
    _, (y,) = judged("NVIDIA B200", 2, 2, (GIB, 45, "out"), operation="all-gather")
    assert y.ceiling.bound == pytest.approx(50)


def test_a_value_above_the_link_of_one_node_is_no_value():
    derivation, found = judged("NVIDIA A100-SXM4-80GB", 8, 1, (GIB, 350, "out"), (GIB // 2, 200, "out"))
    assert found[0].impossible
    readings = [r for r in refuse_impossible(derivation, found).readings if r.metric == "busbw"]
    assert [r.value is None for r in readings] == [True, False]
    assert readings[0].unreadable.startswith("impossible value: 350 GB/s is above 300 GB/s")


def test_an_assumed_bound_refuses_nothing():
    derivation, found = judged("NVIDIA H100 80GB HBM3", 16, 2, (GIB, 900, "out"))
    assert refuse_impossible(derivation, found).readings == derivation.readings


def test_an_unknown_gpu_has_no_ceiling_and_says_so():
    _, (y,) = judged("NVIDIA Z999", 8, 1, (GIB, 350, "out"))
    assert y.ceiling is None
    assert y.lacks == "the catalogue does not know 'NVIDIA Z999'"


def test_an_operation_without_formula_has_none():
    _, (y,) = judged("NVIDIA H200", 8, 1, (GIB, 300, "out"), operation="broadcast")
    assert y.ceiling is None
    assert "broadcast" in y.lacks
