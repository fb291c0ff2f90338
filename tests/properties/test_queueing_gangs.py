"""What holds for every placement, whatever the cluster, the gang and the topology it wants."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.gang_oracle import Spot, can_place, place_equal
from clusterwright.queueing.clusters import Cluster, Floor, NodeInfo
from clusterwright.queueing.gangs import NoFit
from clusterwright.queueing.policies import NodeTie, Packing, Policy
from clusterwright.queueing.replacing import replace_nodes
from clusterwright.queueing.requests import Demand, Placement, Shape, TopologyWish
from clusterwright.queueing.shortfalls import moves

LEVELS = ("block", "rack")
NAMES = [f"n{i}" for i in range(7)]


@st.composite
def node_lists(draw: st.DrawFn) -> list[NodeInfo]:
    found = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=7, unique=True)):
        block = draw(st.integers(0, 1))
        path = (f"b{block}", f"b{block}r{draw(st.integers(0, 1))}")[: draw(st.sampled_from([2, 2, 2, 1, 0]))]
        resources = (("cpu", draw(st.sampled_from([0.0, 4.0, 8.5]))),) if draw(st.booleans()) else ()
        found.append(NodeInfo(name, "h100", draw(st.integers(0, 8)), path, draw(st.integers(0, 9)) > 0, resources))
    return found


@st.composite
def shapes(draw: st.DrawFn, name: str = "x", *, most: int = 4) -> Shape:
    count = draw(st.integers(1, most))
    least = draw(st.none() | st.integers(1, count))
    needs = (("cpu", draw(st.sampled_from([0.1, 1.0, 2.5]))),) if draw(st.integers(0, 4)) == 0 else ()
    return Shape(count, draw(st.integers(0, 8)), name, least, draw(st.booleans()), needs)


@st.composite
def wishes(draw: st.DrawFn) -> TopologyWish:
    level = draw(st.sampled_from(["", "block", "rack", "node"]))
    inner = {"": ["block", "rack", "node"], "block": ["block", "rack", "node"], "rack": ["rack", "node"]}
    slices = draw(st.sampled_from([0, 0, 1, 2]))
    at = draw(st.sampled_from(inner.get(level, ["node"]))) if slices else ""
    return TopologyWish(level, draw(st.booleans()), slices, at, bool(level) and draw(st.booleans()))


@st.composite
def demands(draw: st.DrawFn, *, topology: bool = True) -> Demand:
    groups = tuple(draw(shapes(name)) for name in ("x", "y")[: draw(st.integers(1, 2))])
    wish = draw(st.none() | wishes()) if topology else None
    if wish is not None and wish.slice_tasks:
        groups = tuple(replace(g, count=g.count * wish.slice_tasks) for g in groups)
    exclude = draw(st.frozensets(st.sampled_from(NAMES), max_size=2))
    avoid = draw(st.frozensets(st.sampled_from(NAMES), max_size=2))
    return Demand(groups, (), wish, exclude, avoid)


policies = st.builds(Policy, node_tie=st.sampled_from(NodeTie), packing=st.sampled_from(Packing))


def make(nodes: list[NodeInfo], policy: Policy | None = None) -> Floor:
    return Cluster(nodes, LEVELS, policy).floors["h100"]


@st.composite
def floors(draw: st.DrawFn) -> tuple[Floor, list[tuple[Placement, Demand]]]:
    """A floor after some jobs came and went, with those that are still there."""
    floor = make(draw(node_lists()), draw(policies))
    held = list[tuple[Placement, Demand]]()
    for _ in range(draw(st.integers(0, 6))):
        if held and draw(st.integers(0, 3)) == 0:
            floor.give(*held.pop(draw(st.integers(0, len(held) - 1))))
            continue
        demand = draw(st.integers(0, 8).map(lambda g: Demand((Shape(1, g),))) | demands())
        found = floor.find(demand)
        if not isinstance(found, NoFit):
            floor.take(found, demand)
            held.append((found, demand))
    return floor, held


def domain_of(floor: Floor, level: str, node: int) -> int:
    return node if level == "node" else int(floor.layout.of[floor.layout.levels.index(level)][node])


@settings(max_examples=100, deadline=None)
@given(floors(), demands())
def test_a_placement_takes_only_what_is_free_on_nodes_that_the_job_may_use(
    at: tuple[Floor, list[tuple[Placement, Demand]]], demand: Demand
) -> None:
    floor, _ = at
    found = floor.find(demand)
    if isinstance(found, NoFit):
        return
    used, cpu, apart = Counter[int](), Counter[int](), Counter[tuple[int, int]]()
    for group, node, tasks in found.runs:
        shape = demand.groups[group]
        assert tasks > 0
        assert floor.usable[node]
        assert floor.names[node] not in demand.exclude
        used[node] += tasks * shape.gpus
        cpu[node] += tasks * sum(round(need * 1000) for _, need in shape.resources)
        apart[group, node] += tasks
    assert all(gpus <= floor.free[n] for n, gpus in used.items())
    assert found.gpus == used.total()
    if "cpu" in floor.spare:
        assert all(parts <= floor.spare["cpu"][n] for n, parts in cpu.items())
    for i, shape in enumerate(demand.groups):
        mine = [n for (group, _), n in apart.items() if group == i]
        assert shape.fewest <= sum(mine) <= shape.count
        assert not shape.spread or max(mine) == 1


@settings(max_examples=100, deadline=None)
@given(floors(), demands(topology=False), st.sampled_from(["", "block", "rack", "node"]))
def test_a_gang_is_placed_where_trying_everything_places_one(
    at: tuple[Floor, list[tuple[Placement, Demand]]], demand: Demand, level: str
) -> None:
    floor, _ = at
    plain = tuple(replace(g, resources=()) for g in demand.groups)
    demand = Demand(plain, (), TopologyWish(level), demand.exclude)
    tasks = [(i, g.gpus, g.spread) for i, g in enumerate(plain) for _ in range(g.fewest)]
    domains: dict[int, list[int]] = defaultdict(list)
    for i, name in enumerate(floor.names):
        if floor.usable[i] and not floor.closed[i] and name not in demand.exclude:
            domains[domain_of(floor, level, i) if level else 0].append(int(floor.free[i]))
    found = floor.find(demand)
    if any(can_place(tasks, free) for free in domains.values()):
        assert not isinstance(found, NoFit)
    else:
        assert found is NoFit.IMPOSSIBLE


@settings(max_examples=100, deadline=None)
@given(node_lists(), st.lists(st.integers(0, 8), min_size=7, max_size=7), st.integers(1, 6), st.integers(1, 8))
def test_equal_tasks_go_where_placing_one_after_the_other_puts_them(
    nodes: list[NodeInfo], taken: list[int], count: int, gpus: int
) -> None:
    # Names begin with their path, so that "the first by name" is the same for nodes and for domains; a node whose path
    # ends early is a domain of its own at the levels it lacks.
    padded = {n.name: (*n.path, *[f"~{n.name}"] * (2 - len(n.path))) for n in nodes}
    paths = {"/".join([*path, name]): path for name, path in padded.items()}
    nodes = [replace(n, name="/".join([*padded[n.name], n.name])) for n in nodes]
    floor = make(nodes)
    for (i, total), busy in zip(enumerate(floor.total.tolist()), taken, strict=False):
        gone = min(busy, total)
        floor.take(Placement("h100", ((0, i, 1),), gone), Demand((Shape(1, gone),)))
    spots = [Spot(n, int(floor.free[i]), paths[n]) for i, n in enumerate(floor.names) if floor.usable[i]]
    expected = place_equal(count, gpus, spots) if spots else None
    found = floor.find(Demand((Shape(count, gpus),)))
    if isinstance(found, NoFit):
        assert expected is None
    else:
        assert {floor.names[n]: tasks for _, n, tasks in found.runs} == expected


@settings(max_examples=100, deadline=None)
@given(floors(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 8), st.data())
def test_slices_fit_where_whole_slices_of_the_domains_add_up(
    at: tuple[Floor, list[tuple[Placement, Demand]]], slices: int, size: int, gpus: int, data: st.DataObject
) -> None:
    floor, _ = at
    level = data.draw(st.sampled_from(["", "block", "rack"]))
    inner = data.draw(st.sampled_from({"": ["block", "rack", "node"], "block": ["rack", "node"]}.get(level, ["node"])))
    demand = Demand((Shape(slices * size, gpus),), (), TopologyWish(level, True, size, inner))
    held: dict[tuple[int, int], int] = defaultdict(int)
    for i in np.flatnonzero(floor.usable & ~floor.closed).tolist():
        held[domain_of(floor, level, i) if level else 0, domain_of(floor, inner, i)] += int(floor.free[i]) // gpus
    whole: dict[int, int] = defaultdict(int)
    for (outer, _), tasks in held.items():
        whole[outer] += tasks // size
    fits = max(whole.values(), default=0) >= slices
    assert isinstance(floor.find(demand), Placement) == fits


@settings(max_examples=100, deadline=None)
@given(floors(), demands())
def test_topology_is_honoured(at: tuple[Floor, list[tuple[Placement, Demand]]], demand: Demand) -> None:
    floor, _ = at
    wish = demand.topology
    found = floor.find(demand)
    if wish is None or isinstance(found, NoFit):
        return
    if wish.level and (wish.required or wish.exclusive):
        assert len({domain_of(floor, wish.level, n) for _, n, _ in found.runs}) == 1
    if wish.slice_tasks:
        by_group: dict[int, list[int]] = defaultdict(list)
        for group, node, tasks in found.runs:
            by_group[group] += [domain_of(floor, wish.slice_level, node)] * tasks
        for ranks in by_group.values():
            assert len(ranks) % wish.slice_tasks == 0
            starts = range(0, len(ranks), wish.slice_tasks)
            assert all(len(set(ranks[i : i + wish.slice_tasks])) == 1 for i in starts)
    if wish.exclusive:
        assert found.domain is not None
        assert found.domain[0] == wish.level


@settings(max_examples=100, deadline=None)
@given(floors())
def test_an_exclusive_domain_holds_no_other_job(at: tuple[Floor, list[tuple[Placement, Demand]]]) -> None:
    floor, held = at
    for placement, _ in held:
        if placement.domain is not None:
            level, domain = placement.domain
            for other, _ in held:
                nodes = {n for _, n, _ in other.runs}
                assert other is placement or domain not in {domain_of(floor, level, n) for n in nodes}


@settings(max_examples=100, deadline=None)
@given(floors(), st.lists(st.integers(0, 8), max_size=3), st.data())
def test_giving_everything_back_restores_arrays_and_answers(
    at: tuple[Floor, list[tuple[Placement, Demand]]], sizes: list[int], data: st.DataObject
) -> None:
    floor, held = at
    for placement, demand in data.draw(st.permutations(held)):
        floor.give(placement, demand)
    resources = dict.fromkeys(range(len(floor.names)), ())
    nodes = [
        NodeInfo(name, "h100", int(floor.total[i]), (), bool(floor.usable[i]), resources[i])
        for i, name in enumerate(floor.names)
    ]
    fresh = make(nodes, Policy(node_tie=NodeTie.DECLARED, packing=floor.packing))
    assert floor.free.tolist() == floor.total.tolist()
    assert floor.free_gpus == fresh.free_gpus
    assert {n: s.tolist() for n, s in floor.spare.items()} == {n: s.tolist() for n, s in floor.resources.items()}
    for gpus in range(9):
        assert floor.slots(gpus) == fresh.slots(gpus)
    for gpus in [*sizes, 1, 8]:
        demand = Demand((Shape(1, gpus),))
        found = floor.find(demand)
        assert found == fresh.find(demand)
        if not isinstance(found, NoFit):
            floor.take(found, demand)
            fresh.take(found, demand)


@settings(max_examples=100, deadline=None)
@given(floors(), demands() | st.integers(0, 8).map(lambda g: Demand((Shape(1, g),))), st.integers(0, 40))
def test_finding_changes_nothing_and_answers_the_same_for_a_copy(
    at: tuple[Floor, list[tuple[Placement, Demand]]], demand: Demand, most: int
) -> None:
    floor, _ = at
    before = (floor.free.tolist(), floor.free_gpus, floor.version, [floor.slots(g) for g in range(9)])
    found = floor.find(demand, most)
    assert found == floor.find(demand, most) == floor.fork().find(demand, most)
    assert found == floor.find_in(floor.free.copy(), demand, most)
    assert before == (floor.free.tolist(), floor.free_gpus, floor.version, [floor.slots(g) for g in range(9)])
    assert isinstance(found, NoFit) or found.gpus <= most


@settings(max_examples=100, deadline=None)
@given(floors(), demands())
def test_what_fits_now_could_ever_fit_and_an_array_changes_as_the_floor_does(
    at: tuple[Floor, list[tuple[Placement, Demand]]], demand: Demand
) -> None:
    floor, _ = at
    found = floor.find(demand)
    if isinstance(found, NoFit):
        return
    assert floor.could_ever(demand)
    free, alone = floor.free.copy(), floor.free.copy()
    spare = {name: amounts.copy() for name, amounts in floor.spare.items()}
    floor.take_away(free, found, demand, spare)
    floor.take_away(alone, found, demand)
    floor.take(found, demand)
    assert free.tolist() == alone.tolist() == floor.free.tolist()
    assert {n: s.tolist() for n, s in spare.items()} == {n: s.tolist() for n, s in floor.spare.items()}
    floor.put_back(free, found, demand, spare)
    floor.put_back(alone, found, demand)
    floor.give(found, demand)
    assert free.tolist() == alone.tolist() == floor.free.tolist()
    assert {n: s.tolist() for n, s in spare.items()} == {n: s.tolist() for n, s in floor.spare.items()}


@settings(max_examples=100, deadline=None)
@given(floors(), st.data())
def test_replaced_gangs_keep_their_tasks_and_wishes_and_can_be_taken(
    at: tuple[Floor, list[tuple[Placement, Demand]]], data: st.DataObject
) -> None:
    floor, held = at
    if not held:
        return
    placement, demand = data.draw(st.sampled_from(held))
    lost = data.draw(st.sets(st.sampled_from([n for _, n, _ in placement.runs]), min_size=1))
    for node in lost:
        floor.set_usable(node, usable=False)
    new = replace_nodes(floor, placement, demand, lost)
    if isinstance(new, NoFit):
        return
    before, after = _by_rank(placement), _by_rank(new)
    assert [g for g, _ in before] == [g for g, _ in after]
    assert all(new == old for (_, old), (_, new) in zip(before, after, strict=True) if old not in lost)
    nodes = {n for _, n in after}
    assert not nodes & lost
    assert not {floor.names[n] for (_, old), (_, n) in zip(before, after, strict=True) if n != old} & demand.exclude
    for i, shape in enumerate(demand.groups):
        mine = [n for g, n in after if g == i]
        assert not shape.spread or len(set(mine)) == len(mine)
    wish = demand.topology
    if wish is not None and wish.level and (wish.required or wish.exclusive):
        assert len({domain_of(floor, wish.level, n) for n in nodes}) == 1
    if wish is not None and wish.slice_tasks:
        for i in range(len(demand.groups)):
            ranks = [domain_of(floor, wish.slice_level, n) for g, n in after if g == i]
            assert all(len(set(ranks[j : j + wish.slice_tasks])) == 1 for j in range(0, len(ranks), wish.slice_tasks))
    floor.give(placement, demand)
    floor.take(new, demand)
    floor.give(new, demand)


def _by_rank(placement: Placement) -> list[tuple[int, int]]:
    """(group, node) of every task."""
    return [(g, n) for g, n, tasks in placement.runs for _ in range(tasks)]


@settings(max_examples=100, deadline=None)
@given(floors(), st.integers(1, 4), st.integers(1, 8), st.sampled_from(["", "block", "rack", "node"]), st.data())
def test_clearing_fewer_gpus_than_said_makes_no_room(
    at: tuple[Floor, list[tuple[Placement, Demand]]], count: int, gpus: int, level: str, data: st.DataObject
) -> None:
    floor, _ = at
    demand = Demand((Shape(count, gpus),), (), TopologyWish(level))
    found = moves(floor, demand)
    if found is None:
        return
    assert (found.gpus == 0) == isinstance(floor.find(demand), Placement)
    free = floor.free.copy()
    for _ in range(found.gpus - 1):
        busy = [i for i in range(len(free)) if free[i] < floor.total[i]]
        free[data.draw(st.sampled_from(busy))] += 1
    if found.gpus:
        assert floor.find_in(np.where(floor.closed, 0, free), demand) is NoFit.IMPOSSIBLE
