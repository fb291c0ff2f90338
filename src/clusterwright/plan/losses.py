"""What is left of a workload after nodes are lost: at once, and after everything left was placed again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.plan.drafts import Draft
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.placing import Nodes, Placement, Request, place, surviving_replicas, worst_loss
from clusterwright.plan.results import LossPlan, Unplanned

#: Losses that are each shown; of more only the declared number is.
_FEW: Final = 4


def plan_losses(
    sheet: Sheet,
    draft: Draft,
    drafts: list[Draft],
    placement: Placement,
    pools: list[Nodes],
    rate: Figure | Unplanned | None,
) -> tuple[LossPlan, ...]:
    """Losses of one node, of a few, and of the declared number, each the worst for this workload.

    None where a pool has a single node.

    Args:
        drafts: all that ask for GPUs, this one included.
        pools: nodes that carry workloads; spares join after a loss.
        rate: req/s of one replica, None for training.
    """
    site = draft.site
    if site is None or draft.request is None or len(site.nodes) < 2:
        return ()
    last = min(max(1, draft.survive), len(site.nodes) - 1)
    counts = [*range(1, min(last, _FEW) + 1), *([last] if last > _FEW else [])]
    return tuple(_loss(sheet, draft, drafts, placement, pools, rate, count) for count in counts)


def _loss(
    sheet: Sheet,
    draft: Draft,
    drafts: list[Draft],
    placement: Placement,
    pools: list[Nodes],
    rate: Figure | Unplanned | None,
    count: int,
) -> LossPlan:
    site = draft.site
    assert site is not None
    worst = worst_loss(draft.name, placement.assignments, site.working, count)
    surviving = surviving_replicas(draft.name, placement.assignments, worst)
    left = [Nodes(p.pool, site.nodes, p.gpus).without(worst) if p.pool == site.name else p for p in pools]
    again = place([_least(d) for d in drafts], left).placed.get(draft.name, 0)
    capacity = None
    if isinstance(rate, Figure):
        kept = sheet.planned(
            f"workloads.{draft.name}.service.surviving_{count}",
            surviving,
            "replicas",
            f"left without {', '.join(worst)}",
        )
        capacity = sheet.derive(
            f"workloads.{draft.name}.service.capacity_after_{count}_lost",
            "req/s",
            "replicas that run on × rate of one",
            lambda n, r: n * r,
            kept,
            rate,
        )
    served = draft.serve is not None
    carries = surviving >= draft.needed if served else again >= 1
    reason = _say(draft, worst, surviving, again, carries)
    return LossPlan(count, worst, surviving, again, draft.needed, capacity, carries, reason)


def _least(draft: Draft) -> Request:
    """What a workload asks after a loss: the replicas that carry its load, a job its smallest gang."""
    assert draft.request is not None
    if draft.serve is not None:
        return replace(draft.request, replicas=min(draft.needed, draft.request.replicas))
    least = draft.train.min_gpus if draft.train and draft.train.min_gpus else draft.request.gpus
    return replace(draft.request, gpus=min(least, draft.request.gpus))


def _say(draft: Draft, worst: Iterable[str], surviving: int, again: int, carries: bool) -> str:
    lost = f"without {', '.join(worst)}"
    if draft.serve is None:
        return f"{lost} the job " + ("finds its GPUs again" if carries else "finds no place")
    need = f"{draft.needed} carr{'ies' if draft.needed == 1 else 'y'} the load"
    if draft.for_load is None:
        need = f"{draft.needed} are declared, and what one carries is unknown"
    runs = f"{lost} {surviving} replica{'' if surviving == 1 else 's'} run{'s' if surviving == 1 else ''} on, {need}"
    if carries:
        return runs
    return runs + (
        f"; {again} could be placed again after a cold start" if again > surviving else "; no place for more"
    )
