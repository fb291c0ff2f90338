"""The same jobs through the product: through the queue alone, every event time one cycle, and through the simulator."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from builders.oracles import Job
from clusterwright.model.jobs import JobId
from clusterwright.queueing.clusters import NodeInfo
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.policies import Backfill, Policy
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.requests import Demand, Request, Shape
from clusterwright.queueing.state import State
from clusterwright.simulate.jobs import Kind, SimJob, list_jobs
from clusterwright.simulate.loop import simulate
from clusterwright.simulate.scenarios import Scenario

QUEUE = "all"
NO_BACKFILL, EASY = Policy(), Policy(backfill=Backfill.EASY)


@dataclass(frozen=True)
class Pool:
    """Nodes with so many GPUs, and one queue that is guaranteed them all."""

    nodes: Sequence[int]
    policy: Policy = NO_BACKFILL
    strict: bool = False

    @property
    def infos(self) -> tuple[NodeInfo, ...]:
        return tuple(NodeInfo(f"n{i:05d}", "gpu", gpus) for i, gpus in enumerate(self.nodes))

    @property
    def tree(self) -> QueueTree:
        return QueueTree((Queue(QUEUE, quotas={"gpu": Quota(sum(self.nodes))}, strict=self.strict),))


def strict_pool(nodes: Sequence[int]) -> Pool:
    return Pool(nodes, strict=True)


def easy_pool(nodes: Sequence[int]) -> Pool:
    return Pool(nodes, EASY)


def request_of(job: Job) -> Request:
    demand = Demand((Shape(job.tasks, job.gpus),))
    return Request(JobId(job.id), demand, job.submit_s, QUEUE, job.priority, job.limit_s)


def starts_of(jobs: Sequence[Job], pool: Pool) -> dict[str, float]:
    """The start of every job in seconds, by the queue alone; jobs that could never start are missing."""
    state = State(pool.infos, tree=pool.tree, policy=pool.policy)
    arrivals = sorted(jobs, key=lambda job: (job.submit_s, job.id), reverse=True)
    run_s = {job.id: job.run_s for job in jobs}
    ends: list[tuple[float, JobId]] = []
    starts: dict[str, float] = {}
    while arrivals or ends:
        now_s = min(arrivals[-1].submit_s if arrivals else math.inf, ends[0][0] if ends else math.inf)
        while ends and ends[0][0] == now_s:
            state.release(heapq.heappop(ends)[1], now_s)
        while arrivals and arrivals[-1].submit_s == now_s:
            state.submit(request_of(arrivals.pop()))
        for start in run_cycle(state, now_s).starts:
            starts[start.request.id] = now_s
            heapq.heappush(ends, (now_s + run_s[start.request.id], start.request.id))
    return starts


def simulated_starts_of(jobs: Sequence[Job], pool: Pool) -> dict[str, float]:
    """The same by the simulator, in which nothing fails and nothing takes time to start."""
    ordered = sorted(jobs, key=lambda job: (job.submit_s, job.id))
    rows = [
        SimJob(j.submit_s, j.run_s, Kind(request_of(j).demand, QUEUE, priority=j.priority), j.limit_s) for j in ordered
    ]
    outcome = simulate(Scenario(pool.infos, list_jobs(rows), tree=pool.tree, policy=pool.policy))
    starts_ms = outcome.results.start_ms.tolist()
    return {job.id: ms / 1000 for job, ms in zip(ordered, starts_ms, strict=True) if ms >= 0}
