"""Ending a cluster so that nothing of it is left, with or without its supervisor and control plane.

Nothing here is written anywhere: a full disk keeps no cluster from being ended.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from typing import Final

from clusterwright.engines.local import reaping, wire
from clusterwright.engines.local.identities import Identity, alive, read_identity, send_signal
from clusterwright.engines.local.layout import Layout, cluster_tag

#: What an orderly end may take beyond the grace of the jobs before everything is killed.
MARGIN_S: Final = 15.0
#: How long the last search may take; only a process in uninterruptible sleep makes it take long.
SWEEP_S: Final = 60.0
#: How often ranks that were told to end are looked for.
LOOK_S: Final = 0.05


def stop_cluster(layout: Layout, cluster: str, grace_s: float) -> bool:
    """Ask the control plane to end jobs and agents in order, then kill what is left; True when nothing is.

    Jobs that ran are queued again for the next start. Where there is no control plane, or it cannot do it, the ranks
    are told to end and get the grace from here.
    """
    plane = read_identity(layout, "controlplane")
    if plane is None or not _ask(layout, plane, grace_s):
        if plane is not None:
            send_signal(plane, signal.SIGKILL)  # it must start nothing more
        _terminate(cluster, grace_s)
    roots = {i for i in (plane, read_identity(layout, "controlplane")) if i is not None}
    quarry = reaping.Quarry((cluster_tag(cluster),), frozenset(roots))
    return reaping.kill_all(quarry, timeout_s=SWEEP_S)


def _ask(layout: Layout, plane: Identity, grace_s: float) -> bool:
    """One request; True when the control plane did what it was asked for and ended."""
    deadline = time.monotonic() + grace_s + MARGIN_S
    send_signal(plane, signal.SIGCONT)  # one that was stopped answers nobody
    with contextlib.suppress(OSError, ValueError), contextlib.closing(_connect(layout, plane, deadline)) as connection:
        connection.settimeout(max(0.1, deadline - time.monotonic()))
        connection.sendall(wire.encode({"type": "shutdown", "grace_s": grace_s}))
        with connection.makefile("rb") as answers:
            if "ok" not in wire.decode(answers.readline()):
                return False
        while alive(plane) and time.monotonic() < deadline:
            time.sleep(0.01)
        return True
    return False


def _terminate(cluster: str, grace_s: float) -> None:
    """SIGTERM to every rank, through its shim, and the grace to end."""
    deadline = time.monotonic() + grace_s
    ranks = reaping.Quarry((f"{cluster_tag(cluster)}job/",))
    for found in reaping.find(ranks):
        if found.shim:
            send_signal(found.identity, signal.SIGTERM)
    while time.monotonic() < deadline and any(f.shim for f in reaping.find(ranks)):
        time.sleep(LOOK_S)


def _connect(layout: Layout, plane: Identity, deadline: float) -> socket.socket:
    """A connection to a control plane that may just be starting."""
    while True:
        try:
            return wire.connect(layout.run / "cp.sock", timeout_s=1.0)
        except OSError:
            if not alive(plane) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
