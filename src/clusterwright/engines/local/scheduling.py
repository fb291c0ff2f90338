"""The engine's jobs and nodes as the memory of `queueing`, built anew for every decision.

So a control plane that died loses nothing of it: what jobs hold is in their attempts, a promise follows from what they
hold and their limits, and what is kept for a job while others leave for it is recorded with that job (`Job.claim`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Final

from clusterwright.engines.local.configs import ClusterConfig
from clusterwright.engines.local.lifecycles import LONG_FENCE_S
from clusterwright.engines.local.pasts import Hold, count_past, replay
from clusterwright.model.jobs import Attempt, AttemptState, GpuClaim, Job, JobState, Node
from clusterwright.queueing.budgets import Budgets
from clusterwright.queueing.clusters import NodeInfo
from clusterwright.queueing.commitments import Claim
from clusterwright.queueing.requests import Demand, Holding, Placement, Request, Shape
from clusterwright.queueing.state import State

#: An attempt whose processes are still there this long after SIGKILL is no longer counted on to leave. A choice.
STUCK_S: Final = 60.0


def queue_state(
    jobs: Iterable[Job],
    nodes: Iterable[Node],
    config: ClusterConfig,
    now_s: float,
    troubles: Mapping[str, str] | None = None,
) -> State:
    """A state to decide from; an attempt holds its GPUs until every process of it is gone.

    `troubles` are checkpoint directories that cannot be used now, and why: their jobs wait.
    """
    jobs, nodes = list(jobs), list(nodes)
    used = used_devices(jobs)
    depth = max((len(n.spec.topology) for n in nodes), default=0)
    state = State(
        [_node_info(n, used.get(n.spec.name, frozenset())) for n in nodes],
        levels=[f"level-{number}" for number in range(1, depth + 1)],
        tree=config.tree,
        policy=config.policy,
        budgets=Budgets(config.tree, config.budgets) if config.budgets else None,
    )
    holds = [h for j in jobs if (h := _hold(j, state, now_s)) is not None]
    replay(state, holds, count_past(jobs, state))
    names = [n.spec.name for n in nodes]
    gates = _gates(jobs, troubles or {})
    waiting = [j for j in jobs if j.state is JobState.PENDING]
    for job in waiting:
        state.submit(_request(job, gates.get(job.id, {}), names))
    for job in waiting:
        if job.claim is not None and job.id not in state.apart:
            _restore(job.claim, state.waiting[job.id], state)
    return state


def used_devices(jobs: Iterable[Job]) -> Mapping[str, frozenset[str]]:
    """Devices that attempts hold, by node."""
    used: dict[str, set[str]] = defaultdict(set)
    for job in jobs:
        if job.active is not None:
            for task in job.active.tasks:
                used[task.node].update(task.devices)
    return {node: frozenset(devices) for node, devices in used.items()}


def recorded(claim: Claim, state: State) -> GpuClaim:
    """A claim as it is kept with its job: nodes by name."""
    placement = claim.placement
    names = state.cluster.floors[placement.flavor].names
    runs = tuple((group, names[node], tasks) for group, node, tasks in placement.runs)
    return GpuClaim(placement.flavor, runs, placement.gpus, claim.victims)


def _restore(kept: GpuClaim, request: Request, state: State) -> None:
    """Keep for a job what was kept for it before, unless the cluster no longer has its nodes."""
    floor = state.cluster.floors.get(kept.flavor)
    if floor is None or any(node not in floor.index for _, node, _ in kept.runs):
        return
    runs = tuple((group, floor.index[node], tasks) for group, node, tasks in kept.runs)
    state.keep(Claim(request, Placement(kept.flavor, runs, kept.gpus), kept.victims, {}))


def _node_info(node: Node, used: frozenset[str]) -> NodeInfo:
    """A GPU that an attempt holds counts although its node no longer finds it."""
    gpus = len(used.union(node.devices))
    return NodeInfo(node.spec.name, node.spec.gpu_model, gpus, node.spec.topology, node.up)


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


def _request(job: Job, gates: Mapping[str, str], nodes: Iterable[str] = ()) -> Request:
    spec = job.spec
    first = spec.first_nodes if not job.attempts else ()
    return Request(
        id=job.id,
        demand=Demand(
            groups=tuple(Shape(g.count, g.gpus, g.name, g.min_count, g.spread) for g in spec.groups),
            flavors=() if spec.gpu_model is None else (spec.gpu_model,),
            exclude=frozenset((*spec.exclude, *(n for n in nodes if n not in first)) if first else spec.exclude),
            avoid=frozenset(e.node for e in job.exclusions),
        ),
        queued_at_s=job.queued_at_s,
        queue=spec.queue,
        priority=spec.priority,
        limit_s=spec.time_limit_s,
        user=spec.user,
        hold=(job.held_why or "held by its owner") if job.held else "",
        gates=gates,
        not_before_s=job.not_before_s,
        restarts=job.restarts,
        max_restarts=spec.max_restarts,
    )


def _hold(job: Job, state: State, now_s: float) -> Hold | None:
    """What a job holds and when it is expected to leave, if it was told to."""
    attempt = job.active
    placement = None if attempt is None else _placement(job, attempt, state)
    if attempt is None or placement is None:
        return None
    since, request, leaves = attempt.admitted_at_s, _request(job, {}), _leaves_at(attempt, now_s)
    if leaves is not None:
        request = replace(request, limit_s=max(leaves - since, 0.0))
    elif attempt.state is AttemptState.FENCING:
        request = replace(request, limit_s=None, preemptible=False)
    elif request.limit_s is not None and attempt.started_at_s is not None:
        request = replace(request, limit_s=attempt.started_at_s - since + request.limit_s)  # it counts from all ranks
    return Hold(Holding(request, placement, since, since), leaves)


def _leaves_at(attempt: Attempt, now_s: float) -> float | None:
    """When an attempt that was told to end, or ended, gives its GPUs back; None where nobody can say."""
    if attempt.state is AttemptState.STOPPING:
        return max(attempt.stop_by_s or now_s, now_s)
    since = attempt.fencing_at_s or now_s
    if attempt.state is AttemptState.FENCING and now_s - since < STUCK_S:
        return max(since, now_s) + LONG_FENCE_S
    return None


def _placement(job: Job, attempt: Attempt, state: State) -> Placement | None:
    """Where an attempt runs; what it holds on nodes that are no longer declared is nobody's."""
    floor = state.cluster.floors.get(attempt.flavor)
    if floor is None:
        return None
    groups = {g.name: i for i, g in enumerate(job.spec.groups)}
    known = [(groups[t.group], floor.index[t.node]) for t in attempt.tasks if t.node in floor.index]
    runs = tuple((group, node, len(list(tasks))) for (group, node), tasks in groupby(known))
    return Placement(attempt.flavor, runs, sum(n * job.spec.groups[g].gpus for g, _, n in runs))
