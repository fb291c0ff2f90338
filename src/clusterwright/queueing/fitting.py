"""One gang on one floor: all of its tasks or none, the largest that fits when it may be smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clusterwright.queueing.domains import Ints
from clusterwright.queueing.gangs import NoFit, Scope, Space, complaint, fill, most, scope_of, slots_of, tightest
from clusterwright.queueing.mixing import fit_mixed
from clusterwright.queueing.requests import Demand, Shape

#: (index of the group, index of the node, tasks), in rank order.
Run = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Fit:
    """Where a gang fits: runs in rank order, and the depth and index of the domain that holds them."""

    runs: tuple[Run, ...]
    spot: tuple[int, int]


def fit(space: Space, demand: Demand, gpus_at_most: float = float("inf")) -> Fit | NoFit:
    """The largest gang that fits: at least every group's minimum, then as many tasks as possible, group by group.

    Ranks follow the topology: tasks of neighbouring ranks are on the same node or on near ones.
    """
    if demand.least_gpus > gpus_at_most:
        return NoFit.IMPOSSIBLE
    if demand.topology is not None and complaint(space.layout, demand):
        return NoFit.MISCONFIGURED
    scope = scope_of(space.layout, demand)
    if len(demand.groups) == 1 and demand.groups[0].gpus:
        return _fit_uniform(space, demand.groups[0], scope, gpus_at_most)
    if not demand.elastic:
        return _fit_counts(space, demand, scope, [g.count for g in demand.groups])
    return _fit_elastic(space, demand, scope, gpus_at_most)


def _fit_uniform(space: Space, group: Shape, scope: Scope, gpus_at_most: float) -> Fit | NoFit:
    slots, count = slots_of(space, group), group.count
    if group.fewest < count:
        largest = min(count, most(space, slots, scope))
        if group.gpus * largest > gpus_at_most:
            largest = int(gpus_at_most // group.gpus)
        count = largest - largest % scope.slice_tasks
        if count < max(group.fewest, 1):
            return NoFit.IMPOSSIBLE
    elif int(slots.sum()) < count:
        return NoFit.IMPOSSIBLE
    spot = tightest(space, slots, count, scope)
    if spot is None:
        return NoFit.IMPOSSIBLE
    nodes, tasks = fill(space, slots, count, scope, spot)
    return Fit(ranked(space, 0, nodes, tasks), spot)


def _fit_elastic(space: Space, demand: Demand, scope: Scope, gpus_at_most: float) -> Fit | NoFit:
    """Every group at its minimum, then one group after the other as large as fits (fewer tasks fit where more do)."""
    step = scope.slice_tasks
    counts = [g.fewest + -g.fewest % step for g in demand.groups]
    best = _fit_counts(space, demand, scope, counts)
    gpus = sum(g.gpus * n for g, n in zip(demand.groups, counts, strict=True))
    if isinstance(best, NoFit) or gpus > gpus_at_most:
        return best if isinstance(best, NoFit) else NoFit.IMPOSSIBLE
    for i, group in enumerate(demand.groups):
        low, high = counts[i] // step, group.count // step
        if group.gpus and (high - low) * step * group.gpus > gpus_at_most - gpus:
            high = low + int((gpus_at_most - gpus) // (step * group.gpus))
        while low < high:
            middle = (low + high + 1) // 2
            found = _fit_counts(space, demand, scope, [*counts[:i], middle * step, *counts[i + 1 :]])
            if isinstance(found, NoFit):
                high = middle - 1
            else:
                low, best = middle, found
        gpus += (low * step - counts[i]) * group.gpus
        counts[i] = low * step
    return best


def _fit_counts(space: Space, demand: Demand, scope: Scope, counts: Sequence[int]) -> Fit | NoFit:
    """The gang at these sizes; groups whose tasks are alike are placed as one."""
    first = demand.groups[0]
    if first.gpus and all(
        (g.gpus, g.resources, g.spread) == (first.gpus, first.resources, False) for g in demand.groups
    ):
        total = sum(counts)
        slots = slots_of(space, first)
        spot = tightest(space, slots, total, scope) if total and int(slots.sum()) >= total else None
        if spot is None:
            return NoFit.IMPOSSIBLE
        runs = ranked(space, 0, *fill(space, slots, total, scope, spot))
        return Fit(_divided(runs, counts), spot)
    found = fit_mixed(space, demand.groups, counts, scope)
    if isinstance(found, NoFit):
        return found
    spot, parts = found
    return Fit(tuple(r for i, (nodes, tasks) in enumerate(parts) for r in ranked(space, i, nodes, tasks)), spot)


def ranked(space: Space, group: int, nodes: Ints, tasks: Ints) -> tuple[Run, ...]:
    """Runs of one group in the order of the topology."""
    if len(nodes) > 1:
        order = np.argsort(space.layout.position[nodes])
        nodes, tasks = nodes[order], tasks[order]
    return tuple((group, n, t) for n, t in zip(nodes.tolist(), tasks.tolist(), strict=True))


def _divided(runs: Sequence[Run], counts: Sequence[int]) -> tuple[Run, ...]:
    """Runs of one size dealt to groups, the first group first."""
    found, rest = list[Run](), list(reversed(runs))
    for group, count in enumerate(counts):
        while count:
            _, node, tasks = rest.pop()
            here = min(tasks, count)
            found.append((group, node, here))
            count -= here
            if here < tasks:
                rest.append((0, node, tasks - here))
    return tuple(found)
