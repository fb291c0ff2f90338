"""The control plane: keeps the state of jobs and nodes, asks `queueing` what to start, tells agents, reaps.

One asyncio loop. Every transition is a pure function of `lifecycles`; it is committed first and acted upon then, and
every action may be repeated. So the process may die at any point: the next one loads the state, waits for the agents to
report what runs, and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from clusterwright.engines.local import lifecycles, standings
from clusterwright.engines.local.agents import read_exit
from clusterwright.engines.local.claims import Claims, describe, passes
from clusterwright.engines.local.configs import ClusterConfig, check_spec
from clusterwright.engines.local.deciding import Begin, Decided, decide, outlook_of
from clusterwright.engines.local.directories import Directories
from clusterwright.engines.local.explaining import Reasons
from clusterwright.engines.local.fencing import Fencer
from clusterwright.engines.local.identities import Identity, alive
from clusterwright.engines.local.launching import free_port, launch_order
from clusterwright.engines.local.layout import Layout
from clusterwright.engines.local.lifecycles import Action, Change, parse_exit, then
from clusterwright.engines.local.links import Link, Links
from clusterwright.engines.local.preempting import preemption_changes
from clusterwright.engines.local.reporting import forgotten_change, rank_changes, ranks_of
from clusterwright.engines.local.wire import Message
from clusterwright.lib.errors import Unavailable
from clusterwright.model.jobs import (
    AgentIdentity,
    AttemptEnd,
    AttemptState,
    Job,
    JobId,
    JobSpec,
    JobState,
    Node,
    NodeState,
)
from clusterwright.model.outlooks import Outlook
from clusterwright.ports.clocks import Clock
from clusterwright.ports.stores import NewEvent, Store

_log = logging.getLogger(__name__)

#: How often deadlines are looked at when nothing else happens.
TICK_S: Final = 0.5
#: The same while a disconnected agent's process is watched for its end.
WATCH_S: Final = 0.02
#: Reasons older than this are evaluated again when somebody asks.
REASONS_S: Final = 1.0


class ControlPlane:
    """State and transitions; `serving` connects it to sockets.

    Args:
        layout: the state directory.
        config: nodes, queues, patience.
        store: where state is kept.
        clock: what time it is.
        directories: how checkpoint directories are reached.

    Whatever changes a job or node raises Unavailable when the state cannot be written; then nothing has changed.
    `trouble` says why, until it can be written again.
    """

    def __init__(
        self, layout: Layout, config: ClusterConfig, store: Store, clock: Clock, directories: Directories | None = None
    ) -> None:
        self.layout, self.config, self.store, self.clock = layout, config, store, clock
        self.jobs: dict[JobId, Job] = {}
        self.nodes: dict[str, Node] = {}
        self.changed = asyncio.Event()
        self.wake = asyncio.Event()
        self.stopping = False
        self._links = Links(clock)
        self.trouble = ""
        self.directories = directories or Directories()
        self._claims = Claims(self.directories, config.cluster, str(layout.root), self._is_over, self._on_free)
        self._fencer = Fencer(layout, config.cluster, self, self._claims, config.heartbeat_timeout_s)
        self._undecided = True
        self._decided: Decided | None = None
        self._reasons = Reasons()

    # -- state ---------------------------------------------------------------------------------------------------

    def commit(
        self, *changes: Change, nodes: Sequence[Node] = (), events: Sequence[NewEvent] = (), act: bool = True
    ) -> None:
        """Make changes durable, then act on them."""
        changed = [c for c in changes if self.jobs.get(c.job.id) != c.job or c.events or c.actions]
        if not changed and not nodes and not events:
            return
        history = [*events, *(e for c in changed for e in c.events)]
        try:
            self.store.commit(jobs=[c.job for c in changed], nodes=nodes, events=history)
        except Unavailable as error:
            if not self.trouble:
                _log.error("%s", error)
            self.trouble = str(error)
            raise
        self.trouble = ""
        self.jobs.update({c.job.id: c.job for c in changed})
        self.nodes.update({n.spec.name: n for n in nodes})
        self._undecided |= bool(changed or nodes)
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
            Action.FENCE: lambda job: self._fencer.fence(job.id),
            Action.FORGET: self._forget,
        }
        actions[action](self.jobs[job])

    def recover(self) -> None:
        """Load the state and resume what was under way; agents that live are given time to report."""
        snapshot = self.store.load()
        self.jobs = {j.id: j for j in snapshot.jobs}
        stored = {n.spec.name: n for n in snapshot.nodes}
        now = self.clock.now_s()
        self.nodes = {s.name: standings.awaited(stored.get(s.name), s, now) for s in self.config.nodes}
        removed = sorted(stored.keys() - self.nodes.keys())
        self.commit(nodes=list(self.nodes.values()), events=[NewEvent("control_plane_started", now)])
        self.store.forget_nodes(removed)
        self._links.expect(self.nodes)
        current = {n.agent.boot for n in self.nodes.values() if n.agent and n.state is NodeState.UNKNOWN}
        for node in self.nodes.values():
            if node.agent is not None and node.state is NodeState.DOWN:
                self._fencer.pursue(node.agent)
        for job in list(self.jobs.values()):
            if job.active is not None:
                for agent in job.active.agents:
                    if agent.boot not in current:
                        self._lose_attempt(
                            self.jobs[job.id], agent, "its agent was gone when the control plane returned"
                        )
            if (active := self.jobs[job.id].active) is not None and active.state is AttemptState.FENCING:
                self._fencer.fence(job.id)

    # -- jobs ----------------------------------------------------------------------------------------------------

    def submit(self, spec: JobSpec, token: str, checkpoint_dir: str | None = None) -> JobId:
        """Take a job; the same token twice gives the same job. `checkpoint_dir`: that of the spec, without links."""
        for job in self.jobs.values():
            if token and job.token == token:
                return job.id
        check_spec(spec, self.config)
        job_id = JobId(str(max((int(j) for j in self.jobs), default=0) + 1))
        directory = checkpoint_dir or os.path.realpath(self.layout.job(job_id) / "checkpoint")
        now = self.clock.now_s()
        job = Job(job_id, spec, JobState.PENDING, directory, now, now, token, held=spec.held)
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

    def hold(self, jobs: Sequence[Job], held: bool) -> None:
        """Hold jobs back or release them, all before the next decision; what runs goes on."""
        now, kind = self.clock.now_s(), "held" if held else "released"
        changed = [j for j in jobs if j.held != held]
        self.commit(*(Change(replace(j, held=held, held_why=""), (NewEvent(kind, now, j.id),)) for j in changed))
        if changed:
            self.schedule()

    def outlook(self, job: Job) -> Outlook:
        """Why the job does not run now, its place and its promise; nothing when it runs or has ended."""
        now = self.clock.now_s()
        if job.state is JobState.PENDING:
            self._undecided |= self._decided is None or now - self._decided.at_s > REASONS_S
            self.schedule()
            job = self.jobs[job.id]
        attempt = job.active
        if job.state is JobState.PENDING:
            return outlook_of(job.id, None if self.stopping else self._decided, now)
        if attempt is None or attempt.state is AttemptState.RUNNING:
            return Outlook()
        return Outlook((lifecycles.why_not_running(attempt, now, *self._fencer.progress(job.id)),))

    def schedule(self) -> None:
        """Start what can start, make leave who must; remember why the rest waits."""
        now, last = self.clock.now_s(), self._decided
        waits_over = last is not None and last.wake_s is not None and last.wake_s <= now
        if self.stopping or not (self._undecided or waits_over):
            return
        self._undecided = False
        try:
            self._decide(now)
        except Unavailable:  # the state cannot be written now: decided again at the next tick
            self._undecided = True

    def _decide(self, now: float) -> None:
        found = decide(self.jobs, self.nodes.values(), self.config, now, self._claims.troubles)
        self._decided = found
        for begin in found.begins:
            self._begin(self.jobs[begin.job], begin)
        self.commit(*preemption_changes(self.jobs, found.state, found.preemptions, now))
        self._reasons.decided(found)
        self._explain()

    def _explain(self) -> None:
        if self._reasons.look(lambda events: self.commit(events=events)):
            self.wake.set()

    def _begin(self, job: Job, start: Begin) -> None:
        agents = [a for n in dict.fromkeys(t.node for t in start.tasks) if (a := self.nodes[n].agent) is not None]
        same = (j for j in self.jobs.values() if j.checkpoint_dir == job.checkpoint_dir)
        past = max((a.epoch for j in same for a in j.attempts), default=0)
        ports = {j.active.master_port for j in self.jobs.values() if j.active is not None}
        change = lifecycles.begin(
            job,
            start.tasks,
            agents=agents,
            flavor=start.flavor,
            epoch=past + 1,
            port=free_port(ports),
            why=start.reason,
            now_s=self.clock.now_s(),
        )
        self.commit(change)

    # -- attempts ------------------------------------------------------------------------------------------------

    def _launch(self, job: Job) -> None:
        attempt = job.active
        if attempt is None or attempt.state is not AttemptState.STARTING:
            return
        if not attempt.opened:
            self._claims.open(job, attempt, lambda outcome: self._on_epoch(job.id, attempt.number, outcome))
            return
        try:
            self.layout.work(job.id).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            detail = f"cannot prepare {error.filename}: {error.strerror}"
            self.commit(lifecycles.on_unlaunchable(job, detail, self.clock.now_s()))
            return
        for node in attempt.nodes:
            virtual = self.nodes[node].spec.virtual
            order = launch_order(self.layout, self.config.cluster, job, attempt, node, virtual=virtual)
            if order["ranks"]:
                self._links.send(attempt, node, order)

    def _on_epoch(self, job_id: JobId, number: int, outcome: int | OSError) -> None:
        """The attempt's epoch was opened, or could not be. One that ended meanwhile is closed by its fence."""
        job, now = self.jobs[job_id], self.clock.now_s()
        attempt = job.active
        if attempt is None or attempt.number != number or attempt.state is not AttemptState.STARTING:
            return
        try:
            if isinstance(outcome, int):
                self.commit(lifecycles.on_opened(job, outcome, now))
                return
            detail = f"checkpoint directory {job.checkpoint_dir} cannot be used: {describe(outcome)}"
            waits = passes(outcome) or any(a.opened for a in job.attempts)
            self.commit(lifecycles.on_unlaunchable(job, detail, now, waits=waits))
            if waits:
                self._claims.watch(job, describe(outcome))
        except Unavailable:  # the state cannot be written now: `tick` has it opened again
            pass

    def _is_over(self, job: str, epoch: int) -> bool:
        """Whether no process of a job's epoch is left. Called from threads."""
        found = self.jobs.get(JobId(job))
        attempt = None if found is None else found.active
        return found is not None and (attempt is None or attempt.epoch != epoch)

    def _on_free(self) -> None:
        self._undecided = True
        self.wake.set()

    def _terminate(self, job: Job) -> None:
        attempt = job.active
        if attempt is not None:
            message = {"type": "signal", "job": job.id, "epoch": attempt.epoch, "signal": int(signal.SIGTERM)}
            for node in attempt.nodes:
                self._links.send(attempt, node, message)

    def _forget(self, job: Job) -> None:
        attempt = job.attempt
        if attempt is not None:
            for node in attempt.nodes:
                self._links.send(attempt, node, {"type": "forget", "job": job.id, "epoch": attempt.epoch})

    # -- what the fencer needs -----------------------------------------------------------------------------------

    def fenced_job(self, job: JobId) -> Job:
        """See `fencing.Plane`."""
        return self.jobs[job]

    def tell_drop(self, job: JobId) -> None:
        """See `fencing.Plane`; an agent that is not connected is told when it returns."""
        attempt = self.jobs[job].active
        if attempt is None:
            return
        for node in attempt.nodes:
            self._links.send(attempt, node, {"type": "drop", "job": job, "epoch": attempt.epoch})

    def lose_agent(self, job: JobId, agent: AgentIdentity, why: str) -> None:
        """See `fencing.Plane`."""
        node = self.nodes.get(agent.node)
        if node is not None and node.agent == agent and node.state is not NodeState.DOWN:
            self.lose(agent.node, why)
        else:
            self._lose_attempt(self.jobs[job], agent, why)

    def on_fenced(self, job: JobId, unclosed: str = "") -> None:
        """See `fencing.Plane`."""
        self.commit(lifecycles.on_fenced(self.jobs[job], self.clock.now_s(), unclosed))

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
            self._fencer.pursue(node.agent)  # declared lost: only a new incarnation is welcome
            return False
        if not known:
            if node.agent is not None and node.state is not NodeState.DOWN:
                self.lose(name, "a new agent took its place")
                node = self.nodes[name]
            pid, starttime = int(message["pid"]), int(message["starttime"])
            node = standings.admitted(node, link.boot, pid, starttime, message["devices"], now)
        kind = "node_reconnected" if known else "node_up"
        event = NewEvent(kind, now, node=name, data=standings.event_data(node))
        self._links.connect(name, link)
        self.commit(nodes=[standings.connected(node)], events=[event])
        self.on_ranks(message["ranks"])
        self._reconcile(name, link, message["ranks"])
        return True

    def _reconcile(self, name: str, link: Link, reports: Sequence[Message]) -> None:
        """Tell a (re)connected agent again what it may have missed, and ask for nothing it already did."""
        known = ranks_of(reports)
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
            elif attempt.state is AttemptState.FENCING:
                self.tell_drop(job.id)
            elif attempt.state is AttemptState.RUNNING:
                self.commit(forgotten_change(job, attempt, name, known, self.clock.now_s()))

    def on_ranks(self, reports: Sequence[Message]) -> None:
        """Ranks started or ended."""
        self.commit(*rank_changes(self.jobs, reports, self.clock.now_s()))

    def on_dropped(self, boot: str, message: Message) -> None:
        """An agent starts nothing of an epoch any more."""
        self._fencer.on_dropped(JobId(str(message["job"])), int(message["epoch"]), boot)

    def on_heartbeat(self, name: str) -> None:
        """An agent says that it lives."""
        self._links.hear(name)

    def on_disconnect(self, name: str, boot: str) -> None:
        """An agent's connection ended; whether the agent did is seen next."""
        if self._links.ended(name, boot):
            self.wake.set()

    def lose(self, name: str, why: str) -> None:
        """Declare a node lost: nothing new goes there, its attempts end, its agent is killed if it still lives."""
        node, now = self.nodes[name], self.clock.now_s()
        agent = node.agent
        self._links.close(name)
        lost = standings.lost(node, why, now)
        event = NewEvent("node_lost", now, node=name, data=standings.event_data(node, why=why))
        if agent is None:
            self.commit(nodes=[lost], events=[event])
            return
        changes = [self._lost_change(j, agent, why) for j in self.jobs.values() if j.active is not None]
        self.commit(*changes, nodes=[lost], events=[event])
        self._fencer.pursue(agent)

    def _lose_attempt(self, job: Job, agent: AgentIdentity, why: str) -> None:
        self.commit(self._lost_change(job, agent, why))
        self._fencer.pursue(agent)

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

    # -- time ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look at deadlines and schedule, whenever something changed and at every tick, until stopped."""
        while True:
            self.wake.clear()
            await asyncio.sleep(0)
            try:
                watching = self.tick()
            except Unavailable:  # the state cannot be written now: everything due stays due
                watching = False
            try:
                async with asyncio.timeout(WATCH_S if watching else TICK_S):
                    await self.wake.wait()
            except TimeoutError:
                pass

    def tick(self) -> bool:
        """Deal with everything that is due; True while a disconnected agent is being watched."""
        self._links.forgive(2 * TICK_S)  # this process itself was stopped or starved
        watching = self._check_agents()
        now = self.clock.now_s()
        for job in list(self.jobs.values()):
            attempt = job.active
            if attempt is None:
                continue
            if attempt.state is AttemptState.STOPPING:
                self.commit(lifecycles.on_grace_over(job, now))
            if attempt.state is AttemptState.STARTING and not attempt.opened:
                self._launch(job)
            limit = job.spec.time_limit_s
            if attempt.state is AttemptState.RUNNING and limit and now > (attempt.started_at_s or now) + limit:
                self.commit(lifecycles.stop(job, AttemptEnd.TIMEOUT, now, f"time limit of {limit:g} s reached"))
        self.schedule()
        self._explain()
        return watching

    def _check_agents(self) -> bool:
        watching, now = False, self.clock.monotonic_s()
        for name, node in list(self.nodes.items()):
            if node.agent is None or node.state is NodeState.DOWN:
                continue
            if name not in self._links:
                watching = True
                if not alive(Identity(node.agent.pid, node.agent.starttime)):
                    self.lose(name, "its agent's process is gone")
                    continue
            silent = self._links.silent_s(name, now)
            if silent > self.config.heartbeat_timeout_s:
                self.lose(name, f"no heartbeat for {silent:.1f} s")
        return watching

    # -- the end -------------------------------------------------------------------------------------------------

    async def shut_down(self, grace_s: float) -> None:
        """End every attempt (their jobs stay queued for the next start), then the agents.

        Raises:
            Unavailable: when the state cannot be written; then whoever asked must end what runs.
        """
        self.stopping = True
        now = self.clock.now_s()
        for job in list(self.jobs.values()):
            self.commit(lifecycles.stop(job, AttemptEnd.SHUTDOWN, now, "the cluster was stopped", grace_s))
        while any(j.active is not None for j in self.jobs.values()):
            changed = self.changed
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await changed.wait()
            if self.trouble:
                raise Unavailable(self.trouble)
        agents = [n.agent for n in self.nodes.values() if n.agent is not None]
        downs = [standings.lost(n, "the cluster was stopped", now) for n in self.nodes.values()]
        self.commit(nodes=downs, events=[NewEvent("cluster_stopped", self.clock.now_s())])
        self._links.send_all({"type": "exit"})
        for agent in agents:
            self._fencer.pursue(agent)
        await self._fencer.settle()
