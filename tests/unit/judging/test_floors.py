"""Ceilings explain what was published; thresholds that nothing or everything meets are found."""

import math

import pytest

from clusterwright.files.catalogue import load_catalogue
from clusterwright.judging.floor_files import parse_floors
from clusterwright.judging.floors import lint_floor
from clusterwright.judging.systems import System, ceiling_of, why_impossible
from clusterwright.lib.errors import InvalidInput, Place
from clusterwright.physics.published import PUBLISHED

CATALOGUE = load_catalogue()


def system_of(published):
    return System(
        CATALOGUE.gpu(published.gpus[0]),
        published.domain_gpus * published.domains,
        published.domain_gpus,
        published.nic_gbytes_s,
        published.sharp,
    )


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda p: f"{p.system} {p.operation} {p.busbw:g}")
def test_the_ceilings_explain_every_published_result(published):
    """Below its bound, and between a third and 1.9 times of the flat ring: more only where switches add up."""
    found = ceiling_of(system_of(published), published.operation)
    assert published.busbw <= found.bound
    assert 0.4 * found.reference <= published.busbw <= 1.9 * found.reference
    assert why_impossible(system_of(published), published.operation, published.busbw) == ""


@pytest.mark.parametrize(
    ("gpu", "domain", "domains", "nic", "operation", "bound", "reference"),
    [
        ("h100-sxm-80", 8, 2, 25, "all-reduce", 375, 200),
        ("h100-sxm-80", 8, 2, 25, "all-to-all", 46.875, 46.875),
        ("h100-sxm-80", 8, 2, 50, "all-gather", 750, 400),
        ("h100-sxm-80", 8, 2, 50, "all-to-all", 93.75, 93.75),
        ("gb200-186", 4, 4, 50, "all-reduce", 250, 200),
        ("gb200-186", 4, 4, 50, "all-to-all", 62.5, 62.5),
        ("gb300-279", 4, 8, 100, "all-reduce", 3100 / 7, 400),
        ("gb300-279", 4, 8, 100, "all-to-all", 3100 / 28, 3100 / 28),
        ("b200-sxm-180", 8, 4, 50, "all-reduce", 1550 / 3, 400),
        ("h100-sxm-80", 8, 1, None, "all-reduce", 700, 450),
    ],
)
def test_bounds_and_references_of_known_systems(gpu, domain, domains, nic, operation, bound, reference):
    found = ceiling_of(System(CATALOGUE.gpu(gpu), domain * domains, domain, nic), operation)
    assert (found.bound, found.reference) == (pytest.approx(bound), pytest.approx(reference))


def test_in_network_reduction_lifts_the_bound_of_all_reduce_only():
    system = System(CATALOGUE.gpu("h100-sxm-80"), 64, 8, 50, sharp=True)
    assert math.isinf(ceiling_of(system, "all-reduce").bound)
    assert math.isfinite(ceiling_of(system, "all-gather").bound)


def test_multi_node_nvlink_off_cannot_read_838():
    """Two trays of four with MNNVL off are bound by 350; 838 says that it was on."""
    off = System(CATALOGUE.gpu("gb200-186"), 8, 4, 50)
    assert ceiling_of(off, "all-reduce").bound == 350
    assert "measured something else" in why_impossible(off, "all-reduce", 838)
    on = System(CATALOGUE.gpu("gb200-186"), 8, 72, 50)
    assert why_impossible(on, "all-reduce", 838) == ""


def lint(**fields):
    row = {"operation": "all-reduce", "message_size": "16 GiB"} | fields
    row = {k: v for k, v in row.items() if v is not None}
    (floor,) = parse_floors([(row, Place("t"))], CATALOGUE)
    return lint_floor(floor)


def rules(**fields):
    return [(r.rule, r.severity.word) for r in lint(**fields).remarks]


H100 = {"shape": "hgx-h100-sxm-8"}


@pytest.mark.parametrize(
    "fields",
    [
        H100 | {"at_least": "430 GB/s"},
        H100 | {"nodes": 2, "nic": "400 Gb/s", "at_least": "350 GB/s"},
        H100 | {"nodes": 2, "nic": "50 GB/s", "at_least": "350 GB/s"},
        {"gpu": "mi300x", "gpus_per_node": 8, "at_least": "300 GB/s"},
        H100 | {"metric": "algbw", "at_least": "250 GB/s"},
    ],
)
def test_sound_thresholds_have_no_remark(fields):
    assert rules(**fields) == []


def test_800_on_nodes_of_eight_h100_is_unattainable():
    for nodes in (1, 2, 4):
        nic = {} if nodes == 1 else {"nic": "400 Gb/s"}
        assert ("floor-unattainable", "error") in rules(**H100, **nic, nodes=nodes, at_least="800 GB/s")


def test_300_on_a100_with_four_ports_of_100_gigabits_is_unattainable():
    found = lint(gpu="a100-sxm-80", gpus_per_node=8, nodes=2, nic="100 Gb/s", nics=4, at_least="300 GB/s")
    assert found.ceiling.bound == pytest.approx(6.25 * 15)
    assert found.remarks[0].rule == "floor-unattainable"


def test_100_inside_a_node_that_measures_450_to_480_is_vacuous():
    assert rules(**H100, at_least="100 GB/s") == [("floor-vacuous", "error")]
    assert rules(**H100, at_least="0 GB/s") == [("floor-vacuous", "error")]


def test_a_threshold_without_size_or_operation_is_none():
    assert rules(**H100, at_least="430 GB/s", message_size=None) == [("floor-size-missing", "error")]
    missing = lint(**H100, at_least="430 GB/s", operation=None).remarks
    assert {(r.rule, r.undecided) for r in missing} == {("floor-size-missing", False), ("floor-unattainable", True)}


def test_a_field_called_gbps_that_holds_bytes_is_suspect():
    found = lint(**H100, min_busbw_gbps=430)
    assert [(r.rule, r.severity.word) for r in found.remarks] == [("floor-unit-suspect", "error")]
    assert found.busbw == 430
    assert "53.75 GB/s" in found.remarks[0].message


def test_a_field_called_gbps_that_holds_bits_is_read_so_and_said():
    found = lint(**H100, min_busbw_gbps=3400)
    assert found.busbw == 425
    assert [(r.rule, r.severity.word) for r in found.remarks] == [("floor-unit-suspect", "warning")]


def test_bits_for_a_bandwidth_that_is_printed_in_bytes_are_doubted():
    assert ("floor-unit-suspect", "warning") in rules(**H100, at_least="3440 Gb/s")
    assert rules(**H100, busbw_GBps=430) == []


def test_an_upper_limit_on_a_bandwidth_is_the_wrong_direction():
    assert ("threshold-wrong-direction", "error") in rules(**H100, at_most="430 GB/s")


def test_what_is_not_known_is_undecided_and_never_sound():
    for fields in (
        H100 | {"nodes": 2, "at_least": "300 GB/s"},
        {"at_least": "300 GB/s"},
        {"gpu": "h100-sxm-81", "at_least": "300 GB/s"},
        H100 | {"at_least": "300 GB/s", "operation": "broadcast"},
        {"gpu": "l40s", "gpus_per_node": 8, "at_least": "20 GB/s"},
    ):
        assert any(r.undecided for r in lint(**fields).remarks), fields


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"gpu": "h100-sxm-80", "noodes": 2, "at_least": "1 GB/s"}, "nodes"),
        ({"gpu": "h100-sxm-80", "nodes": "two", "at_least": "1 GB/s"}, "whole number"),
        ({"gpu": "h100-sxm-80", "at_least": "1 gb/s"}, "Gb/s"),
        ({"gpu": "h100-sxm-80"}, "no threshold"),
        ({"gpu": "h100-sxm-80", "metric": "time", "at_least": "1 GB/s"}, "busbw or algbw"),
    ],
)
def test_wrong_rows_are_refused_with_what_is_right(row, said):
    with pytest.raises(InvalidInput, match=said):
        parse_floors([(row, Place("t", 1, 1))], CATALOGUE)
