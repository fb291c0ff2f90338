"""Names of machines as people type them."""

from __future__ import annotations

import pytest

from clusterwright.files.catalogue import load_catalogue
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.quantities import parse_kind
from clusterwright.plan.fitting.machines import Machine, find_machine


def find(name: str, nic: str = "") -> Machine:
    return find_machine(load_catalogue(), name, parse_kind(nic, "bit rate") if nic else None)


@pytest.mark.parametrize(
    ("name", "gpu", "node", "domain", "nic"),
    [
        ("h100", "h100-sxm-80", 8, 8, 50.0),
        ("8xH100", "h100-sxm-80", 8, 8, 50.0),
        ("2 x h200", "h200-sxm-141", 2, 2, 50.0),
        ("dgx-b200", "b200-sxm-180", 8, 8, 50.0),
        ("gb200-nvl72", "gb200-186", 4, 72, 50.0),
        ("l40s", "l40s", 8, 1, None),
        ("t4", "t4", 8, 1, None),
        ("gh200", "gh200-96", 1, 1, None),
        ("4xgh200", "gh200-96", 4, 4, None),
    ],
)
def test_a_name_stands_for_a_node(name: str, gpu: str, node: int, domain: int, nic: float | None) -> None:
    found = find(name)
    assert (found.gpu.name, found.gpus_per_node, found.domain_gpus, found.nic_gbytes_s) == (gpu, node, domain, nic)
    assert found.asked == name


def test_what_the_name_does_not_say_is_told() -> None:
    assert "dgx-h100" in find("h100").taken[0]
    assert find("dgx-h100").taken == ()
    assert "catalogue has no node" in find("t4").taken[0]


def test_a_stated_nic_goes_before_that_of_the_shape() -> None:
    assert find("h100", "200 Gb/s").nic_gbytes_s == 25.0
    assert find("l40s", "100 Gb/s").nic_gbytes_s == 12.5


def test_more_gpus_than_a_node_holds_are_refused_with_what_to_write() -> None:
    with pytest.raises(InvalidInput, match="--gpus 16"):
        find("16xh100")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="h100-sxm-80"):
        find("h10")


def test_a_pool_of_few_gpus_is_a_smaller_node() -> None:
    small, large = find("h100").pool(2), find("h100").pool(20)
    assert (small.gpus_per_node, small.nodes, small.domain_gpus) == (2, 1, 2)
    assert (large.gpus_per_node, large.nodes) == (8, 2)
    assert find("gb200-nvl72").pool(72).domain_gpus == 72
