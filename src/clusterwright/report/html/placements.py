"""How each workload is split, why there, what one failure takes down, and what is left after a loss."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.hostlists import fold as fold_hosts
from clusterwright.plan.results.layouts import PlacementChoice
from clusterwright.plan.results.losses import LossPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import TrainingPlan
from clusterwright.report.html.derivations import inline_figure
from clusterwright.report.html.elements import Child, Html, h, markup, table
from clusterwright.report.html.words import count_words

_LEVELS: Final = {"gpu": "one GPU", "node": "one node", "nodes": "several nodes"}


def render_placements(plan: Plan) -> Html:
    """Choices with their failure domain, and the losses that were thought through; "" without workloads."""
    return markup((_workload(w) for w in plan.workloads if w.choices), _losses(plan))


def _workload(workload: WorkloadPlan) -> Html:
    rows = ((_choice(c), _state(c), c.failure_domain, _memory(c), c.reason) for c in workload.choices)
    chosen = workload.chosen
    layout = f"{chosen.layout}{' as declared' if chosen.layout.declared else ''}" if chosen else "no layout"
    unit = "replica" if workload.kind == "inference" else "job"
    placed = f"{workload.replicas_placed} of {count_words(workload.replicas_wanted, unit)} placed"
    return markup(
        h("h3", "Placement of ", workload.name),
        h("p", f"{workload.model} on pool {workload.pool or 'none'}: {layout}, {placed}."),
        table(
            ("Within", "State", "One failure takes down", "GiB on the fullest GPU", "Why"),
            rows,
            caption=f"Ways to place {workload.name}",
            cls="stack",
        ),
    )


def _choice(choice: PlacementChoice) -> Child:
    return h("span", f"{_LEVELS[choice.level]}, {choice.layout}")


def _state(choice: PlacementChoice) -> Child:
    """A choice whose memory nobody could compute neither fits nor fails: the reason says why."""
    unknown = choice.memory_total is None
    if choice.chosen and choice.feasible:
        return h("span", "● chosen", cls="outcome good")
    if choice.chosen:
        word, colour = ("○ chosen, fit unknown", "open") if unknown else ("✕ chosen, does not fit", "bad")
        return h("span", word, cls=f"outcome {colour}")
    return h("span", "possible" if choice.feasible else "not planned" if unknown else "not possible", cls="soft")


def _memory(choice: PlacementChoice) -> Child:
    return inline_figure(choice.memory_total) if choice.memory_total is not None else None


def _losses(plan: Plan) -> Html:
    rows = []
    for workload in plan.workloads:
        planned = workload.service if isinstance(workload.service, ServicePlan) else workload.training
        if isinstance(planned, ServicePlan | TrainingPlan):
            rows += [_loss(workload, loss) for loss in planned.losses]
    if not rows:
        return Html("")
    return markup(
        h("h3", "After a loss of nodes"),
        table(
            ("Workload", "Lost", "Runs on", "Can be placed again", "Needed", "Result", "Why"),
            rows,
            caption="The nodes whose loss hurts the workload most",
            cls="stack",
        ),
    )


def _loss(workload: WorkloadPlan, loss: LossPlan) -> tuple[Child, ...]:
    state = (
        h("span", "✓ carried", cls="outcome good") if loss.carries else h("span", "✕ not carried", cls="outcome bad")
    )
    capacity = h("p", inline_figure(loss.capacity), cls="small") if loss.capacity is not None else None
    lost = f"{count_words(loss.nodes_lost, 'node')} ({fold_hosts(loss.worst)})" if loss.worst else str(loss.nodes_lost)
    return (workload.name, lost, (f"{loss.surviving}", capacity), loss.placeable, loss.needed, state, loss.reason)
