"""Making sure that every process of an attempt is gone, without asking the agent that started it.

A process belongs to an attempt when its environment (as it was at exec: proc(5), /proc/PID/environ) carries the
attempt's tag, or when it descends from one that does or from a known shim. Forked, setsid and double-forked children
inherit the tag. The shim is a child subreaper (prctl(2), PR_SET_CHILD_SUBREAPER): orphans, also those that wiped their
environment, stay below it, which is why shims are killed last, after everything below them has gone. Where somebody
else has killed a shim, what it leaves becomes a child of the supervisor, the next subreaper: a child of the supervisor
without any tag is such a stray and belongs, too.

What this cannot catch: a process that has wiped its environment, whose shim was killed by somebody else, at a time when
the supervisor was dead as well. A process of another user (set-uid) can be seen but not killed and keeps the fence
closed. A process in uninterruptible sleep is waited for: SIGKILL takes effect when its system call returns.

One look at /proc is not atomic: a process may fork or exec while it is read. So a group counts as gone only after two
looks in a row that found nothing.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clusterwright.engines.local.identities import Identity, Stat, read_stat, send_signal
from clusterwright.engines.local.layout import SHIM, TAG

#: Looks in a row that must find nothing.
CLEAN_LOOKS: Final = 2
#: Pause between looks, so that what was killed has time to go.
PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 0.5
#: An exec shows an empty environment for a moment: a stray must be without a tag for longer than that.
_EXEC_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Quarry:
    """What to look for.

    Args:
        tags: prefixes of tags.
        roots: processes that count with all their descendants.
        supervisor: its children without any tag count, too.
        spare: pids never touched.
    """

    tags: tuple[str, ...] = ()
    roots: frozenset[Identity] = frozenset()
    supervisor: Identity | None = None
    spare: frozenset[int] = field(default_factory=lambda: frozenset({os.getpid()}))


@dataclass(frozen=True, slots=True)
class Found:
    """A process that belongs; shims are killed last."""

    identity: Identity
    shim: bool


def find(quarry: Quarry) -> list[Found]:
    """Processes that belong and can still execute anything, by pid."""
    stats = {s.pid: s for s in map(read_stat, _pids()) if s is not None}
    environments = {p: _environment(p) for p in stats}
    prefixes = tuple(f"{TAG}={t}".encode() for t in quarry.tags)
    marked = {
        p
        for p, s in stats.items()
        if s.identity in quarry.roots or (prefixes and any(v.startswith(prefixes) for v in environments[p]))
    }
    if quarry.supervisor is not None:
        marked |= {p for p, s in stats.items() if _is_stray(s, quarry.supervisor, environments[p])}
    shim = f"{SHIM}=".encode()
    return [
        Found(stats[p].identity, any(v.startswith(shim) for v in environments[p]))
        for p in sorted(_with_descendants(marked, stats) - quarry.spare)
        if stats[p].runs
    ]


def kill_all(
    quarry: Quarry,
    *,
    timeout_s: float | None = None,
    progress: Callable[[int], None] = lambda alive: None,
) -> bool:
    """SIGKILL what belongs, again and again, until two looks in a row find nothing; True when that was reached.

    Args:
        quarry: what to look for.
        timeout_s: give up after so long; unset means never.
        progress: told after each look how many were alive.
    """
    without_others, empty, pause = 0, 0, PAUSE_S
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        found = find(quarry)
        progress(len(found))
        others = [f for f in found if not f.shim]
        without_others = 0 if others else without_others + 1
        empty = 0 if found else empty + 1
        if empty == CLEAN_LOOKS:
            return True
        if others or without_others >= CLEAN_LOOKS:
            for target in others or found:
                send_signal(target.identity, signal.SIGKILL)
        if deadline is not None and time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 1.2, _LONGEST_PAUSE_S) if found else PAUSE_S


def _pids() -> Iterable[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _environment(pid: int) -> list[bytes]:
    """Our own variables in a process's environment; nothing when it is gone or another user's."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return []
    return [item for item in text.split(b"\0") if item.startswith(b"CLUSTERWRIGHT_")]


def _is_stray(stat: Stat, supervisor: Identity, environment: list[bytes]) -> bool:
    """Whether a child of the supervisor carries no tag, now and a moment later."""
    tag = f"{TAG}=".encode()
    if stat.parent != supervisor.pid or not stat.runs or any(v.startswith(tag) for v in environment):
        return False
    time.sleep(_EXEC_S)
    return not any(v.startswith(tag) for v in _environment(stat.pid))


def _with_descendants(marked: Collection[int], stats: dict[int, Stat]) -> set[int]:
    children: dict[int, list[int]] = {}
    for stat in stats.values():
        children.setdefault(stat.parent, []).append(stat.pid)
    belongs, queue = set(marked), list(marked)
    while queue:
        for child in children.get(queue.pop(), ()):
            if child not in belongs:
                belongs.add(child)
                queue.append(child)
    return belongs
