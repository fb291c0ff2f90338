"""Nodes whose cards are bridged in twos or fours: the others of the node are reached over PCIe, without any NIC."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.decoders import LLAMA, QWEN3_MOE, decoder
from builders.searches import pool, serving, training
from clusterwright.files.catalogue import load_catalogue
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.speed import step_time
from clusterwright.plan.fitting.machines import find_machine
from clusterwright.plan.searching.machines import device, system
from clusterwright.plan.searching.serving import search_serving
from clusterwright.plan.searching.training import search_training

BRIDGED = pool("h100-pcie-80", domain_gpus=2, nodes=1, nic_gbytes_s=None)
PCIE_BYTES_S = BRIDGED.gpu.pcie.rate.value / 8


def test_ranks_exchange_over_bridges_then_pcie_then_nics() -> None:
    found = device(replace(BRIDGED, nic_gbytes_s=25.0))
    assert [found.between(ranks) for ranks in (2, 4, 8, 16)] == [300e9, PCIE_BYTES_S, PCIE_BYTES_S, 25e9]


def test_a_node_without_a_network_trains_beyond_its_bridges() -> None:
    found = search_training(training(decoder(LLAMA), BRIDGED, gpus=8)).best
    assert found is not None
    assert found.layout.gpus == 8
    assert found.mfu > 0.1


@pytest.mark.parametrize("sizes", [{"dp": 8}, {"pp": 4, "tp": 2}, {"dp": 4, "cp": 2}, {"tp": 2, "dp": 4, "ep": 8}])
def test_a_step_takes_no_longer_than_over_pcie_alone(sizes) -> None:
    model = decoder(QWEN3_MOE if "ep" in sizes else LLAMA)
    recipe = training().recipe
    unlinked = replace(BRIDGED, gpu=replace(BRIDGED.gpu, scale_up=None))
    bridged, plain = (
        step_time(model, Layout(**sizes), recipe, replace(system(p), name="h100-pcie-80")).step_s
        for p in (BRIDGED, unlinked)
    )
    assert bridged <= plain * (1 + 1e-9)


def test_experts_spread_over_a_node_of_bridged_cards() -> None:
    question = serving(decoder(QWEN3_MOE), BRIDGED, rate=None, ttft_s=None, tpot_s=None, quantile=None)
    row = search_serving(question).why_not(Layout(tp=2, dp=4, ep=8)).row
    assert row is not None
    assert row.tpot_s < 1


def test_cards_without_pcie_are_taken_in_nodes_of_what_their_links_join() -> None:
    found = find_machine(load_catalogue(), "mi300a")
    assert (found.gpus_per_node, found.domain_gpus) == (4, 4)


def test_tensor_ranks_beyond_a_bridge_are_told_what_joins_the_cards() -> None:
    words = "bridges join 2 GPUs, PCIe the others of a node"
    served = search_serving(serving(decoder(LLAMA), BRIDGED)).why_not(Layout(tp=8))
    trained = search_training(training(decoder(LLAMA), BRIDGED, gpus=8)).why_not(Layout(tp=8))
    assert words in served.text
    assert words in trained.text
