"""One scheduling cycle.

Every queue offers its first job that was not yet looked at (higher priority first, then older). Among these offers the
cycle takes those that stay within their queue's guarantee before those that borrow, then higher priority, then older
(Kueue's order). A job that cannot start blocks its queue if the queue is strict, else it is set aside.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from clusterwright.model.jobs import Blocker, JobId, TaskPlacement
from clusterwright.queueing import explaining
from clusterwright.queueing.placing import NoFit, fit
from clusterwright.queueing.states import Decisions, Holding, QueueState, Start, Waiting
from clusterwright.queueing.supplies import balance_of, flavors_of, gpus_available, others_could, rooms_of


def decide(state: QueueState) -> Decisions:
    """The jobs to start now and the blockers of all others.

    No device is given twice, no quota exceeded by a start, a gang gets all of its tasks (or its minimum) or none.
    """
    starts, blockers = list[Start](), dict[JobId, tuple[Blocker, ...]]()
    queues = _queues(state)
    ahead: dict[str, list[JobId]] = defaultdict(list)
    while any(queues.values()):
        name = min((n for n, jobs in queues.items() if jobs), key=lambda n: _rank(state, queues[n][0]))
        job = queues[name].pop(0)
        start = None if explaining.not_ready(job, state) else find_start(job, state)
        if start is not None:
            starts.append(start)
            state = _with(state, job, start)
            continue
        blockers[job.id] = explaining.blockers_of(job, state)
        ready = not explaining.not_ready(job, state)
        if state.tree.strict(name) and ready:
            for position, behind in enumerate(queues[name], 2):
                blockers[behind.id] = explaining.behind(behind, state, position, [*ahead[name], job.id])
            queues[name] = []
        elif ready:
            ahead[name].append(job.id)
    return Decisions(tuple(starts), blockers)


def find_start(job: Waiting, state: QueueState) -> Start | None:
    """The start this job would get now if it were its turn, or None."""
    for flavor in flavors_of(job, state):
        limit = gpus_available(job, flavor, state)
        if limit < job.least_gpus:
            continue
        tasks = _fit_on(job, flavor, state, limit)
        if tasks is not None:
            gpus = sum(len(t.devices) for t in tasks)
            borrowed = _borrows(job, flavor, gpus, state)
            nodes = len({t.node for t in tasks})
            reason = f"{gpus} GPUs on {nodes} node{'s' * (nodes != 1)}{', borrowing' if borrowed else ''}"
            return Start(job.id, flavor, tasks, borrowed, reason)
    return None


def _fit_on(job: Waiting, flavor: str, state: QueueState, limit: float) -> tuple[TaskPlacement, ...] | None:
    up = [n for n in state.nodes if n.up]
    tasks = fit(job.groups, rooms_of(job, flavor, up, avoid=True), limit)
    if isinstance(tasks, NoFit) and job.avoid and not others_could(job, flavor, up):
        tasks = fit(job.groups, rooms_of(job, flavor, up, avoid=False), limit)
    return None if isinstance(tasks, NoFit) else tasks


def _borrows(job: Waiting, flavor: str, gpus: int, state: QueueState) -> bool:
    return bool(state.tree.queues) and balance_of(state, flavor).borrows(job.queue, gpus)


def _queues(state: QueueState) -> dict[str, list[Waiting]]:
    queues: dict[str, list[Waiting]] = defaultdict(list)
    for job in sorted(state.waiting, key=_age):
        queues[job.queue].append(job)
    return queues


def _age(job: Waiting) -> tuple[float, float, int, JobId]:
    return (-job.priority, job.queued_at_s, len(job.id), job.id)  # ids are numbers as text: 9 before 10


def _rank(state: QueueState, job: Waiting) -> tuple[bool, float, float, int, JobId]:
    flavors = flavors_of(job, state) if job.queue in state.tree.leaves else []
    borrows = bool(flavors) and all(_borrows(job, f, job.least_gpus, state) for f in flavors)
    return (borrows, *_age(job))


def _with(state: QueueState, job: Waiting, start: Start) -> QueueState:
    """The state after a start."""
    taken: dict[str, set[str]] = defaultdict(set)
    for task in start.tasks:
        taken[task.node].update(task.devices)
    nodes = tuple(
        replace(n, free=tuple(d for d in n.free if d not in taken[n.name])) if n.name in taken else n
        for n in state.nodes
    )
    gpus = sum(len(t.devices) for t in start.tasks)
    holding = Holding(job.id, job.queue, start.flavor, gpus)
    return replace(state, nodes=nodes, holdings=(*state.holdings, holding))
