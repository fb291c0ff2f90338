"""Spare nodes of a pool: how many must stand by so that the others are whole, for the failure rate and repair time."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.physics.failures import SPARES_MOST, spares
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.clusters import SparesPlan
from clusterwright.plan.sites import Site
from clusterwright.plan.trainings import failure_rate

#: Probabilities with which the working nodes are to be whole.
TARGETS: Final = (0.95, 0.99, 0.999)
#: Days until a failed node is back where the file does not say: our default, a part exchanged the next day.
_REPAIR_DAYS: Final = 1.0


def plan_spares(sheet: Sheet, site: Site) -> SparesPlan | None:
    """Spares that the working nodes of a pool need; None for a pool without working nodes or too large to count."""
    if not site.working:
        return None
    prefix = f"{site.path}.spares_plan"
    replacement = site.pool.replacement
    repair = sheet.maybe(f"{site.path}.replacement.within", replacement.within if replacement else None, "day")
    if repair is None:
        repair = sheet.assumed(f"{site.name}.repair", _REPAIR_DAYS, "day", "the file does not say when a node is back")
    working = sheet.planned(f"{prefix}.working", len(site.working), "nodes", "nodes that carry workloads")
    rate = failure_rate(sheet)
    needed: list[tuple[float, Figure]] = []
    for target in TARGETS:
        figure = sheet.derive(
            f"{prefix}.at_{target:g}",
            "nodes",
            f"smallest k: at most k of nodes + k down with probability {target:g}, binomial; failures apart",
            lambda n, r, d, t=target: _needed(n, r, d, t),
            working,
            rate,
            repair,
        )
        if figure.value > SPARES_MOST:
            return None
        needed.append((target, figure))
    return SparesPlan(site.pool.spares, repair, tuple(needed))


def _needed(nodes: float, per_1000_node_days: float, repair_days: float, target: float) -> float:
    if not per_1000_node_days:
        return 0.0
    return float(spares(round(nodes), 1000 / per_1000_node_days, repair_days, target))
