"""Scenarios that differ from another in one thing, for the sizing questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clusterwright.simulate.repairs import Care
from clusterwright.simulate.scenarios import Scenario, Strike
from clusterwright.simulate.speeds import stretch_limits


def with_node_failing(scenario: Scenario, node: int, at_s: float, care: Care) -> Scenario:
    """The same scenario in which one node fails at an instant.

    Args:
        care: how long it takes to notice and to repair it.
    """
    strike = Strike(at_s, (node,))
    faults = scenario.faults
    care_of = {**faults.care_of, strike.name: care}
    return replace(scenario, faults=replace(faults, care_of=care_of, strikes=(*faults.strikes, strike)))


def on_another_flavor(scenario: Scenario, flavors: Sequence[str]) -> Scenario:
    """The same jobs on other GPU classes, tried in this order, at the speed that each has there.

    Time limits are stretched as `stretch_limits` says.

    Raises:
        ValueError: when the cluster has none of a flavor.
    """
    known = tuple(dict.fromkeys(n.flavor for n in scenario.nodes))
    if unknown := [f for f in flavors if f not in known]:
        raise ValueError(f"no node is of flavor '{unknown[0]}'; flavors are {', '.join(sorted(known))}")
    jobs = scenario.jobs
    kinds = tuple(replace(k, demand=replace(k.demand, flavors=tuple(flavors))) for k in jobs.kinds)
    return replace(scenario, jobs=stretch_limits(replace(jobs, kinds=kinds), known, jobs.kinds))
