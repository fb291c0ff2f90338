"""Reservations and maintenance windows: nodes that are kept for somebody, or for nobody, during a time.

A job may use a node of a window only if it is sure to end before the window starts, or if the window is its own. A job
without a time limit is never sure. Source: Slurm, "Advanced Resource Reservation Guide" (jobs whose time limit reaches
into a reservation are not started on its nodes; flag MAINT).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clusterwright.queueing.clusters import Cluster
from clusterwright.queueing.requests import Request


@dataclass(frozen=True, slots=True)
class Window:
    """Nodes kept from `start_s` to `end_s`.

    Args:
        nodes: names.
        queues: whose jobs may use the nodes during the window, together with jobs that name it; empty is nobody.
        maintenance: nobody may, whoever names it.
    """

    name: str
    start_s: float
    end_s: float
    nodes: frozenset[str]
    queues: frozenset[str] = field(default_factory=frozenset)
    maintenance: bool = False

    def admits(self, request: Request) -> bool:
        """Whether a job may run on the nodes during the window."""
        if self.maintenance:
            return False
        return request.reservation == self.name or request.queue in self.queues

    def closes(self, request: Request, now_s: float) -> bool:
        """Whether the window keeps a job that would start now from its nodes."""
        if now_s >= self.end_s or self.admits(request):
            return False
        return request.limit_s is None or now_s + request.limit_s > self.start_s


def closing(windows: Iterable[Window], request: Request, now_s: float) -> list[Window]:
    """The windows whose nodes a job may not use if it starts now."""
    return [w for w in windows if w.closes(request, now_s)]


def open_for(cluster: Cluster, flavor: str, closed: Iterable[Window], free: NDArray[np.int32]) -> NDArray[np.int32]:
    """Free GPUs by node without the nodes of some windows, (nodes,) int32."""
    left, index = free.copy(), cluster.floors[flavor].index
    for window in closed:
        for name in window.nodes:
            if (node := index.get(name)) is not None:
                left[node] = 0
    return left
