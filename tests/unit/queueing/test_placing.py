from __future__ import annotations

from clusterwright.model.jobs import TaskPlacement
from clusterwright.queueing.placing import NoFit, Room, Task, fit, place

from .builders import group


def room(node: str, free: int, *topology: str) -> Room:
    return Room(node, tuple(f"{node}:{i}" for i in range(free)), topology)


def tasks(*gpus: int, spread: bool = False) -> list[Task]:
    return [Task("main", i, g, spread) for i, g in enumerate(gpus)]


def nodes_of(found: tuple[TaskPlacement, ...] | NoFit) -> list[str]:
    assert not isinstance(found, NoFit), found
    return [p.node for p in found]


def test_a_gang_gets_all_tasks_or_none() -> None:
    assert nodes_of(place(tasks(8, 8), [room("a", 8), room("b", 8)])) == ["a", "b"]
    assert place(tasks(8, 8), [room("a", 8), room("b", 7)]) is NoFit.IMPOSSIBLE


def test_the_fullest_node_that_fits_is_filled_first() -> None:
    assert nodes_of(place(tasks(2), [room("a", 8), room("b", 3)])) == ["b"]


def test_devices_are_never_given_twice() -> None:
    found = place(tasks(3, 3, 2), [room("a", 8)])
    assert not isinstance(found, NoFit)
    devices = [d for p in found for d in p.devices]
    assert len(devices) == len(set(devices)) == 8


def test_the_tightest_domain_wins_over_the_first_nodes() -> None:
    rooms = [room("a", 8, "r1"), room("b", 8, "r2"), room("c", 8, "r2")]
    assert nodes_of(place(tasks(8, 8), rooms)) == ["b", "c"]


def test_among_equal_domains_the_fullest_is_used_and_the_large_one_kept_whole() -> None:
    rooms = [room(n, 8, "big") for n in "abc"] + [room(n, 8, "small") for n in "de"]
    assert nodes_of(place(tasks(8, 8), rooms)) == ["d", "e"]


def test_spread_tasks_share_no_node() -> None:
    assert nodes_of(place(tasks(2, 2, spread=True), [room("a", 8), room("b", 8)])) == ["a", "b"]
    assert place(tasks(2, 2, spread=True), [room("a", 8)]) is NoFit.IMPOSSIBLE


def test_mixed_sizes_are_found_where_best_fit_fails() -> None:
    # Best fit puts 5+3 on one node and 3+3+2 on the other and has no room for the last 2; 5+2+2 and 3+3+3 does fit.
    found = place(tasks(5, 3, 3, 3, 2, 2), [room("a", 9), room("b", 9)])
    assert sorted(nodes_of(found)) == ["a", "a", "a", "b", "b", "b"]


def test_a_search_that_gives_up_does_not_say_impossible() -> None:
    # Even sizes never fill two odd rooms exactly, but showing that means trying very many subsets.
    sizes = [2 * i + 20 for i in range(30)]
    half = sum(sizes) // 2 | 1
    assert place(tasks(*sizes), [room("a", half), room("b", sum(sizes) - half)]) is NoFit.UNKNOWN


def test_tasks_without_gpus_are_spread_over_the_nodes() -> None:
    assert nodes_of(place(tasks(0, 0), [room("a", 0), room("b", 0)])) == ["a", "b"]


def test_an_elastic_gang_takes_as_many_as_fit_and_never_fewer_than_its_minimum() -> None:
    elastic = group(4, 8, min_count=2)
    rooms = [room(n, 8) for n in "abc"]
    assert len(nodes_of(fit([elastic], rooms))) == 3
    assert len(nodes_of(fit([elastic], rooms, gpus_at_most=16))) == 2
    assert fit([elastic], rooms[:1]) is NoFit.IMPOSSIBLE
    assert fit([elastic], rooms, gpus_at_most=15) is NoFit.IMPOSSIBLE
