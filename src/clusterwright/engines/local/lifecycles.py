"""What happens to a job, as pure functions: job in, changed job, events and actions out.

The control plane commits the change and the events, then acts. So kill -9 between the two loses no transition: on its
return it reads the state and acts again, and every action may be repeated.

    STARTING ─ all ranks run ─▶ RUNNING ─┬─ a rank fails, all end, a node is lost ─────────▶ FENCING ─ all gone ─▶ ENDED
        └────────────────────────────────┼─ cancel, time limit, preemption ─▶ STOPPING ───────┘
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from clusterwright.model.jobs import (
    MAX_BACKOFF_S,
    MAX_LOST_STARTS,
    AgentIdentity,
    Attempt,
    AttemptEnd,
    AttemptState,
    Cause,
    Exclusion,
    Exit,
    Job,
    JobSpec,
    JobState,
    RankRun,
    TaskPlacement,
)
from clusterwright.model.outlooks import Blocker, BlockerKind
from clusterwright.ports.stores import NewEvent


class Action(StrEnum):
    """What the control plane does after a commit; each may be done twice."""

    LAUNCH = "launch"
    TERMINATE = "terminate"
    FENCE = "fence"
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Change:
    """A transition: the job afterwards, what goes into history, what is to be done."""

    job: Job
    events: tuple[NewEvent, ...] = ()
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """A rank's process exists."""

    rank: int
    pid: int
    starttime: int
    at_s: float


#: Ends after which the job goes back into the queue, unless it is being cancelled.
_REQUEUED: Final = frozenset({AttemptEnd.NODE_LOST, AttemptEnd.PREEMPTED, AttemptEnd.SHUTDOWN, AttemptEnd.BLOCKED})
_LIVE: Final = frozenset({AttemptState.STARTING, AttemptState.RUNNING})


#: SIGKILL takes effect within milliseconds; what lives longer than this cannot be killed now.
LONG_FENCE_S: Final = 5.0
UNKILLABLE: Final = (
    "it is in uninterruptible sleep (state D, often a file system that does not answer) or another user's: "
    "find it with `ps -e -o pid,stat,user,wchan,args`"
)


def parse_exit(line: str) -> Exit:
    """What a shim wrote about the end of its rank: `code N`, `signal N` or `error TEXT`."""
    kind, _, rest = line.partition(" ")
    if kind == "code" and rest.isdigit():
        return Exit(code=int(rest))
    if kind == "signal" and rest.isdigit():
        return Exit(signal=int(rest))
    return Exit(error=rest if kind == "error" and rest else f"unreadable exit record: {line[:200]!r}")


def then(first: Change, second: Change) -> Change:
    """One change after another of the same job, to be committed together."""
    return Change(second.job, first.events + second.events, first.actions + second.actions)


def begin(
    job: Job,
    tasks: Sequence[TaskPlacement],
    *,
    agents: Sequence[AgentIdentity],
    flavor: str,
    epoch: int,
    port: int,
    why: str,
    now_s: float,
) -> Change:
    """Admit a pending job: a new attempt in STARTING."""
    attempt = Attempt(
        number=len(job.attempts) + 1,
        epoch=epoch,
        state=AttemptState.STARTING,
        tasks=tuple(tasks),
        ranks=_ranks(job.spec, tasks),
        agents=tuple(agents),
        flavor=flavor,
        master_port=port,
        admitted_at_s=now_s,
    )
    data = {"attempt": attempt.number, "gpus": attempt.gpus, "nodes": list(attempt.nodes), "why": why}
    job = replace(job, state=JobState.STARTING, attempts=(*job.attempts, attempt), detail="", claim=None)
    return Change(job, (_event("admitted", job, attempt, now_s, **data),), (Action.LAUNCH,))


def _ranks(spec: JobSpec, tasks: Sequence[TaskPlacement]) -> tuple[RankRun, ...]:
    per_task = {g.name: g.ranks_per_task for g in spec.groups}
    pairs = [(t, local) for t, task in enumerate(tasks) for local in range(per_task[task.group])]
    return tuple(RankRun(rank, task, local) for rank, (task, local) in enumerate(pairs))


def on_opened(job: Job, epoch: int, now_s: float) -> Change:
    """The attempt's epoch is open, under its final number: from here on its ranks may be started."""
    attempt = job.active
    if attempt is None or attempt.state is not AttemptState.STARTING or attempt.opened:
        return Change(job)
    return Change(_with(job, replace(attempt, epoch=epoch, opened=True)), (), (Action.LAUNCH,))


def on_started(job: Job, epoch: int, started: Sequence[Started], now_s: float) -> Change:
    """Ranks report that they run; the attempt is RUNNING when all do."""
    attempt = job.active
    if attempt is None or attempt.epoch != epoch:
        return Change(job)
    by_rank = {s.rank: s for s in started}
    ranks = tuple(
        replace(r, pid=s.pid, starttime=s.starttime, started_at_s=s.at_s)
        if (s := by_rank.get(r.rank)) is not None and r.pid is None
        else r
        for r in attempt.ranks
    )
    if ranks == attempt.ranks:
        return Change(job)
    attempt = replace(attempt, ranks=ranks)
    if attempt.state is not AttemptState.STARTING or any(r.pid is None for r in ranks):
        return Change(_with(job, attempt))
    attempt = replace(attempt, state=AttemptState.RUNNING, started_at_s=now_s)
    job = replace(_with(job, attempt), state=JobState.RUNNING)
    data = {"attempt": attempt.number, "ranks": len(ranks)}
    return Change(job, (_event("started", job, attempt, now_s, **data),))


def on_exited(job: Job, epoch: int, exits: Mapping[int, tuple[Exit, float]], now_s: float) -> Change:
    """Ranks report their end: one failure ends the attempt, the last success completes it."""
    attempt = job.active
    if attempt is None or attempt.epoch != epoch:
        return Change(job)
    new = {r.rank: exits[r.rank] for r in attempt.ranks if r.exit is None and r.rank in exits}
    if not new:
        return Change(job)
    if attempt.state is AttemptState.FENCING:  # the engine kills shims, too: their ends are its own doing
        new = {rank: (Exit(signal=9) if end.error else end, at_s) for rank, (end, at_s) in new.items()}
    ranks = tuple(
        replace(r, exit=new[r.rank][0], ended_at_s=new[r.rank][1]) if r.rank in new else r for r in attempt.ranks
    )
    attempt = replace(attempt, ranks=ranks)
    job = _with(job, attempt)
    if attempt.state is AttemptState.FENCING:
        return Change(job)
    events = tuple(
        _event("rank_exited", job, attempt, at_s, rank=rank, exit=str(end)) for rank, (end, at_s) in new.items()
    )
    change = Change(job, events)
    failed = [r for r in ranks if r.exit is not None and not r.exit.ok]
    if attempt.state in _LIVE and failed:
        first = min(failed, key=lambda r: (r.ended_at_s or 0.0, r.rank))
        return then(change, _fence(job, AttemptEnd.FAILED, now_s, *_blame(attempt, first)))
    if all(r.exit is not None for r in ranks) and attempt.state is AttemptState.STOPPING:
        return then(change, _fence(job, attempt.end or AttemptEnd.CANCELLED, now_s, attempt.cause, attempt.detail))
    if all(r.exit is not None for r in ranks) and attempt.state in _LIVE:
        return then(change, _fence(job, AttemptEnd.COMPLETED, now_s, None, "every rank ended with code 0"))
    return change


def _blame(attempt: Attempt, rank: RankRun) -> tuple[Cause, str]:
    """What the end of a rank is charged to; nothing is guessed."""
    end, where = rank.exit, f"rank {rank.rank} on {attempt.node_of(rank)}"
    if end is None or end.error:
        ours = end is None or not end.error.startswith("cannot start")
        return Cause.PLATFORM if ours else Cause.SETUP, f"{where}: {end}"
    if end.signal == 9:
        return Cause.UNKNOWN, f"{where}: signal 9, not sent by the engine (the kernel sends it when memory runs out)"
    return Cause.USER_CODE, f"{where}: {end}"


def on_node_lost(job: Job, lost: AgentIdentity, why: str, now_s: float) -> Change:
    """An agent is gone: the attempt ends, and the job avoids this incarnation of the node."""
    attempt = job.active
    if attempt is None or lost.boot not in {a.boot for a in attempt.agents} or lost in attempt.lost:
        return Change(job)
    attempt = replace(attempt, lost=(*attempt.lost, lost))
    job = replace(_with(job, attempt), exclusions=(*job.exclusions, Exclusion(lost.node, lost.incarnation)))
    if attempt.state is AttemptState.FENCING:
        return Change(job)
    detail = f"node {lost.node} lost: {why}"
    if attempt.state is AttemptState.STOPPING:
        return _fence(job, attempt.end or AttemptEnd.CANCELLED, now_s, attempt.cause, attempt.detail or detail)
    return _fence(job, AttemptEnd.NODE_LOST, now_s, Cause.PLATFORM, detail)


def stop(job: Job, end: AttemptEnd, now_s: float, detail: str, grace_s: float | None = None) -> Change:
    """Ask the attempt to end: SIGTERM now, SIGKILL when the grace is over. One that stops already does not get more."""
    attempt = job.active
    if attempt is not None and attempt.state is AttemptState.STOPPING and grace_s is not None:
        stop_by_s = min(attempt.stop_by_s or now_s, now_s + grace_s)
        return Change(_with(job, replace(attempt, stop_by_s=stop_by_s)))
    return halt(job, end, now_s, detail, job.spec.grace_s if grace_s is None else min(grace_s, job.spec.grace_s))


def halt(job: Job, end: AttemptEnd, now_s: float, detail: str, grace_s: float) -> Change:
    """Ask an attempt that starts or runs to end within this grace; one whose end has begun goes on with it."""
    attempt = job.active
    if attempt is None or attempt.state not in _LIVE:
        return Change(job)
    if not attempt.opened:  # nothing was started
        return _fence(job, end, now_s, None, detail)
    attempt = replace(attempt, state=AttemptState.STOPPING, end=end, detail=detail, stop_by_s=now_s + grace_s)
    state = JobState.PREEMPTING if end in _REQUEUED else JobState.COMPLETING
    job = replace(_with(job, attempt), state=state)
    event = _event("stopping", job, attempt, now_s, end=end.value, grace_s=grace_s, detail=detail)
    return Change(job, (event,), (Action.TERMINATE,))


def on_grace_over(job: Job, now_s: float) -> Change:
    """The grace of a stopping attempt is over: what is left is killed."""
    attempt = job.active
    if attempt is None or attempt.state is not AttemptState.STOPPING or now_s < (attempt.stop_by_s or 0.0):
        return Change(job)
    return _fence(job, attempt.end or AttemptEnd.CANCELLED, now_s, attempt.cause, attempt.detail)


def on_unlaunchable(job: Job, detail: str, now_s: float, *, waits: bool = False) -> Change:
    """The attempt cannot be launched: its directories cannot be made or used. `waits`: later they may."""
    attempt = job.active
    if attempt is None or attempt.state not in _LIVE:
        return Change(job)
    return _fence(job, AttemptEnd.BLOCKED if waits else AttemptEnd.FAILED, now_s, Cause.SETUP, detail)


def cancel(job: Job, now_s: float) -> Change:
    """The owner wants it to end; recorded at once, done when no process is left."""
    if job.state.final or job.cancelling:
        return Change(job)
    job = replace(job, cancelling=True)
    asked = NewEvent("cancel_requested", now_s, job.id)
    if job.active is None:
        return Change(_end(job, JobState.CANCELLED, None, "cancelled before it started", now_s), (asked,))
    return then(Change(job, (asked,)), stop(job, AttemptEnd.CANCELLED, now_s, "cancelled by its owner"))


def why_not_running(attempt: Attempt, now_s: float, alive: int | None = None, trouble: str = "") -> Blocker:
    """Why an attempt that holds GPUs does not run: it starts, stops, or its processes are being cleared."""
    if attempt.state is AttemptState.STARTING:
        if not attempt.opened:
            message = "the epoch in its checkpoint directory is being opened"
            return Blocker(BlockerKind.STARTING, message, {}, (), "", now_s)
        running = sum(r.pid is not None for r in attempt.ranks)
        numbers: dict[str, float] = {"started_ranks": running, "ranks": len(attempt.ranks)}
        return Blocker(BlockerKind.STARTING, f"{running} of {len(attempt.ranks)} ranks started", numbers, (), "", now_s)
    if attempt.state is AttemptState.FENCING:
        numbers = {"fencing_s": now_s - (attempt.fencing_at_s or now_s)}
        if alive is not None:
            numbers["alive_processes"] = alive
        what = trouble or f"waits until every process of it is gone{'' if alive is None else f' ({alive} seen alive)'}"
        message = f"attempt {attempt.number} ended ({attempt.detail}): {what}"
        step = UNKILLABLE if alive and numbers["fencing_s"] > LONG_FENCE_S else ""
        return Blocker(BlockerKind.FENCING, message, numbers, (), step, now_s)
    left_s = max(0.0, (attempt.stop_by_s or now_s) - now_s)
    message = f"{attempt.detail}; SIGKILL in {left_s:.1f} s if it does not end"
    return Blocker(BlockerKind.PREEMPTING, message, {"grace_left_s": left_s}, (), "", now_s)


def _fence(job: Job, end: AttemptEnd, now_s: float, cause: Cause | None, detail: str) -> Change:
    attempt = job.active
    assert attempt is not None
    attempt = replace(
        attempt, state=AttemptState.FENCING, end=end, cause=cause, detail=detail, fencing_at_s=now_s, stop_by_s=None
    )
    retried = end in _REQUEUED or (end is AttemptEnd.FAILED and job.restarts < job.spec.max_restarts)
    state = JobState.RECOVERING if retried and not job.cancelling else JobState.COMPLETING
    job = replace(_with(job, attempt), state=state)
    data = {"end": end.value, "cause": cause and cause.value, "detail": detail}
    return Change(job, (_event("fencing", job, attempt, now_s, **data),), (Action.FENCE,))


def on_fenced(job: Job, now_s: float, unclosed: str = "") -> Change:
    """No process of the attempt is left: the job ends or goes back into the queue. `unclosed`: why its epoch is not."""
    attempt = job.active
    if attempt is None or attempt.state is not AttemptState.FENCING:
        return Change(job)
    attempt = replace(attempt, state=AttemptState.ENDED, ended_at_s=now_s)
    job = _with(job, attempt)
    seconds = round(now_s - (attempt.fencing_at_s or now_s), 4)
    more = {"unclosed": unclosed} if unclosed else {}
    fenced = _event("fenced", job, attempt, now_s, fencing_s=seconds, **more)
    return then(Change(job, (fenced,), (Action.FORGET,)), _after(job, attempt, now_s))


def _after(job: Job, attempt: Attempt, now_s: float) -> Change:
    end, cause, detail = attempt.end, attempt.cause, attempt.detail
    if end is AttemptEnd.COMPLETED:
        return _ended(job, JobState.SUCCEEDED, None, detail, now_s)
    if end is AttemptEnd.TIMEOUT:
        return _ended(job, JobState.TIMEOUT, None, detail, now_s)
    if end is AttemptEnd.FAILED and job.restarts >= job.spec.max_restarts:
        return _ended(job, JobState.FAILED, cause, detail, now_s)
    if job.cancelling or end is AttemptEnd.CANCELLED:
        return _ended(job, JobState.CANCELLED, None, "cancelled by its owner", now_s)
    if end in _REQUEUED:
        return _hold_if_hopeless(_requeue(job, attempt, now_s, wait_s=0.0, counted=False), now_s)
    wait_s = min(job.spec.backoff_s * 2**job.restarts, MAX_BACKOFF_S)
    return _requeue(job, attempt, now_s, wait_s=wait_s, counted=True)


def _requeue(job: Job, attempt: Attempt, now_s: float, *, wait_s: float, counted: bool) -> Change:
    job = replace(
        job,
        state=JobState.PENDING,
        queued_at_s=now_s,
        not_before_s=now_s + wait_s if wait_s else 0.0,
        restarts=job.restarts + counted,
        cause=attempt.cause,
        detail=attempt.detail,
    )
    data = {"end": attempt.end, "cause": attempt.cause, "detail": attempt.detail, "wait_s": wait_s}
    return Change(job, (_event("requeued", job, attempt, now_s, **data),))


def _hold_if_hopeless(change: Change, now_s: float) -> Change:
    """A job that loses its nodes whenever it starts does not go on doing so for ever; released, it may try as often."""
    job = change.job
    if job.held or not job.lost_starts or job.lost_starts % MAX_LOST_STARTS:
        return change
    why = f"{job.lost_starts} attempts in a row lost a node before every rank ran, the last one: {job.detail}"
    held = NewEvent("held", now_s, job.id, data={"why": why})
    return then(change, Change(replace(job, held=True, held_why=why), (held,)))


def _ended(job: Job, state: JobState, cause: Cause | None, detail: str, now_s: float) -> Change:
    job = _end(job, state, cause, detail, now_s)
    data = {"state": state.value, "cause": cause and cause.value, "detail": detail}
    return Change(job, (NewEvent("ended", now_s, job.id, data=data),))


def _end(job: Job, state: JobState, cause: Cause | None, detail: str, now_s: float) -> Job:
    return replace(job, state=state, cause=cause, detail=detail, ended_at_s=now_s, claim=None)


def _with(job: Job, attempt: Attempt) -> Job:
    return replace(job, attempts=(*job.attempts[:-1], attempt))


def _event(kind: str, job: Job, attempt: Attempt, at_s: float, /, **data: Any) -> NewEvent:
    return NewEvent(kind, at_s, job.id, attempt.epoch, data=data)
