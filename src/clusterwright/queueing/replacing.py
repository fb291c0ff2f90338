"""What becomes of a gang that lost nodes: others take the place of these, or it goes on smaller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from clusterwright.queueing.domains import Ints, Layout
from clusterwright.queueing.fitting import Run, fit
from clusterwright.queueing.floors import Floor
from clusterwright.queueing.gangs import NoFit, Scope, complaint, scope_of
from clusterwright.queueing.requests import Demand, Placement, Shape, TopologyWish


def replace_nodes(
    floor: Floor, placement: Placement, demand: Demand, lost: Collection[int], spares: Collection[int] | None = None
) -> Placement | NoFit:
    """The placement with the tasks of lost nodes on others; ranks and all other tasks stay where they are.

    The new nodes are in the tightest domain that holds the rest, else in the next wider one, as wide as the topology
    wish allows; a task of a slice stays in its slice's domain. Nothing is taken: give `placement` back and take the
    answer.

    Args:
        placement: as it is held now.
        lost: node indexes.
        spares: the only nodes that may come in, whether others may use them or not; unset is every usable node.
    """
    if complaint(floor.layout, demand):
        return NoFit.MISCONFIGURED
    left = _Left(floor, placement, demand, lost, spares)
    chosen: dict[int, Sequence[Run]] = {}
    for part in _parts(floor, placement.runs, lost, left.scope):
        runs = [placement.runs[at] for at in part]
        found = left.refill(runs)
        if isinstance(found, NoFit):
            return found
        chosen.update(zip(part, _dealt(runs, found), strict=True))
    runs = [r for at, run in enumerate(placement.runs) for r in chosen.get(at, (run,))]
    return replace(placement, runs=tuple(_joined(runs)))


def shrink(placement: Placement, demand: Demand, lost: Collection[int]) -> Placement | NoFit:
    """The placement without the tasks of lost nodes (and the slices they were in), if every group may be so small."""
    wish = demand.topology
    step = max(1, wish.slice_tasks) if wish is not None else 1
    kept = list[Run]()
    for group, shape in enumerate(demand.groups):
        nodes = [n for g, n, tasks in placement.runs if g == group for _ in range(tasks)]
        slices = [nodes[i : i + step] for i in range(0, len(nodes), step)]
        left = [n for some in slices if not any(n in lost for n in some) for n in some]
        if len(left) < shape.fewest:
            return NoFit.IMPOSSIBLE
        kept += [(group, n, 1) for n in left]
    if not kept:
        return NoFit.IMPOSSIBLE
    gpus = sum(tasks * demand.groups[g].gpus for g, _, tasks in kept)
    return replace(placement, runs=tuple(_joined(kept)), gpus=gpus)


class _Left:
    """What a gang could use if only its unharmed tasks were placed."""

    def __init__(
        self,
        floor: Floor,
        placement: Placement,
        demand: Demand,
        lost: Collection[int],
        spares: Collection[int] | None,
    ) -> None:
        self.floor, self.demand, self.placement = floor, demand, placement
        self.scope = scope_of(floor.layout, demand)
        self.stays = [r for r in placement.runs if r[1] not in lost]
        self.free = floor.free.copy()
        self.spare = {name: amounts.copy() for name, amounts in floor.spare.items()}
        floor.put_back(self.free, placement, demand, self.spare)
        floor.take_away(self.free, Placement(placement.flavor, tuple(self.stays), 0), demand, self.spare)
        usable = floor.usable.copy()
        if spares is not None:
            usable[:] = False
            usable[list(spares)] = True
        if placement.domain is None:
            usable &= ~floor.closed
        usable[list(lost)] = False
        self.free[~usable] = -1

    def refill(self, lost: Sequence[Run]) -> Sequence[Run] | NoFit:
        """Other nodes for lost runs, as near to the rest as possible; takes them."""
        scope, near, gone = self.scope, [n for _, n, _ in self.stays], [n for _, n, _ in lost]
        found: Sequence[Run] | NoFit = NoFit.IMPOSSIBLE
        if scope.slice_depth:
            found = self._near(lost, gone, scope.slice_depth, None)
            inside = set(_around(self.floor.layout, scope.slice_depth, gone)[0].tolist())
            if not isinstance(found, NoFit) or inside & set(near):
                return found
        return self._near(lost, near or (gone if scope.exclusive else []), scope.widest, self.demand.topology)

    def _near(
        self, lost: Sequence[Run], near: Sequence[int], widest: int, wish: TopologyWish | None
    ) -> Sequence[Run] | NoFit:
        """Nodes for lost runs in the tightest domain around `near`; without any, in one that the wish allows."""
        shapes, groups = self._shapes(lost)
        if wish is not None:
            sliced = bool(wish.slice_tasks)
            wish = replace(wish, exclusive=False, level="" if near else wish.level) if sliced or not near else None
        free = self.free.copy()
        free[[n for g, n, _ in self.stays if g in groups and self.demand.groups[g].spread]] = -1
        answer = NoFit.IMPOSSIBLE
        for depth in range(len(self.floor.layout.levels) + 1, widest - 1, -1):
            for inside in _around(self.floor.layout, depth if near else 0, near):
                within = np.full_like(free, -1)
                within[inside] = free[inside]
                space = self.floor.space(within, self.spare, self.demand.exclude)
                found = fit(space, Demand(shapes, topology=wish))
                if not isinstance(found, NoFit):
                    runs = [(groups[g], n, tasks) for g, n, tasks in found.runs]
                    self.floor.take_away(self.free, Placement("", tuple(runs), 0), self.demand, self.spare)
                    self.stays += runs
                    return runs
                answer = found if found is NoFit.UNKNOWN else answer
            if not near:
                break
        return answer

    def _shapes(self, lost: Sequence[Run]) -> tuple[tuple[Shape, ...], list[int]]:
        """The groups that lost tasks, at the number they lost, with their indexes."""
        count = Counter[int]()
        for group, _, tasks in lost:
            count[group] += tasks
        groups = sorted(count)
        return tuple(replace(self.demand.groups[g], count=count[g], least=None) for g in groups), groups


def _parts(floor: Floor, runs: Sequence[Run], lost: Collection[int], scope: Scope) -> list[list[int]]:
    """Positions of the lost runs that are placed together: all, or those of one slice domain."""
    gone = [at for at, (_, node, _) in enumerate(runs) if node in lost]
    if not scope.slice_depth:
        return [gone] if gone else []
    parts: dict[int, list[int]] = {}
    for at in gone:
        node = runs[at][1]
        leaf = scope.slice_depth > len(floor.layout.levels)
        parts.setdefault(node if leaf else int(floor.layout.of[scope.slice_depth - 1][node]), []).append(at)
    return list(parts.values())


def _around(layout: Layout, depth: int, near: Sequence[int]) -> list[Ints]:
    """The nodes of the one domain of a level that holds all of `near`, if there is one."""
    if depth == 0:
        return [layout.members(0, 0)]
    domains = set(near) if depth > len(layout.levels) else set(layout.of[depth - 1][list(near)].tolist())
    return [layout.members(depth, domains.pop())] if len(domains) == 1 else []


def _dealt(lost: Sequence[Run], new: Sequence[Run]) -> Iterator[list[Run]]:
    """The new runs in place of each lost one."""
    rest = {g: [[n, t] for group, n, t in new if group == g] for g, _, _ in new}
    for group, _, count in lost:
        mine = list[Run]()
        while count:
            node, tasks = rest[group][0]
            here = min(tasks, count)
            mine.append((group, node, here))
            count -= here
            rest[group][0][1] -= here
            if here == tasks:
                rest[group].pop(0)
        yield mine


def _joined(runs: Sequence[Run]) -> Iterator[Run]:
    """Neighbouring runs of a group on one node as one."""
    for (group, node), same in groupby(runs, key=lambda r: r[:2]):
        yield group, node, sum(tasks for _, _, tasks in same)
