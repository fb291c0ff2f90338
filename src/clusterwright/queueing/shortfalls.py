"""By how much a gang does not fit: the best domain, the largest that would, what would have to move."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from clusterwright.queueing.domains import NODE, Ints, Layout
from clusterwright.queueing.floors import Floor
from clusterwright.queueing.gangs import Space, complaint, held_by_domain, most, scope_of, slots_of
from clusterwright.queueing.requests import Demand, Shape


@dataclass(frozen=True, slots=True)
class BestDomain:
    """The domain that comes closest to holding a gang.

    Args:
        level: "" is the whole floor.
        tasks: that it holds now, each group by itself and all of them by GPUs.
        wanted: of the smallest gang.
    """

    level: str
    name: str
    tasks: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Moves:
    """What must leave so that a gang fits.

    Args:
        domain: where it would fit then, "" is the whole floor.
        nodes: names of the nodes that would be cleared.
        gpus: that must become free there. A lower bound: tasks are taken to move GPU by GPU, to have a place elsewhere,
            and the gang's largest group alone is counted.
    """

    domain: str
    nodes: tuple[str, ...]
    gpus: int


def best_domain(floor: Floor, demand: Demand) -> BestDomain | None:
    """Of the domains that may hold the gang the one that holds the most of it now; None for a wish without meaning."""
    if complaint(floor.layout, demand):
        return None
    scope = scope_of(floor.layout, demand)
    free = np.where(floor.usable & ~floor.closed, floor.free, -1)
    space = floor.space(free, floor.spare, demand.exclude)
    held = np.zeros(_domains(floor.layout, scope.widest), dtype=np.int64)
    for group in demand.groups:
        held += np.minimum(held_by_domain(space, slots_of(space, group), scope), group.fewest)
    least = min((g.gpus for g in demand.groups if g.gpus), default=0)
    if least and len(demand.groups) > 1:
        held = np.minimum(held, _cheapest(demand, floor.layout.sums(scope.widest, np.maximum(space.free, 0))))
    if scope.exclusive:
        held[floor.layout.sums(scope.widest, (~floor.empty(floor.free)).astype(np.int32)) > 0] = 0
    best = int(held.argmax())
    wanted = sum(g.fewest for g in demand.groups)
    return BestDomain(_level(floor.layout, scope.widest), _name(floor, scope.widest, best), int(held[best]), wanted)


def largest(floor: Floor, demand: Demand) -> tuple[int, ...]:
    """By group, how many of its tasks all nodes would hold for it alone, were they up and empty, at most its count."""
    if complaint(floor.layout, demand):
        return (0,) * len(demand.groups)
    scope = scope_of(floor.layout, demand)
    space = floor.space(floor.total, floor.resources, demand.exclude)
    return tuple(min(group.count, most(space, slots_of(space, group), scope)) for group in demand.groups)


def moves(floor: Floor, demand: Demand) -> Moves | None:
    """The fewest GPUs that must become free for the gang's largest group, None where that would not do.

    Slices and further resources are not looked at.
    """
    if complaint(floor.layout, demand):
        return None
    group = max(demand.groups, key=lambda g: g.gpus)
    if not group.gpus:
        return None
    scope = scope_of(floor.layout, demand)
    free = floor.space(np.where(floor.usable & ~floor.closed, floor.free, -1), {}, demand.exclude).free
    total = np.where(free >= 0, floor.total, 0)
    shape = replace(group, resources=())
    now, then = (slots_of(Space(floor.layout, some), shape) for some in (free, total))
    best: tuple[int, int, list[int]] | None = None
    sums = floor.layout.sums
    fits = np.flatnonzero(sums(scope.widest, then) >= group.fewest)
    bound = group.gpus * group.fewest - sums(scope.widest, np.maximum(free, 0))[fits]
    for at in np.argsort(bound, kind="stable").tolist():
        if best is not None and bound[at] >= best[0]:
            break
        domain = int(fits[at])
        found = _clear(floor.layout.members(scope.widest, domain), free, now, then, shape)
        if best is None or found[0] < best[0]:
            best = (found[0], domain, found[1])
    if best is None:
        return None
    return Moves(_name(floor, scope.widest, best[1]), tuple(floor.names[n] for n in sorted(best[2])), best[0])


def _clear(nodes: Ints, free: Ints, now: Ints, then: Ints, shape: Shape) -> tuple[int, list[int]]:
    """(GPUs, nodes) to clear in a domain: the first further task of a node needs what is missing, each next all."""
    missing = shape.fewest - int(now[nodes].sum())
    if missing <= 0:
        return 0, []
    more = then[nodes] - now[nodes]
    nodes, more = nodes[more > 0], more[more > 0]
    first = shape.gpus * (now[nodes] + 1) - free[nodes]
    order = np.argsort(first, kind="stable")
    cost, cleared = 0, list[int]()
    for at in order[:missing].tolist():
        cost += int(first[at])
        cleared.append(int(nodes[at]))
    return cost + shape.gpus * max(0, missing - len(order)), cleared


def _cheapest(demand: Demand, free: Ints) -> Ints:
    """`(domains,)` how many tasks of the smallest gang so many free GPUs hold at most, the small ones first."""
    sizes = np.sort(np.concatenate([np.full(g.fewest, g.gpus) for g in demand.groups])).cumsum()
    return np.searchsorted(sizes, free, side="right")


def _domains(layout: Layout, depth: int) -> int:
    if depth == 0:
        return 1
    return layout.nodes if depth > len(layout.levels) else len(layout.names[depth - 1])


def _level(layout: Layout, depth: int) -> str:
    if depth == 0:
        return ""
    return NODE if depth > len(layout.levels) else layout.levels[depth - 1]


def _name(floor: Floor, depth: int, domain: int) -> str:
    if depth == 0:
        return ""
    return floor.names[domain] if depth > len(floor.layout.levels) else floor.layout.names[depth - 1][domain]
