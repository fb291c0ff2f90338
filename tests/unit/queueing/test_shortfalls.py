from __future__ import annotations

from clusterwright.queueing.clusters import Cluster, NodeInfo
from clusterwright.queueing.requests import Demand, Placement, Shape, TopologyWish
from clusterwright.queueing.shortfalls import BestDomain, Moves


def cluster(**free: int) -> Cluster:
    """Nodes of 8 GPUs in racks by the first letter of their names."""
    found = Cluster([NodeInfo(n, "h100", 8, (n[0],)) for n in free], ("rack",))
    for name, left in free.items():
        if left < 8:
            node = found.floors["h100"].index[name]
            found.take(Placement("h100", ((0, node, 1),), 8 - left), Demand((Shape(1, 8 - left),)))
    return found


def gang(count: int, gpus: int, wish: TopologyWish | None = None) -> Demand:
    return Demand((Shape(count, gpus),), (), wish)


RACK = TopologyWish("rack")


def test_the_best_domain_holds_the_most_tasks_now() -> None:
    where = cluster(a1=8, a2=4, a3=8, b1=8, b2=8, b3=8)
    assert where.best_domain(gang(4, 8, RACK), "h100") == BestDomain("rack", "b", 3, 4)
    assert where.best_domain(gang(8, 8), "h100") == BestDomain("", "", 5, 8)
    sliced = TopologyWish("rack", True, 2, "rack")
    assert where.best_domain(gang(4, 8, sliced), "h100") == BestDomain("rack", "a", 2, 4)
    assert where.best_domain(gang(9, 8, TopologyWish("node")), "h100") == BestDomain("node", "a1", 1, 9)
    assert where.best_domain(gang(1, 8), "a100") is None


def test_an_exclusive_job_counts_empty_domains_only() -> None:
    where = cluster(a1=8, a2=7, b1=8)
    assert where.best_domain(gang(2, 7, TopologyWish("rack", exclusive=True)), "h100") == BestDomain("rack", "b", 1, 2)


def test_several_groups_share_the_gpus_of_a_domain() -> None:
    where = cluster(a1=8, b1=4)
    demand = Demand((Shape(1, 8, "x"), Shape(2, 4, "y")), (), RACK)
    assert where.best_domain(demand, "h100") == BestDomain("rack", "a", 2, 3)


def test_the_largest_gang_counts_nodes_as_empty_and_up() -> None:
    where = cluster(a1=0, a2=0, b1=8)
    where.floors["h100"].set_usable(0, usable=False)
    assert where.largest(gang(9, 8), "h100") == (3,)
    assert where.largest(gang(9, 8, RACK), "h100") == (2,)
    assert where.largest(gang(1, 9), "h100") == (0,)
    assert where.largest(gang(2, 8), "h100") == (2,)
    assert where.largest(gang(2, 8), "a100") == (0,)


def test_moves_are_the_fewest_gpus_that_must_leave() -> None:
    where = cluster(a1=6, a2=5, b1=7, b2=2)
    assert where.moves(gang(1, 8), "h100") == Moves("", ("b1",), 1)
    assert where.moves(gang(2, 8), "h100") == Moves("", ("a1", "b1"), 3)
    assert where.moves(gang(2, 8, RACK), "h100") == Moves("a", ("a1", "a2"), 5)
    assert where.moves(gang(1, 7), "h100") == Moves("", (), 0)
    assert where.moves(gang(5, 8), "h100") is None
    assert where.moves(gang(5, 0), "h100") is None


def test_a_node_that_makes_room_for_several_tasks_is_cleared_once() -> None:
    where = cluster(a1=3, a2=0)
    assert where.moves(gang(4, 4), "h100") == Moves("", ("a1", "a2"), 13)
    assert where.moves(gang(2, 4), "h100") == Moves("", ("a1", "a2"), 5)
