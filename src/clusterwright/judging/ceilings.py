"""The most that a claim can read on the declared hardware: above it, a reading is no measurement."""

from __future__ import annotations

from collections.abc import Iterable

from clusterwright.judging.requirements import Claim
from clusterwright.lib.quantities import Quantity, parse_unit
from clusterwright.model.acceptance import Requirement
from clusterwright.plan.results.plans import Plan


def limits_of(claims: Iterable[Claim], plan: Plan) -> dict[str, Quantity]:
    """Claim id → bound of its collective over its nodes, where the plan computed one for exactly these."""
    found = {}
    for claim in claims:
        limit = _bound(claim.requirement, plan)
        if limit is not None:
            found[claim.id] = limit
    return found


def _bound(requirement: Requirement, plan: Plan) -> Quantity | None:
    if requirement.metric != "busbw" or requirement.conditions.operation is None:
        return None
    nodes = 1 if requirement.scope.of == "node" else requirement.scope.nodes
    for collective in plan.network.collectives:
        same = (collective.pool, collective.operation, collective.nodes)
        if same == (requirement.scope.pool, requirement.conditions.operation, nodes):
            scale, powers = parse_unit(collective.bound.unit)
            return Quantity(collective.bound.value * scale, powers)
    return None
