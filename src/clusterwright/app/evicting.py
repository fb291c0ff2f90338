"""The declared preemption, carried out from outside: the embedded engine does not preempt by itself.

Whom a job may send away is `queueing.preempting`'s answer. A victim gets SIGTERM, its grace and SIGKILL, and goes back
into its queue. Jobs of a rehearsal are seconds old: a declared minimum runtime counts as over.
"""

from __future__ import annotations

import time

from clusterwright.app.running import ClusterHandle
from clusterwright.app.stages import LOOK_S, PATIENCE_S
from clusterwright.engines.local.scheduling import queue_state
from clusterwright.judging.recovering import Eviction
from clusterwright.model.jobs import Job, JobId, JobState
from clusterwright.model.scheduling import Preemption
from clusterwright.queueing.preempting import Running, find_victims
from clusterwright.queueing.quotas import QueueTree


def evict_for_one(cluster: ClusterHandle, tree: QueueTree, policy: Preemption | None) -> Eviction | None:
    """Make room for the first waiting job that the policy lets take some; None when it lets none."""
    if policy is None:
        return None
    jobs, now = {j.id: j for j in cluster.engine.jobs()}, time.time()
    state = queue_state(jobs.values(), cluster.engine.nodes(), tree, now)
    running = [r for j in jobs.values() if (r := _running(j)) is not None]
    for waiting in sorted(state.waiting, key=lambda w: (-w.priority, w.queued_at_s, w.id)):
        victims = find_victims(waiting, running, state, policy)
        if victims:
            _make_room(cluster, waiting.id, victims)
            return Eviction(jobs[waiting.id].spec.name, tuple(jobs[v].spec.name for v in victims), now)
    return None


def _make_room(cluster: ClusterHandle, winner: JobId, victims: tuple[JobId, ...]) -> None:
    """End the victims; none of them takes its place back before the winner has had its turn."""
    cluster.engine.hold(*victims)
    for victim in victims:
        cluster.engine.requeue(victim)
    await_state(cluster, victims, waiting=True)
    await_state(cluster, (winner,), waiting=False)
    cluster.engine.release(*victims)


def await_state(cluster: ClusterHandle, jobs: tuple[JobId, ...], *, waiting: bool) -> None:
    """Until each of these jobs waits in its queue (or does not), or has ended; gives up in silence after a while."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = [cluster.engine.job(j) for j in jobs]
        if all(j.state.final or (j.state is JobState.PENDING) == waiting for j in found):
            return
        time.sleep(LOOK_S / 5)


def _running(job: Job) -> Running | None:
    attempt = job.active
    if attempt is None or job.state not in (JobState.STARTING, JobState.RUNNING):
        return None
    spec = job.spec
    return Running(job.id, spec.queue, spec.priority, job.queued_at_s, attempt.flavor, attempt.tasks)
