from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from clusterwright.queueing.clusters import Cluster, Floor, NodeInfo
from clusterwright.queueing.domains import lay_out
from clusterwright.queueing.gangs import NoFit
from clusterwright.queueing.policies import Packing, Policy
from clusterwright.queueing.requests import Demand, Placement, Shape, TopologyWish
from clusterwright.queueing.searching import search

RACKS = {
    "a": ("b1", "r1"),
    "b": ("b1", "r1"),
    "c": ("b1", "r2"),
    "d": ("b1", "r2"),
    "e": ("b2", "r3"),
    "f": ("b2", "r3"),
}


def cluster(policy: Policy | None = None, **free: int) -> Cluster:
    """Nodes of 8 GPUs, of which so many are free, in racks of two and blocks of two racks by their names."""
    found = Cluster([NodeInfo(n, "h100", 8, RACKS[n]) for n in free], ("block", "rack"), policy)
    floor = found.floors["h100"]
    for name, left in free.items():
        if left < 8:
            floor.take(Placement("h100", ((0, floor.index[name], 1),), 8 - left), gang(1, 8 - left))
    return found


def gang(count: int, gpus: int, wish: TopologyWish | None = None, **more: Any) -> Demand:
    return Demand((Shape(count, gpus, **more),), (), wish)


def tasks_of(where: Cluster, demand: Demand, most: float = float("inf")) -> dict[str, int] | NoFit:
    found = where.find(demand, "h100", most)
    if isinstance(found, NoFit):
        return found
    names, held = where.floors["h100"].names, Counter[str]()
    for _, node, tasks in found.runs:
        held[names[node]] += tasks
    return dict(held)


def take(where: Cluster, demand: Demand) -> Placement:
    found = where.find(demand, "h100")
    assert not isinstance(found, NoFit), found
    where.take(found, demand)
    return found


def names_of(floor: Floor, found: Placement | NoFit) -> list[str]:
    assert not isinstance(found, NoFit), found
    return [floor.names[n] for _, n, tasks in found.runs for _ in range(tasks)]


def test_a_gang_gets_all_tasks_or_none() -> None:
    assert tasks_of(cluster(a=8, b=8), gang(2, 8)) == {"a": 1, "b": 1}
    assert tasks_of(cluster(a=8, b=7), gang(2, 8)) is NoFit.IMPOSSIBLE


def test_the_tightest_domain_wins_and_of_one_level_the_one_with_the_least_free() -> None:
    assert tasks_of(cluster(a=4, b=4, c=8, e=8, f=0), gang(2, 4)) == {"c": 2}
    assert tasks_of(cluster(a=8, b=8, c=6, d=4, e=8, f=7), gang(3, 3)) == {"c": 2, "d": 1}
    assert tasks_of(cluster(a=8, c=8, e=8, f=8), gang(2, 8)) == {"e": 1, "f": 1}
    assert tasks_of(cluster(a=8, c=8, e=8), gang(2, 8)) == {"a": 1, "c": 1}
    assert tasks_of(cluster(a=8, e=8), gang(2, 8)) == {"a": 1, "e": 1}


def test_in_a_domain_the_fullest_node_is_filled_first_or_the_emptiest() -> None:
    free = {"a": 6, "b": 8, "c": 4}
    assert tasks_of(cluster(**free), gang(4, 3)) == {"a": 2, "b": 2}
    assert tasks_of(cluster(c=4, e=8, f=6), gang(5, 2)) == {"e": 2, "f": 3}
    assert tasks_of(cluster(Policy(packing=Packing.EMPTIEST), c=4, e=8, f=6), gang(5, 2)) == {"e": 4, "f": 1}


def test_ranks_follow_the_topology() -> None:
    where = cluster(a=8, b=8, c=2, d=8)
    found = where.find(gang(4, 8), "h100")
    assert found is NoFit.IMPOSSIBLE
    assert names_of(where.floors["h100"], where.find(gang(13, 2), "h100")) == ["a"] * 4 + ["b"] * 4 + ["c"] + ["d"] * 4


def test_spread_tasks_share_no_node() -> None:
    assert tasks_of(cluster(a=8, b=8), gang(2, 2, spread=True)) == {"a": 1, "b": 1}
    assert tasks_of(cluster(a=8), gang(2, 2, spread=True)) is NoFit.IMPOSSIBLE


def test_tasks_without_gpus_are_spread_over_the_nodes_even_full_ones() -> None:
    assert tasks_of(cluster(a=0, b=8), gang(2, 0)) == {"a": 1, "b": 1}
    head_and_workers = Demand((Shape(1, 0, "head"), Shape(2, 8, "worker")))
    assert tasks_of(cluster(a=8, b=8, c=8, e=8), head_and_workers) == {"a": 2, "b": 1}


def test_groups_of_equal_tasks_are_dealt_in_rank_order() -> None:
    where = cluster(a=8, b=8)
    found = where.find(Demand((Shape(1, 4, "head"), Shape(3, 4, "worker"))), "h100")
    assert not isinstance(found, NoFit)
    assert found.runs == ((0, 0, 1), (1, 0, 1), (1, 1, 2))


def test_mixed_sizes_are_found_where_best_fit_fails() -> None:
    # Best fit puts 5+3 on one node and 3+3+2 on the other and has no room for the last 2; 5+2+2 and 3+3+3 does fit.
    nodes = [NodeInfo(n, "h100", 9) for n in "ab"]
    demand = Demand((Shape(1, 5, "x"), Shape(3, 3, "y"), Shape(2, 2, "z")))
    assert tasks_of(Cluster(nodes), demand) == {"a": 3, "b": 3}


def test_a_search_that_gives_up_does_not_say_impossible() -> None:
    # Even sizes never fill two odd rooms exactly, but showing that means trying many subsets.
    even = [(0, 2 * i + 20, (), False) for i in range(30)]
    half = sum(t[1] for t in even) // 2 | 1
    odd = [(half, (), frozenset[int]()), (sum(t[1] for t in even) - half, (), frozenset[int]())]
    assert search(even, odd, 1000) == (NoFit.UNKNOWN, 0)
    assert search(even, odd, 29) == (NoFit.UNKNOWN, 29)
    tasks = [(0, g, (), False) for g in (6, 4, 4, 4, 2, 2)]
    assert search(tasks, [(11, (), frozenset[int]()), (11, (), frozenset[int]())])[0] is NoFit.IMPOSSIBLE
    assert search(tasks, [(12, (), frozenset[int]()), (10, (), frozenset[int]())])[0] == [1, 1, 0, 0, 0, 0]


def test_an_elastic_gang_takes_as_many_as_fit_and_never_fewer_than_its_minimum() -> None:
    elastic, where = gang(4, 8, least=2), cluster(a=8, c=8, e=8)
    assert tasks_of(where, elastic) == {"a": 1, "c": 1, "e": 1}
    assert tasks_of(where, elastic, 16) == {"a": 1, "c": 1}
    assert tasks_of(where, elastic, 15) is NoFit.IMPOSSIBLE
    assert tasks_of(cluster(a=8), elastic) is NoFit.IMPOSSIBLE
    in_one_block = gang(4, 8, TopologyWish("block"), least=2)
    assert tasks_of(where, in_one_block) == {"a": 1, "c": 1}


def test_elastic_groups_grow_one_after_the_other() -> None:
    demand = Demand((Shape(3, 8, "x", 1), Shape(8, 4, "y", 1)))
    assert tasks_of(cluster(a=8, b=8, c=8), demand) == {"a": 1, "b": 1, "c": 2}
    assert tasks_of(cluster(a=8, b=8, c=8), demand, 20) == {"a": 1, "b": 1, "c": 1}


def test_a_required_level_holds_all_tasks_in_one_domain_and_a_preferred_one_if_it_can() -> None:
    where = cluster(a=8, c=8, e=8)
    assert tasks_of(where, gang(2, 8, TopologyWish("rack"))) is NoFit.IMPOSSIBLE
    assert tasks_of(where, gang(2, 8, TopologyWish("block"))) == {"a": 1, "c": 1}
    assert tasks_of(where, gang(3, 8, TopologyWish("block"))) is NoFit.IMPOSSIBLE
    assert tasks_of(where, gang(3, 8, TopologyWish("block", required=False))) == {"a": 1, "c": 1, "e": 1}
    assert tasks_of(where, gang(2, 8, TopologyWish("rack", required=False))) == {"a": 1, "c": 1}
    assert tasks_of(where, gang(2, 4, TopologyWish("node"))) == {"a": 2}


def test_slices_lie_within_one_domain_of_their_level() -> None:
    where = cluster(a=8, b=8, c=8, d=0, e=8, f=8)
    assert tasks_of(where, gang(4, 8, TopologyWish(slice_tasks=2, slice_level="rack"))) == dict.fromkeys("abef", 1)
    assert tasks_of(where, gang(4, 8, TopologyWish("block", True, 2, "rack"))) is NoFit.IMPOSSIBLE
    assert tasks_of(where, gang(6, 4, TopologyWish("block", True, 2, "node"))) == {"a": 2, "b": 2, "c": 2}
    assert tasks_of(where, gang(6, 8, TopologyWish(slice_tasks=2, slice_level="rack"))) is NoFit.IMPOSSIBLE
    elastic = gang(6, 8, TopologyWish(slice_tasks=2, slice_level="rack"), least=1)
    assert tasks_of(where, elastic) == dict.fromkeys("abef", 1)


def test_slices_of_several_groups_are_placed_too() -> None:
    wish = TopologyWish(slice_tasks=2, slice_level="rack")
    demand = Demand((Shape(2, 8, "x"), Shape(2, 4, "y")), (), wish)
    assert tasks_of(cluster(a=8, c=8, d=4, e=8, f=8), demand) == {"e": 1, "f": 1, "a": 2}


def test_an_exclusive_domain_holds_nobody_else_until_it_is_given_back() -> None:
    where, wish = cluster(a=7, b=8, c=8, d=8), TopologyWish("rack", exclusive=True)
    alone = gang(1, 8, wish)
    held = take(where, alone)
    assert held.domain == ("rack", 1)
    assert where.floors["h100"].free_gpus == 15
    assert tasks_of(where, gang(1, 8)) == {"b": 1}
    assert tasks_of(where, gang(2, 8)) is NoFit.IMPOSSIBLE
    assert tasks_of(where, gang(5, 0)) == {"a": 3, "b": 2}
    assert tasks_of(where, alone) is NoFit.IMPOSSIBLE
    where.give(held, alone)
    assert where.floors["h100"].free_gpus == 31
    assert tasks_of(where, alone) == {"c": 1}


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (TopologyWish("pod"), "topology level 'pod' is not declared; levels here: node, block, rack"),
        (TopologyWish(exclusive=True), "an exclusive domain needs a topology level"),
        (TopologyWish(slice_tasks=2), "slices need a positive number of tasks and a level"),
        (TopologyWish(slice_tasks=3, slice_level="rack"), "4 tasks of group 'main' are no multiple of slices of 3"),
        (TopologyWish("rack", True, 2, "block"), "slice level 'block' is wider than topology level 'rack'"),
    ],
)
def test_a_wish_that_means_nothing_here_is_named(wish: TopologyWish, says: str) -> None:
    where = cluster(a=8, b=8)
    assert tasks_of(where, gang(4, 1, wish)) is NoFit.MISCONFIGURED
    assert says in where.complaint(gang(4, 1, wish), "h100")
    assert not where.could_ever(gang(4, 1, wish), "h100")


def test_excluded_nodes_are_never_used_and_avoided_ones_only_where_the_others_could_never_do() -> None:
    where = cluster(a=8, b=8)
    avoiding = Demand((Shape(1, 8),), avoid=frozenset("a"))
    assert tasks_of(where, Demand((Shape(2, 8),), exclude=frozenset("a"))) is NoFit.IMPOSSIBLE
    assert tasks_of(where, avoiding) == {"b": 1}
    held = take(where, avoiding)
    assert tasks_of(where, avoiding) is NoFit.IMPOSSIBLE
    where.give(held, avoiding)
    where.floors["h100"].set_usable(1, usable=False)
    assert tasks_of(where, avoiding) == {"a": 1}


def test_domains_are_in_order_of_declaration_where_the_policy_says_so() -> None:
    nodes = [NodeInfo("x", "h100", 8, ("z",)), NodeInfo("y", "h100", 8, ("a",)), NodeInfo("w", "h100", 8, ("z",))]
    paths = [n.path for n in nodes]
    assert lay_out(paths, by_name=True).names == (("a", "z"),)
    declared = lay_out(paths, by_name=False)
    assert declared.names == (("z", "a"),)
    assert declared.order.tolist() == [0, 2, 1]
    assert declared.members(1, 0).tolist() == [0, 2]
