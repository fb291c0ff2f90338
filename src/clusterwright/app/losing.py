"""The rehearsal of a worker loss: a checkpointing job loses a node and must end as if nothing had happened.

It happens among the planned neighbours: every other replica and gang holds its planned GPUs, so what is lost finds room
again only where the declared queues, priorities and preemption give it some.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from clusterwright.app.neighbours import (
    as_planned,
    await_placed,
    await_state,
    describe_holders,
    nodes_at,
    placeholder,
)
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
    tell_up,
    why_waiting,
)
from clusterwright.app.trainings import read_final, said, step_log
from clusterwright.engines.local.identities import read_stat, send_signal
from clusterwright.judging.concluding import conclude_loss, tell_loss
from clusterwright.judging.expecting import ExpectedJob, Promise
from clusterwright.judging.recovering import Eviction, LossObservation, Neighbour, parse_step_log
from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.model.architecture import Architecture
from clusterwright.model.evidence import Rehearsal, RehearsalOutcome
from clusterwright.model.jobs import Job, JobId, JobSpec, JobState
from clusterwright.model.outlooks import BlockerKind
from clusterwright.probes.trainer import final_weights

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


@dataclass(slots=True)
class _Scene:
    """The cluster with the job that loses a worker and its neighbours.

    Args:
        job: what is watched; `ids` has it and every neighbour by name.
        evictions: who had to give way by the declared preemption.
    """

    cluster: ClusterHandle
    stage: Stage
    architecture: Architecture
    job: ExpectedJob
    promise: Promise | None
    began_s: float
    ids: dict[str, JobId] = field(default_factory=dict)
    evictions: list[Eviction] = field(default_factory=list)

    @property
    def id(self) -> JobId:
        return self.ids[self.job.name]

    @property
    def neighbours(self) -> list[ExpectedJob]:
        return [j for j in self.stage.expectation.jobs if j.name != self.job.name]

    def look(self) -> Job:
        return self.cluster.engine.job(self.id)


def rehearse_loss(architecture: Architecture, stage: Stage) -> Rehearsal:
    """Run one gang with the trainer, take a worker from it with kill -9, and see whether and how the job goes on.

    The worker is a node, the one whose loss the plan thought through if the gang is on it; where the pool has one node
    only, it is a process of the job, because nothing could be learned from taking the whole cluster.
    """
    job, promise = _job_to_lose(architecture, stage)
    began_s = time.time()
    state = stage.directory / "state"
    with start_cluster(state, stage.nodes, tree=stage.tree, policy=stage.policy, restart_agents=False) as cluster:
        tell_up(stage)
        scene = _Scene(cluster, stage, architecture, job, promise, began_s)
        early = _set_up(scene)
        if early:
            return Rehearsal(NAME, RehearsalOutcome.FAILED, early, workload=job.workload)
        loss = _take_worker(scene)
        stage.tell(f"{job.name} reached step {LOSS_AFTER_STEP}; {loss.what} was killed with -9")
        _await_recovery(scene)
        seen = _observe(scene, loss)
        names = {job: name for name, job in scene.ids.items()}
        timeline = tell_loss(seen, cluster.engine.events(), names, began_s)
    return conclude_loss(NAME, seen, timeline)


def _set_up(scene: _Scene) -> str:
    """Place the neighbours, then the job, and wait until it has something to lose; why that fails, or ""."""
    jobs = scene.stage.expectation.jobs
    specs = {j.name: placeholder(j, jobs) for j in sorted(scene.neighbours, key=lambda j: -j.priority)}
    for name, spec in (specs | {scene.job.name: _trainer(scene)}).items():
        if name == scene.job.name:
            early = await_placed(scene.cluster, scene.ids)
            if early:
                return f"not as planned before the loss: {early}"
            if specs:
                held = sum(j.ranks for j in scene.neighbours)
                hold = "neighbour holds" if len(specs) == 1 else "neighbours hold"
                scene.stage.tell(f"{len(specs)} {hold} {held} GPUs as planned")
        try:
            scene.ids[name] = scene.cluster.engine.submit(spec)
        except InvalidInput as error:
            return f"{name} is refused: {error}"
    early = _await_step(scene)
    return f"{scene.job.name}: {early}" if early else ""


def _trainer(scene: _Scene) -> JobSpec:
    argv = probe_command(
        "trainer", f"--steps={STEPS}", f"--every={EVERY}", f"--pace={PACE_S}", f"--wait={PATIENCE_S:g}"
    )
    spec = probe_spec(scene.job, task_groups(scene.job, argv, _least_tasks(scene.architecture, scene.job)))
    spec = replace(spec, max_restarts=_retries(scene.architecture), backoff_s=BACKOFF_S)
    return as_planned(spec, scene.job, scene.stage.expectation.jobs)


def _job_to_lose(architecture: Architecture, stage: Stage) -> tuple[ExpectedJob, Promise | None]:
    """The first training gang, else a replica of the first service, on the node whose loss the plan thought through."""
    jobs = stage.expectation.jobs
    training = [j for j in jobs if architecture.workloads[j.workload].train is not None]
    first = (training or list(jobs))[0]
    promise = stage.promises.get(first.workload)
    if promise is None:
        return first, None
    hit = [j for j in jobs if j.workload == first.workload and promise.node in j.nodes]
    return (hit[0], promise) if hit else (first, None)


def _retries(architecture: Architecture) -> int:
    scheduling = architecture.scheduling
    return scheduling.retries.limit if scheduling is not None and scheduling.retries is not None else 0


def _least_tasks(architecture: Architecture, job: ExpectedJob) -> int | None:
    """Tasks with which an elastic gang of equal tasks may go on, where the file says that it shrinks."""
    train, scheduling = architecture.workloads[job.workload].train, architecture.scheduling
    sizes = {t.gpus for t in job.tasks}
    if train is None or train.min_gpus is None or scheduling is None or scheduling.node_loss != "shrink":
        return None
    return max(1, -(-train.min_gpus // sizes.pop())) if len(sizes) == 1 else None


def _await_step(scene: _Scene) -> str:
    """Wait until the job is past its second checkpoint; why it does not get there, or ""."""
    deadline, began = time.monotonic() + PATIENCE_S, time.monotonic()
    while time.monotonic() < deadline:
        found = scene.look()
        steps, _ = parse_step_log(step_log(found))
        if any(s.step >= LOSS_AFTER_STEP for s in steps):
            return ""
        if found.state.final:
            return f"ended before a worker was lost: {found.state}: {found.detail}"
        pending = found.state is JobState.PENDING and is_stuck(scene.cluster, scene.id)
        if pending and time.monotonic() - began > SETTLE_S:
            return why_waiting(scene.cluster, found)
        time.sleep(LOOK_S)
    return f"did not reach step {LOSS_AFTER_STEP} within {PATIENCE_S:g} s"


def _take_worker(scene: _Scene) -> Loss:
    """Kill the agent of one node under the job, or its last rank where the pool has no other node."""
    found = scene.look()
    attempt = found.attempts[0]
    if sum(n.gpu_model == found.spec.gpu_model for n in scene.stage.nodes) > 1:
        planned = scene.promise.node if scene.promise else ""
        return _take_node(scene, planned if planned in attempt.nodes else attempt.nodes[-1])
    node, rank = attempt.nodes[-1], attempt.ranks[-1].rank
    starts = said(scene.cluster, found, attempt.number, "start")
    pid = next((e["pid"] for e in starts if e.get("rank") == rank), None)
    stat = read_stat(int(pid)) if pid is not None else None
    at_s = time.time()  # before the signal: its end may be noticed before this process runs again
    if stat is None or not send_signal(stat.identity, signal.SIGKILL):
        raise Unavailable(f"rank {rank} of job {scene.id} could not be killed")
    return Loss("process", node, f"rank {rank} on {node}", at_s)


def _take_node(scene: _Scene, node: str) -> Loss:
    """Kill the agent of a node; what it takes down is queued again at once and together.

    Otherwise chance would decide who is placed first: the job whose processes happen to be cleared first.
    """
    engine = scene.cluster.engine
    hit = tuple(j.id for j in engine.jobs() if j.active is not None and node in j.active.nodes)
    engine.hold(*hit)
    at_s = scene.cluster.kill_agent(node)
    await_state(scene.cluster, hit, waiting=True)
    engine.release(*hit)
    return Loss("node", node, f"the agent of {node}", at_s)


def _await_recovery(scene: _Scene) -> None:
    """Until the job has ended, or waits for what will not come, although the declared preemption had its turn."""
    deadline, quiet_since = time.monotonic() + PATIENCE_S, 0.0
    while time.monotonic() < deadline:
        found = {j.id: j for j in scene.cluster.engine.jobs()}
        _note_evictions(scene)
        if found[scene.id].state.final:
            return
        if not all(_settled(scene.cluster, j) for j in found.values()):
            quiet_since = 0.0
        elif found[scene.id].state is JobState.PENDING:
            quiet_since = quiet_since or time.monotonic()
            if time.monotonic() - quiet_since > SETTLE_S:
                return
        time.sleep(LOOK_S)


def _note_evictions(scene: _Scene) -> None:
    """Keep, and tell, for whom the engine made others leave since the last look."""
    names = {job: name for name, job in scene.ids.items()}
    together: dict[tuple[float, str], list[str]] = {}
    for event in scene.cluster.engine.events():
        if event.kind == "preempted" and event.job is not None:
            key = (event.at_s, names[event.data["preempted_by"]])
            together.setdefault(key, []).append(names[event.job])
    found = [Eviction(winner, tuple(victims), at_s) for (at_s, winner), victims in together.items()]
    for eviction in found[len(scene.evictions) :]:
        scene.stage.tell(f"{eviction.winner} takes the place of {', '.join(eviction.victims)}")
    scene.evictions = found


def _settled(cluster: ClusterHandle, job: Job) -> bool:
    if job.state is JobState.PENDING:
        return is_stuck(cluster, job.id)
    return job.state.final or job.state is JobState.RUNNING


def _observe(scene: _Scene, loss: Loss) -> LossObservation:
    jobs = {j.spec.name: j for j in scene.cluster.engine.jobs()}
    job, now_s = jobs[scene.job.name], time.time()
    first, later = job.attempts[0], job.attempts[1:]
    last = later[-1] if later and job.state is not JobState.PENDING else None
    log, unreadable = parse_step_log(step_log(job))
    start = next(said(scene.cluster, job, last.number, "start"), None) if last else None
    moment_s = job.ended_at_s if job.ended_at_s is not None else now_s
    return LossObservation(
        job=scene.job.name,
        workload=scene.job.workload,
        trains=scene.architecture.workloads[scene.job.workload].train is not None,
        nodes=tuple(n.name for n in scene.stage.nodes),
        victim=loss.victim,
        node=loss.node,
        taken=loss.what,
        killed_at_s=loss.at_s,
        detected_at_s=_noticed_at(scene, first.epoch, loss),
        old_epoch=first.epoch,
        new_epoch=last.epoch if last else None,
        new_nodes=last.nodes if last else (),
        new_ranks=len(last.ranks) if last else 0,
        resumed_step=int(start["step"]) if start else None,
        written_by=int(start["written_by"]) if start else None,
        log=log,
        unreadable=unreadable,
        final=read_final(job, STEPS) if job.state is JobState.SUCCEEDED else None,
        expected=final_weights(STEPS),
        ended=f"{job.state}: {job.detail}" if job.detail else job.state.value,
        waits="" if job.state.final else _why_no_place(scene, job, list(jobs.values())),
        interval_s=EVERY * PACE_S,
        steps=STEPS,
        delay_s=BACKOFF_S,
        between=tuple(a.epoch for a in later[:-1]),
        apart=scene.job.apart,
        neighbours=tuple(_neighbour(n, jobs[n.name], loss.at_s, moment_s) for n in scene.neighbours),
        evictions=tuple(scene.evictions),
        promise=scene.promise if loss.victim == "node" else None,
    )


def _noticed_at(scene: _Scene, epoch: int, loss: Loss) -> float | None:
    return min(
        (
            e.at_s
            for e in scene.cluster.engine.events()
            if (e.kind == "node_lost" and e.node == loss.node)
            or (loss.victim == "process" and e.kind == "fencing" and e.job == scene.id and e.epoch == epoch)
        ),
        default=None,
    )


def _neighbour(expected: ExpectedJob, job: Job, loss_s: float, moment_s: float) -> Neighbour:
    before, after = nodes_at(job, loss_s), nodes_at(job, moment_s)
    return Neighbour(expected.name, expected.workload, expected.apart, before, after)


def _why_no_place(scene: _Scene, job: Job, jobs: Sequence[Job]) -> str:
    """Who holds the GPUs that the job could use, and what the engine says."""
    if job.state is not JobState.PENDING:
        return f"is {job.state} {PATIENCE_S:g} s after the loss"
    blockers = scene.cluster.engine.why(job.id)
    said = "; ".join(b.message for b in blockers)
    holders = describe_holders(jobs, {job.spec.gpu_model})
    if not holders:
        return f"waits: {said}"
    lower = any(j.active and j.spec.priority < job.spec.priority for j in jobs)
    said += "; the declared preemption lets it take nothing from lower priority" if lower else ""
    if any(b.kind in (BlockerKind.HARDWARE_WAIT, BlockerKind.FRAGMENTED) for b in blockers):
        return f"waits for {job.spec.least_gpus} GPUs held by {holders}: {said}"
    return f"waits: {said}; GPUs are held by {holders}"
