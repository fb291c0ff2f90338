"""Collectives expected, chains that bind inside the nodes, checkpoint intervals, productive shares, spares."""

import pytest

from builders.plans import planned
from clusterwright.physics.collective_fits import find_spread, find_terms
from clusterwright.physics.collectives import collective_us
from clusterwright.physics.failures import daly_higher_s, ettr, ettr_exact, spares
from clusterwright.physics.hierarchies import band_between

PLAN = planned()
TUNE = PLAN.workload("finetune")


def test_a_gibibyte_inside_a_node_is_expected_at_what_was_measured():
    found = next(c for c in PLAN.network.collectives if (c.operation, c.nodes) == ("all-reduce", 1))
    time = collective_us("all-reduce", 2**30, 8, find_terms("h100-sxm-80", "all-reduce", 8))
    assert found.expected.value == pytest.approx(2**30 * 1.75 / (time * 1e3))
    assert found.expected.value < found.bound.value


def test_the_band_of_a_collective_is_the_wider_of_the_inside_and_of_between():
    spread = find_spread("h100-sxm-80")
    for found in PLAN.network.collectives:
        low, high = band_between(found.nodes) if found.nodes > 1 else (1, 1)
        assert found.expected.band == (min(low, 1 - spread), max(high, 1 + spread))


@pytest.mark.parametrize("operation", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
def test_nothing_is_expected_above_its_bound(operation):
    for found in PLAN.network.collectives:
        if found.operation == operation:
            assert found.expected.value <= found.bound.value
            assert found.expected.band is not None


def test_oversubscription_slows_what_is_expected_between_nodes():
    slow = planned("fabric.networks.ib.oversubscription=4")
    pairs = zip(PLAN.network.collectives, slow.network.collectives, strict=True)
    changed = {(a.operation, a.nodes) for a, b in pairs if b.expected.value < 0.9 * a.expected.value}
    assert {nodes for _, nodes in changed} == {2}
    assert len(changed) == 4


def test_a_link_inside_the_nodes_binds_where_storage_is_faster():
    fast = planned("storage.stores.object.read=500 GB/s", "fabric.networks.eth.rate=800 Gb/s")
    payload = fast.workload("chat").payload
    assert payload.binding.kind == "loader"
    assert payload.node_class == "best"  # of storage and hardware; the loader is software on top


def test_the_class_of_the_reference_node_follows_the_rate_per_node():
    assert PLAN.workload("chat").payload.node_class == "better"  # 20 GB/s over two nodes
    assert planned("storage.stores.object.read=4 GB/s").workload("chat").payload.node_class == "below good"


def test_the_best_interval_is_dalys_and_never_shorter_than_an_asynchronous_write():
    checkpoint = TUNE.checkpoint
    daly = daly_higher_s(checkpoint.stall.value, TUNE.training.mttf.value * 3600)
    assert checkpoint.daly_higher.value == pytest.approx(daly)
    assert checkpoint.best.value == checkpoint.daly_higher.value
    assert checkpoint.best_waste.value <= checkpoint.waste.value
    slow = planned("storage.stores.object.write=10 MB/s").workload("finetune").checkpoint
    assert slow.best.value == slow.write_time.value > slow.daly_higher.value


def test_a_synchronous_interval_follows_its_stall_alone():
    checkpoint = planned("workloads.finetune.train.checkpoint.mode=sync").workload("finetune").checkpoint
    assert checkpoint.best.value == checkpoint.daly_higher.value


def test_both_productive_shares_stand_side_by_side():
    checkpoint = TUNE.checkpoint
    restart = PLAN.figures["workloads.finetune.target.recovery"].value
    inputs = (1, 6.5, restart, checkpoint.every.value, checkpoint.stall.value)
    assert checkpoint.ettr.value == pytest.approx(ettr(*inputs))
    assert checkpoint.ettr_exact.value == pytest.approx(ettr_exact(*inputs))
    assert TUNE.training.goodput.value == pytest.approx(checkpoint.ettr.value)


def test_what_binds_a_checkpoint_is_named():
    assert (TUNE.checkpoint.write_binding, TUNE.checkpoint.restore_binding) == ("store", "store")
    slow = planned("fabric.networks.eth.rate=10 Gb/s", "fabric.networks.eth.ports=1").workload("finetune").checkpoint
    assert slow.write_binding == "network"


def test_spares_of_a_pool_follow_from_failure_rate_and_repair():
    pool = planned("pools.gpu.nodes=gpu-[001-128]", "pools.gpu.replacement.within=1 day").pools[0]
    assert [figure.value for _, figure in pool.spares.needed] == [3, 4, 5]
    assert (pool.spares.declared, pool.spares.reached) == (0, None)
    kept = planned("pools.gpu.nodes=gpu-[001-132]", "pools.gpu.replacement.within=1 day", "pools.gpu.spares=4").pools[0]
    assert kept.spares.reached == 0.99


def test_spares_are_counted_up_to_a_limit():
    assert spares(2048, 1000 / 6.5, 7, 0.999) == 125
    assert spares(100_000, 0.5, 5, 0.99) == 100_001
