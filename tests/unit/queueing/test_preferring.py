"""Scores of the policies, computed by hand, and the node and GPU that they choose."""

from __future__ import annotations

import numpy as np
import pytest

from clusterwright.queueing.filling import fill
from clusterwright.queueing.fractions import MILLI, Ask, NodeRows, NodeSpec, lay_out
from clusterwright.queueing.fragmenting import Gauge, TaskMix
from clusterwright.queueing.policies import NodeTie
from clusterwright.queueing.preferring import POLICIES, Offer

WHOLE = Ask(gpus=1)
MIX = TaskMix((Ask(gpus=1, gpu_milli=500), WHOLE), (1, 1))


def rows_of(*free: tuple[int, ...], cpu_milli: int = 8000, domains: str = "") -> NodeRows:
    """One node per tuple, named a, b, c … in order."""
    names = "abcdefgh"[: len(free)]
    where = domains or names
    specs = [NodeSpec(n, len(f), cpu_milli, 1000, domain=d) for n, f, d in zip(names, free, where, strict=True)]
    rows = lay_out(specs)
    for row, gpus in enumerate(free):
        rows.free_milli[row, : len(gpus)] = gpus
    return rows


def scores(policy: str, rows: NodeRows, ask: Ask) -> list[int]:
    found = POLICIES[policy].score(Offer(rows, ask, Gauge(MIX, rows)))
    return found.tolist() if found.ndim == 1 else found.max(axis=1).tolist()


def chosen(policy: str, rows: NodeRows, ask: Ask, mix: TaskMix = MIX) -> int:
    return int(fill(rows, [ask], np.array([0]), POLICIES[policy], mix).rows[0])


def test_best_fit_counts_cpu_and_gpu_that_stay_free_by_halves() -> None:
    rows = rows_of((1000, 1000), (1000, 0))
    # a: 1 - (4000/8000 + 1000/2000) / 2 = 0.5; b: 1 - (4000/8000 + 0/2000) / 2 = 0.75
    assert scores("best-fit", rows, Ask(4000, 1)) == [50, 75]


def test_equally_good_nodes_are_taken_by_name_or_as_declared() -> None:
    specs = [NodeSpec("b", 1), NodeSpec("a", 1)]
    by_name, declared = lay_out(specs), lay_out(specs, NodeTie.DECLARED)
    assert by_name.names[chosen("best-fit", by_name, WHOLE)] == "a"
    assert declared.names[chosen("best-fit", declared, WHOLE)] == "b"


def test_fgd_takes_the_node_where_fragmentation_grows_least() -> None:
    rows = rows_of((1000,), (500,))
    # Half of the mix needs a whole GPU. a: 0 to 250, score 100 / (1 + e^0.25) = 43.8; b: 250 to 0, 56.2.
    assert scores("fgd", rows, Ask(gpus=1, gpu_milli=500)) == [43, 56]
    assert chosen("fgd", rows, Ask(gpus=1, gpu_milli=500)) == 1


def test_fgd_shares_the_gpu_that_leaves_the_most_use_and_best_fit_the_tightest() -> None:
    ask, mix = Ask(gpus=1, gpu_milli=300), TaskMix((Ask(gpus=1, gpu_milli=400),), (1,))
    # 500 left and 700 left: taking 300 of the first leaves scraps of 200, of the second 400, which a task can use.
    for policy, last_fits in (("fgd", True), ("best-fit", False)):
        filling = fill(rows_of((500, 700)), [ask, Ask(gpus=1, gpu_milli=500)], np.array([0, 1]), POLICIES[policy], mix)
        assert bool(filling.fragmented_milli[0] == 0) is last_fits
        assert filling.rows.tolist() == [0, 0]


def test_packing_takes_gpus_in_use_then_free_gpus_of_nodes_in_use_then_free_nodes() -> None:
    rows = rows_of((1000, 1000), (1000, 100), (1000, 400))
    # a: 33 - 2 free; b: 50 - 1 free GPU newly used; c: 100 - 40 % / 10
    assert scores("gpu-packing", rows, Ask(gpus=1, gpu_milli=300)) == [31, 49, 96]
    assert scores("gpu-packing", rows, WHOLE) == [31, 49, 49]


def test_clustering_keeps_tasks_of_one_size_together() -> None:
    rows = rows_of((1000, 1000), (1000, 0), (1000, 0), (1000, 0))
    rows.tenants[:, 1] = [0, 1, 1, 0]
    rows.tenants[:, 0] = [0, 0, 1, 1]
    # A quarter of 100 for the class, up to a quarter for being full: none of 2,000 milli-GPU in use is 0, half is 12.
    assert scores("gpu-clustering", rows, WHOLE) == [25, 12 + 75, 12 + 50, 12]


def test_dot_product_takes_the_node_whose_free_resources_point_least_to_what_is_asked() -> None:
    rows = rows_of((1000, 1000), (1000, 0))
    # a: 1 - (1 × 1/2 + 1 × 1/2) / 2 = 0.5; b: 1 - (1 × 1/2 + 1/2 × 1/2) / 2 = 0.625
    assert scores("dot-product", rows, Ask(4000, 1)) == [50, 62]


def test_domain_packing_keeps_whole_domains_free() -> None:
    rows = rows_of((1000, 1000), (1000, 1000), (1000, 1000), (0, 1000), domains="xxyy")
    assert chosen("domain-packing", rows, Ask(gpus=2)) == 2
    assert chosen("domain-packing", rows, WHOLE) == 3
    assert chosen("gpu-packing", rows, Ask(gpus=2)) == 0


def test_a_domain_is_judged_again_when_one_of_its_nodes_changes() -> None:
    rows = rows_of((1000, 1000), (1000, 1000), (1000, 1000), (1000, 1000), domains="xxyy")
    asks = [Ask(gpus=2), WHOLE]
    filling = fill(rows, asks, np.array([1, 0, 1, 0]), POLICIES["domain-packing"], MIX)
    assert filling.rows.tolist() == [0, 1, 0, 2]


def test_a_policy_of_chance_needs_random_numbers_and_repeats_with_the_same() -> None:
    rows = rows_of(*[(MILLI, MILLI)] * 8)
    arrivals = np.zeros(8, dtype=np.int64)
    with pytest.raises(ValueError, match="random numbers"):
        fill(rows, [WHOLE], arrivals, POLICIES["random"], MIX)
    first, same, other = (
        fill(rows, [WHOLE], arrivals, POLICIES["random"], MIX, np.random.default_rng(seed)).rows.tolist()
        for seed in (1, 1, 2)
    )
    assert first == same != other
