"""The same jobs through the product: every event time is one cycle, after its ends and its arrivals."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from builders.oracles import Job
from clusterwright.model.jobs import JobId
from clusterwright.queueing.clusters import NodeInfo
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.policies import Backfill, Policy
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.requests import Demand, Request, Shape
from clusterwright.queueing.state import State

QUEUE = "all"
EASY = Policy(backfill=Backfill.EASY)


def one_pool(nodes: Sequence[int], *, policy: Policy = Policy(), strict: bool = False) -> State:  # noqa: B008
    """Nodes with so many GPUs, and one queue that is guaranteed them all."""
    infos = [NodeInfo(f"n{i:05d}", "gpu", gpus) for i, gpus in enumerate(nodes)]
    tree = QueueTree((Queue(QUEUE, quotas={"gpu": Quota(sum(nodes))}, strict=strict),))
    return State(infos, tree=tree, policy=policy)


def request_of(job: Job) -> Request:
    demand = Demand((Shape(job.tasks, job.gpus),))
    return Request(JobId(job.id), demand, job.submit_s, QUEUE, job.priority, job.limit_s)


def starts_of(jobs: Sequence[Job], state: State) -> dict[str, float]:
    """The start of every job in seconds; jobs that could never start are missing."""
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
