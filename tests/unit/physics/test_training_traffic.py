"""Bytes that cross the edge of a domain, against counts made by hand."""

from __future__ import annotations

import pytest

from clusterwright.physics.training_traffic import Ranks, context_bytes, pipeline_bytes, weights_bytes


def test_data_parallel_over_two_nodes() -> None:
    ranks = Ranks(tp=1, pp=1, dp=16, cp=1, domain=8)
    assert (ranks.here, ranks.domains, ranks.stages_here, ranks.leaves) == (8, 2, 1, True)
    # A node lacks half of the reduced gradients and half of the gathered weights: 2 B each.
    assert weights_bytes(ranks, 1e9, 2, False, False) == pytest.approx(1e9 * 0.5 * (2 + 2))
    assert weights_bytes(ranks, 1e9, 2, True, False) == pytest.approx(1e9 * 0.5 * (2 + 2 + 2))
    assert weights_bytes(ranks, 1e9, 2, True, True) == pytest.approx(1e9 * 0.5 * (2 + 2))


def test_nothing_leaves_a_node_that_holds_the_whole_job() -> None:
    ranks = Ranks(tp=2, pp=1, dp=4, cp=1, domain=8)
    assert not ranks.leaves
    assert weights_bytes(ranks, 1e9, 2, True, False) == 0
    assert pipeline_bytes(ranks, 1e6, 4096) == 0


def test_a_node_of_tensor_ranks_holds_one_stage_of_a_pipeline() -> None:
    ranks = Ranks(tp=8, pp=8, dp=8, cp=2, domain=8)
    assert (ranks.here, ranks.domains, ranks.stages_here) == (1, 16, 1)
    assert weights_bytes(ranks, 8e9, 2, False, False) == pytest.approx(1e9 * 15 / 16 * 4)
    # A sixteenth of the tokens passes a node, forward and back.
    assert pipeline_bytes(ranks, 16e6, 4096) == pytest.approx(1e6 * 4096 * 2 * 2)


def test_two_stages_send_one_way_and_stages_in_a_node_send_nothing() -> None:
    assert pipeline_bytes(Ranks(8, 2, 1, 1, 8), 1e6, 10) == 1e6 * 10 * 2
    assert pipeline_bytes(Ranks(1, 2, 4, 1, 8), 1e6, 10) == 0


def test_context_ranks_beyond_a_node_gather_the_keys_and_values_of_the_others() -> None:
    assert context_bytes(Ranks(8, 1, 1, 2, 8), 1e6, 10, 100) == pytest.approx(1e6 * 0.5 * 10 * 100 * 2 * 2)
    assert context_bytes(Ranks(4, 1, 1, 2, 8), 1e6, 10, 100) == 0
