"""The control plane: keeps the state of jobs and nodes, asks `queueing` what to start, tells agents, reaps.

One asyncio loop. Every transition is a pure function of `lifecycles`; it is committed first and acted upon then, and
every action may be repeated. So the process may die at any point: the next one loads the state, waits for the agents to
report what runs, and goes on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.engines.local import fences, lifecycles, reaping
from clusterwright.engines.local.agents import read_exit
from clusterwright.engines.local.configs import ClusterConfig
from clusterwright.engines.local.environments import rank_environment
from clusterwright.engines.local.identities import Identity, alive, read_identity
from clusterwright.engines.local.layout import Layout, agent_tag, attempt_tag
from clusterwright.engines.local.lifecycles import Action, Change, Started, parse_exit, then
from clusterwright.engines.local.scheduling import queue_state
from clusterwright.engines.local.wire import Message
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.jobs import (
    AgentIdentity,
    Attempt,
    AttemptEnd,
    AttemptState,
    Blocker,
    BlockerKind,
    Exit,
    Job,
    JobId,
    JobSpec,
    JobState,
    Node,
    NodeSpec,
    NodeState,
)
from clusterwright.ports.clocks import Clock
from clusterwright.ports.stores import NewEvent, Store
from clusterwright.queueing.deciding import decide
from clusterwright.queueing.states import Start

#: How often deadlines are looked at when nothing else happens.
TICK_S: Final = 0.5
#: The same while a disconnected agent's process is watched for its end.
WATCH_S: Final = 0.02

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Link:
    """The connection of one agent."""

    boot: str
    send: Callable[[Message], None]
    close: Callable[[], None]


class ControlPlane:
    """State and transitions; `serving` connects it to sockets.

    Args:
        layout: the state directory.
        config: nodes, queues, patience.
        store: where state is kept.
        clock: what time it is.
    """

    def __init__(self, layout: Layout, config: ClusterConfig, store: Store, clock: Clock) -> None:
        self.layout, self.config, self.store, self.clock = layout, config, store, clock
        self.jobs: dict[JobId, Job] = {}
        self.nodes: dict[str, Node] = {}
        self.blockers: dict[JobId, tuple[Blocker, ...]] = {}
        self.last_seq = 0
        self.changed = asyncio.Event()
        self.wake = asyncio.Event()
        self.stopping = False
        self._links: dict[str, Link] = {}
        self._seen: dict[str, float] = {}
        self._fencing: dict[JobId, asyncio.Task[None]] = {}
        self._reaping: set[asyncio.Task[None]] = set()
        self._alive_in_fence: dict[JobId, int] = {}
        self._last_tick = clock.monotonic_s()

    # -- state ---------------------------------------------------------------------------------------------------

    def commit(
        self, *changes: Change, nodes: Sequence[Node] = (), events: Sequence[NewEvent] = (), act: bool = True
    ) -> None:
        """Make changes durable, then act on them."""
        changed = [c for c in changes if self.jobs.get(c.job.id) != c.job or c.events or c.actions]
        if not changed and not nodes and not events:
            return
        history = [*events, *(e for c in changed for e in c.events)]
        self.last_seq = self.store.commit(jobs=[c.job for c in changed], nodes=nodes, events=history)
        self.jobs.update({c.job.id: c.job for c in changed})
        self.nodes.update({n.spec.name: n for n in nodes})
        self.changed.set()
        self.changed = asyncio.Event()
        self.wake.set()
        if act:
            for change in changed:
                for action in change.actions:
                    self._act(change.job.id, action)

    def _act(self, job: JobId, action: Action) -> None:
        actions: dict[Action, Callable[[Job], None]] = {
            Action.LAUNCH: self._launch,
            Action.TERMINATE: self._terminate,
            Action.FENCE: self._start_fence,
            Action.FORGET: self._forget,
        }
        actions[action](self.jobs[job])

    def recover(self) -> None:
        """Load the state and resume what was under way; agents that live are given time to report."""
        snapshot = self.store.load()
        self.jobs = {j.id: j for j in snapshot.jobs}
        stored = {n.spec.name: n for n in snapshot.nodes}
        now = self.clock.now_s()
        self.nodes = {s.name: _awaited(stored.get(s.name), s, now) for s in self.config.nodes}
        removed = sorted(stored.keys() - self.nodes.keys())
        self.commit(nodes=list(self.nodes.values()), events=[NewEvent("control_plane_started", now)])
        self.store.forget_nodes(removed)
        self._seen = dict.fromkeys(self.nodes, self.clock.monotonic_s())
        current = {n.agent.boot for n in self.nodes.values() if n.agent and n.state is NodeState.UNKNOWN}
        for node in self.nodes.values():
            if node.agent is not None and node.state is NodeState.DOWN:
                self._reap_agent(node.agent)
        for job in list(self.jobs.values()):
            if job.active is not None:
                for agent in job.active.agents:
                    if agent.boot not in current:
                        self._lose_attempt(
                            self.jobs[job.id], agent, "its agent was gone when the control plane returned"
                        )
            if (active := self.jobs[job.id].active) is not None and active.state is AttemptState.FENCING:
                self._start_fence(self.jobs[job.id])

    # -- jobs ----------------------------------------------------------------------------------------------------

    def submit(self, spec: JobSpec, token: str) -> JobId:
        """Take a job; the same token twice gives the same job."""
        for job in self.jobs.values():
            if token and job.token == token:
                return job.id
        tree = self.config.tree
        if tree.queues and spec.queue not in tree.leaves:
            raise InvalidInput(f"queue '{spec.queue}' takes no jobs; queues: {', '.join(sorted(tree.leaves))}")
        known = {n.name for n in self.config.nodes}
        unknown = [n for n in spec.exclude if n not in known]
        if unknown:
            raise InvalidInput(f"excluded node '{unknown[0]}' does not exist; nodes: {', '.join(sorted(known))}")
        job_id = JobId(str(max((int(j) for j in self.jobs), default=0) + 1))
        directory = spec.checkpoint_dir or str(self.layout.job(job_id) / "checkpoint")
        now = self.clock.now_s()
        job = Job(job_id, spec, JobState.PENDING, os.path.realpath(directory), now, now, token, held=spec.held)
        data = {"name": spec.name, "queue": spec.queue, "gpus": spec.most_gpus, "least_gpus": spec.least_gpus}
        self.commit(Change(job, (NewEvent("submitted", now, job_id, data=data),)))
        self.schedule()
        return job_id

    def cancel(self, job: Job) -> None:
        """Record the wish and begin."""
        self.commit(lifecycles.cancel(job, self.clock.now_s()))

    def requeue(self, job: Job) -> None:
        """Preempt a running job: it ends with grace and goes back into its queue."""
        self.commit(lifecycles.stop(job, AttemptEnd.PREEMPTED, self.clock.now_s(), "requeued on request"))

    def hold(self, job: Job, held: bool) -> None:
        """Hold a job back or release it; one that runs goes on."""
        if job.held != held:
            event = NewEvent("held" if held else "released", self.clock.now_s(), job.id)
            self.commit(Change(replace(job, held=held), (event,)))
            self.schedule()

    def why(self, job: Job) -> tuple[Blocker, ...]:
        """Why the job does not run now; empty when it runs or has ended."""
        if job.state is JobState.PENDING:
            self.schedule()
            job = self.jobs[job.id]
        now, attempt = self.clock.now_s(), job.active
        if job.state is JobState.PENDING:
            return self.blockers.get(job.id) or (
                Blocker(BlockerKind.HELD, "the cluster is stopping and starts nothing", evaluated_at_s=now),
            )
        if attempt is None or attempt.state is AttemptState.RUNNING:
            return ()
        return (_in_between(attempt, self._alive_in_fence.get(job.id), now),)

    def schedule(self) -> None:
        """Start what can start; remember why the rest waits."""
        if self.stopping:
            return
        now = self.clock.now_s()
        decisions = decide(queue_state(self.jobs.values(), self.nodes.values(), self.config.tree, now))
        for start in decisions.starts:
            self._begin(self.jobs[start.id], start)
        events = [
            NewEvent("blocked_by", now, job, data={"blockers": [{"kind": b.kind, "message": b.message} for b in found]})
            for job, found in decisions.blockers.items()
            if [b.kind for b in found] != [b.kind for b in self.blockers.get(job, ())]
        ]
        self.blockers = dict(decisions.blockers)
        self.commit(events=events)

    def _begin(self, job: Job, start: Start) -> None:
        agents = [a for n in dict.fromkeys(t.node for t in start.tasks) if (a := self.nodes[n].agent) is not None]
        past = max((a.epoch for a in job.attempts), default=0)
        epoch = max(past, fences.newest_epoch(job.checkpoint_dir)) + 1
        ports = {j.active.master_port for j in self.jobs.values() if j.active is not None}
        change = lifecycles.begin(
            job,
            start.tasks,
            agents=agents,
            flavor=start.flavor,
            epoch=epoch,
            port=_free_port(ports),
            why=start.reason,
            now_s=self.clock.now_s(),
        )
        self.commit(change)

    # -- attempts ------------------------------------------------------------------------------------------------

    def _launch(self, job: Job) -> None:
        attempt = job.active
        if attempt is None or attempt.state is not AttemptState.STARTING:
            return
        work = self.layout.job(job.id) / "work"
        try:
            work.mkdir(mode=0o700, parents=True, exist_ok=True)
            fences.open_epoch(job.checkpoint_dir, attempt.epoch)
        except OSError as error:
            detail = f"cannot prepare {error.filename or job.checkpoint_dir}: {error.strerror}"
            self.commit(lifecycles.on_unlaunchable(job, detail, self.clock.now_s()))
            return
        for node in attempt.nodes:
            ranks = [
                {
                    "rank": r.rank,
                    "argv": list(_argv(job, attempt.tasks[r.task].group)),
                    "env": rank_environment(
                        self.config.cluster, job, attempt, r, virtual=self.nodes[node].spec.virtual
                    ),
                    "directory": str(self.layout.rank(job.id, attempt.number, r.rank)),
                    "workdir": job.spec.workdir or str(work),
                    "fence": str(fences.fence_path(job.checkpoint_dir)),
                }
                for r in attempt.ranks
                if attempt.node_of(r) == node and r.pid is None and r.exit is None
            ]
            if ranks:
                self._send(attempt, node, {"type": "launch", "job": job.id, "epoch": attempt.epoch, "ranks": ranks})

    def _terminate(self, job: Job) -> None:
        attempt = job.active
        if attempt is not None:
            message = {"type": "signal", "job": job.id, "epoch": attempt.epoch, "signal": int(signal.SIGTERM)}
            for node in attempt.nodes:
                self._send(attempt, node, message)

    def _forget(self, job: Job) -> None:
        attempt = job.attempt
        if attempt is not None:
            for node in attempt.nodes:
                self._send(attempt, node, {"type": "forget", "job": job.id, "epoch": attempt.epoch})

    def _send(self, attempt: Attempt, node: str, message: Message) -> None:
        """To the agent the attempt was placed with, if it is connected; a returning agent is told by `on_hello`."""
        link = self._links.get(node)
        if link is not None and link.boot in {a.boot for a in attempt.agents}:
            link.send(message)

    def _start_fence(self, job: Job) -> None:
        if job.id not in self._fencing:
            task = asyncio.create_task(self._fence(job.id))
            self._fencing[job.id] = task
            task.add_done_callback(self._stop_on_error)

    async def _fence(self, job: JobId) -> None:
        """Close the epoch, kill until nothing of the attempt is left, then go on."""
        while (attempt := self.jobs[job].active) is not None:
            try:
                fences.close_epoch(self.jobs[job].checkpoint_dir, attempt.epoch)
                break
            except OSError as error:
                _log.error("job %s: cannot close epoch %d: %s; trying again", job, attempt.epoch, error)
                await asyncio.sleep(1.0)
        while (attempt := self.jobs[job].active) is not None:
            quarry = self._quarry(job, attempt)
            gone = await asyncio.to_thread(
                reaping.kill_all, quarry, timeout_s=1.0, progress=lambda n: self._alive_in_fence.__setitem__(job, n)
            )
            latest = self.jobs[job].active
            if gone and latest is not None and self._quarry(job, latest) == quarry:
                break
        self._alive_in_fence.pop(job, None)
        del self._fencing[job]
        self.commit(lifecycles.on_fenced(self.jobs[job], self.clock.now_s()))

    def _quarry(self, job: JobId, attempt: Attempt) -> reaping.Quarry:
        """Processes of the attempt, and the agents that were lost under it."""
        roots = {Identity(r.pid, r.starttime) for r in attempt.ranks if r.pid is not None and r.starttime is not None}
        roots |= {Identity(a.pid, a.starttime) for a in attempt.lost}
        tags = [attempt_tag(self.config.cluster, job, attempt.epoch)]
        tags += [agent_tag(self.config.cluster, a.node, a.boot) for a in attempt.lost]
        return reaping.Quarry(tuple(tags), frozenset(roots), read_identity(self.layout, "supervisor"))

    def _stop_on_error(self, task: asyncio.Task[None]) -> None:
        """A bug in a background task ends the process: the supervisor starts a fresh one from the stored state."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("control plane stops", exc_info=error)
            os._exit(70)

    # -- agents --------------------------------------------------------------------------------------------------

    def on_hello(self, message: Message, link: Link) -> bool:
        """An agent reports: a new incarnation, or the known one after a pause. False: it is not wanted."""
        name, now = str(message["node"]), self.clock.now_s()
        node = self.nodes.get(name)
        if node is None or self.stopping:
            link.send({"type": "exit"})
            return False
        known = node.agent is not None and node.agent.boot == link.boot
        if node.agent is not None and known and node.state is NodeState.DOWN:
            self._reap_agent(node.agent)  # declared lost: only a new incarnation is welcome
            return False
        if not known:
            node = self._admit(node, message, link.boot)
        self._links[name], self._seen[name] = link, self.clock.monotonic_s()
        event = NewEvent("node_reconnected" if known else "node_up", now, node=name, data=_incarnation(node))
        node = replace(node, state=_up_state(node), reason=_up_reason(node))
        self.commit(nodes=[node], events=[event])
        self.on_ranks(message["ranks"])
        self._reconcile(name, link, message["ranks"])
        return True

    def _admit(self, node: Node, message: Message, boot: str) -> Node:
        if node.agent is not None and node.state is not NodeState.DOWN:
            self.lose(node.spec.name, "a new agent took its place")
            node = self.nodes[node.spec.name]
        incarnation = node.incarnation + 1
        agent = AgentIdentity(node.spec.name, incarnation, boot, int(message["pid"]), int(message["starttime"]))
        found = tuple(str(d) for d in message["devices"])
        devices = virtual_devices(node.spec) if node.spec.virtual else found[: node.spec.gpus]
        now = self.clock.now_s()
        return replace(node, agent=agent, incarnation=incarnation, devices=devices, since_s=now)

    def _reconcile(self, name: str, link: Link, reports: Sequence[Message]) -> None:
        """Tell a (re)connected agent again what it may have missed, and ask for nothing it already did."""
        known = {(str(r["job"]), int(r["epoch"]), int(r["rank"])) for r in reports}
        active = {(j.id, j.active.epoch) for j in self.jobs.values() if j.active is not None}
        for job_id, epoch in sorted({k[:2] for k in known} - active):
            link.send({"type": "forget", "job": job_id, "epoch": epoch})
        for job in list(self.jobs.values()):
            attempt = job.active
            if attempt is None or link.boot not in {a.boot for a in attempt.agents}:
                continue
            if attempt.state is AttemptState.STARTING:
                self._launch(job)
            elif attempt.state is AttemptState.STOPPING:
                self._terminate(job)
            elif attempt.state is AttemptState.RUNNING:
                now = self.clock.now_s()
                unknown = {
                    r.rank: (Exit(error="its agent no longer knows this rank"), now)
                    for r in attempt.ranks
                    if attempt.node_of(r) == name and r.exit is None and (job.id, attempt.epoch, r.rank) not in known
                }
                self.commit(lifecycles.on_exited(job, attempt.epoch, unknown, now))

    def on_ranks(self, reports: Sequence[Message]) -> None:
        """Ranks started or ended."""
        now = self.clock.now_s()
        changes = []
        for job_id, epoch in sorted({(str(r["job"]), int(r["epoch"])) for r in reports}):
            job = self.jobs.get(JobId(job_id))
            if job is None:
                continue
            mine = [r for r in reports if r["job"] == job_id and r["epoch"] == epoch]
            started = [
                Started(r["rank"], r["pid"], r["starttime"], r["started_at_s"]) for r in mine if r["pid"] is not None
            ]
            exits = {r["rank"]: (parse_exit(r["exit"]), r["ended_at_s"] or now) for r in mine if r["exit"]}
            first = lifecycles.on_started(job, epoch, started, now)
            changes.append(then(first, lifecycles.on_exited(first.job, epoch, exits, now)))
        self.commit(*changes)

    def on_heartbeat(self, name: str) -> None:
        """An agent says that it lives."""
        self._seen[name] = self.clock.monotonic_s()

    def on_disconnect(self, name: str, boot: str) -> None:
        """An agent's connection ended; whether the agent did is seen next."""
        link = self._links.get(name)
        if link is not None and link.boot == boot:
            del self._links[name]
            self.wake.set()

    def lose(self, name: str, why: str) -> None:
        """Declare a node lost: nothing new goes there, its attempts end, its agent is killed if it still lives."""
        node, now = self.nodes[name], self.clock.now_s()
        agent = node.agent
        link = self._links.pop(name, None)
        if link is not None:
            link.close()
        lost = replace(node, state=NodeState.DOWN, reason=why, since_s=now)
        event = NewEvent("node_lost", now, node=name, data={**_incarnation(node), "why": why})
        if agent is None:
            self.commit(nodes=[lost], events=[event])
            return
        changes = [self._lost_change(j, agent, why) for j in self.jobs.values() if j.active is not None]
        self.commit(*changes, nodes=[lost], events=[event])
        self._reap_agent(agent)

    def _lose_attempt(self, job: Job, agent: AgentIdentity, why: str) -> None:
        self.commit(self._lost_change(job, agent, why))
        self._reap_agent(agent)

    def _lost_change(self, job: Job, agent: AgentIdentity, why: str) -> Change:
        """What the loss of an agent does to a job, after what its ranks left in their exit files."""
        now, attempt = self.clock.now_s(), job.active
        if attempt is None or agent.boot not in {a.boot for a in attempt.agents}:
            return Change(job)
        lines = {
            r.rank: read_exit(str(self.layout.rank(job.id, attempt.number, r.rank)))
            for r in attempt.ranks
            if r.exit is None and attempt.node_of(r) == agent.node
        }
        exits = {rank: (parse_exit(line), now) for rank, line in lines.items() if line}
        first = lifecycles.on_exited(job, attempt.epoch, exits, now)
        return then(first, lifecycles.on_node_lost(first.job, agent, why, now))

    def _reap_agent(self, agent: AgentIdentity) -> None:
        quarry = reaping.Quarry(
            (agent_tag(self.config.cluster, agent.node, agent.boot),),
            frozenset({Identity(agent.pid, agent.starttime)}),
        )
        task = asyncio.create_task(self._reap(quarry))
        self._reaping.add(task)
        task.add_done_callback(self._reaping.discard)
        task.add_done_callback(self._stop_on_error)

    async def _reap(self, quarry: reaping.Quarry) -> None:
        await asyncio.to_thread(reaping.kill_all, quarry, timeout_s=60.0)

    # -- time ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look at deadlines and schedule, whenever something changed and at every tick, until stopped."""
        while True:
            self.wake.clear()
            watching = self.tick()
            try:
                async with asyncio.timeout(WATCH_S if watching else TICK_S):
                    await self.wake.wait()
            except TimeoutError:
                pass

    def tick(self) -> bool:
        """Deal with everything that is due; True while a disconnected agent is being watched."""
        self._forgive_own_absence()
        watching = self._check_agents()
        now = self.clock.now_s()
        for job in list(self.jobs.values()):
            attempt = job.active
            if attempt is None:
                continue
            if attempt.state is AttemptState.STOPPING:
                self.commit(lifecycles.on_grace_over(job, now))
            limit = job.spec.time_limit_s
            if attempt.state is AttemptState.RUNNING and limit and now > (attempt.started_at_s or now) + limit:
                self.commit(lifecycles.stop(job, AttemptEnd.TIMEOUT, now, f"time limit of {limit:g} s reached"))
        self.schedule()
        return watching

    def _forgive_own_absence(self) -> None:
        """If this process itself was stopped or starved, silence of the agents meanwhile proves nothing."""
        now = self.clock.monotonic_s()
        absent = now - self._last_tick
        if absent > 2 * TICK_S:
            self._seen = {n: t + absent for n, t in self._seen.items()}
        self._last_tick = now

    def _check_agents(self) -> bool:
        watching, now = False, self.clock.monotonic_s()
        for name, node in list(self.nodes.items()):
            if node.agent is None or node.state is NodeState.DOWN:
                continue
            silent = now - self._seen[name]
            if name not in self._links:
                watching = True
                if not alive(Identity(node.agent.pid, node.agent.starttime)):
                    self.lose(name, "its agent's process is gone")
                    continue
            if silent > self.config.heartbeat_timeout_s:
                self.lose(name, f"no heartbeat for {silent:.1f} s")
        return watching

    # -- the end -------------------------------------------------------------------------------------------------

    async def shut_down(self, grace_s: float) -> None:
        """End every attempt (their jobs stay queued for the next start), then the agents."""
        self.stopping = True
        now = self.clock.now_s()
        for job in list(self.jobs.values()):
            self.commit(lifecycles.stop(job, AttemptEnd.SHUTDOWN, now, "the cluster was stopped", grace_s))
        while any(j.active is not None for j in self.jobs.values()):
            changed = self.changed
            await changed.wait()
        agents = [n.agent for n in self.nodes.values() if n.agent is not None]
        downs = [
            replace(n, state=NodeState.DOWN, reason="the cluster was stopped", since_s=now) for n in self.nodes.values()
        ]
        self.commit(nodes=downs, events=[NewEvent("cluster_stopped", self.clock.now_s())])
        for link in self._links.values():
            link.send({"type": "exit"})
        for agent in agents:
            self._reap_agent(agent)
        await asyncio.gather(*self._reaping)


def virtual_devices(spec: NodeSpec) -> tuple[str, ...]:
    """Ids of the virtual GPUs of a node."""
    return tuple(f"VIRTUAL-{i}" for i in range(spec.gpus))


def _awaited(stored: Node | None, spec: NodeSpec, now_s: float) -> Node:
    """A node before its agent has reported to this control plane."""
    if stored is None:
        devices = virtual_devices(spec) if spec.virtual else ()
        return Node(spec, NodeState.UNKNOWN, devices, reason="its agent has not reported yet", since_s=now_s)
    if stored.spec != spec:
        devices = virtual_devices(spec) if spec.virtual else ()
        return replace(stored, spec=spec, devices=devices, state=NodeState.DOWN, reason="its declaration changed")
    if stored.agent is None or stored.state is NodeState.DOWN:
        return stored
    return replace(stored, state=NodeState.UNKNOWN, reason="the control plane restarted and waits for its agent")


def _up_state(node: Node) -> NodeState:
    return NodeState.IDLE if len(node.devices) >= node.spec.gpus else NodeState.DOWN


def _up_reason(node: Node) -> str:
    if len(node.devices) >= node.spec.gpus:
        return ""
    return f"{len(node.devices)} of {node.spec.gpus} declared GPUs found through NVML"


def _incarnation(node: Node) -> dict[str, object]:
    agent = node.agent
    return {"incarnation": node.incarnation, "pid": agent and agent.pid, "virtual": node.spec.virtual}


def _argv(job: Job, group: str) -> tuple[str, ...]:
    return next(g.argv for g in job.spec.groups if g.name == group)


def _free_port(taken: Iterable[int]) -> int:
    """A TCP port that the operating system says is free and no running attempt was given."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port


def _in_between(attempt: Attempt, still: int | None, now_s: float) -> Blocker:
    if attempt.state is AttemptState.STARTING:
        running = sum(r.pid is not None for r in attempt.ranks)
        numbers: dict[str, float] = {"started_ranks": running, "ranks": len(attempt.ranks)}
        return Blocker(BlockerKind.STARTING, f"{running} of {len(attempt.ranks)} ranks started", numbers, (), "", now_s)
    if attempt.state is AttemptState.FENCING:
        numbers = {"alive": -1 if still is None else still, "fencing_s": now_s - (attempt.fencing_at_s or now_s)}
        left = "its processes" if still is None else f"{still} process{'es' * (still != 1)}"
        message = f"attempt {attempt.number} ended ({attempt.detail}); waiting until {left} are gone"
        return Blocker(BlockerKind.FENCING, message, numbers, (), "", now_s)
    left_s = max(0.0, (attempt.stop_by_s or now_s) - now_s)
    message = f"{attempt.detail}; SIGKILL in {left_s:.1f} s if it does not end"
    return Blocker(BlockerKind.PREEMPTING, message, {"grace_left_s": left_s}, (), "", now_s)
