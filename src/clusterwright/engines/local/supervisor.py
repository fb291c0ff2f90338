"""The process that keeps a cluster up: starts the control plane and the agents, and starts them again when they die.

It is a child subreaper, so what a killed agent leaves behind becomes its child and no zombie stays. If the supervisor
itself is killed, control plane, agents and ranks go on without it; the next `up` takes them over (the control plane is
replaced, agents and ranks stay) and `down` ends them.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import logging
import os
import selectors
import signal
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from clusterwright.engines.local import reaping
from clusterwright.engines.local.configs import ClusterConfig
from clusterwright.engines.local.identities import (
    Identity,
    alive,
    read_identity,
    read_stat,
    send_signal,
    write_identity,
)
from clusterwright.engines.local.layout import TAG, Layout, agent_tag, cluster_tag, read_json
from clusterwright.engines.local.stopping import stop_cluster
from clusterwright.lib.errors import Unavailable

_log = logging.getLogger(__name__)

_PR_SET_CHILD_SUBREAPER: Final = 36
#: First and longest pause before a process that keeps dying is started again, doubled each time in between.
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 5.0
#: A process that lived so long did not die of its own start: its next start does not wait.
STABLE_S: Final = 1.0
#: How often adopted processes, which are not children, are looked at.
LOOK_S: Final = 0.25

#: Command lines of the children: for the control plane, and for a node's agent with its boot tag.
Commands = Callable[[str, str], list[str]]


@dataclass(slots=True)
class _Child:
    """A process to be kept alive; `identity` is unset while it is not running."""

    name: str
    node: str = ""
    identity: Identity | None = None
    keep: bool = True
    started: float = 0.0
    pause: float = FIRST_PAUSE_S
    due: float = field(default=0.0)


class Supervisor:
    """Keeps one cluster up.

    Args:
        layout: the state directory.
        config: what to run.
        command: gives the command line of a process: ("controlplane", "") or ("agent", NODE).
        lifeline: a pipe's read end: when its other end closes, the owner is gone and the cluster is stopped.
        grace_s: grace for running jobs when the cluster is stopped.
    """

    def __init__(
        self, layout: Layout, config: ClusterConfig, command: Commands, lifeline: int | None, grace_s: float
    ) -> None:
        self._layout, self._config, self._command = layout, config, command
        self._lifeline, self._grace_s = lifeline, grace_s
        if lifeline is not None:
            os.set_inheritable(lifeline, False)
        self._plane = _Child("controlplane")
        self._agents = [_Child(f"agent-{n.name}", n.name, keep=config.restart_agents) for n in config.nodes]
        self._stop = False

    def run(self) -> None:
        """Until SIGTERM, SIGINT or the end of the lifeline; then stops everything.

        Raises:
            Unavailable: when another supervisor holds this state directory.
        """
        lock = os.open(self._layout.lock("supervisor"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(f"a cluster is already up in {self._layout.root}") from None
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._layout.stop_order.unlink(missing_ok=True)
        write_identity(self._layout, "supervisor")
        wakeup = self._handle_signals()
        self._take_over()
        while not self._stop:
            self._keep_alive()
            self._wait(wakeup)
        order = read_json(self._layout.stop_order)
        self._layout.stop_order.unlink(missing_ok=True)
        grace_s = float(order["grace_s"]) if isinstance(order, dict) else self._grace_s
        stop_cluster(self._layout, self._config.cluster, grace_s)
        self._collect()
        os.close(lock)

    def _handle_signals(self) -> int:
        read_end, write_end = os.pipe()
        for end in (read_end, write_end):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return read_end

    def _on_stop(self, *_: object) -> None:
        self._stop = True

    def _take_over(self) -> None:
        """What an earlier supervisor left: its control plane is replaced, agents of declared nodes are kept."""
        old = read_identity(self._layout, "controlplane")
        if old is not None:
            reaping.kill_all(reaping.Quarry(roots=frozenset({old})), timeout_s=30.0)
        for child in self._agents:
            child.identity = read_identity(self._layout, child.name)
        kept = {c.identity for c in self._agents}
        quarry = reaping.Quarry((f"{cluster_tag(self._config.cluster)}agent/",))
        for identity in {f.identity for f in reaping.find(quarry)} - kept:
            if self._is_agent(identity):
                send_signal(identity, signal.SIGKILL)

    def _is_agent(self, identity: Identity) -> bool:
        """Whether it is an agent itself and not a rank below one."""
        with contextlib.suppress(OSError), open(f"/proc/{identity.pid}/environ", "rb") as file:
            prefix = f"{TAG}={cluster_tag(self._config.cluster)}agent/".encode()
            return any(item.startswith(prefix) for item in file.read().split(b"\0"))
        return False

    def _keep_alive(self) -> None:
        self._collect()
        now = time.monotonic()
        for child in (self._plane, *self._agents):
            if child.identity is not None and not alive(child.identity):
                self._on_death(child, now)
            if child.identity is None and child.keep | (child.started == 0.0) and now >= child.due:
                self._start(child, now)

    def _on_death(self, child: _Child, now: float) -> None:
        _log.warning("%s (pid %s) is gone", child.name, child.identity and child.identity.pid)
        child.identity = None
        child.pause = FIRST_PAUSE_S if now - child.started > STABLE_S else min(child.pause * 2, LONGEST_PAUSE_S)
        child.due = now + child.pause

    def _start(self, child: _Child, now: float) -> None:
        cluster, boot = self._config.cluster, uuid.uuid4().hex
        tag = agent_tag(cluster, child.node, boot) if child.node else f"{cluster_tag(cluster)}controlplane/"
        command = self._command("agent" if child.node else "controlplane", child.node)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CLUSTERWRIGHT_")}
        environment[TAG] = tag
        if child.node:
            environment["CLUSTERWRIGHT_BOOT"] = boot
        log = str(self._layout.log / f"{child.name}.log")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        pid = os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True, setsigmask=())
        stat = read_stat(pid)
        child.identity, child.started = None if stat is None else stat.identity, now

    def _collect(self) -> None:
        """Reap children and adopted orphans."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def _wait(self, wakeup: int) -> None:
        now = time.monotonic()
        due = [c.due - now for c in (self._plane, *self._agents) if c.identity is None and c.keep]
        with selectors.DefaultSelector() as events:
            for fd in (wakeup, self._lifeline):
                if fd is not None:
                    events.register(fd, selectors.EVENT_READ)
            ready = [key.fd for key, _ in events.select(max(0.0, min([LOOK_S, *due])))]
        if wakeup in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wakeup, 4096)
        if self._lifeline in ready:
            self._stop = True
