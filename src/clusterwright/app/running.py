"""Use cases of the embedded engine: start a cluster, stop it, reach it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from clusterwright.app.extras import require_engine
from clusterwright.app.wiring import child_command
from clusterwright.engines.local.client import LocalEngine
from clusterwright.engines.local.configs import (
    HEARTBEAT_S,
    HEARTBEAT_TIMEOUT_S,
    ClusterConfig,
    write_config,
)
from clusterwright.engines.local.gpus import discover_gpus
from clusterwright.engines.local.identities import Identity, alive, read_identity, read_stat, send_signal
from clusterwright.engines.local.layout import TAG, Layout, default_state_dir, read_json, supervisor_tag, write_json
from clusterwright.engines.local.stopping import MARGIN_S, SWEEP_S, stop_cluster
from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.model.jobs import NodeSpec
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.policies import Policy
from clusterwright.queueing.quotas import QueueTree

#: How long a start may take until every agent has reported; a cold start of Python on a busy machine included.
START_S: Final = 60.0
#: How often somebody who waits for the end is told that it is waited for.
TELL_S: Final = 5.0
#: Grace for jobs that run when a cluster is stopped, at most their own.
STOP_GRACE_S: Final = 10.0
#: SQLite's MAX_PATHNAME (os_unix.c), less the "-journal" that it appends to the name of a database.
LONGEST_DATABASE_PATH: Final = 512 - len("-journal")

__all__ = ["ClusterHandle", "connect", "default_state_dir", "real_nodes", "start_cluster", "stop"]


class ClusterHandle:
    """A cluster that was started here. As a context manager it stops the cluster on every way out."""

    def __init__(self, layout: Layout, supervisor: Identity, lifeline: int | None, grace_s: float) -> None:
        self._layout, self._supervisor, self._lifeline, self._grace_s = layout, supervisor, lifeline, grace_s
        self.engine = LocalEngine(layout.root)

    @property
    def state_dir(self) -> Path:
        """Where its state is."""
        return self._layout.root

    @property
    def alive(self) -> bool:
        """Whether its supervisor lives."""
        return alive(self._supervisor)

    def kill_agent(self, node: str) -> float:
        """Kill the agent of a node with -9, as a machine that dies would; returns the moment before (POSIX seconds).

        Raises:
            InvalidInput: when there is no such node.
            Unavailable: when its agent does not run.
        """
        known = [n.spec.name for n in self.engine.nodes()]
        if node not in known:
            raise InvalidInput(f"no node '{node}'; nodes: {', '.join(known)}")
        identity = read_identity(self._layout, f"agent-{node}")
        at_s = time.time()  # before the signal: the loss may be noticed before this process runs again
        if identity is None or not send_signal(identity, signal.SIGKILL):
            raise Unavailable(f"the agent of node {node} does not run")
        return at_s

    def stop(self) -> None:
        """End jobs, agents, control plane and supervisor; returns when no process is left.

        Raises:
            Unavailable: when something could not be killed.
        """
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        stop(self._layout.root, grace_s=self._grace_s)
        _reap(self._supervisor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_cluster(
    state_dir: Path,
    nodes: Sequence[NodeSpec],
    *,
    restart_agents: bool = True,
    tree: QueueTree | None = None,
    policy: Policy | None = None,
    budgets: Mapping[str, Budget] | None = None,
    heartbeat_s: float = HEARTBEAT_S,
    heartbeat_timeout_s: float = HEARTBEAT_TIMEOUT_S,
    stop_grace_s: float = STOP_GRACE_S,
    detach: bool = False,
    start_timeout_s: float = START_S,
) -> ClusterHandle:
    """Start control plane and agents, or take over what an earlier supervisor left; returns when all agents reported.

    Args:
        state_dir: made if it is not there; keeps jobs and history from one start to the next.
        nodes: at least one; names differ.
        restart_agents: whether a dead agent is started again as a new incarnation.
        tree: queues; unset means no quota.
        policy: order, backfill and preemption; unset is `Policy()`, which preempts nobody.
        budgets: GPU-hours by queue; unset means none.
        heartbeat_s: how often agents say that they live.
        heartbeat_timeout_s: silence after which one counts as hung.
        stop_grace_s: grace for running jobs when it is stopped.
        detach: unset, the cluster is stopped when this process ends in any way; set, it outlives it.
        start_timeout_s: when to give up.

    Raises:
        InvalidInput: on no or repeated nodes, or a state directory whose path is too long.
        Unavailable: when a cluster is up there already, or an agent did not report in time, or
            the engine is not installed.
    """
    require_engine()
    names = [n.name for n in nodes]
    if not names or len(set(names)) != len(names):
        raise InvalidInput("a cluster needs at least one node, and every node a name of its own")
    layout = Layout(Path(state_dir).absolute())
    _require_short_path(layout)
    with _unwritable_named(layout):
        layout.make()
    with _only_starter(layout):
        if read_identity(layout, "supervisor") is not None:
            raise Unavailable(f"a cluster is already up in {layout.root}; end it with `cw down`")
        config = ClusterConfig(
            _cluster_id(layout),
            tuple(nodes),
            tree or QueueTree(),
            restart_agents,
            heartbeat_s,
            heartbeat_timeout_s,
            policy or Policy(),
            budgets or {},
        )
        with _unwritable_named(layout):
            write_config(layout, config)
            layout.failure.unlink(missing_ok=True)
        handle = _spawn_supervisor(layout, config.cluster, stop_grace_s, detach=detach)
        try:
            _await_agents(handle, layout, start_timeout_s)
        except BaseException:
            handle.stop()
            raise
    return handle


def connect(state_dir: Path) -> LocalEngine:
    """The engine of a cluster that is up."""
    return LocalEngine(state_dir)


def stop(
    state_dir: Path, *, grace_s: float = STOP_GRACE_S, progress: Callable[[str], None] = lambda line: None
) -> bool:
    """End the cluster of a state directory, with or without its supervisor; False if there never was one.

    Args:
        state_dir: where it keeps its state; a full disk there is no hindrance.
        grace_s: time for running jobs to end; where it cannot be written down for the supervisor, that gives its own.
        progress: told from time to time what is waited for.

    Raises:
        Unavailable: when something could not be killed.
    """
    layout = Layout(Path(state_dir).absolute())
    cluster = _known_cluster(layout)
    if cluster is None:
        return False
    supervisor = read_identity(layout, "supervisor")
    if supervisor is not None:
        with contextlib.suppress(OSError):
            write_json(layout.stop_order, {"grace_s": grace_s})
        send_signal(supervisor, signal.SIGTERM)
        send_signal(supervisor, signal.SIGCONT)  # one that was stopped hears nothing else
        _await_end(supervisor, grace_s + MARGIN_S + SWEEP_S, progress)
        if send_signal(supervisor, signal.SIGKILL):
            progress(f"killed the supervisor (pid {supervisor.pid}), which did not end; ending the rest without it")
        _await_end(supervisor, 5.0)
    if not stop_cluster(layout, cluster, grace_s):
        raise Unavailable(
            f"processes of the cluster in {layout.root} are still there (uninterruptible, or another user's)"
        )
    return True


def real_nodes() -> tuple[NodeSpec, ...]:
    """This machine as one node with its real GPUs.

    Raises:
        Unavailable: when it has none.
    """
    gpus = discover_gpus()
    if not gpus:
        raise Unavailable('no NVIDIA GPU found; declare virtual nodes with --nodes "n[1-2]" --gpus 8')
    models = {g.model for g in gpus}
    if len(models) > 1:
        raise Unavailable(f"GPUs of several models in one node are not supported: {', '.join(sorted(models))}")
    return (NodeSpec(socket.gethostname(), len(gpus), models.pop(), virtual=False),)


def _require_short_path(layout: Layout) -> None:
    length, most = len(os.fsencode(os.path.realpath(layout.database))), LONGEST_DATABASE_PATH
    if length > most:
        raise InvalidInput(
            f"the path of the state directory is {length - most} bytes too long: SQLite opens files with at most "
            f"{most} bytes in their path, {layout.database.name} there would have {length}"
        )


@contextlib.contextmanager
def _unwritable_named(layout: Layout) -> Iterator[None]:
    """A state directory that cannot be made or written is the user's to mend."""
    try:
        yield
    except OSError as error:
        where = error.filename or layout.root
        raise Unavailable(f"state directory {layout.root} cannot be used: {where}: {error.strerror}") from error


@contextlib.contextmanager
def _only_starter(layout: Layout) -> Iterator[None]:
    """Keeps two starts in one directory apart: the one that gives up must not stop the other's cluster."""
    with _unwritable_named(layout):
        lock = os.open(layout.lock("up"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(f"another `cw up` is just starting a cluster in {layout.root}") from None
        yield
    finally:
        os.close(lock)


def _cluster_id(layout: Layout) -> str:
    return _known_cluster(layout) or uuid.uuid4().hex


def _known_cluster(layout: Layout) -> str | None:
    found = read_json(layout.config)
    return str(found["cluster"]) if isinstance(found, dict) and found.get("cluster") else None


def _spawn_supervisor(layout: Layout, cluster: str, grace_s: float, *, detach: bool) -> ClusterHandle:
    command = [*child_command(layout.root, "supervisor", ""), str(grace_s)]
    read_end, write_end = os.pipe()
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(layout.log / "supervisor.log"), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    environment = {k: v for k, v in os.environ.items() if k != TAG} | {TAG: supervisor_tag(cluster)}
    try:
        if not detach:
            os.set_inheritable(read_end, True)
            command.append(str(read_end))
        pid = os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)
    except BaseException:
        os.close(write_end)
        raise
    finally:
        os.close(read_end)
    stat = read_stat(pid)
    if stat is None:
        os.close(write_end)
        raise Unavailable(f"the supervisor ended at once; see {layout.log / 'supervisor.log'}")
    if detach:
        os.close(write_end)
    return ClusterHandle(layout, stat.identity, None if detach else write_end, grace_s)


def _await_agents(handle: ClusterHandle, layout: Layout, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        missing = "the control plane"
        if read_identity(layout, "controlplane") is not None:
            nodes = handle.engine.nodes()
            missing = ", ".join(n.spec.name for n in nodes if not n.up)
            broken = [f"{n.spec.name}: {n.reason}" for n in nodes if not n.up and "declared GPUs" in n.reason]
            if broken:
                raise Unavailable("; ".join(broken))
            if not missing:
                return
        failure = read_json(layout.failure)
        if isinstance(failure, dict):
            raise Unavailable(f"the control plane cannot begin: {failure.get('error')}")
        if not handle.alive:
            raise Unavailable(f"the supervisor ended; see {layout.log / 'supervisor.log'}")
        if time.monotonic() > deadline:
            raise Unavailable(f"{missing} did not report within {timeout_s:g} s; see {layout.log}")
        time.sleep(0.02)


def _await_end(identity: Identity, timeout_s: float, progress: Callable[[str], None] = lambda line: None) -> None:
    began = told = time.monotonic()
    while alive(identity) and (now := time.monotonic()) < began + timeout_s:
        if now > told + TELL_S:
            told, left_s = now, began + timeout_s - now
            progress(f"waiting for the supervisor (pid {identity.pid}) to end the cluster; {left_s:.0f} s at most")
        time.sleep(0.01)
    _reap(identity)


def _reap(identity: Identity) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(identity.pid, os.WNOHANG)
