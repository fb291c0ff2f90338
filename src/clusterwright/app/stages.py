"""What both rehearsals stand on: virtual nodes, the declared queues, and jobs made of probes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from clusterwright.app.running import ClusterHandle
from clusterwright.judging.expecting import Expectation, ExpectedJob, Promise
from clusterwright.model.architecture import Architecture
from clusterwright.model.jobs import Job, JobId, JobSpec, NodeSpec, TaskGroup
from clusterwright.model.outlooks import BlockerKind
from clusterwright.plan.results.plans import Plan
from clusterwright.queueing.policies import Policy
from clusterwright.queueing.quotas import QueueTree

#: Longest wait for something that should happen at once; on a busy machine Python alone may need seconds to start.
PATIENCE_S: Final = 60.0
#: How long a job may wait in the queue, with nothing else happening, before it counts as not placeable.
SETTLE_S: Final = 2.0
LOOK_S: Final = 0.1
#: Between SIGTERM and SIGKILL, in place of the declared one: nothing here needs longer to end.
GRACE_S: Final = 2.0

_STUCK: Final = frozenset(
    {
        BlockerKind.NEVER_FITS,
        BlockerKind.QUOTA_WAIT,
        BlockerKind.BUDGET,
        BlockerKind.HARDWARE_WAIT,
        BlockerKind.TOPOLOGY,
        BlockerKind.FRAGMENTED,
        BlockerKind.ORDER,
        BlockerKind.MISCONFIGURED,
        BlockerKind.GATED,
    }
)
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """What both rehearsals need.

    Args:
        nodes: one virtual node per declared worker node; its GPU model is its pool, for which quotas are declared.
        tree: the declared queues.
        policy: the declared order, backfill and preemption, as far as a rehearsal can keep to it.
        directory: for the state and logs of this rehearsal; what an earlier run left is removed.
        tell: takes a line of progress.
        promises: what the plan says about the loss of a node, by workload.
    """

    nodes: tuple[NodeSpec, ...]
    tree: QueueTree
    expectation: Expectation
    directory: Path
    tell: Tell
    promises: Mapping[str, Promise] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)


def virtual_nodes(architecture: Architecture, plan: Plan) -> tuple[NodeSpec, ...]:
    """One virtual node per declared worker node, with the GPUs that the plan found for its pool."""
    gpus = {p.name: p.gpus_per_node for p in plan.pools}
    return tuple(
        NodeSpec(host, gpus.get(name, 0), gpu_model=name, virtual=True)
        for name, pool in architecture.pools.items()
        if pool.role == "worker"
        for host in pool.nodes
    )


def tell_up(stage: Stage) -> None:
    """Say that the cluster of a rehearsal is up."""
    count = len(stage.nodes)
    stage.tell(f"{count} virtual node{'s are' if count != 1 else ' is'} up")


def probe_command(name: str, *arguments: str) -> tuple[str, ...]:
    """The command line of a probe, in this Python and not in what lies in the working directory."""
    return (sys.executable, "-P", "-m", f"clusterwright.probes.{name}", *arguments)


def task_groups(job: ExpectedJob, argv: tuple[str, ...], least: int | None = None) -> tuple[TaskGroup, ...]:
    """Tasks of one size are one group; `least` is the smallest number of tasks of an elastic gang."""
    sizes = [t.gpus for t in job.tasks]
    return tuple(
        TaskGroup(argv, count=sizes.count(size), gpus=size, name=f"of-{size}", min_count=least)
        for size in dict.fromkeys(sizes)
    )


def probe_spec(job: ExpectedJob, groups: tuple[TaskGroup, ...]) -> JobSpec:
    """A job of the declared queue and priority, on the pool of its first task."""
    pool = job.tasks[0].pool
    spec = JobSpec(job.name, groups, priority=job.priority, gpu_model=pool, user="rehearsal", grace_s=GRACE_S)
    return replace(spec, queue=job.queue) if job.queue else spec


def is_stuck(cluster: ClusterHandle, job: JobId) -> bool:
    """Whether the job waits for something that time alone does not bring."""
    return any(b.kind in _STUCK for b in cluster.engine.why(job))


def why_waiting(cluster: ClusterHandle, job: Job) -> str:
    """State of a job with every reason why it does not run."""
    reasons = [f"{b.kind}: {b.message}" for b in cluster.engine.why(job.id)]
    return f"{job.state}: " + "; ".join(reasons or [job.detail or "no reason given"])
