"""A plan as text on one screen: what does not hold first, then each workload, the cluster, money, gaps."""

from __future__ import annotations

import math
import textwrap
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.plan.ages import Aged
from clusterwright.plan.results.clusters import CollectivePlan, SparesPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import TrainingPlan
from clusterwright.report.plan_jobs import checkpoint_lines, payload_lines, training_lines
from clusterwright.report.plan_layouts import layout_lines
from clusterwright.report.plan_money import economics_lines, unit_cost_lines
from clusterwright.report.plan_services import memory_lines, service_lines
from clusterwright.report.plan_words import LABEL, MARKS, band_words, line, percent, show

_WIDTH: Final = 120
_LEAST_WIDTH: Final = 60
_ASSUMPTIONS: Final = 6
_LEVELS: Final = {"gpu": "one GPU", "node": "one node", "nodes": "several nodes"}


def render_plan(plan: Plan, width: int = _WIDTH, aged: tuple[Aged, ...] = (), *, layouts: bool = False) -> str:
    """The plan for people: what does not hold first, then each workload, network, cost, gaps, assumptions.

    Args:
        width: columns of the terminal; less than 60 counts as 60.
        aged: inputs that outlived their shelf life on the day of the plan.
        layouts: whether every possible layout and every reason is shown.
    """
    blocks = [[_headline(plan)], _misfits(plan)]
    blocks += [_workload(w, plan, layouts) for w in plan.workloads]
    blocks += [_cluster(plan), economics_lines(plan), _unplanned(plan), _limits(plan), _aged(aged), _assumptions(plan)]
    blocks.append([_legend()])
    columns = max(_LEAST_WIDTH, width)
    return "\n\n".join("\n".join(_wrapped(line, columns) for line in b) for b in blocks if b)


def _wrapped(line: str, width: int) -> str:
    """A line folded under its text; a word longer than the line keeps its length."""
    if len(line) <= width:
        return line
    indent = " " * (LABEL + 2) if line.startswith(" ") else "  "
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _headline(plan: Plan) -> str:
    said = []
    if plan.misfits:
        said.append(f"{len(plan.misfits)} {'thing does' if len(plan.misfits) == 1 else 'things do'} not hold")
    if plan.unplanned:
        said.append(f"{len(plan.unplanned)} {'part' if len(plan.unplanned) == 1 else 'parts'} could not be planned")
    return f"{plan.cluster}: {', '.join(said) or 'everything planned holds'}"


def _misfits(plan: Plan) -> list[str]:
    return (
        ["does not hold"] + [f"  ✕ {m.subject}: {m.message} ({m.path})" for m in plan.misfits] if plan.misfits else []
    )


def _workload(workload: WorkloadPlan, plan: Plan, layouts: bool) -> list[str]:
    lines = [f"{workload.name}: {workload.kind} of {workload.model}"]
    split = workload.service.split if isinstance(workload.service, ServicePlan) else None
    lines += _layout(workload, layouts)
    lines += [line("", "memory and command line are those of a decode worker")] if split is not None else []
    lines += memory_lines(workload.memory)
    if isinstance(workload.service, ServicePlan):
        lines += service_lines(workload.service)
    elif isinstance(workload.service, Unplanned):
        lines.append(line("load", f"not planned: {workload.service.reason}"))
    if isinstance(workload.training, TrainingPlan):
        lines += training_lines(workload.training)
    lines += payload_lines(workload.payload) + checkpoint_lines(workload.checkpoint)
    if workload.capacity is not None and not isinstance(workload.capacity, Unplanned):
        capacity = workload.capacity
        lines.append(
            line(
                "capacity",
                f"{show(capacity.gpu_months)} paid for {show(capacity.target_work)}, "
                f"of which one makes {show(capacity.useful_per_gpu_month).replace('/GPU-month', '')}",
            )
        )
    return lines + unit_cost_lines(workload.name, plan)


def _layout(workload: WorkloadPlan, full: bool) -> list[str]:
    said = layout_lines(workload.layouts, full=full) if workload.layouts is not None else []
    searched = [line("layouts" if not i else "", text) for i, text in enumerate(said)]
    if workload.layout is None:
        return [line("placement", "not planned"), *searched]
    by_node: dict[str, int] = {}
    for part in workload.placement:
        by_node[part.node] = by_node.get(part.node, 0) + len(part.gpus)
    shown = [f"{node} ({gpus} GPU{'s' * (gpus != 1)})" for node, gpus in list(by_node.items())[:3]]
    if len(by_node) > 3:
        shown.append(f"{len(by_node) - 3} more node{'s' * (len(by_node) != 4)}")
    count = f"{workload.replicas_placed} of {workload.replicas_wanted} placed"
    if not workload.replicas_placed and workload.chosen is not None and not workload.chosen.feasible:
        count += ", since it cannot run so"
    where = f" on {', '.join(shown)}" if shown else ""
    lines = [line("placement", f"{workload.layout_words}{where}; {count}")]
    chosen = workload.chosen
    if chosen is not None:
        lines.append(line("", f"{chosen.reason}; {chosen.failure_domain}"))
    others = [f"{c.layout} in {_LEVELS[c.level]}: {c.reason}" for c in workload.choices if not c.chosen]
    return lines + ([line("", "; ".join(others))] if others else []) + searched


def _cluster(plan: Plan) -> list[str]:
    lines = [
        line(
            f"pool {p.name}",
            f"{p.used} of {p.gpus} GPUs taken ({len(p.nodes)} × {p.gpus_per_node} {p.gpu or 'unknown GPU'})",
        )
        for p in plan.pools
    ]
    lines += [_spares(p.name, p.spares) for p in plan.pools if p.spares is not None]
    if plan.payload_rate is not None and len(plan.workloads) > 1:
        lines.append(line("payload", f"{show(plan.payload_rate)} when every workload loads at once"))
    groups: dict[tuple[str, int], list[CollectivePlan]] = {}
    for collective in plan.network.collectives:
        groups.setdefault((collective.pool, collective.nodes), []).append(collective)
    for (pool, nodes), found in groups.items():
        shown = [c for c in found if c.operation in ("all-reduce", "all-to-all")]
        said = ", ".join(
            f"{c.operation} {_at_most(c.bound)}, reference {show(c.reference)}"
            + (f", {show(c.expected)}{band_words(c.expected)} expected of 1 GiB" if c.expected else "")
            for c in shown
        )
        lines.append(line("busbw", f"{nodes} node{'s' * (nodes != 1)} of {pool}: {said}"))
    return ["cluster", *lines] if lines else []


def _spares(pool: str, spares: SparesPlan) -> str:
    needed = ", ".join(f"{figure.value:g}{MARKS[figure.origin]} at {target:.1%}" for target, figure in spares.needed)
    said = f"{pool} keeps {spares.declared}; needed with a node back after {show(spares.repair)}: {needed}"
    return line("spares", f"{said} (failures apart from each other)")


def _at_most(bound: Figure) -> str:
    return f"≤ {show(bound)}" if math.isfinite(bound.value) else "without bound"


def _unplanned(plan: Plan) -> list[str]:
    if not plan.unplanned:
        return []
    lines = ["could not be planned"]
    for gap in plan.unplanned:
        state = f" (state {', '.join(gap.missing)})" if gap.missing else ""
        lines.append(f"  ○ {gap.subject}: {gap.reason}{state}")
    return lines


def _limits(plan: Plan) -> list[str]:
    return ["not modelled", *(f"  {text}" for text in plan.limits)] if plan.limits else []


def _aged(aged: tuple[Aged, ...]) -> list[str]:
    lines = [f"  {a.name}: {a.days} days old ({a.dated}), a {a.kind} is good for {a.life}: {a.reason}" for a in aged]
    return ["older than its shelf life", *lines] if lines else []


def _assumptions(plan: Plan) -> list[str]:
    if not plan.assumptions:
        return []
    lines = ["assumed, by effect (10 % more or less changes what follows by)"]
    for a in plan.assumptions[:_ASSUMPTIONS]:
        lines.append(f"  {percent(a.effect):>7}  {a.leaf.name} = {show(a.leaf)} on {a.on}: {a.leaf.basis}")
    rest = len(plan.assumptions) - _ASSUMPTIONS
    return lines + ([f"  and {rest} more (--format json)"] if rest > 0 else [])


def _legend() -> str:
    marks = " ".join(f"{mark} {origin.word}" for origin, mark in sorted(MARKS.items()))
    return f"{marks}; a computed number carries the weakest mark among what carries it. --explain NAME shows any tree."
