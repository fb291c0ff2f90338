"""The sizing questions by name: futures that differ in one thing, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.app.replicating import Request, Show
from clusterwright.app.simulated_misfits import split_never_fit
from clusterwright.app.simulated_speeds import Speeds
from clusterwright.app.simulating import Future, Workshop, run_futures
from clusterwright.app.simulation_requests import SimulationRequest
from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, Line
from clusterwright.ledger.ratios import allocated_share, goodput_share
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.scales import DAY_S
from clusterwright.lib.spelling import did_you_mean
from clusterwright.report.answers import Answer
from clusterwright.report.replications import Estimate, Replication, Simulated, estimate_level, estimate_of, pair
from clusterwright.report.simulations import percent, say_money, say_percent, span
from clusterwright.simulate.expansions import Delivery
from clusterwright.simulate.sizing import on_another_flavor, with_node_failing

#: Parts of the declared nodes that are tried for the longest acceptable queue time.
_PARTS: Final = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
#: Parts of the simulated time after which an expansion arrives; 1 is after its end, which is never.
_LATE: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_HELD: Final = (Line.STARTING, Line.CHECKPOINT, Line.HELD_IDLE, Line.LOST, Line.FAILED, Line.PREEMPTED)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its details.

    Args:
        name: a key of `QUESTIONS`.
        limit_s: longest acceptable queue time at the 95th percentile.
        pool: that the question is about; "" is the only one.
        nodes: that an expansion adds.
    """

    name: str
    limit_s: float | None = None
    pool: str = ""
    nodes: int = 0


def ask(
    asked: SimulationRequest, question: Question, stop: Request, show: Show | None = None
) -> tuple[Answer, list[Simulated]] | None:
    """Simulate what a question needs and answer it; None when it was stopped before that.

    Raises:
        InvalidInput: for a question that there is not, or details that it needs.
    """
    if question.name not in QUESTIONS:
        near = did_you_mean(question.name, QUESTIONS) or f"questions: {', '.join(QUESTIONS)}"
        raise InvalidInput(f"--ask is '{question.name}'; {near}")
    if question.name == "other-gpu" and not asked.speeds:
        asked = replace(asked, speeds=Speeds(catalogue=True))
    workshop = Workshop(asked)
    build, answer = QUESTIONS[question.name]
    futures = build(workshop, question)
    calibrated = workshop.has_waits
    if calibrated:
        futures = [workshop.build(asked.overrides, "as it is"), *futures]
    found = run_futures(asked, futures, workshop, stop, show)
    if len(found) < len(futures):
        return None
    if calibrated:
        found = [replace(one, calibration=found[0].calibration) for one in found[1:]]
    return answer(question, found), found


def _pool(workshop: Workshop, question: Question) -> str:
    pools = [p.name for p in workshop.build(workshop.asked.overrides).site.pools]
    if question.pool in pools:
        return question.pool
    if question.pool or len(pools) > 1:
        near = did_you_mean(question.pool, pools) or f"pools with GPUs: {', '.join(pools)}"
        raise InvalidInput(f"--pool is '{question.pool}'; {near}")
    return pools[0]


# -- the longest acceptable queue time --------------------------------------------------------------------------------


def _sizes(workshop: Workshop, question: Question) -> list[Future]:
    if question.limit_s is None:
        raise InvalidInput("--ask longest-wait needs --limit, such as --limit '30 min'")
    pool = _pool(workshop, question)
    declared = len(workshop.base.architecture.pools[pool].nodes)
    counts = sorted({max(1, round(part * declared)) for part in _PARTS})
    labels = [f"pools.{pool}.nodes={count}" for count in counts]
    return [workshop.build((*workshop.asked.overrides, label), label) for label in labels]


def _p95(found: Simulated) -> Estimate | None:
    return estimate_level(found.replications, "all", "", "wait_s", "p95")


def _smallest(question: Question, found: list[Simulated]) -> Answer:
    """The fewest nodes from which on every larger number that was tried is acceptable, too."""
    assert question.limit_s is not None
    best: Simulated | None = None
    for one in reversed(found):
        wait = _p95(one)
        if one.never_fit or wait is None or wait.value > question.limit_s:
            break
        best = one
    tried = ", ".join(f"{_value(one)}: {'-' if (w := _p95(one)) is None else span(w.value)}" for one in found)
    wanted = f"95 % of the jobs start within {span(question.limit_s)}"
    said = f"with {_value(best)} nodes or more {wanted}" if best else f"with none of the sizes tried do {wanted}"
    return Answer(question.name, said, f"p95 queue time by number of nodes: {tried}; sizes between them were not tried")


def _value(found: Simulated) -> str:
    return found.label.rpartition("=")[2]


# -- one node fails ---------------------------------------------------------------------------------------------------


def _failing(workshop: Workshop, question: Question) -> list[Future]:
    pool = _pool(workshop, question)
    quiet = workshop.build(workshop.asked.overrides, "no node fails", failures="none")
    care = workshop.build(workshop.asked.overrides).scenario.faults.care
    node = next(n for n, info in enumerate(quiet.scenario.nodes) if info.flavor == pool)
    half_s = quiet.scenario.counted_from_s + quiet.days * DAY_S / 2
    struck = with_node_failing(quiet.scenario, node, half_s, care)
    name = quiet.scenario.nodes[node].name
    return [quiet, replace(quiet, label=f"{name} fails at half time", scenario=struck)]


def _cost_of_failure(question: Question, found: list[Simulated]) -> Answer:
    without, failing = (one.replications for one in found)

    def more(*lines: Line) -> str:
        both = pair(without, failing, lambda r: sum(r.lines.of(x) for x in lines) / GPU_MS_PER_GPU_H)
        return "-" if both is None else f"{both.difference.value:,.1f} GPU-h"

    useful = pair(without, failing, lambda r: r.lines.of(Line.PRODUCTIVE) / GPU_MS_PER_GPU_H)
    ended = pair(without, failing, lambda r: float(g.succeeded) if (g := r.group("all")) else None)
    told = "-" if useful is None else f"{useful.difference.value:+,.1f} GPU-h of productive work"
    jobs = "" if ended is None else f", {ended.difference.value:+.3g} jobs succeeded"
    return Answer(
        question.name,
        f"{found[1].label}: {told}{jobs} within the {found[0].days:.4g} days",
        f"lost since checkpoint {more(Line.LOST)}, starting again {more(Line.STARTING)}, held idle until it was "
        f"noticed {more(Line.HELD_IDLE)}, out of use {more(Line.UNHEALTHY)}; nothing else fails in either future",
    )


# -- another GPU class ------------------------------------------------------------------------------------------------


def _elsewhere(workshop: Workshop, question: Question) -> list[Future]:
    base = workshop.build(workshop.asked.overrides, "as it is")
    if len(base.site.pools) < 2:
        raise InvalidInput("--ask other-gpu moves jobs between pools, and the file has one; declare the other one, too")
    if base.fit is not None:
        raise InvalidInput("--ask other-gpu is about given jobs; leave out --draw")
    pool = _pool(workshop, question)
    moved = on_another_flavor(base.scenario, [pool])
    split, never = split_never_fit(moved)
    waits = base.stream.real_wait_ms[split.chosen]
    stream = replace(base.stream, jobs=split.jobs, real_wait_ms=waits)
    label, scenario = f"all jobs on {pool}", replace(moved, jobs=split.jobs)
    return [base, replace(base, label=label, scenario=scenario, stream=stream, never_fit=(*base.never_fit, *never))]


def _moved(question: Question, found: list[Simulated]) -> Answer:
    before, after = found

    def change(read: Callable[[Replication], float | None], say: Callable[[float], str]) -> str:
        both = pair(before.replications, after.replications, read)
        return "is not known" if both is None else f"goes from {say(both.first.value)} to {say(both.second.value)}"

    said = [
        f"p95 queue time {change(lambda r: g.wait_s[2] if (g := r.group('all')) else None, span)}",
        f"the useful share {change(lambda r: goodput_share(r.lines), percent)}",
        f"the number of jobs that succeeded {change(lambda r: float(r.succeeded), '{:,.4g}'.format)}",
    ]
    if before.currency:
        money = change(_cost_of_success, lambda v: say_money(Estimate(v), before.currency))
        said.append(f"the cost of all GPUs per job that succeeded {money}")
    if after.jobs < before.jobs:
        said.append(f"{before.jobs - after.jobs:,} of {before.jobs:,} jobs can never run there")
    pool = after.label.rpartition(" ")[2]
    speeds = [f for f in after.figures if f.name.startswith((f"speeds.{pool}", "speeds.equal"))]
    told = "; ".join(f"speed × {f.value:.3g}, {f.origin.word}: {f.basis}" for f in speeds if f.origin is not None)
    basis = told or "all jobs were measured on that GPU, or equal speed is declared"
    return Answer(question.name, f"{after.label}: {', '.join(said)}", f"{basis}; queues need quota of that pool")


def _cost_of_success(found: Replication) -> float | None:
    return found.cost / found.succeeded if found.cost is not None and found.succeeded else None


# -- an expansion that arrives late -----------------------------------------------------------------------------------


def _late(workshop: Workshop, question: Question) -> list[Future]:
    pool = _pool(workshop, question)
    if question.nodes < 1:
        raise InvalidInput("--ask lead-time needs --add, the nodes that were ordered, such as --add 8")
    declared = len(workshop.base.architecture.pools[pool].nodes)
    grown = workshop.build((*workshop.asked.overrides, f"pools.{pool}.nodes={declared + question.nodes}"))
    places = [n for n, info in enumerate(grown.scenario.nodes) if info.flavor == pool][-question.nodes :]
    spares = tuple(s for s in grown.scenario.spares if s not in places)
    found = []
    for part in _LATE:
        planned_s = part * grown.days * DAY_S
        order = Delivery("expansion", tuple(places), grown.scenario.counted_from_s + planned_s)
        scenario = replace(grown.scenario, spares=spares, deliveries=(order,))
        label = "lead=never" if part == 1 else f"lead={planned_s / DAY_S:.3g} d"
        found.append(replace(grown, label=label, scenario=scenario))
    return found


def _lead(question: Question, found: list[Simulated]) -> Answer:
    tried = ", ".join(f"{_value(one)}: {'-' if (w := _p95(one)) is None else span(w.value)}" for one in found)
    said = f"p95 queue time by arrival of {question.nodes} nodes: {tried}"
    if question.limit_s is not None:
        good = []
        for one in found:
            wait = _p95(one)
            if wait is None or wait.value > question.limit_s:
                break
            good.append(one)
        wanted = f"so that 95 % of the jobs start within {span(question.limit_s)}"
        said = (
            f"they may arrive after {_value(good[-1])} at the latest {wanted}"
            if good
            else f"no arrival is early enough {wanted}"
        )
    return Answer(question.name, said, f"p95 queue time by arrival: {tried}; arrivals between them were not tried")


# -- useful against allocated -----------------------------------------------------------------------------------------


def _as_it_is(workshop: Workshop, _: Question) -> list[Future]:
    return [workshop.build(workshop.asked.overrides)]


def _gap(question: Question, found: list[Simulated]) -> Answer:
    rs = found[0].replications
    useful = estimate_of(rs, lambda r: goodput_share(r.lines))
    allocated = estimate_of(rs, lambda r: allocated_share(r.lines))
    parts = {line: share for line in _HELD if (share := _share(found[0], line)) is not None and share.value}
    told = ", ".join(f"{x.value} {say_percent(e)}" for x, e in sorted(parts.items(), key=lambda p: -p[1].value))
    return Answer(
        question.name,
        f"{say_percent(allocated)} of the installed GPU time is allocated, {say_percent(useful)} is useful",
        f"the difference: {told or 'nothing'}",
    )


def _share(found: Simulated, line: Line) -> Estimate | None:
    return estimate_of(found.replications, lambda r: r.lines.share(line))


_Build = Callable[[Workshop, Question], list[Future]]
_Reply = Callable[[Question, list[Simulated]], Answer]
#: name → what is simulated for it, and how it is answered.
QUESTIONS: Final[dict[str, tuple[_Build, _Reply]]] = {
    "longest-wait": (_sizes, _smallest),
    "node-loss": (_failing, _cost_of_failure),
    "other-gpu": (_elsewhere, _moved),
    "lead-time": (_late, _lead),
    "useful": (_as_it_is, _gap),
}
