from __future__ import annotations

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.queueing.clusters import Cluster, Floor, NodeInfo
from clusterwright.queueing.gangs import NoFit
from clusterwright.queueing.policies import NodeTie, Packing, Policy
from clusterwright.queueing.requests import Demand, Placement, Shape


def floor(*gpus: int, policy: Policy | None = None) -> Floor:
    return Cluster([NodeInfo(f"n{i}", "h100", g) for i, g in enumerate(gpus)], policy=policy).floors["h100"]


def single(gpus: int) -> Demand:
    return Demand((Shape(1, gpus),))


def start(where: Floor, demand: Demand) -> Placement:
    found = where.find(demand)
    assert not isinstance(found, NoFit), found
    where.take(found, demand)
    return found


def nodes_of(where: Floor, demand: Demand) -> list[str]:
    found = where.find(demand)
    assert not isinstance(found, NoFit), found
    return [where.names[n] for _, n, _ in found.runs]


def test_the_fullest_node_that_fits_is_filled_first() -> None:
    f = floor(8, 3, 4)
    assert nodes_of(f, single(2)) == ["n1"]
    assert nodes_of(f, single(4)) == ["n2"]
    assert f.find(single(9)) is NoFit.IMPOSSIBLE


def test_the_emptiest_node_is_filled_first_where_the_policy_spreads_load() -> None:
    f = floor(8, 3, 4, policy=Policy(packing=Packing.EMPTIEST))
    assert nodes_of(f, single(2)) == ["n0"]
    assert f.find(single(9)) is NoFit.IMPOSSIBLE


def test_of_equal_nodes_the_policy_says_which() -> None:
    nodes = [NodeInfo("b", "h100", 8), NodeInfo("a", "h100", 8)]
    by_name, declared = Cluster(nodes), Cluster(nodes, policy=Policy(node_tie=NodeTie.DECLARED))
    assert nodes_of(by_name.floors["h100"], single(1)) == ["a"]
    assert nodes_of(declared.floors["h100"], single(1)) == ["b"]


def test_finding_takes_nothing_and_giving_back_restores_what_was_there() -> None:
    f = floor(8, 8)
    first = start(f, single(3))
    assert (f.free.tolist(), f.free_gpus, f.slots(5)) == ([5, 8], 13, 2)
    assert nodes_of(f, single(5)) == ["n0"] == nodes_of(f, single(5))
    f.give(first, single(3))
    assert (f.free.tolist(), f.free_gpus, f.slots(8), f.version) == ([8, 8], 16, 2, 1)


def test_what_is_not_free_cannot_be_taken_nor_what_is_free_given_back() -> None:
    f = floor(4)
    held = start(f, single(3))
    with pytest.raises(ValueError, match="n0 has 1 free GPUs, not 3"):
        f.take(held, single(3))
    f.give(held, single(3))
    with pytest.raises(ValueError, match="n0 would have 7 free of 4 GPUs"):
        f.give(held, single(3))


def test_a_node_that_is_not_usable_takes_nothing_and_keeps_what_runs_on_it() -> None:
    f = floor(8, 8)
    held = start(f, single(8))
    f.set_usable(0, usable=False)
    f.give(held, single(8))
    assert (f.free_gpus, f.slots(8)) == (8, 1)
    assert nodes_of(f, single(8)) == ["n1"]
    before = f.version
    f.set_usable(0, usable=True)
    assert f.version > before
    assert nodes_of(f, single(8)) == ["n0"]


def test_a_fork_goes_its_own_way() -> None:
    cluster = Cluster([NodeInfo("a", "h100", 8)])
    twin = cluster.fork()
    start(twin.floors["h100"], single(8))
    assert cluster.floors["h100"].free_gpus == 8
    assert twin.find(single(1), "h100") is NoFit.IMPOSSIBLE
    assert not isinstance(cluster.find(single(8), "h100"), NoFit)


def test_flavors_are_in_order_of_declaration_and_an_unknown_one_holds_nothing() -> None:
    cluster = Cluster([NodeInfo("b", "b200", 8), NodeInfo("a", "h100", 4)])
    assert cluster.flavors == ("b200", "h100")
    assert cluster.find(single(1), "a100") is NoFit.IMPOSSIBLE
    assert not cluster.could_ever(single(1), "a100")


def test_what_could_ever_run_counts_nodes_that_are_full_or_down() -> None:
    cluster = Cluster([NodeInfo("a", "h100", 8, usable=False), NodeInfo("b", "h100", 8)])
    f = cluster.floors["h100"]
    start(f, single(8))
    two = Demand((Shape(2, 8),))
    assert cluster.could_ever(two, "h100")
    assert not cluster.could_ever(Demand((Shape(2, 8),), exclude=frozenset("a")), "h100")
    assert cluster.could_ever(Demand((Shape(2, 8),), avoid=frozenset("a")), "h100")


def test_further_resources_bound_what_a_node_holds() -> None:
    nodes = [NodeInfo(n, "h100", 8, resources=(("cpu", 96.0), ("memory", 512.0))) for n in "ab"]
    f = Cluster(nodes).floors["h100"]
    thirds = Demand((Shape(4, 1, resources=(("cpu", 33.4),)),))
    held = start(f, thirds)
    assert [r[2] for r in held.runs] == [2, 2]
    assert f.find(Demand((Shape(1, 1, resources=(("cpu", 29.3),)),))) is NoFit.IMPOSSIBLE
    f.give(held, thirds)
    assert {n: s.tolist() for n, s in f.spare.items()} == {n: s.tolist() for n, s in f.resources.items()}


def test_a_cluster_says_everything_that_is_wrong_with_it() -> None:
    nodes = [NodeInfo("a", "h100", 8), NodeInfo("a", "h100", -1), NodeInfo("b", "h100", 8, ("x", "y"))]
    with pytest.raises(InvalidInput) as caught:
        Cluster(nodes, ("rack",))
    assert len(caught.value.problems) == 3
