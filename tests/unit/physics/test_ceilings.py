import pytest

from clusterwright.physics.ceilings import COLLECTIVES, busbw_bound, busbw_bound_inside, busbw_reference

#: Published bus bandwidth (GB/s): operation, GPUs per domain, domains, NIC GB/s per GPU, value.
PUBLISHED = [
    ("all-reduce", 8, 2, 25, 337),
    ("all-gather", 8, 2, 25, 189),
    ("all-to-all", 8, 2, 25, 40.2),
    ("all-reduce", 8, 2, 50, 488),
    ("all-gather", 8, 2, 50, 339),
    ("all-to-all", 8, 2, 50, 79.1),
    ("all-reduce", 4, 4, 50, 191),
    ("all-to-all", 4, 4, 50, 58.2),
    ("all-reduce", 4, 8, 100, 376),
    ("all-gather", 4, 8, 100, 366),
    ("all-to-all", 4, 8, 100, 85.6),
    ("all-reduce", 8, 4, 50, 382),
]


@pytest.mark.parametrize(("operation", "gpus", "domains", "nic", "value"), PUBLISHED)
def test_no_published_measurement_exceeds_its_bound(operation, gpus, domains, nic, value):
    assert value <= busbw_bound(operation, gpus, domains, nic)


def test_bounds_of_two_h100_nodes():
    assert busbw_bound("all-reduce", 8, 2, 25) == 375
    assert busbw_bound("all-to-all", 8, 2, 25) == 46.875
    assert busbw_bound("all-to-all", 4, 8, 100) == pytest.approx(110.7, abs=0.05)
    assert busbw_reference(8, 2, 25, 450) == 200
    assert busbw_reference(4, 8, 100, 900) == 400


def test_the_bound_refuses_a_single_domain():
    with pytest.raises(ValueError, match="one domain"):
        busbw_bound("all-reduce", 8, 1, 50)


@pytest.mark.parametrize(("link", "ranks", "value"), [(450, 8, 480), (900, 8, 846), (900, 72, 835)])
def test_in_switch_reduction_bounds_published_results_inside_a_domain(link, ranks, value):
    assert value <= busbw_bound_inside("all-reduce", ranks, link, switch_reduces=True)


def test_without_in_switch_reduction_the_link_is_the_bound():
    assert {busbw_bound_inside(c, 8, 448, False) for c in COLLECTIVES} == {448}
    assert busbw_bound_inside("all-reduce", 8, 450, True) == pytest.approx(400 * 1.75)
