"""The rehearsal of a worker loss: a checkpointing job loses a node and must end as if nothing had happened."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from clusterwright.app.running import ClusterHandle, start_cluster
from clusterwright.app.stages import (
    LOOK_S,
    PATIENCE_S,
    SETTLE_S,
    Stage,
    is_stuck,
    probe_command,
    probe_spec,
    task_groups,
    why_waiting,
)
from clusterwright.engines.local.identities import read_stat, send_signal
from clusterwright.judging.expecting import Expectation, ExpectedJob
from clusterwright.judging.recovering import LossObservation, compare_loss, parse_step_log, time_loss
from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.model.architecture import Architecture
from clusterwright.model.evidence import Rehearsal, RehearsalOutcome
from clusterwright.model.jobs import Event, Job, JobId, JobState
from clusterwright.probes.trainer import FINAL, STEP_LOG, final_weights

NAME: Final = "worker-loss"
#: The run that loses a worker: 40 steps of at least 0.1 s with a checkpoint after every tenth, so about 4 s of work.
STEPS: Final = 40
EVERY: Final = 10
PACE_S: Final = 0.1
#: The worker is lost between two checkpoints, so that there is work to lose.
LOSS_AFTER_STEP: Final = 2 * EVERY + EVERY // 2


#: Delay before a failed process is started again, in place of the declared one: the wait itself shows nothing.
BACKOFF_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Loss:
    """What was taken from the job, and when (POSIX seconds)."""

    victim: Literal["node", "process"]
    node: str
    what: str
    at_s: float


def rehearse_loss(architecture: Architecture, stage: Stage) -> Rehearsal:
    """Run one gang with the trainer, take a worker from it with kill -9, and see whether and how the job goes on.

    The worker is a node; where the pool has one node only, it is a process of the job, because nothing could be
    learned from taking the whole cluster. The gang has the cluster to itself: whether it finds room beside the other
    workloads is the plan's question.
    """
    job = _job_to_lose(architecture, stage.expectation)
    trains = architecture.workloads[job.workload].train is not None
    began_s = time.time()
    argv = probe_command(
        "trainer", f"--steps={STEPS}", f"--every={EVERY}", f"--pace={PACE_S}", f"--wait={PATIENCE_S:g}"
    )
    spec = replace(
        probe_spec(job, task_groups(job, argv, _least_tasks(architecture, job))), max_restarts=_retries(architecture),
        backoff_s=BACKOFF_S,
    )  # fmt: skip
    state = stage.directory / "state"
    with start_cluster(state, stage.nodes, tree=stage.tree, restart_agents=False) as cluster:
        stage.tell(f"{len(stage.nodes)} virtual nodes are up")
        try:
            identifier = cluster.engine.submit(spec)
        except InvalidInput as error:
            return Rehearsal(NAME, RehearsalOutcome.FAILED, f"{job.name} is refused: {error}", workload=job.workload)
        early = _await_step(cluster, identifier)
        if early:
            return Rehearsal(NAME, RehearsalOutcome.FAILED, f"{job.name}: {early}", workload=job.workload)
        loss = _take_worker(cluster, identifier, stage)
        stage.tell(f"{job.name} reached step {LOSS_AFTER_STEP}; {loss.what} was killed with -9")
        _await_recovery(cluster, identifier)
        ended = cluster.engine.job(identifier)
        events = cluster.engine.events()
        seen = _observe(cluster, ended, events, loss, stage)
    return _conclude(job, seen, _timeline(events, loss, began_s), trains=trains)


def _take_worker(cluster: ClusterHandle, job: JobId, stage: Stage) -> Loss:
    """Kill the agent of the last node under the job, or its last rank where the pool has no other node."""
    found = cluster.engine.job(job)
    attempt = found.attempts[0]
    node = attempt.nodes[-1]
    if sum(n.gpu_model == found.spec.gpu_model for n in stage.nodes) > 1:
        return Loss("node", node, f"the agent of {node}", cluster.kill_agent(node))
    rank = attempt.ranks[-1].rank
    pid = next((e["pid"] for e in _said(cluster, found, attempt.number, "start") if e.get("rank") == rank), None)
    stat = read_stat(int(pid)) if pid is not None else None
    at_s = time.time()  # before the signal: its end may be noticed before this process runs again
    if stat is None or not send_signal(stat.identity, signal.SIGKILL):
        raise Unavailable(f"rank {rank} of job {job} could not be killed")
    return Loss("process", node, f"rank {rank} on {node}", at_s)


def _retries(architecture: Architecture) -> int:
    scheduling = architecture.scheduling
    return scheduling.retries.limit if scheduling is not None and scheduling.retries is not None else 0


def _job_to_lose(architecture: Architecture, expectation: Expectation) -> ExpectedJob:
    """The first training gang, or the first replica of a service where nothing trains."""
    training = [j for j in expectation.jobs if architecture.workloads[j.workload].train is not None]
    return (training or list(expectation.jobs))[0]


def _least_tasks(architecture: Architecture, job: ExpectedJob) -> int | None:
    """Tasks with which an elastic gang of equal tasks may go on, where the file says that it shrinks."""
    train, scheduling = architecture.workloads[job.workload].train, architecture.scheduling
    sizes = {t.gpus for t in job.tasks}
    if train is None or train.min_gpus is None or scheduling is None or scheduling.node_loss != "shrink":
        return None
    return max(1, -(-train.min_gpus // sizes.pop())) if len(sizes) == 1 else None


def _await_step(cluster: ClusterHandle, job: JobId) -> str:
    """Wait until the job is past its second checkpoint; why it does not get there, or ""."""
    deadline, began = time.monotonic() + PATIENCE_S, time.monotonic()
    while time.monotonic() < deadline:
        found = cluster.engine.job(job)
        steps, _ = parse_step_log(_step_log(found))
        if any(s.step >= LOSS_AFTER_STEP for s in steps):
            return ""
        if found.state.final:
            return f"ended before a worker was lost: {found.state}: {found.detail}"
        if time.monotonic() - began > SETTLE_S and found.state is JobState.PENDING and is_stuck(cluster, job):
            return why_waiting(cluster, found)
        time.sleep(LOOK_S)
    return f"did not reach step {LOSS_AFTER_STEP} within {PATIENCE_S:g} s"


def _step_log(job: Job) -> list[str]:
    """Whole lines of the trainer's step log."""
    try:
        text = (Path(job.checkpoint_dir) / STEP_LOG).read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return []
    return text[: text.rfind("\n") + 1].splitlines()


def _await_recovery(cluster: ClusterHandle, job: JobId) -> None:
    """Until the job has ended, or waits for what will not come."""
    deadline = time.monotonic() + PATIENCE_S
    pending_since: float | None = None
    while time.monotonic() < deadline:
        found = cluster.engine.job(job)
        if found.state.final:
            return
        waits = found.state is JobState.PENDING and is_stuck(cluster, job)
        pending_since = (pending_since or time.monotonic()) if waits else None
        if pending_since is not None and time.monotonic() - pending_since > SETTLE_S:
            return
        time.sleep(LOOK_S)


def _observe(cluster: ClusterHandle, job: Job, events: Sequence[Event], loss: Loss, stage: Stage) -> LossObservation:
    first, second = job.attempts[0], job.attempts[1] if len(job.attempts) > 1 else None
    log, unreadable = parse_step_log(_step_log(job))
    start = next(_said(cluster, job, second.number, "start"), None) if second else None
    noticed = [
        e.at_s
        for e in events
        if (e.kind == "node_lost" and e.node == loss.node)
        or (loss.victim == "process" and e.kind == "fencing" and e.epoch == first.epoch)
    ]
    return LossObservation(
        nodes=tuple(n.name for n in stage.nodes),
        victim=loss.victim,
        node=loss.node,
        killed_at_s=loss.at_s,
        detected_at_s=min(noticed, default=None),
        restarted_at_s=second.started_at_s if second else None,
        old_epoch=first.epoch,
        new_epoch=second.epoch if second else None,
        new_nodes=second.nodes if second else (),
        resumed_step=int(start["step"]) if start else None,
        written_by=int(start["written_by"]) if start else None,
        log=log,
        unreadable=unreadable,
        final=_read_final(job) if job.state is JobState.SUCCEEDED else None,
        expected=final_weights(STEPS),
        ended=f"{job.state}: {job.detail}" if job.detail else job.state.value,
        waits="" if job.state.final else why_waiting(cluster, job),
        interval_s=EVERY * PACE_S,
        steps=STEPS,
        delay_s=BACKOFF_S,
    )


def _said(cluster: ClusterHandle, job: Job, attempt: int, event: str) -> Iterator[dict[str, Any]]:
    """What the ranks of an attempt say about an event of this name."""
    for line in cluster.engine.logs(job.id, attempt=attempt):
        with contextlib.suppress(ValueError):
            said = json.loads(line.text)
            if isinstance(said, dict) and said.get("event") == event:
                yield said


def _read_final(job: Job) -> tuple[int, ...] | None:
    try:
        found = json.loads((Path(job.checkpoint_dir) / FINAL).read_text(encoding="ascii"))
        return tuple(int(w) for w in found["weights"]) if found["step"] == STEPS else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _timeline(events: Sequence[Event], loss: Loss, began_s: float) -> tuple[tuple[float, str], ...]:
    """What happened, in seconds since the rehearsal began."""
    shown = {"submitted", "admitted", "started", "node_lost", "fencing", "fenced", "requeued", "blocked_by", "ended"}
    lines = [(e.at_s - began_s, _describe(e)) for e in events if e.kind in shown]
    lines.append((loss.at_s - began_s, f"{loss.what} killed with -9"))
    return tuple(sorted(lines, key=lambda line: line[0]))


def _describe(event: Event) -> str:
    where = f" {event.node}" if event.node else ""
    epoch = f" (epoch {event.epoch})" if event.epoch is not None else ""
    detail = event.data.get("detail") or event.data.get("why") or event.data.get("state") or ""
    return f"{event.kind.replace('_', ' ')}{where}{epoch}" + (f": {detail}" if detail else "")


def _conclude(
    job: ExpectedJob, seen: LossObservation, timeline: tuple[tuple[float, str], ...], *, trains: bool
) -> Rehearsal:
    checks = compare_loss(seen)
    readings = tuple(r for r in time_loss(seen) if trains or r.metric != "lost_work")
    failed = [c for c in checks if not c.holds]
    if failed:
        outcome = RehearsalOutcome.FAILED
        reason = f"{failed[0].name}: expected {failed[0].expected}, seen {failed[0].seen}"
    else:
        outcome = RehearsalOutcome.PASSED
        shown = {r.metric: r.value for r in readings}
        lost = f", {shown['lost_work']} of work done again" if "lost_work" in shown else ""
        reason = f"noticed in {shown['detection_time']}, working again after {shown['recovery_time']}{lost}"
    reason += "" if seen.victim == "node" else "; the pool has one node, so a process was taken and not the node"
    stands = "" if trains else "; no workload trains, so a replica of a service was lost"
    return Rehearsal(
        NAME, outcome, reason + stands, workload=job.workload, checks=checks, readings=readings, timeline=timeline
    )
