"""The engine's jobs and nodes as `queueing` wants to see them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from clusterwright.model.jobs import Job, JobState, Node
from clusterwright.queueing.quotas import QueueTree
from clusterwright.queueing.states import Holding, NodeView, QueueState, Waiting


def queue_state(
    jobs: Iterable[Job], nodes: Iterable[Node], tree: QueueTree, now_s: float, troubles: Mapping[str, str] | None = None
) -> QueueState:
    """A snapshot to decide from; an attempt holds its GPUs until every process of it is gone.

    `troubles` are checkpoint directories that cannot be used now, and why: their jobs wait.
    """
    jobs, nodes = list(jobs), list(nodes)
    used = used_devices(jobs)
    views = tuple(
        NodeView(
            name=n.spec.name,
            flavor=n.spec.gpu_model,
            devices=n.devices,
            free=tuple(d for d in n.devices if d not in used.get(n.spec.name, ())),
            up=n.up,
            reason=n.reason,
            topology=n.spec.topology,
        )
        for n in nodes
    )
    gates = _gates(jobs, troubles or {})
    names = [n.spec.name for n in nodes]
    waiting = tuple(_waiting(j, gates.get(j.id, {}), names) for j in jobs if j.state is JobState.PENDING)
    return QueueState(views, waiting, tuple(h for j in jobs if (h := _holding(j)) is not None), tree, now_s)


def used_devices(jobs: Iterable[Job]) -> Mapping[str, frozenset[str]]:
    """Devices that attempts hold, by node."""
    used: dict[str, set[str]] = defaultdict(set)
    for job in jobs:
        if job.active is not None:
            for task in job.active.tasks:
                used[task.node].update(task.devices)
    return {node: frozenset(devices) for node, devices in used.items()}


def _gates(jobs: Iterable[Job], troubles: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Two jobs never run in one checkpoint directory: the later submitted waits for the earlier."""
    owner: dict[str, Job] = {}
    gates: dict[str, dict[str, str]] = {}
    for job in jobs:
        if job.state.final:
            continue
        if (trouble := troubles.get(job.checkpoint_dir)) is not None:
            gates[job.id] = {"its checkpoint directory": f"{trouble} (looked at again every few seconds)"}
        first = owner.setdefault(job.checkpoint_dir, job)
        if first is not job:
            why = f"job {first.id} uses checkpoint directory {job.checkpoint_dir}"
            gates.setdefault(job.id, {})[f"job {first.id}"] = why
    return gates


def _waiting(job: Job, gates: Mapping[str, str], nodes: Iterable[str]) -> Waiting:
    first = job.spec.first_nodes if not job.attempts else ()
    return Waiting(
        id=job.id,
        groups=job.spec.groups,
        queued_at_s=job.queued_at_s,
        queue=job.spec.queue,
        priority=job.spec.priority,
        flavor=job.spec.gpu_model,
        exclude=frozenset(job.spec.exclude).union(n for n in nodes if first and n not in first),
        avoid=frozenset(e.node for e in job.exclusions),
        held=job.held,
        held_why=job.held_why,
        gates=gates,
        not_before_s=job.not_before_s,
        restarts=job.restarts,
        max_restarts=job.spec.max_restarts,
    )


def _holding(job: Job) -> Holding | None:
    attempt = job.active
    if attempt is None:
        return None
    limit = job.spec.time_limit_s
    ends = None if limit is None else (attempt.started_at_s or attempt.admitted_at_s) + limit
    return Holding(job.id, job.spec.queue, attempt.flavor, attempt.gpus, ends)
