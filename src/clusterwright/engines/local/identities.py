"""Which process is which: a pid is reused, a pid with its start time is not (proc(5), /proc/PID/stat field 22)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clusterwright.engines.local.layout import Layout, read_json, write_json


@dataclass(frozen=True, slots=True)
class Identity:
    """One process; `starttime` is in clock ticks since boot."""

    pid: int
    starttime: int


@dataclass(frozen=True, slots=True)
class Stat:
    """What /proc/PID/stat says about a process."""

    pid: int
    parent: int
    state: str
    threads: int
    starttime: int

    @property
    def identity(self) -> Identity:
        """Its name that is never reused."""
        return Identity(self.pid, self.starttime)

    @property
    def runs(self) -> bool:
        """Whether it can still execute anything: a zombie whose other threads live can (its leader ended first)."""
        return self.state not in "ZX" or self.threads > 1


def read_stat(pid: int) -> Stat | None:
    """What /proc says, or None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may contain spaces and parentheses: fields count from the last ')'.
    fields = text[text.rindex(b")") + 2 :].split()
    return Stat(pid, int(fields[1]), fields[0].decode(), int(fields[17]), int(fields[19]))


def alive(identity: Identity) -> bool:
    """Whether exactly this process exists and can still execute anything."""
    stat = read_stat(identity.pid)
    return stat is not None and stat.starttime == identity.starttime and stat.runs


def own_identity() -> Identity:
    """The calling process."""
    stat = read_stat(os.getpid())
    assert stat is not None
    return stat.identity


def send_signal(identity: Identity, number: signal.Signals) -> bool:
    """Signal exactly this process; False when it is gone or not ours to signal.

    A reused pid is never reached where the kernel has pidfds (Linux 5.3); elsewhere the check comes just before.
    """
    try:
        handle = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    except OSError:  # no pidfd before Linux 5.3, and some container profiles forbid it
        return alive(identity) and _signalled(lambda: os.kill(identity.pid, number))
    try:
        return alive(identity) and _signalled(lambda: signal.pidfd_send_signal(handle, number))
    finally:
        os.close(handle)


def _signalled(send: Callable[[], None]) -> bool:
    try:
        send()
    except (ProcessLookupError, PermissionError):
        return False
    return True


def write_identity(layout: Layout, process: str, **more: object) -> Identity:
    """Record the calling process under a name."""
    me = own_identity()
    write_json(layout.identity(process), {"pid": me.pid, "starttime": me.starttime, **more})
    return me


def read_identity(layout: Layout, process: str) -> Identity | None:
    """The process recorded under a name, if it lives."""
    found = read_json(layout.identity(process))
    if not isinstance(found, dict) or "pid" not in found:
        return None
    identity = Identity(int(found["pid"]), int(found["starttime"]))
    return identity if alive(identity) else None
