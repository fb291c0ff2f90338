"""Bills of materials against a published reference architecture."""

import pytest

from clusterwright.files.catalogue import load_catalogue
from clusterwright.plan.materials import SWITCHES, Options, count_materials

CATALOGUE = load_catalogue()
DGX = CATALOGUE.shape("dgx-h100")
#: DGX H100: four OSFP cages with two ports each; no spares, as the reference counts.
BARE = Options(per_1000_node_days=0, node_cage_ports=2)


def lines(made):
    return {line.what: line.count for line in made.lines}


@pytest.mark.parametrize(
    ("nodes", "leaves", "spines", "leaf_spine"),
    [(31, 8, 4, 256), (63, 16, 8, 512), (95, 24, 16, 768), (127, 32, 16, 1024)],
)
def test_compute_fabric_of_a_superpod(nodes, leaves, spines, leaf_spine):
    """NVIDIA DGX SuperPOD with DGX H100, RA-11333-001, table 4: QM9700, 1 to 4 scalable units."""
    made = count_materials(DGX, nodes=nodes, options=BARE)
    assert made.switch.name == "QM9700"
    assert (made.fabric.leaves, made.fabric.spines, made.fabric.leaf_cables) == (leaves, spines, leaf_spine)
    assert made.fabric.node_cables == 8 * nodes


def test_racks_and_power_of_four_scalable_units():
    """The same document: 127 nodes, four of 10.2 kW per rack, 32 racks of nodes."""
    made = count_materials(DGX, nodes=127, options=BARE)
    assert made.node_racks == 32
    assert made.it_kw == pytest.approx(127 * 10.2 + 48 * 1.7)
    assert made.facility_kw == pytest.approx(1.25 * made.it_kw)


def test_transceivers_stand_at_both_ends_and_are_shared_by_the_ports_of_a_cage():
    made = count_materials(DGX, nodes=32, options=BARE)
    assert made.fabric.leaf_cables == 256
    assert made.transceivers == 32 * 4 + 8 * 16 + 8 * 16 + 4 * 32  # nodes, leaves down, leaves up, spines
    copper = count_materials(DGX, nodes=32, options=Options(per_1000_node_days=0, optical_nodes=False))
    assert copper.transceivers == 8 * 16 + 4 * 32


def test_gpus_are_rounded_up_to_nodes_and_spares_stand_beside():
    made = count_materials(DGX, gpus=1020)
    assert (made.nodes, made.spares, made.gpus) == (128, 4, 1024)
    assert made.fabric.node_cables == 132 * 8
    assert lines(made)["spare nodes"] == 4


def test_a_thirsty_node_needs_more_racks():
    twelve = count_materials(DGX, nodes=16, options=Options(rack_kw=12, per_1000_node_days=0))
    assert twelve.node_racks == 16
    none = count_materials(DGX, nodes=16, options=Options(rack_kw=8, per_1000_node_days=0))
    assert none.node_racks == 0
    assert any("exceeds" in u for u in none.unknown)


def test_what_a_board_does_not_say_is_unknown_until_it_is_given():
    board = CATALOGUE.shape("hgx-h100-sxm-8")
    made = count_materials(board, nodes=32)
    assert made.fabric is None
    assert made.it_kw is None
    assert {u.partition(":")[0] for u in made.unknown} == {"compute fabric", "power of a node"}
    given = count_materials(board, nodes=32, ports=8, switch=SWITCHES[1], node_kw=10.2, options=BARE)
    assert given.fabric == count_materials(DGX, nodes=32, options=BARE).fabric
    assert given.unknown == ()


def test_one_node_needs_no_fabric_and_oversubscription_saves_switches():
    assert count_materials(DGX, nodes=1, options=BARE).fabric is None
    half = count_materials(DGX, nodes=126, options=Options(oversubscription=2, per_1000_node_days=0))
    assert half.fabric.switches < count_materials(DGX, nodes=126, options=BARE).fabric.switches


@pytest.mark.parametrize("wanted", [{}, {"nodes": 1, "gpus": 8}])
def test_nodes_or_gpus_not_both(wanted):
    with pytest.raises(ValueError, match="one of them"):
        count_materials(DGX, **wanted)


def test_every_line_says_how_it_was_counted():
    made = count_materials(DGX, gpus=4096)
    assert made.fabric.tiers == 3
    assert all(line.count > 0 and line.reason for line in made.lines)
    assert lines(made)["core switches"] == made.fabric.cores
