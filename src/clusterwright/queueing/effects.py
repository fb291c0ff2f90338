"""What a placement takes from each node of a floor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterwright.queueing.domains import Ints, Layout
from clusterwright.queueing.gangs import thousandths
from clusterwright.queueing.requests import Demand, Placement


@dataclass(frozen=True, slots=True)
class Effect:
    """What is taken, by node.

    Args:
        gpus: an exclusive domain is taken whole.
        further: by resource, thousandths.
        bare_tasks: tasks without GPUs.
        domain: the nodes of the exclusive domain.
    """

    gpus: dict[int, int]
    further: dict[str, dict[int, int]]
    bare_tasks: dict[int, int]
    domain: tuple[int, ...] = ()


def effect_of(
    layout: Layout, total: Ints, resources: Mapping[str, Ints], placement: Placement, demand: Demand
) -> Effect:
    """What `placement` takes of nodes with these totals."""
    gpus, bare = dict[int, int](), dict[int, int]()
    for group, node, tasks in placement.runs:
        each = demand.groups[group].gpus
        gpus[node] = gpus.get(node, 0) + tasks * each
        if not each:
            bare[node] = bare.get(node, 0) + tasks
    if placement.domain is not None:
        level, domain = placement.domain
        nodes = tuple(layout.members(layout.depths[level], domain).tolist())
        further = {name: {n: int(amounts[n]) for n in nodes} for name, amounts in resources.items()}
        return Effect({n: int(total[n]) for n in nodes}, further, bare, nodes)
    further = {}
    if resources and not demand.plain:
        for group, node, tasks in placement.runs:
            for name, need in demand.groups[group].resources:
                if name in resources:
                    of = further.setdefault(name, {})
                    of[node] = of.get(node, 0) + tasks * thousandths(need)
    return Effect(gpus, further, bare)
