"""The queue takes GPUs of running jobs for another one: who must leave ends with grace and goes back into its queue.

What is kept for the winner meanwhile is recorded with it in the same commit that tells the victims to leave, so that a
control plane that dies in between neither forgets for whom they left nor makes others leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clusterwright.engines.local.lifecycles import Change, halt, then
from clusterwright.engines.local.scheduling import recorded
from clusterwright.model.jobs import AttemptEnd, Job, JobId, JobState
from clusterwright.ports.stores import NewEvent
from clusterwright.queueing.decisions import Preemption
from clusterwright.queueing.state import State


def preemption_changes(
    jobs: Mapping[JobId, Job], state: State, preemptions: Sequence[Preemption], now_s: float
) -> list[Change]:
    """What a decision asks of jobs that do not start: claims as the state has them, and victims told to leave."""
    changes = [c for j in jobs.values() if (c := _claim_change(j, state)) is not None]
    grace_s = state.policy.preemption.grace_s
    for preemption in preemptions:
        winner = jobs[preemption.request.id]
        changes += [preempt(jobs[v], winner, preemption.reason, grace_s, now_s) for v in preemption.victims]
    return changes


def preempt(job: Job, winner: Job, why: str, grace_s: float, now_s: float) -> Change:
    """The attempt leaves its GPUs to another job: SIGTERM now, SIGKILL when the grace is over, back into its queue."""
    attempt = job.active
    stopped = halt(job, AttemptEnd.PREEMPTED, now_s, f"preempted {why}", grace_s)
    if attempt is None or stopped.job == job:
        return stopped
    left = stopped.job.attempts[-1]
    changed = replace(stopped.job, attempts=(*stopped.job.attempts[:-1], replace(left, preempted_by=winner.id)))
    data = {"preempted_by": winner.id, "why": why, "grace_s": grace_s}
    event = NewEvent("preempted", now_s, job.id, attempt.epoch, data=data)
    return then(Change(job, (event,)), replace(stopped, job=changed))


def _claim_change(job: Job, state: State) -> Change | None:
    """What is kept for a waiting job, where that is no longer what it was."""
    if job.state is not JobState.PENDING or (job.claim is None and job.id not in state.claims):
        return None
    found = state.claims.get(job.id)
    claim = None if found is None else recorded(found, state)
    return None if claim == job.claim else Change(replace(job, claim=claim))
