from __future__ import annotations

from typing import Any

from clusterwright.queueing.clusters import Cluster, Floor, NodeInfo
from clusterwright.queueing.gangs import NoFit
from clusterwright.queueing.replacing import replace_nodes, shrink
from clusterwright.queueing.requests import Demand, Placement, Shape, TopologyWish

#: Three racks of three nodes, two of them in the first block: a0 a1 a2 b0 b1 b2 c0 c1 c2.
NODES = [NodeInfo(f"{r}{i}", "h100", 8, ("y" if r == "c" else "x", r)) for r in "abc" for i in range(3)]


def start(count: int, gpus: int = 8, wish: TopologyWish | None = None, **more: Any) -> tuple[Floor, Placement, Demand]:
    floor, demand = Cluster(NODES, ("block", "rack")).floors["h100"], Demand((Shape(count, gpus, **more),), (), wish)
    found = floor.find(demand)
    assert not isinstance(found, NoFit), found
    floor.take(found, demand)
    return floor, found, demand


def lose(floor: Floor, *names: str) -> list[int]:
    for name in names:
        floor.set_usable(floor.index[name], usable=False)
    return [floor.index[name] for name in names]


def fill(floor: Floor, *names: str) -> None:
    for name in names:
        floor.take(Placement("h100", ((0, floor.index[name], 1),), 8), Demand((Shape(1, 8),)))


def ranks(floor: Floor, found: Placement | NoFit) -> list[str]:
    assert not isinstance(found, NoFit), found
    return [floor.names[n] for _, n, tasks in found.runs for _ in range(tasks)]


def test_a_lost_node_is_replaced_within_the_tightest_domain_of_the_rest_and_ranks_stay() -> None:
    floor, held, demand = start(2)
    assert ranks(floor, held) == ["a0", "a1"]
    new = replace_nodes(floor, held, demand, lose(floor, "a0"))
    assert ranks(floor, new) == ["a2", "a1"]
    assert floor.free[floor.index["a2"]] == 8


def test_the_answer_is_taken_after_the_old_placement_is_given_back() -> None:
    floor, held, demand = start(2)
    new = replace_nodes(floor, held, demand, lose(floor, "a0"))
    assert isinstance(new, Placement)
    floor.give(held, demand)
    floor.take(new, demand)
    assert floor.free.tolist() == [8, 0, 0, 8, 8, 8, 8, 8, 8]
    assert floor.free_gpus == 48


def test_wider_domains_are_used_as_far_as_the_wish_allows() -> None:
    for wish, expected in [(None, "b0"), (TopologyWish("rack", required=False), "b0"), (TopologyWish("block"), "b0")]:
        floor, held, demand = start(3, wish=wish)
        assert ranks(floor, replace_nodes(floor, held, demand, lose(floor, "a1"))) == ["a0", expected, "a2"]
    floor, held, demand = start(3, wish=TopologyWish("rack"))
    assert replace_nodes(floor, held, demand, lose(floor, "a1")) is NoFit.IMPOSSIBLE
    floor, held, demand = start(3, wish=TopologyWish("block"))
    fill(floor, "b0", "b1", "b2")
    assert replace_nodes(floor, held, demand, lose(floor, "a1")) is NoFit.IMPOSSIBLE
    floor, held, demand = start(3)
    fill(floor, "b0", "b1", "b2")
    assert ranks(floor, replace_nodes(floor, held, demand, lose(floor, "a1"))) == ["a0", "c0", "a2"]


def test_spares_alone_come_in_where_they_are_given_even_if_nobody_else_may_use_them() -> None:
    floor, held, demand = start(2)
    spares = lose(floor, "a2", "c2")
    assert ranks(floor, replace_nodes(floor, held, demand, lose(floor, "a0"), spares)) == ["a2", "a1"]
    assert ranks(floor, replace_nodes(floor, held, demand, lose(floor, "a0"), spares[1:])) == ["c2", "a1"]
    assert replace_nodes(floor, held, demand, lose(floor, "a0"), ()) is NoFit.IMPOSSIBLE


def test_spread_tasks_stay_apart_and_others_may_share_the_nodes_of_the_rest() -> None:
    floor, held, demand = start(3, 2, spread=True)
    fill(floor, "b0", "b1", "b2", "c0", "c1", "c2")
    assert replace_nodes(floor, held, demand, lose(floor, "a1")) is NoFit.IMPOSSIBLE
    floor, demand = Cluster(NODES, ("block", "rack")).floors["h100"], Demand((Shape(2, 4),))
    held = Placement("h100", ((0, 0, 1), (0, 1, 1)), 8)
    floor.take(held, demand)
    assert ranks(floor, replace_nodes(floor, held, demand, lose(floor, "a0"))) == ["a1", "a1"]


def test_an_exclusive_job_is_replaced_within_its_domain() -> None:
    floor, held, demand = start(2, wish=TopologyWish("rack", exclusive=True))
    new = replace_nodes(floor, held, demand, lose(floor, "a0"))
    assert isinstance(new, Placement)
    assert ranks(floor, new) == ["a2", "a1"]
    assert new.domain == held.domain == ("rack", 0)
    assert replace_nodes(floor, held, demand, lose(floor, "a0", "a1")) is NoFit.IMPOSSIBLE


def test_a_whole_gang_that_was_lost_goes_where_its_wish_allows() -> None:
    floor, held, demand = start(3, wish=TopologyWish("rack"))
    assert ranks(floor, replace_nodes(floor, held, demand, lose(floor, "a0", "a1", "a2"))) == ["b0", "b1", "b2"]


def test_a_task_of_a_slice_stays_in_its_domain_and_a_whole_slice_may_move() -> None:
    sliced = TopologyWish(slice_tasks=2, slice_level="rack")
    floor, held, demand = start(4, wish=sliced)
    assert ranks(floor, held) == ["a0", "a1", "b0", "b1"]
    assert ranks(floor, replace_nodes(floor, held, demand, lose(floor, "a1", "b0"))) == ["a0", "a2", "b2", "b1"]
    fill(floor, "a2")
    floor.set_usable(floor.index["b0"], usable=True)
    assert replace_nodes(floor, held, demand, [floor.index["a1"]]) is NoFit.IMPOSSIBLE
    whole = replace_nodes(floor, held, demand, lose(floor, "a0", "a1"))
    assert ranks(floor, whole) == ["c0", "c1", "b0", "b1"]


def test_a_gang_shrinks_as_far_as_its_minimum() -> None:
    floor, held, demand = start(4, least=2)
    two = shrink(held, demand, [floor.index["a1"], floor.index["b0"]])
    assert ranks(floor, two) == ["a0", "a2"]
    assert isinstance(two, Placement)
    assert two.gpus == 16
    assert shrink(held, demand, [floor.index[n] for n in ("a0", "a1", "a2")]) is NoFit.IMPOSSIBLE


def test_a_gang_of_slices_shrinks_by_whole_slices() -> None:
    floor, held, demand = start(4, wish=TopologyWish(slice_tasks=2, slice_level="rack"), least=2)
    assert ranks(floor, shrink(held, demand, [floor.index["a1"]])) == ["b0", "b1"]
