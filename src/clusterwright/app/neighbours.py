"""The other workloads of a cluster while one job is rehearsed: real jobs that hold the planned GPUs and do nothing."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from clusterwright.app.running import ClusterHandle
from clusterwright.app.stages import (
    LOOK_S,
    PATIENCE_S,
    SETTLE_S,
    is_stuck,
    probe_command,
    probe_spec,
    task_groups,
    why_waiting,
)
from clusterwright.judging.expecting import ExpectedJob
from clusterwright.lib.hostlists import fold
from clusterwright.model.jobs import Job, JobId, JobSpec, JobState

#: Holders that a reason names before it counts the rest.
_NAMED = 6


def as_planned(spec: JobSpec, job: ExpectedJob, jobs: Sequence[ExpectedJob]) -> JobSpec:
    """The job first on its planned nodes; where its replicas must be apart, never where its siblings are planned."""
    siblings = [n for j in jobs if j.workload == job.workload and j.name != job.name for n in j.nodes]
    apart = dict.fromkeys(n for n in siblings if n not in job.nodes) if job.apart else ()
    return replace(spec, first_nodes=job.nodes, exclude=tuple(apart))


def placeholder(job: ExpectedJob, jobs: Sequence[ExpectedJob]) -> JobSpec:
    """A job with the queue, priority and GPUs of an expected one, and one process per task that only waits."""
    groups = tuple(replace(g, ranks=1) for g in task_groups(job, probe_command("holder")))
    return as_planned(probe_spec(job, groups), job, jobs)


def await_placed(cluster: ClusterHandle, ids: Mapping[str, JobId]) -> str:
    """Wait until all of these jobs run; why one does not, or ""."""
    deadline, quiet_since = time.monotonic() + PATIENCE_S, time.monotonic()
    missing = dict(ids)
    while missing and time.monotonic() < deadline:
        found = {name: cluster.engine.job(job) for name, job in missing.items()}
        ended = next((f"{name} ended: {j.state}: {j.detail}" for name, j in found.items() if j.state.final), "")
        if ended:
            return ended
        waiting = {name: job for name, job in missing.items() if found[name].state is not JobState.RUNNING}
        if len(waiting) < len(missing):
            quiet_since = time.monotonic()
        missing = waiting
        stuck = missing and all(is_stuck(cluster, j) for j in missing.values())
        if stuck and time.monotonic() - quiet_since > SETTLE_S:
            break
        if missing:
            time.sleep(LOOK_S)
    why = (f"{name} is {why_waiting(cluster, cluster.engine.job(job))}" for name, job in missing.items())
    return next(why, "")


def await_state(cluster: ClusterHandle, jobs: tuple[JobId, ...], *, waiting: bool) -> None:
    """Until each of these jobs waits in its queue (or does not), or has ended; gives up in silence after a while."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = [cluster.engine.job(j) for j in jobs]
        if all(j.state.final or (j.state is JobState.PENDING) == waiting for j in found):
            return
        time.sleep(LOOK_S / 5)


def nodes_at(job: Job, moment_s: float) -> tuple[str, ...]:
    """Nodes whose GPUs the job held at a moment, or at its own good end if that came first."""
    if job.state is JobState.SUCCEEDED and job.ended_at_s is not None and job.ended_at_s <= moment_s:
        return job.attempts[-1].nodes
    held = [a for a in job.attempts if a.admitted_at_s < moment_s and (a.ended_at_s is None or a.ended_at_s > moment_s)]
    return held[-1].nodes if held else ()


def describe_holders(jobs: Sequence[Job], pools: Collection[str | None]) -> str:
    """Who holds the GPUs of these pools: `chat-1 (4 GPUs on n2, priority 1000)`."""
    holders = sorted(
        (j for j in jobs if j.active is not None and j.spec.gpu_model in pools),
        key=lambda j: (-j.spec.priority, j.spec.name),
    )
    said = [
        f"{j.spec.name} ({j.active.gpus} GPU{'s' * (j.active.gpus != 1)} on {fold(j.active.nodes)}, "
        f"priority {j.spec.priority})"
        for j in holders
        if j.active is not None
    ]
    more = f" and {len(said) - _NAMED} more" if len(said) > _NAMED else ""
    return ", ".join(said[:_NAMED]) + more
