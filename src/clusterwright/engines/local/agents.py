"""The agent of one node: starts ranks, reports them, keeps them running while the control plane is away.

One thread, one select loop. A launch is known by (job, epoch, rank): the same one twice starts nothing. The agent
decides nothing about jobs; when it loses the control plane it waits for the next one and tells it everything again.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clusterwright.engines.local import shim, wire
from clusterwright.engines.local.identities import Identity, own_identity, read_stat, send_signal
from clusterwright.engines.local.layout import SHIM, Layout
from clusterwright.engines.local.wire import Message

#: Pause between attempts to reach the control plane.
RECONNECT_S: Final = 0.1

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
        self._pipes: dict[int, Rank] = {}
        self._socket: socket.socket | None = None
        self._lines = wire.LineBuffer()
        self._stop = False

    def run(self) -> None:
        """Serve until the control plane says exit or SIGTERM arrives."""
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        next_beat = 0.0
        while not self._stop:
            if self._socket is None and not self._connect():
                self._wait(RECONNECT_S)
                continue
            now = time.monotonic()
            if now >= next_beat:
                self._send({"type": "heartbeat"})
                next_beat = now + self._heartbeat_s
            self._wait(max(0.0, next_beat - now))

    def _on_term(self, *_: object) -> None:
        self._stop = True

    def _connect(self) -> bool:
        try:
            self._socket = wire.connect(self._layout.run / "cp.sock", timeout_s=5.0)
        except OSError:
            return False
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
        watched: list[Any] = [*self._pipes]
        if self._socket is not None:
            watched.append(self._socket)
        ready, _, _ = select.select(watched, [], [], timeout_s)
        exited = [r for r in ready if isinstance(r, int) and self._on_pipe(r)]
        if exited:
            self._report([self._pipes_done(fd) for fd in exited])
        if self._socket is not None and self._socket in ready:
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
            self._report([self._launch(message["job"], message["epoch"], r) for r in message["ranks"]])
        elif kind == "signal":
            self._signal(message["job"], message["epoch"], signal.Signals(message["signal"]))
        elif kind == "forget":
            gone = [k for k in self._ranks if k[0] == message["job"] and k[1] <= message["epoch"]]
            for key in gone:
                self._drop_pipe(self._ranks.pop(key))
        elif kind == "exit":
            self._stop = True

    def _report(self, ranks: list[Rank]) -> None:
        self._send({"type": "ranks", "ranks": [r.report() for r in ranks]})

    def _launch(self, job: str, epoch: int, order: Message) -> Rank:
        """Start one rank, or report the one that was started before."""
        key = (job, epoch, int(order["rank"]))
        known = self._ranks.get(key)
        if known is not None:
            return known
        rank = Rank(key, None, time.time(), order["directory"])
        try:
            self._spawn(rank, epoch, order)
        except OSError as error:
            rank.exit, rank.ended_at_s = f"error cannot start: {error}", time.time()
        self._ranks[key] = rank
        return rank

    def _spawn(self, rank: Rank, epoch: int, order: Message) -> None:
        Path(rank.directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        read_end, write_end = os.pipe()
        try:
            os.set_inheritable(write_end, True)
            command = [sys.executable, "-I", "-S", shim.__file__, str(epoch), order["fence"], rank.directory]
            command += [str(write_end), order["workdir"], "--", *order["argv"]]
            environment = {k: v for k, v in os.environ.items() if not k.startswith("CLUSTERWRIGHT_")}
            environment.update(order["env"])
            environment[SHIM] = "1"
            pid = os.posix_spawn(command[0], command, environment, setsid=True, setsigmask=())
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        stat = read_stat(pid)
        rank.identity = None if stat is None else stat.identity
        rank.pipe = read_end
        self._pipes[read_end] = rank

    def _on_pipe(self, fd: int) -> bool:
        """Read what a shim said; True when the rank's end is known."""
        rank = self._pipes[fd]
        data = os.read(fd, 65536)
        rank.heard += data
        if data and b"\n" not in rank.heard:
            return False
        line = rank.heard.decode(errors="replace").strip() or read_exit(rank.directory)
        rank.exit = line or "error the process that watched this rank was killed"
        rank.ended_at_s = time.time()
        return True

    def _pipes_done(self, fd: int) -> Rank:
        rank = self._pipes[fd]
        self._drop_pipe(rank)
        return rank

    def _drop_pipe(self, rank: Rank) -> None:
        if rank.pipe is not None:
            self._pipes.pop(rank.pipe, None)
            os.close(rank.pipe)
            rank.pipe = None

    def _signal(self, job: str, epoch: int, number: signal.Signals) -> None:
        for rank in self._ranks.values():
            if rank.key[:2] == (job, epoch) and rank.exit is None and rank.identity is not None:
                send_signal(rank.identity, number)


def read_exit(directory: str) -> str:
    """The exit line that a shim left in a rank's directory, or nothing."""
    try:
        return (Path(directory) / "exit").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
