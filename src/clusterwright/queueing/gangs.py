"""Where equal tasks go: the tightest domain that holds them, of the domains of a level the one with the least free.

In it the fullest node is filled first (or the emptiest, by policy), so that large domains stay whole. For tasks of one
size the answer is exact. A preferred level asks for no more than this rule gives anyway: when one domain of it holds
the gang, the gang is in one; else the next wider level is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from typing import Final

import numpy as np

from clusterwright.queueing.domains import Flags, Ints, Layout
from clusterwright.queueing.policies import Packing
from clusterwright.queueing.requests import Demand, Shape

#: Parts of a resource's unit that are counted, so that what is taken and given back is exact.
PARTS: Final = 1000
#: Below this, free counts are sorted as 16-bit numbers, which numpy does in linear time.
_SHORT: Final = 65_535


class NoFit(StrEnum):
    """Why no placement came back; MISCONFIGURED is a wish that this cluster has no meaning for."""

    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"
    MISCONFIGURED = "misconfigured"


@dataclass(frozen=True, slots=True)
class Space:
    """What one job sees of a floor.

    Args:
        free: `(nodes,) int32`, −1 where it may not go.
        spare: by further resource, `(nodes,) int64` in thousandths.
        empty: `(nodes,) bool`, nodes without any job; only exclusive wishes look at it.
    """

    layout: Layout
    free: Ints
    spare: Mapping[str, Ints] = field(default_factory=dict)
    empty: Flags | None = None
    packing: Packing = Packing.FULLEST


@dataclass(frozen=True, slots=True)
class Scope:
    """A topology wish in depths of a layout.

    Args:
        widest: the widest level that may hold the gang, 0 is the whole floor.
        tightest: where to begin.
        slice_depth: level of one slice, 0 for no slices.
        slice_tasks: tasks of one slice, 1 for no slices.
    """

    widest: int
    tightest: int
    slice_depth: int = 0
    slice_tasks: int = 1
    exclusive: bool = False


def complaint(layout: Layout, demand: Demand) -> str:
    """What is wrong with a topology wish on this layout, "" when nothing is."""
    wish = demand.topology
    if wish is None:
        return ""
    known = ", ".join(layout.depths)
    for level in (wish.level, wish.slice_level):
        if level and level not in layout.depths:
            return f"topology level '{level}' is not declared; levels here: {known}"
    if wish.exclusive and not wish.level:
        return f"an exclusive domain needs a topology level; levels here: {known}"
    if not wish.slice_tasks:
        return ""
    if wish.slice_tasks < 0 or not wish.slice_level:
        return f"slices need a positive number of tasks and a level; levels here: {known}"
    for group in demand.groups:
        if group.count % wish.slice_tasks:
            return f"{group.count} tasks of group '{group.name}' are no multiple of slices of {wish.slice_tasks}"
    if layout.depths.get(wish.level, 0) > layout.depths[wish.slice_level]:
        return f"slice level '{wish.slice_level}' is wider than topology level '{wish.level}'"
    return ""


def scope_of(layout: Layout, demand: Demand) -> Scope:
    """The wish of a demand without complaint; an exclusive domain is a required one."""
    wish, nodes = demand.topology, len(layout.levels) + 1
    depth = 0
    if wish is not None and (wish.required or wish.exclusive):
        depth = layout.depths.get(wish.level, 0)
    exclusive = wish is not None and wish.exclusive
    tightest = depth if exclusive or not demand.most_gpus else nodes
    if wish is None or not wish.slice_tasks:
        return Scope(depth, tightest, exclusive=exclusive)
    return Scope(depth, tightest, layout.depths[wish.slice_level], wish.slice_tasks, exclusive)


def thousandths(amount: float) -> int:
    """A need in counted parts, rounded up."""
    return ceil(round(amount * PARTS, 6))


def slots_of(space: Space, shape: Shape) -> Ints:
    """`(nodes,)`: tasks of this shape that each node holds."""
    slots: Ints
    slots = np.maximum(space.free, 0) // shape.gpus if shape.gpus > 0 else np.where(space.free >= 0, shape.count, 0)
    for name, need in shape.resources:
        if name in space.spare and need > 0:
            slots = np.minimum(slots, space.spare[name] // thousandths(need))
    return np.minimum(slots, 1) if shape.spread else slots


def tightest(space: Space, slots: Ints, count: int, scope: Scope) -> tuple[int, int] | None:
    """(depth, domain) of the tightest domain that holds `count` tasks within the scope, None when no domain does."""
    layout, nodes = space.layout, len(space.layout.levels) + 1
    units, needed = slots, count
    for depth in range(nodes, scope.widest - 1, -1):
        if depth < nodes:
            units = layout.widen(depth, units)
        if depth == scope.slice_depth:
            units, needed = units // scope.slice_tasks, count // scope.slice_tasks
        if depth <= scope.tightest:
            fits = np.flatnonzero(allowed(space, depth, units >= needed, scope))
            if len(fits):
                return depth, pick(space, depth, fits)
    return None


def pick(space: Space, depth: int, domains: Ints) -> int:
    """Of these domains the one with the least free GPUs, the first of equals (of nodes: as the policy packs)."""
    if len(domains) == 1:
        return int(domains[0])
    free = space.layout.sums(depth, np.maximum(space.free, 0))[domains]
    turned = space.packing is Packing.EMPTIEST and depth > len(space.layout.levels)
    return int(domains[free.argmax() if turned else free.argmin()])


def held_by_domain(space: Space, slots: Ints, scope: Scope) -> Ints:
    """`(domains,)`: tasks that each domain of the scope's widest level holds, in whole slices."""
    layout, units, per_unit = space.layout, slots, 1
    for depth in range(len(layout.levels) + 1, scope.widest - 1, -1):
        if depth <= len(layout.levels):
            units = layout.widen(depth, units)
        if depth == scope.slice_depth:
            units, per_unit = units // scope.slice_tasks, scope.slice_tasks
    held = units * per_unit
    return held - held % scope.slice_tasks


def most(space: Space, slots: Ints, scope: Scope) -> int:
    """The largest number of tasks that one domain within the scope holds, in whole slices."""
    held = held_by_domain(space, slots, scope)
    return int(held[allowed(space, scope.widest, held > 0, scope)].max(initial=0))


def fill(space: Space, slots: Ints, count: int, scope: Scope, spot: tuple[int, int]) -> tuple[Ints, Ints]:
    """(nodes, tasks on each) of `count` tasks in a domain that holds them."""
    depth, domain = spot
    if depth >= scope.slice_depth:
        return pour(space, space.layout.members(depth, domain), slots, count)
    layout, left = space.layout, count // scope.slice_tasks
    parts = layout.parts(depth, domain, scope.slice_depth)
    units = layout.sums(scope.slice_depth, slots)[parts] // scope.slice_tasks
    free = layout.sums(scope.slice_depth, np.maximum(space.free, 0))[parts]
    nodes, tasks = list[Ints](), list[Ints]()
    for at in np.argsort(np.where(units > 0, free, free.max(initial=0) + 1), kind="stable").tolist():
        here = min(left, int(units[at]))
        if not here:
            break
        some = pour(space, layout.members(scope.slice_depth, int(parts[at])), slots, here * scope.slice_tasks)
        nodes.append(some[0])
        tasks.append(some[1])
        left -= here
    return np.concatenate(nodes), np.concatenate(tasks)


def pour(space: Space, nodes: Ints, slots: Ints, count: int) -> tuple[Ints, Ints]:
    """(nodes, tasks on each): these nodes filled one after the other."""
    at, tasks = poured(space.free[nodes], slots[nodes], count, space.packing)
    return nodes[at], tasks


def poured(free: Ints, slots: Ints, count: int, packing: Packing) -> tuple[Ints, Ints]:
    """(positions, tasks on each) of `count` tasks, the fullest that holds one first or the emptiest, as packed."""
    usable = np.flatnonzero(slots)
    key = free[usable]
    if packing is Packing.EMPTIEST:
        key = key.max(initial=0) - key
    if key.max(initial=0) < _SHORT:
        key = key.astype(np.uint16)
    usable = usable[np.argsort(key, kind="stable")]
    here = slots[usable]
    ends = here.cumsum()
    used = int(np.searchsorted(ends, count)) + 1
    tasks = here[:used].astype(np.int64)
    tasks[-1] -= ends[used - 1] - count
    return usable[:used], tasks


def allowed(space: Space, depth: int, fits: Flags, scope: Scope) -> Flags:
    """`fits` by domain of a level, without the domains that an exclusive wish may not take."""
    if not scope.exclusive or space.empty is None:
        return fits
    occupied: Ints = space.layout.sums(depth, (~space.empty).astype(np.int32))
    return np.asarray(fits & (occupied == 0))
