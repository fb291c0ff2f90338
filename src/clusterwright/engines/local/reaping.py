"""Making sure that every process of an attempt is gone, without asking the agent that started it.

A process belongs to an attempt when its environment (as it was at exec: proc(5), /proc/PID/environ) carries the
attempt's tag, or when it descends from one that does or from a known shim. Forked, setsid and double-forked children
inherit the tag, and the shim is a child subreaper (prctl(2), PR_SET_CHILD_SUBREAPER), so orphans stay below it.

What this cannot catch: a process that has wiped its environment *and* lost its ancestry because its shim was killed by
somebody else; a process of another user (set-uid) can be seen but not killed and keeps the fence closed. A process in
uninterruptible sleep is waited for: SIGKILL takes effect when its system call returns.

One look at /proc is not atomic: a process may fork while it is read. So a group counts as gone only after two looks in
a row that found nothing.
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
from clusterwright.engines.local.layout import TAG

#: Looks in a row that must find nothing.
CLEAN_LOOKS: Final = 2
#: Pause between looks, so that what was killed has time to go.
PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Quarry:
    """What to look for: tag prefixes, and processes that count with all their descendants."""

    tags: tuple[str, ...] = ()
    roots: frozenset[Identity] = frozenset()
    spare: frozenset[int] = field(default_factory=lambda: frozenset({os.getpid()}))


def find(quarry: Quarry) -> list[Identity]:
    """Processes that belong and can still execute anything, ancestors first."""
    stats = {s.pid: s for s in map(read_stat, _pids()) if s is not None}
    prefixes = tuple(f"{TAG}={t}".encode() for t in quarry.tags)
    marked = {p for p, s in stats.items() if s.identity in quarry.roots or (prefixes and _tagged(p, prefixes))}
    belongs = _with_descendants(marked, stats)
    return [stats[p].identity for p in sorted(belongs - quarry.spare) if stats[p].runs]


def kill_all(
    quarry: Quarry,
    *,
    timeout_s: float | None = None,
    progress: Callable[[int], None] = lambda alive: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """SIGKILL what belongs, again and again, until two looks in a row find nothing; True when that was reached.

    Args:
        quarry: what to look for.
        timeout_s: give up after so long; unset means never.
        progress: told after each look how many were alive.
        stop: asked after each look whether to give up.
    """
    clean, pause = 0, PAUSE_S
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while clean < CLEAN_LOOKS:
        found = find(quarry)
        progress(len(found))
        for identity in found:
            send_signal(identity, signal.SIGKILL)
        clean = 0 if found else clean + 1
        if clean == CLEAN_LOOKS:
            break
        if stop() or (deadline is not None and time.monotonic() > deadline):
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S) if found else PAUSE_S
    return True


def _pids() -> Iterable[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _tagged(pid: int, prefixes: tuple[bytes, ...]) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # gone, or another user's
        return False
    return any(item.startswith(prefixes) for item in environment.split(b"\0"))


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
