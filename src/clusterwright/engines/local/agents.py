"""The agent of one node: starts ranks, reports them, keeps them running while the control plane is away.

One thread, one event loop. A launch is known by (job, epoch, rank): the same one twice starts nothing. Launches are
queued and carried out a few at a time, so that a thousand of them keep it neither from saying that it lives nor from
hearing that they are no longer wanted. The agent decides nothing about jobs; when it loses the control plane it waits
for the next one and tells it everything again.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clusterwright.engines.local import shim, wire
from clusterwright.engines.local.environments import base_environment
from clusterwright.engines.local.identities import Identity, own_identity, read_stat, send_signal
from clusterwright.engines.local.layout import SHIM, Layout
from clusterwright.engines.local.wire import Message

#: Pause between attempts to reach the control plane.
RECONNECT_S: Final = 0.1
#: How long it launches before it looks again at what else there is to do.
LAUNCH_S: Final = 0.05

Key = tuple[str, int, int]


@dataclass(slots=True)
class Rank:
    """A rank this agent started; `exit` is the shim's line once it is known."""

    key: Key
    identity: Identity | None
    started_at_s: float
    directory: str
    pipe: int | None = None
    heard: bytes = b""
    exit: str | None = None
    ended_at_s: float | None = None

    def report(self) -> Message:
        """What the control plane is told."""
        job, epoch, rank = self.key
        return {
            "job": job,
            "epoch": epoch,
            "rank": rank,
            "pid": self.identity and self.identity.pid,
            "starttime": self.identity and self.identity.starttime,
            "started_at_s": self.started_at_s,
            "exit": self.exit,
            "ended_at_s": self.ended_at_s,
        }


class Agent:
    """One node's agent.

    Args:
        layout: the state directory.
        node: the node's name.
        boot: the tag of this incarnation.
        heartbeat_s: how often it says that it lives.
        devices: GPU ids it found, reported as they are.
    """

    def __init__(self, layout: Layout, node: str, boot: str, heartbeat_s: float, devices: tuple[str, ...]) -> None:
        self._layout, self._node, self._boot, self._heartbeat_s = layout, node, boot, heartbeat_s
        self._devices = devices
        self._me = own_identity()
        self._ranks: dict[Key, Rank] = {}
        self._orders: deque[tuple[Key, Message]] = deque()
        self._dropped: dict[str, int] = {}
        self._events = selectors.DefaultSelector()
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._socket: socket.socket | None = None
        self._lines = wire.LineBuffer()
        self._next_beat = 0.0
        self._stop = False

    def run(self) -> None:
        """Serve until the control plane says exit or SIGTERM arrives."""
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._limit_files(self._files[1])  # one pipe per rank
        while not self._stop:
            if self._socket is None and not self._connect():
                self._wait(RECONNECT_S)
                continue
            self._beat()
            self._launch_some()
            self._wait(0.0 if self._orders else max(0.0, self._next_beat - time.monotonic()))

    def _limit_files(self, soft: int) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, self._files[1]))

    def _beat(self) -> None:
        now = time.monotonic()
        if now >= self._next_beat:
            self._send({"type": "heartbeat"})
            self._next_beat = now + self._heartbeat_s

    def _on_term(self, *_: object) -> None:
        self._stop = True

    def _connect(self) -> bool:
        try:
            self._socket = wire.connect(self._layout.run / "cp.sock", timeout_s=5.0)
        except OSError:
            return False
        self._events.register(self._socket, selectors.EVENT_READ)
        self._lines = wire.LineBuffer()
        return self._send(
            {
                "type": "hello",
                "node": self._node,
                "boot": self._boot,
                "pid": self._me.pid,
                "starttime": self._me.starttime,
                "devices": list(self._devices),
                "ranks": [r.report() for r in self._ranks.values()],
            }
        )

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._events.unregister(self._socket)
            self._socket.close()
            self._socket = None

    def _send(self, message: Message) -> bool:
        if self._socket is None:
            return False
        try:
            self._socket.sendall(wire.encode(message))
        except OSError:
            self._disconnect()
            return False
        return True

    def _wait(self, timeout_s: float) -> None:
        """Until something is readable; handles it, and reaps shims that ended."""
        ready = [key.data for key, _ in self._events.select(timeout_s)]
        exited = [rank for rank in ready if rank is not None and self._on_pipe(rank)]
        if exited:
            self._report(exited)
        if self._socket is not None and None in ready:
            self._on_socket(self._socket)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def _on_socket(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            self._disconnect()
            return
        for line in self._lines.feed(data):
            self._on_message(wire.decode(line))

    def _on_message(self, message: Message) -> None:
        kind = message["type"]
        if kind == "launch":
            job, epoch = str(message["job"]), int(message["epoch"])
            if epoch > self._dropped.get(job, 0):
                self._orders.extend(((job, epoch, int(r["rank"])), r) for r in message["ranks"])
        elif kind == "signal":
            self._signal(message["job"], message["epoch"], signal.Signals(message["signal"]))
        elif kind == "drop":
            self._drop(str(message["job"]), int(message["epoch"]), message)
        elif kind == "forget":
            self._orders = deque(o for o in self._orders if not _before(o[0], message))
            for key in [k for k in self._ranks if _before(k, message)]:
                self._drop_pipe(self._ranks.pop(key))
        elif kind == "exit":
            self._stop = True

    def _drop(self, job: str, epoch: int, message: Message) -> None:
        """Never start anything of the epoch or an older one any more, and confirm it: what was started is visible."""
        self._dropped[job] = max(epoch, self._dropped.get(job, 0))
        self._orders = deque(o for o in self._orders if not _before(o[0], message))
        self._send({"type": "dropped", "job": job, "epoch": epoch})

    def _report(self, ranks: list[Rank]) -> None:
        self._send({"type": "ranks", "ranks": [r.report() for r in ranks]})

    def _launch_some(self) -> None:
        """Launch what is ordered, for a moment."""
        began, launched = time.monotonic(), list[Rank]()
        while self._orders and time.monotonic() - began < LAUNCH_S:
            launched.append(self._launch(*self._orders.popleft()))
        if launched:
            self._report(launched)

    def _launch(self, key: Key, order: Message) -> Rank:
        """Start one rank, or report the one that was started before."""
        known = self._ranks.get(key)
        if known is not None:
            return known
        rank = Rank(key, None, time.time(), order["directory"])
        try:
            self._spawn(rank, order)
        except OSError as error:
            rank.exit, rank.ended_at_s = f"error cannot start: {error}", time.time()
        self._ranks[key] = rank
        return rank

    def _spawn(self, rank: Rank, order: Message) -> None:
        Path(rank.directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        read_end, write_end = os.pipe()
        try:
            os.set_inheritable(write_end, True)
            command = [sys.executable, "-I", "-S", shim.__file__, str(rank.key[1]), order["fence"], rank.directory]
            command += [str(write_end), order["workdir"], "--", *order["argv"]]
            environment = {**base_environment(os.environ), **order["env"], SHIM: "1"}
            self._limit_files(self._files[0])  # the rank's own limit is that of the shell
            pid = os.posix_spawn(command[0], command, environment, setsid=True, setsigmask=())
        except BaseException:
            os.close(read_end)
            raise
        finally:
            self._limit_files(self._files[1])
            os.close(write_end)
        stat = read_stat(pid)
        rank.identity = None if stat is None else stat.identity
        rank.pipe = read_end
        self._events.register(read_end, selectors.EVENT_READ, rank)

    def _on_pipe(self, rank: Rank) -> bool:
        """Read what a shim said; True when the rank's end is known."""
        assert rank.pipe is not None
        data = os.read(rank.pipe, 65536)
        rank.heard += data
        if data and b"\n" not in rank.heard:
            return False
        line = rank.heard.decode(errors="replace").strip() or read_exit(rank.directory)
        rank.exit = line or "error the process that watched this rank was killed"
        rank.ended_at_s = time.time()
        self._drop_pipe(rank)
        return True

    def _drop_pipe(self, rank: Rank) -> None:
        if rank.pipe is not None:
            self._events.unregister(rank.pipe)
            os.close(rank.pipe)
            rank.pipe = None

    def _signal(self, job: str, epoch: int, number: signal.Signals) -> None:
        """Signal the ranks that run; those still waiting to be launched are not launched any more."""
        waiting = [o for o in self._orders if o[0][:2] == (job, epoch) and o[0] not in self._ranks]
        self._orders = deque(o for o in self._orders if o[0][:2] != (job, epoch))
        now = time.time()
        for key, order in waiting:
            end = "error stopped before it was started"
            self._ranks[key] = Rank(key, None, now, order["directory"], exit=end, ended_at_s=now)
        if waiting:
            self._report([self._ranks[key] for key, _ in waiting])
        for rank in self._ranks.values():
            if rank.key[:2] == (job, epoch) and rank.exit is None and rank.identity is not None:
                send_signal(rank.identity, number)


def _before(key: Key, message: Message) -> bool:
    """Whether a rank belongs to the job and to the epoch, or an older one, of a message."""
    return key[0] == str(message["job"]) and key[1] <= int(message["epoch"])


def read_exit(directory: str) -> str:
    """The exit line that a shim left in a rank's directory, or nothing."""
    try:
        return (Path(directory) / "exit").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
