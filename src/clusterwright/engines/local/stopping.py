"""Ending a cluster so that nothing of it is left, with or without its supervisor and control plane."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Final

from clusterwright.engines.local import reaping, wire
from clusterwright.engines.local.identities import Identity, alive, read_identity
from clusterwright.engines.local.layout import Layout, cluster_tag

#: What an orderly end may take beyond the grace of the jobs before everything is killed.
MARGIN_S: Final = 15.0
#: How long the last search may take; only a process in uninterruptible sleep makes it take long.
SWEEP_S: Final = 60.0


def stop_cluster(layout: Layout, cluster: str, grace_s: float) -> bool:
    """Ask the control plane to end jobs and agents in order, then kill what is left; True when nothing is.

    Jobs that ran are queued again for the next start. Without a control plane everything is killed at once.
    """
    plane = read_identity(layout, "controlplane")
    if plane is not None:
        _ask(layout, plane, grace_s)
    roots = {i for i in (plane, read_identity(layout, "controlplane")) if i is not None}
    quarry = reaping.Quarry((cluster_tag(cluster),), frozenset(roots))
    return reaping.kill_all(quarry, timeout_s=SWEEP_S)


def _ask(layout: Layout, plane: Identity, grace_s: float) -> None:
    """One request; its answer, the end of the control plane, or the deadline: all are followed by the search."""
    deadline = time.monotonic() + grace_s + MARGIN_S
    with contextlib.suppress(OSError), contextlib.closing(_connect(layout, plane, deadline)) as connection:
        connection.settimeout(max(0.1, deadline - time.monotonic()))
        connection.sendall(wire.encode({"type": "shutdown", "grace_s": grace_s}))
        if connection.recv(65536):
            while alive(plane) and time.monotonic() < deadline:
                time.sleep(0.01)


def _connect(layout: Layout, plane: Identity, deadline: float) -> socket.socket:
    """A connection to a control plane that may just be starting."""
    while True:
        try:
            return wire.connect(layout.run / "cp.sock", timeout_s=1.0)
        except OSError:
            if not alive(plane) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
