"""Where groups of different tasks go: best fit, the largest tasks first, then an exact search with a step limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clusterwright.queueing.domains import Flags, Ints
from clusterwright.queueing.gangs import NoFit, Scope, Space, allowed, poured, slots_of, thousandths
from clusterwright.queueing.policies import Packing
from clusterwright.queueing.requests import Shape
from clusterwright.queueing.searching import SEARCH_STEPS, Task, search

#: By group: (nodes, tasks on each).
Parts = list[tuple[Ints, Ints]]


def fit_mixed(
    space: Space, groups: Sequence[Shape], counts: Sequence[int], scope: Scope
) -> tuple[tuple[int, int], Parts] | NoFit:
    """((depth, domain), nodes and tasks of each group) in the tightest domain that holds them, or why there is none.

    With slices of several groups only best fit is tried: what it cannot place is 'unknown'.
    """
    gang = _Gang(groups, counts)
    answer, steps = NoFit.IMPOSSIBLE, SEARCH_STEPS
    for depth in range(scope.tightest if gang.gpus else scope.widest, scope.widest - 1, -1):
        domains = _candidates(space, gang, scope, depth)
        for domain in domains:
            parts = _best_fit(_Room.of(space, depth, domain), gang, scope, space, depth)
            if parts is not None:
                return (depth, domain), parts
        if not domains or depth > len(space.layout.levels):
            continue
        if depth < scope.slice_depth:
            answer = NoFit.UNKNOWN
            continue
        for domain in domains:
            found, steps = _search(_Room.of(space, depth, domain), gang, steps)
            if not isinstance(found, NoFit):
                return (depth, domain), found
            answer = NoFit.UNKNOWN if found is NoFit.UNKNOWN else answer
    return answer


class _Gang:
    """Groups at given sizes, with the order in which they are placed."""

    def __init__(self, groups: Sequence[Shape], counts: Sequence[int]) -> None:
        self.groups, self.counts = groups, counts
        self.order = sorted(range(len(groups)), key=lambda i: (-groups[i].gpus, not groups[i].spread, i))
        self.gpus = sum(g.gpus * n for g, n in zip(groups, counts, strict=True))
        self.needs: dict[str, int] = {}
        for group, count in zip(groups, counts, strict=True):
            for name, need in group.resources:
                self.needs[name] = self.needs.get(name, 0) + thousandths(need) * count


@dataclass(slots=True)
class _Room:
    """The nodes of one domain with what is left on them while a gang is tried."""

    nodes: Ints
    free: Ints
    spare: dict[str, Ints]

    @classmethod
    def of(cls, space: Space, depth: int, domain: int) -> _Room:
        nodes = space.layout.members(depth, domain)
        nodes = nodes[space.free[nodes] >= 0]
        return cls(nodes, space.free[nodes].astype(np.int64), {n: s[nodes] for n, s in space.spare.items()})


def _candidates(space: Space, gang: _Gang, scope: Scope, depth: int) -> list[int]:
    """Domains of a level that may hold the gang by every simple count, the one with the least free GPUs first."""
    layout, free = space.layout, np.maximum(space.free, 0)
    totals = layout.sums(depth, free)
    fits: Flags = totals >= gang.gpus
    if depth == 0 and scope.widest == 0:
        fits = fits & bool((space.free >= 0).any())
    for group, count in zip(gang.groups, gang.counts, strict=True):
        fits = fits & (layout.sums(depth, slots_of(space, group)) >= count)
    for gpus in {g.gpus for g in gang.groups if g.gpus > 0}:
        larger = sum(n for g, n in zip(gang.groups, gang.counts, strict=True) if g.gpus >= gpus)
        fits = fits & (layout.sums(depth, free // gpus) >= larger)
    for name, need in gang.needs.items():
        if name in space.spare:
            fits = fits & (layout.sums(depth, np.where(space.free >= 0, space.spare[name], 0)) >= need)
    found = np.flatnonzero(allowed(space, depth, fits, scope))
    turned = space.packing is Packing.EMPTIEST and depth > len(layout.levels)
    order = np.argsort(-totals[found] if turned else totals[found], kind="stable")
    return [int(d) for d in found[order]]


def _best_fit(room: _Room, gang: _Gang, scope: Scope, space: Space, depth: int) -> Parts | None:
    parts: Parts = [(np.empty(0, np.int64), np.empty(0, np.int64))] * len(gang.groups)
    load = np.zeros(len(room.nodes), dtype=np.int64)
    slice_of = None
    if depth < scope.slice_depth:
        inside = scope.slice_depth <= len(space.layout.levels)
        slice_of = space.layout.of[scope.slice_depth - 1][room.nodes] if inside else room.nodes
    for i in gang.order:
        group, count = gang.groups[i], gang.counts[i]
        slots = slots_of(Space(space.layout, room.free, room.spare), group)
        if not count:
            continue
        if slice_of is None:
            found = _place(room, slots, group, count, load, space)
        else:
            found = _place_slices(room, slots, group, count, load, space, slice_of, scope.slice_tasks)
        if found is None:
            return None
        at, tasks = found
        room.free[at] -= tasks * group.gpus
        for name, need in group.resources:
            if name in room.spare:
                room.spare[name][at] -= tasks * thousandths(need)
        load[at] += tasks
        parts[i] = (room.nodes[at], tasks)
    return parts


def _place(room: _Room, slots: Ints, group: Shape, count: int, load: Ints, space: Space) -> tuple[Ints, Ints] | None:
    """(positions in the room, tasks on each) of one group."""
    if int(slots.sum()) < count:
        return None
    if group.gpus:
        return poured(room.free, slots, count, space.packing)
    # Tasks without GPUs go where the fewest tasks of this gang are, else a gang of such would share one node.
    load, left = load.copy(), slots.copy()
    tasks = np.zeros(len(slots), dtype=np.int64)
    for _ in range(count):
        at = int(np.where(left > 0, load, np.iinfo(np.int64).max).argmin())
        load[at] += 1
        left[at] -= 1
        tasks[at] += 1
    used = np.flatnonzero(tasks)
    return used, tasks[used]


def _place_slices(
    room: _Room, slots: Ints, group: Shape, count: int, load: Ints, space: Space, slice_of: Ints, per_slice: int
) -> tuple[Ints, Ints] | None:
    """As `_place`, every `per_slice` tasks within one domain of the slices' level, the least free first."""
    _, part = np.unique(slice_of, return_inverse=True)
    units = np.bincount(part, slots).astype(np.int64) // per_slice
    free = np.bincount(part, np.maximum(room.free, 0))
    left, positions, tasks = count // per_slice, list[Ints](), list[Ints]()
    for p in np.argsort(free, kind="stable").tolist():
        here = min(left, int(units[p]))
        if here:
            found = _place(room, np.where(part == p, slots, 0), group, here * per_slice, load, space)
            if found is not None:
                positions.append(found[0])
                tasks.append(found[1])
                left -= here
    return None if left else (np.concatenate(positions), np.concatenate(tasks))


def _search(room: _Room, gang: _Gang, steps: int) -> tuple[Parts | NoFit, int]:
    """The exact answer for one domain, slices aside."""
    names = [n for n in gang.needs if n in room.spare]
    tasks = list[Task]()
    for i in gang.order:
        needs = dict(gang.groups[i].resources)
        task = (i, gang.groups[i].gpus, tuple(thousandths(needs.get(n, 0)) for n in names), gang.groups[i].spread)
        tasks += [task] * gang.counts[i]
    spare = zip(*(room.spare[n].tolist() for n in names), strict=True) if names else [()] * len(room.nodes)
    rooms = [(f, s, frozenset[int]()) for f, s in zip(room.free.tolist(), spare, strict=True)]
    found, steps = search(tasks, rooms, steps)
    if isinstance(found, NoFit):
        return found, steps
    by_group: Mapping[int, dict[int, int]] = {i: {} for i in gang.order}
    for (group, *_), at in zip(tasks, found, strict=True):
        by_group[group][at] = by_group[group].get(at, 0) + 1
    parts = [by_group[i] for i in range(len(gang.groups))]
    return [(room.nodes[list(p)], np.array(list(p.values()), dtype=np.int64)) for p in parts], steps
