"""Jobs through the queueing core, without failures: what the other benchmarks time."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush
from pathlib import Path

import numpy as np

from clusterwright.app.collecting import rare_collections
from clusterwright.model.jobs import JobId
from clusterwright.queueing.clusters import NodeInfo
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.policies import Backfill, Policy
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.requests import Demand, Request, Shape
from clusterwright.queueing.state import State

#: Microsoft's trace, flattened (see its README); beside the clone, not in it.
PHILLY = Path(__file__).resolve().parents[2] / "shared" / "traces" / "philly" / "philly_sia.csv"
NODE_GPUS = 8
QUEUE = "all"


@dataclass(frozen=True, slots=True)
class Job:
    """`tasks` tasks of `gpus` GPUs each, for `run_s`; `limit_s` is what backfilling knows."""

    id: str
    submit_s: float
    run_s: float
    limit_s: float
    tasks: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Start of every job in s by its id, CPU seconds, cycles, and the most that waited and ran at once."""

    starts: dict[str, float]
    cpu_s: float
    cycles: int
    most_waiting: int
    most_running: int


def philly(first: int = 0, count: int | None = None, *, times_faster: float = 1.0) -> list[Job]:
    """Jobs of the trace in order of submission, with submissions closer together.

    It has no time limits: run times are multiplied with 1, 1, 2, 5 or 10, drawn with a fixed seed. Jobs wider than a
    node are equal tasks of at most a node.
    """
    if not PHILLY.exists():
        raise SystemExit(f"the public Philly trace is not there: {PHILLY}")
    with PHILLY.open() as lines:
        rows = [(datetime.fromisoformat(r["timestamp"]), number, r) for number, r in enumerate(csv.DictReader(lines))]
    rows = sorted(rows, key=lambda row: row[:2])[first : None if count is None else first + count]
    factors = np.random.Generator(np.random.PCG64(1)).choice([1, 1, 2, 5, 10], len(rows)).tolist()
    jobs = []
    for number, ((submitted, _, row), factor) in enumerate(zip(rows, factors, strict=True)):
        gpus, run_s = int(float(row["num_gpus"])), float(row["duration"])
        tasks = -(-gpus // NODE_GPUS)
        at_s = (submitted - rows[0][0]).total_seconds() // times_faster
        jobs.append(Job(f"{number:06d}", at_s, run_s, run_s * factor, tasks, gpus // tasks))
    return jobs


def pool(nodes: int, *, easy: bool = False, strict: bool = False) -> State:
    """Nodes of 8 GPUs and one queue that is guaranteed them all."""
    infos = [NodeInfo(f"n{i:05d}", "gpu", NODE_GPUS) for i in range(nodes)]
    tree = QueueTree((Queue(QUEUE, quotas={"gpu": Quota(nodes * NODE_GPUS)}, strict=strict),))
    return State(infos, tree=tree, policy=Policy(backfill=Backfill.EASY if easy else Backfill.NONE))


def requests(jobs: Sequence[Job]) -> list[Request]:
    """What the core is asked; equal demands are one object, as from any reader of traces."""
    demands: dict[tuple[int, int], Demand] = {}
    for job in jobs:
        demands.setdefault((job.tasks, job.gpus), Demand((Shape(job.tasks, job.gpus),)))
    return [Request(JobId(job.id), demands[job.tasks, job.gpus], job.submit_s, QUEUE, 0, job.limit_s) for job in jobs]


def drive(state: State, asked: Sequence[Request], run_s: Sequence[float]) -> Outcome:
    """Every event time is one cycle, after its ends and arrivals; garbage is collected as rarely as by `cw simulate`.

    Args:
        asked: in order of submission.
        run_s: of each.
    """
    runs = {request.id: seconds for request, seconds in zip(asked, run_s, strict=True)}
    with rare_collections():
        return _drive(state, asked, runs)


def _drive(state: State, asked: Sequence[Request], runs: Mapping[JobId, float]) -> Outcome:
    ends: list[tuple[float, JobId]] = []
    starts: dict[str, float] = {}
    arrivals = iter(asked)
    begin, cycles, most_waiting, most_running = time.process_time(), 0, 0, 0
    coming = next(arrivals, None)
    while coming is not None or ends:
        now_s = ends[0][0] if ends else math.inf
        if coming is not None and coming.queued_at_s < now_s:
            now_s = coming.queued_at_s
        while ends and ends[0][0] == now_s:
            state.release(heappop(ends)[1], now_s)
        while coming is not None and coming.queued_at_s == now_s:
            state.submit(coming)
            coming = next(arrivals, None)
        for start in run_cycle(state, now_s).starts:
            job = start.request.id
            starts[job] = now_s
            heappush(ends, (now_s + runs[job], job))
        cycles += 1
        if len(state.waiting) > most_waiting:
            most_waiting = len(state.waiting)
        if len(ends) > most_running:
            most_running = len(ends)
    return Outcome(starts, time.process_time() - begin, cycles, most_waiting, most_running)
