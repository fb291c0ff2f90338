"""Switches and cables against published reference architectures."""

import pytest

from clusterwright.physics.fat_trees import fat_tree

#: NVIDIA DGX SuperPOD with DGX H100, RA-11333-001, table 4 (Compute fabric component count), 32 nodes of 8 ports per
#: scalable unit, QM9700 (64 × 400 Gb/s). One node less per POD makes room for UFM, whose cables the table counts; the
#: nodes' own are 8 each. SU, nodes, leaves, spines, cables between leaves and spines.
H100 = [(1, 31, 8, 4, 256), (2, 63, 16, 8, 512), (3, 95, 24, 16, 768), (4, 127, 32, 16, 1024)]
#: NVIDIA DGX SuperPOD with DGX B200, table of larger SuperPOD component counts: SU, nodes, GPUs, leaves, spines, cores,
#: cables node–leaf, leaf–spine, spine–core.
B200 = [
    (2, 64, 512, 16, 8, 0, 512, 512, 0),
    (4, 128, 1024, 32, 16, 0, 1024, 1024, 0),
    (8, 256, 2048, 64, 32, 0, 2048, 2048, 0),
    (16, 512, 4096, 128, 128, 64, 4096, 4096, 4096),
    (32, 1024, 8192, 256, 256, 128, 8192, 8192, 8192),
    (64, 2048, 16384, 512, 512, 256, 16384, 16384, 16384),
]


@pytest.mark.parametrize(("units", "nodes", "leaves", "spines", "cables"), H100)
def test_superpod_h100(units, nodes, leaves, spines, cables):
    tree = fat_tree(nodes, 8, 64)
    assert (tree.groups, tree.leaves, tree.spines, tree.leaf_cables) == (units, leaves, spines, cables)
    assert tree.node_cables == 8 * nodes
    assert tree.group_nodes == 32


@pytest.mark.parametrize(
    ("units", "nodes", "gpus", "leaves", "spines", "cores", "node_leaf", "leaf_spine", "spine_core"), B200
)
def test_superpod_b200(units, nodes, gpus, leaves, spines, cores, node_leaf, leaf_spine, spine_core):
    tree = fat_tree(nodes, 8, 64)
    assert (tree.groups, nodes * 8) == (units, gpus)
    assert (tree.leaves, tree.spines, tree.cores) == (leaves, spines, cores)
    assert (tree.node_cables, tree.leaf_cables, tree.core_cables) == (node_leaf, leaf_spine, spine_core)


def test_a_few_nodes_share_one_switch():
    tree = fat_tree(8, 8, 64)
    assert (tree.tiers, tree.switches, tree.cables) == (1, 1, 64)


def test_oversubscription_saves_spines_and_uplinks():
    full, half = fat_tree(126, 8, 64), fat_tree(126, 8, 64, oversubscription=2)
    assert half.group_nodes == 42
    assert half.leaf_cables < full.leaf_cables / 1.9
    assert half.spines < full.spines


def test_without_rails_a_group_is_as_many_nodes_as_a_leaf_takes_whole():
    tree = fat_tree(32, 8, 64, rails=False)
    assert (tree.group_nodes, tree.groups, tree.leaves) == (4, 8, 8)


@pytest.mark.parametrize("nodes", [9, 31, 64, 127, 256, 512, 1000])
@pytest.mark.parametrize("rails", [True, False])
def test_no_switch_has_more_cables_than_ports(nodes, rails):
    tree = fat_tree(nodes, 8, 64, rails=rails)
    assert tree.node_cables + tree.leaf_cables <= tree.leaves * 64
    assert tree.leaf_cables + tree.core_cables <= tree.spines * 64
    assert tree.core_cables <= tree.cores * 64


@pytest.mark.parametrize(("nodes", "ports", "radix"), [(0, 8, 64), (1, 0, 64), (9, 8, 63), (100_000, 8, 64)])
def test_what_cannot_be_built_is_refused(nodes, ports, radix):
    with pytest.raises(ValueError):
        fat_tree(nodes, ports, radix)
