"""Schedulers written once more, as plainly as can be, to compare the product's decisions with, job by job.

Plain lists, every waiting job looked at anew at every event: quadratic in the number of jobs. Nothing here comes from
the product. One pool of nodes with GPUs, which are numbers in the order of their names; what is free is a list of GPUs
by node. A job is a number of equal tasks, each on one node, all of them or none.

At every time at which something happens all ends of that time are applied, then all arrivals, then jobs are started.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: (node, GPUs of it) of one job.
Spot = list[tuple[int, int]]


@dataclass(frozen=True)
class Job:
    """A job of the oracles: `tasks` tasks of `gpus` GPUs each.

    Args:
        run_s: how long it runs once started, at most `limit_s`.
        limit_s: after which it would be killed, None is never; all that backfilling knows of it.
    """

    id: str
    submit_s: float
    run_s: float
    gpus: int
    tasks: int = 1
    limit_s: float | None = None
    priority: int = 0


@dataclass(frozen=True)
class Running:
    """A job on its nodes."""

    job: Job
    start_s: float
    spot: Spot

    @property
    def end_s(self) -> float:
        return self.start_s + self.job.run_s

    @property
    def latest_end_s(self) -> float:
        return math.inf if self.job.limit_s is None else self.start_s + self.job.limit_s


def spot_for(job: Job, free: Sequence[int]) -> Spot | None:
    """The fullest node that holds the whole job, else whole tasks on the fullest nodes; of equal nodes the first."""
    most = max(free)
    if most >= job.gpus * job.tasks:
        return [(min((f, node) for node, f in enumerate(free) if f >= job.gpus * job.tasks)[1], job.gpus * job.tasks)]
    if most < job.gpus:
        return None
    left, spot = job.tasks, Spot()
    for f, node in sorted((f, node) for node, f in enumerate(free) if f >= job.gpus):
        tasks = min(left, f // job.gpus)
        spot.append((node, tasks * job.gpus))
        left -= tasks
        if left == 0:
            return spot
    return None


def take(free: list[int], spot: Spot) -> None:
    for node, gpus in spot:
        free[node] -= gpus


def give(free: list[int], spot: Spot) -> None:
    for node, gpus in spot:
        free[node] += gpus


#: Waiting jobs in order, what is free (changed by what starts), running jobs, now → what starts where.
Cycle = Callable[[Sequence[Job], list[int], Sequence[Running], float], list[tuple[Job, Spot]]]


def in_order(job: Job) -> tuple[int, float, str]:
    """Higher priority first, then older."""
    return -job.priority, job.submit_s, job.id


def strict(waiting: Sequence[Job], free: list[int], running: Sequence[Running], now_s: float) -> list[tuple[Job, Spot]]:
    """First in, first out: nobody passes the head."""
    started = []
    for job in waiting:
        spot = spot_for(job, free)
        if spot is None:
            break
        take(free, spot)
        started.append((job, spot))
    return started


def best_effort(
    waiting: Sequence[Job], free: list[int], running: Sequence[Running], now_s: float
) -> list[tuple[Job, Spot]]:
    """What does not fit is passed."""
    started = []
    for job in waiting:
        spot = spot_for(job, free)
        if spot is not None:
            take(free, spot)
            started.append((job, spot))
    return started


def easy(waiting: Sequence[Job], free: list[int], running: Sequence[Running], now_s: float) -> list[tuple[Job, Spot]]:
    """EASY backfill: the first that does not fit is promised a start, which nothing that passes it may delay.

    The promise: the earliest time at which it fits if every running job runs to its limit, on the nodes that the
    placement rule gives then. A later job passes if it fits now and is over by then, or if it fits on what is free both
    now and then beside the promised nodes. What no known end makes room for gets no promise and is passed.
    """
    started: list[tuple[Job, Spot]] = []
    promised_s, then, both = -math.inf, None, free
    for job in waiting:
        early = then is None or (job.limit_s is not None and now_s + job.limit_s <= promised_s)
        spot = spot_for(job, free if early else both)
        if spot is not None:
            take(free, spot)
            started.append((job, spot))
            if then is not None and not early:
                take(then, spot)
        elif then is None:
            holders = [*running, *(Running(other, now_s, its) for other, its in started)]
            promised_s, then = promised(job, free, holders)
        if then is not None and (spot is not None or both is free):
            both = list(map(min, free, then))
    return started


def promised(job: Job, free: Sequence[int], running: Sequence[Running]) -> tuple[float, list[int] | None]:
    """When a job can start at the latest, and what is free by then beside it."""
    then = list(free)
    for time_s in sorted({r.latest_end_s for r in running if r.latest_end_s < math.inf}):
        for other in running:
            if other.latest_end_s == time_s:
                give(then, other.spot)
        spot = spot_for(job, then)
        if spot is not None:
            take(then, spot)
            return time_s, then
    return math.inf, None


def replay(jobs: Sequence[Job], nodes: Sequence[int], cycle: Cycle) -> dict[str, float]:
    """The start of every job in seconds, on nodes with so many GPUs.

    Jobs that could never start are still waiting at the end and missing from the answer.
    """
    arrivals = sorted(jobs, key=lambda job: (job.submit_s, job.id), reverse=True)
    free, waiting, starts = list(nodes), list[Job](), dict[str, float]()
    running: list[Running] = []
    while arrivals or running:
        now_s = running[0].end_s if running else math.inf
        if arrivals and arrivals[-1].submit_s < now_s:
            now_s = arrivals[-1].submit_s
        while running and running[0].end_s == now_s:
            give(free, running.pop(0).spot)
        while arrivals and arrivals[-1].submit_s == now_s:
            insort(waiting, arrivals.pop(), key=in_order)
        for job, spot in cycle(waiting, free, running, now_s):
            waiting.remove(job)
            insort(running, Running(job, now_s, spot), key=lambda r: r.end_s)
            starts[job.id] = now_s
    return starts
