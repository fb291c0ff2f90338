"""What an agent needs to start the ranks of an attempt."""

from __future__ import annotations

import socket
from collections.abc import Collection

from clusterwright.engines.local import fences
from clusterwright.engines.local.environments import rank_environment
from clusterwright.engines.local.layout import Layout
from clusterwright.engines.local.wire import Message
from clusterwright.model.jobs import Attempt, Job


def launch_order(layout: Layout, cluster: str, job: Job, attempt: Attempt, node: str, *, virtual: bool) -> Message:
    """The message that starts the ranks of one node that are not known to run."""
    argv = {g.name: list(g.argv) for g in job.spec.groups}
    ranks = [
        {
            "rank": r.rank,
            "argv": argv[attempt.tasks[r.task].group],
            "env": rank_environment(cluster, job, attempt, r, virtual=virtual),
            "directory": str(layout.rank(job.id, attempt.number, r.rank)),
            "workdir": job.spec.workdir or str(layout.work(job.id)),
            "fence": str(fences.fence_path(job.checkpoint_dir)),
        }
        for r in attempt.ranks
        if attempt.node_of(r) == node and r.pid is None and r.exit is None
    ]
    return {"type": "launch", "job": job.id, "epoch": attempt.epoch, "ranks": ranks}


def free_port(taken: Collection[int]) -> int:
    """A TCP port that the operating system says is free and no running attempt was given."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
