"""What is left of a workload after nodes are lost: at once, and after everything lost was placed again by priority."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.model.scheduling import Preemption, Queue, Scheduling
from clusterwright.plan.drafts import Draft
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.placing import Nodes, Placement, Request, surviving_replicas, worst_loss
from clusterwright.plan.replacing import Running, place_again
from clusterwright.plan.results.losses import LossPlan
from clusterwright.plan.results.refusals import Unplanned

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

    None where a pool has a single node, none that works, or no place for the workload before any loss.

    Args:
        drafts: all that ask for GPUs, this one included.
        pools: nodes that carry workloads; spares join after a loss.
        rate: req/s of one replica, None for training.
    """
    site = draft.site
    if site is None or draft.request is None or len(site.nodes) < 2 or not placement.placed.get(draft.name, 0):
        return ()
    last = min(max(1, draft.survive), len(site.nodes) - 1, len(site.working))
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
    assert draft.request is not None
    worst = worst_loss(draft.name, placement.assignments, site.working, count)
    surviving = surviving_replicas(draft.name, placement.assignments, worst)
    left = [Nodes(p.pool, site.nodes, p.gpus).without(worst) if p.pool == site.name else p for p in pools]
    requests = [d.request for d in drafts if d.request is not None]
    state = place_again(requests, left, placement.assignments, worst, _preemption(sheet, requests))
    again = state.count(draft.name)
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
    carries = (surviving >= draft.needed and not _unreachable(rate)) if served else again >= 1
    lost = f"without {', '.join(worst)}"
    reason = (
        _say_service(draft, draft.request, lost, surviving, again, state, rate)
        if served
        else _say_job(draft, draft.request, lost, again, state, surviving)
    )
    return LossPlan(count, worst, surviving, again, draft.needed, capacity, carries, reason)


def _unreachable(rate: Figure | Unplanned | None) -> bool:
    return isinstance(rate, Figure) and not rate.value


class _Preemption:
    """Who may take GPUs from whom, as scheduling.preemption says; nobody where the file says nothing.

    In one queue `within_queue` decides. Between queues only a lent guarantee is taken back (`reclaim`): the taker stays
    within its guarantee, the other queue holds more than its own.
    """

    def __init__(self, rules: Preemption | None, queues: dict[str, Queue], requests: list[Request]) -> None:
        self._rules, self._queues, self._requests = rules, queues, requests

    def __call__(self, taker: Request, victim: Request, state: Running) -> bool:
        if self._rules is None:
            return False
        if taker.queue == victim.queue:
            return self._rules.within_queue != "never"
        if self._rules.reclaim == "never":
            return False
        held = self._held(taker.queue, taker.pool, state) + taker.gpus
        return held <= self._promised(taker.queue, taker.pool) and (
            self._held(victim.queue, taker.pool, state) > self._promised(victim.queue, taker.pool)
        )

    def _held(self, queue: str, pool: str, state: Running) -> int:
        return state.gpus((r.workload for r in self._requests if r.queue == queue), pool)

    def _promised(self, queue: str, pool: str) -> int:
        found = self._queues.get(queue)
        return found.guarantee.get(pool, 0) if found else 0


def _preemption(sheet: Sheet, requests: list[Request]) -> _Preemption:
    scheduling: Scheduling | None = sheet.architecture.scheduling
    return _Preemption(scheduling.preemption if scheduling else None, scheduling.queues if scheduling else {}, requests)


def _say_service(
    draft: Draft,
    request: Request,
    lost: str,
    surviving: int,
    again: int,
    state: Running,
    rate: Figure | Unplanned | None,
) -> str:
    need = f"{draft.needed} carr{'ies' if draft.needed == 1 else 'y'} the load"
    if _unreachable(rate):
        need = "at no rate are the latency targets met"
    elif draft.for_load is None:
        stated = draft.serve.replicas if draft.serve else None
        count = f"{stated} {'is' if stated == 1 else 'are'} declared, and " if stated else ""
        need = f"{count}what one carries is unknown"
    said = [f"{lost} {surviving} replica{'' if surviving == 1 else 's'} run{'s' if surviving == 1 else ''} on, {need}"]
    if again > surviving:
        taken = [stopped for stopped, taker in state.preempted if taker == draft.name]
        source = f" on GPUs taken from {', '.join(dict.fromkeys(taken))}" if taken else ""
        said.append(f"{again - surviving} placed again{source}, after a cold start")
    waiting = request.replicas - max(again, surviving)
    if waiting > 0:
        said.append(f"{waiting} wait{'s' if waiting == 1 else ''} for {_why(draft, request, state)}")
    return "; ".join(said)


def _say_job(draft: Draft, request: Request, lost: str, again: int, state: Running, surviving: int) -> str:
    stopped = [taker for victim, taker in state.preempted if victim == draft.name]
    if again and surviving:
        return f"{lost} the job runs on"
    if again:
        shrunk = state.shrunk.get(draft.name)
        size = f" and shrinks to {shrunk} GPUs" if shrunk else ""
        taken = dict.fromkeys(victim for victim, taker in state.preempted if taker == draft.name)
        source = f", taken from {', '.join(taken)}" if taken else ""
        return f"{lost} the job finds GPUs again{_where(state.nodes(draft.name))}{source}{size}"
    if stopped:
        return f"{lost} the job gives its GPUs to {', '.join(dict.fromkeys(stopped))} and waits"
    return f"{lost} the job waits for {_why(draft, request, state)}"


def _where(nodes: tuple[str, ...]) -> str:
    return f" on {', '.join(nodes)}" if 0 < len(nodes) <= _FEW else f" on {len(nodes)} nodes"


def _why(draft: Draft, request: Request, state: Running) -> str:
    """What is waited for, and who holds what is left."""
    free, own = state.free[request.pool], set(state.nodes(draft.name))
    if request.apart and own.issuperset(free):
        return "a node without one of its replicas (spread: required)"
    spare = sum(len(g) for g in free.values())
    others = {name for name, _ in state.parts}
    holders = {name: state.gpus([name], request.pool) for name in sorted(others)}
    held = ", ".join(f"{name} ({gpus})" for name, gpus in holders.items() if gpus)
    left = f"{spare} of those left are free" if spare else "none of those left is free"
    wanted = f"{request.gpus} GPU{'s' * (request.gpus != 1)}"
    return f"{wanted}: {left}" + (f", the others are held by {held}" if held else "")
