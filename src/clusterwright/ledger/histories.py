"""The ledger of the embedded engine, from its append-only history of events.

Events say what happened when; the rows of jobs and nodes say only what does not change: who owns a job, which devices
an attempt was given, how many GPUs a node has. Three things are not in the history and are not made up:

- An attempt that was tried again without a word about checkpoints: `UNKNOWN`, whether it had saved its work.
- A node before its agent reported for the first time, and all of them while the engine was stopped: `UNKNOWN`.
- A clock that stepped back: what happened then is taken to have happened at the latest instant seen before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.ledger.accounting import Ledger
from clusterwright.ledger.attempts import AttemptRecord, Ending
from clusterwright.ledger.lines import Account, Entry, Line, size_class
from clusterwright.ledger.standings import NodeStanding, Standings
from clusterwright.ledger.totals import Lines
from clusterwright.ledger.usage import Owner, Usage
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.jobs import AttemptEnd, Cause, Event, Job, JobId, JobState, Node, NodeState
from clusterwright.model.outlooks import BlockerKind

NOT_REPORTED: Final = "its agent had not reported yet"
STOPPED: Final = "the engine was stopped"

#: How the engine's ends are charged, with the cause where the engine names none.
_ENDINGS: Final = {
    AttemptEnd.COMPLETED: (Ending.COMPLETED, Cause.UNKNOWN),
    AttemptEnd.FAILED: (Ending.FAILED, Cause.UNKNOWN),
    AttemptEnd.NODE_LOST: (Ending.FAILED, Cause.PLATFORM),
    AttemptEnd.CANCELLED: (Ending.CANCELLED, Cause.UNKNOWN),
    AttemptEnd.TIMEOUT: (Ending.TIME_LIMIT, Cause.UNKNOWN),
    AttemptEnd.PREEMPTED: (Ending.PREEMPTED, Cause.UNKNOWN),
    AttemptEnd.SHUTDOWN: (Ending.FAILED, Cause.PLATFORM),
    AttemptEnd.BLOCKED: (Ending.FAILED, Cause.SETUP),
}
#: Blockers of jobs that would not start on any free GPU: these ask for none now.
_NO_DEMAND: Final = frozenset(
    {BlockerKind.HELD, BlockerKind.GATED, BlockerKind.MISCONFIGURED, BlockerKind.NEVER_FITS, BlockerKind.BACKOFF}
)
_OF_NODES: Final = frozenset({"node_up", "node_reconnected", "node_lost"})
_UNHEALTHY: Final = Entry(Line.UNHEALTHY)


@dataclass(slots=True)
class _Run:
    """The attempt that a job has now."""

    account: Account
    gpus_by_node: Mapping[str, int]
    record: AttemptRecord


@dataclass(slots=True)
class _Standing:
    """A job while the history is read; `asks` is the blocker of a job that waits for GPUs, "" when it asks for none."""

    job: Job
    owner: Owner
    size: str
    queued_at_s: float
    held: bool = False
    asks: str = ""
    saves: bool = False
    run: _Run | None = None


@dataclass(frozen=True, slots=True)
class HistoryUsage:
    """The ledger of an engine over an interval.

    Args:
        lines: of the whole cluster, which sum to installed GPUs × time.
        usage: of its jobs, part of the same lines.
        clock_steps: events that say an earlier time than one before them.
    """

    lines: Lines
    usage: Usage
    clock_steps: int = 0


def read_history(
    events: Sequence[Event],
    jobs: Iterable[Job],
    nodes: Iterable[Node],
    *,
    as_of_s: float,
    since_s: float = 0.0,
    until_s: float | None = None,
    teams: Mapping[str, str] | None = None,
) -> HistoryUsage:
    """Account for every GPU of an embedded engine between its first event, or `since_s`, and `until_s`.

    Args:
        events: all of them from the first on, in order.
        jobs: rows of all jobs that the events name.
        nodes: rows of all nodes; they count as installed from the first event on.
        as_of_s: when the events were read; what runs then is cut off there.
        until_s: end of the interval; unset is `as_of_s`.
        teams: of queues; a queue without is a team of its own name.

    Raises:
        InvalidInput: when events name what no row knows, or contradict each other.
    """
    if not events:
        return HistoryUsage(Lines({}), Usage(Lines({})))
    reading = _Reading(events, jobs, nodes, Ledger(since_s, until_s), teams or {})
    for event in events:
        reading.read(event)
    return reading.finish(max(as_of_s, reading.now_s), partial=until_s is not None and until_s > as_of_s)


class _Reading:
    """A history as far as it was read."""

    def __init__(
        self,
        events: Sequence[Event],
        jobs: Iterable[Job],
        nodes: Iterable[Node],
        ledger: Ledger,
        teams: Mapping[str, str],
    ) -> None:
        self.now_s, self.clock_steps = events[0].at_s, 0
        self._ledger, self._teams = ledger, teams
        self._rows = {job.id: job for job in jobs}
        self._jobs: dict[JobId, _Standing] = {}
        self._waiting: dict[JobId, _Standing] = {}
        self._succeeded: set[str] = set()
        nodes = list(nodes)
        self._short, self._tried_again = _short_nodes(events, nodes), _tried_again(events)
        not_reported = Entry(Line.UNKNOWN, NOT_REPORTED)
        found = {n.spec.name: NodeStanding(n.spec.gpu_model, n.spec.gpus, not_reported) for n in nodes}
        self._floor = Standings(ledger, found, self.now_s)
        self._say_free()

    def read(self, event: Event) -> None:
        """Take the next event."""
        self.clock_steps += event.at_s < self.now_s
        self.now_s = max(self.now_s, event.at_s)
        if event.job is not None:
            self._read_job(event, event.job)
        elif event.kind in _OF_NODES and event.node is not None:
            out = _UNHEALTHY if event.kind == "node_lost" or self._short.get(event.node) == event.seq else None
            self._floor.set_out(self.now_s, [event.node], out)
        elif event.kind == "cluster_stopped":
            self._floor.set_out(self.now_s, self._floor.nodes, Entry(Line.UNKNOWN, STOPPED))
        else:
            return
        self._say_free()

    def finish(self, at_s: float, *, partial: bool) -> HistoryUsage:
        """Cut off what still runs, and close."""
        self.now_s = at_s
        for standing in self._jobs.values():
            if standing.run is not None:
                self._end_run(standing, standing.run, tried_again=False)
        self._say_free()
        lines = self._ledger.close(at_s, partial=partial)
        of_jobs = Lines({key: n for key, n in lines.amounts.items() if key[0].job}, partial=partial)
        owners = {str(job): standing.owner for job, standing in self._jobs.items()}
        return HistoryUsage(lines, Usage(of_jobs, owners, succeeded=frozenset(self._succeeded)), self.clock_steps)

    def _read_job(self, event: Event, job: JobId) -> None:
        if event.kind == "submitted":
            self._jobs[job] = self._waiting[job] = self._submitted(job)
            return
        standing = self._jobs.get(job)
        if standing is None:
            raise InvalidInput(
                f"event {event.seq} ({event.kind}) is of job {job}, whose submission is not in the history"
            )
        run = standing.run
        match event.kind:
            case "blocked_by":
                kinds = [str(b["kind"]) for b in event.data["blockers"]]
                standing.asks = "" if _NO_DEMAND.intersection(kinds) else next(iter(kinds), "")
            case "held" | "released":
                standing.held = event.kind == "held"
            case "admitted":
                self._admit(event, standing)
            case "started" if run is not None:
                run.record.started_s = self.now_s
            case "checkpoint_seen" if run is not None:
                standing.saves = True
                run.record.saved_s = self.now_s
                run.record.stalled_s += float(event.data.get("stalled_s", 0.0))
            case "fencing" if run is not None:
                end = AttemptEnd(event.data["end"])
                run.record.ending, cause = _ENDINGS[end]
                run.record.cause = Cause(event.data.get("cause") or cause)
                run.record.stopped_s = self.now_s
            case "fenced" if run is not None:
                self._end_run(standing, run, tried_again=event.seq in self._tried_again)
            case "requeued":
                standing.asks, standing.queued_at_s = "", self.now_s
                self._waiting[job] = standing
            case "ended":
                self._waiting.pop(job, None)
                if event.data.get("state") == JobState.SUCCEEDED:
                    self._succeeded.add(job)

    def _submitted(self, job: JobId) -> _Standing:
        row = self._rows.get(job)
        if row is None:
            raise InvalidInput(f"job {job} is in the history, but there is no row of it")
        spec = row.spec
        owner = Owner(spec.queue, self._teams.get(spec.queue, spec.queue), spec.user)
        return _Standing(row, owner, size_class(spec.most_gpus), self.now_s, held=spec.held)

    def _admit(self, event: Event, standing: _Standing) -> None:
        row, number = standing.job, int(event.data["attempt"])
        if standing.run is not None or number > len(row.attempts):
            raise InvalidInput(f"event {event.seq}: attempt {number} of job {row.id} begins, which cannot be")
        self._waiting.pop(row.id, None)
        held: dict[str, int] = {}
        for task in row.attempts[number - 1].tasks:
            if task.devices:
                held[task.node] = held.get(task.node, 0) + len(task.devices)
        if held:
            flavor = self._floor.take(self.now_s, held)
            owner = standing.owner
            account = Account(flavor, owner.queue, owner.team, standing.size, str(row.id))
            record = AttemptRecord(sum(held.values()), self.now_s, self.now_s, Ending.RUNNING, resumed=standing.saves)
            standing.run = _Run(account, held, record)

    def _end_run(self, standing: _Standing, run: _Run, *, tried_again: bool) -> None:
        run.record.ended_s = self.now_s
        run.record.checkpoints_known = standing.saves or not tried_again
        self._ledger.charge(run.account, run.record)
        self._floor.give_back(self.now_s, run.gpus_by_node)
        standing.run = None

    def _say_free(self) -> None:
        """Tell the ledger what is free of every flavor, and what the first who asks for it is blocked by."""
        asking = [j for j in self._waiting.values() if j.asks and not j.held and j.job.spec.most_gpus]
        for flavor, gpus in self._floor.free.items():
            wanting = (j for j in asking if j.job.spec.gpu_model in (None, flavor))
            head = min(wanting, key=lambda j: (-j.job.spec.priority, j.queued_at_s), default=None)
            self._ledger.free(self.now_s, flavor, gpus, head.asks if head else "")


def _short_nodes(events: Sequence[Event], nodes: Iterable[Node]) -> dict[str, int]:
    """Events by which nodes came up with fewer GPUs than declared: they are not used, but only their rows say so."""
    short = {n.spec.name for n in nodes if n.state is NodeState.DOWN and len(n.devices) < n.spec.gpus}
    return {e.node: e.seq for e in events if e.kind in _OF_NODES and e.node is not None and e.node in short}


def _tried_again(events: Sequence[Event]) -> set[int]:
    """Events by which attempts ended whose job went back into the queue."""
    found, following = set[int](), dict[JobId, str]()
    for event in reversed(events):
        if event.job is not None:
            if event.kind == "fenced" and following.get(event.job) == "requeued":
                found.add(event.seq)
            following[event.job] = event.kind
    return found
