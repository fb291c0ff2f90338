"""Jobs, their attempts and ranks, the nodes that run them, and what happened to both.

A *job* is one or more task groups, admitted all or nothing unless a group gives a minimum. A *task* is a slice of one
node; it runs one process per *rank*. Each try is an *attempt* with an *epoch*: a number that only grows within one
checkpoint directory, so that a process of an older attempt can be told from a newer one.

Times are POSIX seconds (UTC) as float, because simulated time uses the same types; durations are seconds.
Standard library only: node agents start faster without pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NewType

from clusterwright.lib.errors import InvalidInput

JobId = NewType("JobId", str)

#: The queue of a job that names none; the only one where none are declared.
DEFAULT_QUEUE: Final = "default"
#: Grace between SIGTERM and SIGKILL; Slurm's KillWait and Kubernetes' terminationGracePeriodSeconds default.
DEFAULT_GRACE_S: Final = 30.0
#: First delay before a failed task is tried again, doubled each time; Kubernetes Job back-off (10 s, 20 s, 40 s …).
DEFAULT_BACKOFF_S: Final = 10.0
#: Longest such delay; Kubernetes Job caps it at six minutes.
MAX_BACKOFF_S: Final = 360.0
#: Attempts in a row that may lose a node before every rank runs; then the job is held, as Slurm requeues a job whose
#: launch failed in the held state ("launch failed requeued held"). The number is a choice: ten agents in a row that die
#: in the seconds of a start do not do so by chance.
MAX_LOST_STARTS: Final = 10
#: Most GPUs of one node or task: far beyond any machine (HGX: 8, DGX-2: 16); a guard against a mistyped number.
MAX_GPUS: Final = 1024
#: Most tasks of one group: four for each of the 256 nodes that one machine can play; a guard, too.
MAX_TASKS: Final = 1024
#: Most ranks of one task: above the 768 hardware threads of the largest two-socket server (2 × AMD EPYC 9965).
MAX_RANKS: Final = 1024


class JobState(StrEnum):
    """Where a job is in its life; COMPLETING is Slurm's word for 'ended, its last processes are being cleared'."""

    PENDING = "PENDING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    PREEMPTING = "PREEMPTING"
    RECOVERING = "RECOVERING"
    COMPLETING = "COMPLETING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"

    @property
    def final(self) -> bool:
        """Whether the job has ended for good: no process of it is left."""
        return self in _FINAL


_FINAL: Final = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED})


class AttemptState(StrEnum):
    """Where one try is: STOPPING is SIGTERM plus grace, FENCING is waiting until every process of it is gone."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    FENCING = "FENCING"
    ENDED = "ENDED"


class AttemptEnd(StrEnum):
    """Why an attempt ended; SHUTDOWN is `cw down`, which requeues the job without counting a restart.

    BLOCKED: its checkpoint directory could not be used, so nothing was started; the job waits until it can.
    """

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    NODE_LOST = "NODE_LOST"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    PREEMPTED = "PREEMPTED"
    SHUTDOWN = "SHUTDOWN"
    BLOCKED = "BLOCKED"


class Cause(StrEnum):
    """What a failure is charged to; UNKNOWN is said rather than guessed."""

    USER_CODE = "user code"
    SETUP = "setup"
    HARDWARE = "hardware"
    PLATFORM = "platform"
    OUT_OF_MEMORY = "out of memory"
    UNKNOWN = "unknown"


class NodeState(StrEnum):
    """Slurm's words for a node, as far as the embedded engine uses them."""

    IDLE = "idle"
    MIXED = "mixed"
    ALLOCATED = "allocated"
    DOWN = "down"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node as declared: `topology` is its path from the widest domain to the narrowest, e.g. ("row-1", "rack-3")."""

    name: str
    gpus: int
    gpu_model: str = ""
    virtual: bool = True
    topology: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or "\0" in self.name or self.name in (".", ".."):
            raise InvalidInput(f"node name {self.name!r}: must be a host name without '/'")
        if not 0 <= self.gpus <= MAX_GPUS:
            raise InvalidInput(f"node {self.name}: gpus is {self.gpus}, must be from 0 to {MAX_GPUS}")


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """`count` equal tasks, each with `gpus` GPUs of one node and `ranks` processes.

    Args:
        argv: program and arguments, run as they are, never by a shell.
        count: tasks, at most `MAX_TASKS`.
        gpus: of one node, at most `MAX_GPUS`.
        ranks: processes per task, at most `MAX_RANKS`; unset means one per GPU, at least one.
        min_count: the gang starts with any number of tasks from here to `count`; unset means all or nothing.
        spread: every task on a node of its own.
        env: environment for this group, over the job's.
    """

    argv: tuple[str, ...]
    count: int = 1
    gpus: int = 0
    name: str = "main"
    ranks: int | None = None
    min_count: int | None = None
    spread: bool = False
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranks_per_task(self) -> int:
        """Processes per task."""
        return self.ranks if self.ranks is not None else max(1, self.gpus)

    @property
    def least(self) -> int:
        """The fewest tasks with which the group may run."""
        return self.count if self.min_count is None else self.min_count

    def problems(self) -> list[str]:
        """What makes this group impossible, in words."""
        where, found = f"group '{self.name}'", list[str]()
        if not self.argv or not self.argv[0]:
            found.append(f"{where}: no program given")
        if any("\0" in a for a in self.argv):
            found.append(f"{where}: an argument contains a NUL byte")
        if not 1 <= self.count <= MAX_TASKS:
            found.append(f"{where}: count is {self.count}, must be from 1 to {MAX_TASKS}")
        if not 0 <= self.gpus <= MAX_GPUS:
            found.append(f"{where}: gpus is {self.gpus}, must be from 0 to {MAX_GPUS}")
        if self.ranks is not None and not 1 <= self.ranks <= MAX_RANKS:
            found.append(f"{where}: ranks is {self.ranks}, must be from 1 to {MAX_RANKS}")
        if self.min_count is not None and not 1 <= self.min_count <= self.count:
            found.append(f"{where}: minimum is {self.min_count}, must be from 1 to {self.count}")
        return found + _env_problems(where, self.env)


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a user asks for.

    Args:
        gpu_model: only nodes with this GPU; unset means any, but one attempt never mixes models.
        exclude: nodes never to be used.
        first_nodes: nodes for the first attempt alone; later ones go wherever there is room. Unset means any.
        workdir: working directory; unset means the job's own directory in the engine's state.
        checkpoint_dir: where the job keeps checkpoints and the engine its epoch file; unset means a directory in the
            engine's state. Two jobs never run at once in one checkpoint directory.
        max_restarts: how often a failing task is tried again (torchrun's default is 0, too); attempts that end
            because a node was lost are not counted. After `MAX_LOST_STARTS` of these in a row that did not even come to
            run the job is held.
        time_limit_s: per attempt, from the moment every rank runs.
        grace_s: time between SIGTERM and SIGKILL on cancel, time limit and requeue; one whose GPUs the queue takes for
            another job gets the grace that the cluster's preemption policy declares.

    Raises:
        InvalidInput: with everything that is wrong.
    """

    name: str
    groups: tuple[TaskGroup, ...]
    queue: str = DEFAULT_QUEUE
    user: str = ""
    priority: int = 0
    gpu_model: str | None = None
    exclude: tuple[str, ...] = ()
    first_nodes: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    checkpoint_dir: str | None = None
    max_restarts: int = 0
    backoff_s: float = DEFAULT_BACKOFF_S
    time_limit_s: float | None = None
    grace_s: float = DEFAULT_GRACE_S
    held: bool = False

    def __post_init__(self) -> None:
        found = [p for g in self.groups for p in g.problems()]
        if not self.groups:
            found.append("a job needs at least one task group")
        if len({g.name for g in self.groups}) != len(self.groups):
            found.append("two task groups have the same name")
        for what, text in (("name", self.name), ("queue", self.queue), ("user", self.user), ("model", self.gpu_model)):
            if not _is_text(text or ""):
                found.append(f"{what} is {text!r}, must be text that UTF-8 can hold")
        if self.max_restarts < 0:
            found.append(f"max_restarts is {self.max_restarts}, must be 0 or more")
        if self.backoff_s < 0 or self.grace_s < 0:
            found.append("backoff and grace must be 0 s or more")
        if self.time_limit_s is not None and self.time_limit_s <= 0:
            found.append(f"the time limit is {self.time_limit_s:g} s, must be more than 0 s")
        for what, path in (("workdir", self.workdir), ("checkpoint_dir", self.checkpoint_dir)):
            if path is not None and (not path.startswith("/") or "\0" in path):
                found.append(f"{what} is {path!r}, must be an absolute path")
        found += _env_problems("job", self.env)
        if found:
            raise InvalidInput(*found)

    @property
    def most_gpus(self) -> int:
        """GPUs of the whole gang at full size."""
        return sum(g.count * g.gpus for g in self.groups)

    @property
    def least_gpus(self) -> int:
        """GPUs of the smallest gang that may run."""
        return sum(g.least * g.gpus for g in self.groups)

    @property
    def most_ranks(self) -> int:
        """Processes of the whole gang at full size."""
        return sum(g.count * g.ranks_per_task for g in self.groups)


def _is_text(text: str) -> bool:
    """Whether it has no surrogates, which is how Python holds bytes that are not UTF-8."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _env_problems(where: str, env: Mapping[str, str]) -> list[str]:
    found = list[str]()
    for name, value in env.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            found.append(f"{where}: environment variable {name!r} is not possible")
        elif name.startswith("CLUSTERWRIGHT_"):
            found.append(f"{where}: environment variable {name} is set by the engine")
    return found


@dataclass(frozen=True, slots=True)
class TaskPlacement:
    """One task on one node: `devices` are the values for CUDA_VISIBLE_DEVICES."""

    group: str
    index: int
    node: str
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exit:
    """How a rank's process ended: exactly one of `code`, `signal` and `error` (it never ran) is set."""

    code: int | None = None
    signal: int | None = None
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the process ended with code 0."""
        return self.code == 0

    def __str__(self) -> str:
        if self.error:
            return self.error
        return f"exit code {self.code}" if self.signal is None else f"signal {self.signal}"


@dataclass(frozen=True, slots=True)
class RankRun:
    """One process of an attempt; `pid` and `starttime` (clock ticks since boot) name its shim without ambiguity."""

    rank: int
    task: int
    local_rank: int
    pid: int | None = None
    starttime: int | None = None
    started_at_s: float | None = None
    ended_at_s: float | None = None
    exit: Exit | None = None


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """One incarnation of a node's agent: `boot` is its unique tag, `pid` and `starttime` its process."""

    node: str
    incarnation: int
    boot: str
    pid: int
    starttime: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a job: where it ran, its processes, how and why it ended.

    Args:
        epoch: provisional until `opened`; then above every epoch its checkpoint directory has seen.
        opened: whether its epoch was opened; before that nothing of it is started.
        preempted_by: the job for which the queue took its GPUs.
    """

    number: int
    epoch: int
    state: AttemptState
    tasks: tuple[TaskPlacement, ...]
    ranks: tuple[RankRun, ...]
    agents: tuple[AgentIdentity, ...]
    flavor: str
    master_port: int
    admitted_at_s: float
    started_at_s: float | None = None
    stop_by_s: float | None = None
    fencing_at_s: float | None = None
    ended_at_s: float | None = None
    end: AttemptEnd | None = None
    cause: Cause | None = None
    detail: str = ""
    lost: tuple[AgentIdentity, ...] = ()
    opened: bool = False
    preempted_by: JobId | None = None

    @property
    def active(self) -> bool:
        """Whether it still holds its GPUs."""
        return self.state is not AttemptState.ENDED

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes it was placed on, in task order without repeats."""
        return tuple(dict.fromkeys(t.node for t in self.tasks))

    @property
    def gpus(self) -> int:
        """GPUs it holds."""
        return sum(len(t.devices) for t in self.tasks)

    def node_of(self, rank: RankRun) -> str:
        """The node a rank runs on."""
        return self.tasks[rank.task].node


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A node that a job avoids because its agent was lost in that incarnation."""

    node: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class GpuClaim:
    """What is kept for a waiting job while others leave for it.

    Args:
        flavor: GPU model of the nodes.
        runs: (index of the task group, node, tasks) in rank order: where the job is to go.
        gpus: of all tasks.
        victims: jobs that were told to leave; none where those that left anyway will do.
    """

    flavor: str
    runs: tuple[tuple[int, str, int], ...]
    gpus: int
    victims: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the engine knows it; `queued_at_s` is submission or last eviction, which is the age in the order.

    `held_why` is why the engine holds it; empty where its owner does. `claim`: GPUs that others leave to it.
    """

    id: JobId
    spec: JobSpec
    state: JobState
    checkpoint_dir: str
    submitted_at_s: float
    queued_at_s: float
    token: str = ""
    held: bool = False
    held_why: str = ""
    not_before_s: float = 0.0
    restarts: int = 0
    cancelling: bool = False
    exclusions: tuple[Exclusion, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    ended_at_s: float | None = None
    cause: Cause | None = None
    detail: str = ""
    claim: GpuClaim | None = None

    @property
    def attempt(self) -> Attempt | None:
        """The latest attempt, if any was made."""
        return self.attempts[-1] if self.attempts else None

    @property
    def lost_starts(self) -> int:
        """How many of the latest attempts in a row lost a node before every rank ran."""
        count = 0
        for attempt in reversed(self.attempts):
            if attempt.end is not AttemptEnd.NODE_LOST or attempt.started_at_s is not None:
                break
            count += 1
        return count

    @property
    def active(self) -> Attempt | None:
        """The attempt that holds GPUs now, if any."""
        last = self.attempt
        return last if last is not None and last.active else None


@dataclass(frozen=True, slots=True)
class Node:
    """A node as the engine sees it now; `incarnation` counts its agents since the cluster was first started."""

    spec: NodeSpec
    state: NodeState
    devices: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    reason: str = ""
    since_s: float = 0.0
    incarnation: int = 0
    agent: AgentIdentity | None = None

    @property
    def up(self) -> bool:
        """Whether tasks may be placed on it."""
        return self.state not in (NodeState.DOWN, NodeState.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the append-only history; `seq` grows by one.

    Kinds of the embedded engine, in the order of a job's life: submitted, blocked_by, held, released, admitted,
    started, rank_exited, cancel_requested, preempted, stopping, fencing, fenced, requeued, ended. Of nodes: node_up,
    node_reconnected, node_lost. Of the engine: control_plane_started, cluster_stopped.
    """

    seq: int
    at_s: float
    kind: str
    job: JobId | None = None
    epoch: int | None = None
    node: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a rank wrote; `stream` is 'stdout' or 'stderr', `text` has no newline."""

    attempt: int
    rank: int
    stream: str
    text: str
