"""Why a job waits: the set of its blockers, each with numbers, holders and the next step.

Never an estimated time without its basis: 'next release' is said only where a holder has a time limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from clusterwright.model.jobs import Blocker, BlockerKind, JobId, TaskGroup
from clusterwright.queueing.placing import NoFit, largest_count, place, tasks_of
from clusterwright.queueing.states import Holding, QueueState, Waiting
from clusterwright.queueing.supplies import balance_of, flavors_of, gpus_available, rooms_of

#: How many holders a blocker names.
TOP_HOLDERS: Final = 3


def not_ready(job: Waiting, state: QueueState) -> tuple[Blocker, ...]:
    """Blockers that keep a job from being considered at all."""
    found = []
    if job.held:
        step = f"`cw release {job.id}` lets it start"
        found.append(_blocker(state, BlockerKind.HELD, job.held_why or "held by its owner", next_step=step))
    for gate, why in job.gates.items():
        found.append(_blocker(state, BlockerKind.GATED, f"waits for {gate}: {why}"))
    if state.tree.queues and job.queue not in state.tree.leaves:
        known = ", ".join(sorted(state.tree.leaves))
        kind = "a group" if job.queue in state.tree.by_name else "not declared"
        message = f"queue '{job.queue}' is {kind}; queues that take jobs: {known}"
        found.append(_blocker(state, BlockerKind.MISCONFIGURED, message, next_step="submit to one of these"))
    if job.not_before_s > state.now_s:
        left = job.not_before_s - state.now_s
        numbers = {"wait_s": round(left, 3), "attempt": job.restarts + 1, "attempts": job.max_restarts + 1}
        message = f"attempt {job.restarts + 1} of {job.max_restarts + 1} starts in {left:.1f} s after a failure"
        found.append(_blocker(state, BlockerKind.BACKOFF, message, numbers))
    return tuple(found)


def blockers_of(job: Waiting, state: QueueState) -> tuple[Blocker, ...]:
    """Every reason that holds now; at least one for a job that `find_start` does not start."""
    early = not_ready(job, state)
    if any(b.kind is BlockerKind.MISCONFIGURED for b in early):
        return early
    possible = [f for f in flavors_of(job, state) if _hardware_ever(job, f, state) and _quota_ever(job, f, state)]
    if not possible:
        return (*early, _never(job, state))
    found = list(early)
    for flavor in possible:
        found += _quota(job, flavor, state) + _hardware(job, flavor, state)
    return tuple(found)


def behind(job: Waiting, state: QueueState, position: int, ahead: Sequence[JobId]) -> tuple[Blocker, ...]:
    """The blockers of a job behind the head of a strict queue."""
    message = f"position {position} in strict queue '{job.queue}' behind job {ahead[0]}, which cannot start yet"
    order = _blocker(state, BlockerKind.ORDER, message, {"position": position}, ahead[:TOP_HOLDERS])
    return (*not_ready(job, state), order)


def _hardware_ever(job: Waiting, flavor: str, state: QueueState) -> bool:
    """Whether the smallest gang fits on all declared nodes, were they up and empty (an unfinished search counts)."""
    smallest = tasks_of(job.groups, {g.name: g.least for g in job.groups})
    rooms = rooms_of(job, flavor, state.nodes, avoid=False, empty=True)
    return place(smallest, rooms) is not NoFit.IMPOSSIBLE


def _quota_ever(job: Waiting, flavor: str, state: QueueState) -> bool:
    if not state.tree.queues:
        return True
    balance = balance_of(state, flavor)
    return balance.named(job.queue) and balance.potential(job.queue) >= job.least_gpus


def _never(job: Waiting, state: QueueState) -> Blocker:
    flavors = flavors_of(job, state)
    if not flavors:
        known = ", ".join(dict.fromkeys(n.flavor or "(no model)" for n in state.nodes)) or "none"
        return _blocker(state, BlockerKind.NEVER_FITS, f"no node has GPU model '{job.flavor}'; models here: {known}")
    numbers: dict[str, float] = {"needed_gpus": job.least_gpus}
    reasons = list[str]()
    for flavor in flavors:
        if not _hardware_ever(job, flavor, state):
            reasons += [_largest(job, g, flavor, state, numbers) for g in job.groups]
        if not _quota_ever(job, flavor, state):
            potential = balance_of(state, flavor).potential(job.queue) if _names(job, flavor, state) else 0.0
            numbers["potential_gpus"] = potential
            reasons.append(f"queue '{job.queue}' can never use more than {potential:g} {_model(flavor)}")
    message = "; ".join(dict.fromkeys(reasons)) + f"; the job needs {_need(job.groups)}"
    step = "ask for less, or add nodes or quota"
    if any(_excluded(job, f, state) for f in flavors):
        step = f"exclude fewer nodes, {step}"
    return _blocker(state, BlockerKind.NEVER_FITS, message, numbers, next_step=step)


def _excluded(job: Waiting, flavor: str, state: QueueState) -> list[str]:
    """Nodes that only the job's own wish keeps it from."""
    return [n.name for n in state.nodes if n.flavor == flavor and n.name in job.exclude]


def _names(job: Waiting, flavor: str, state: QueueState) -> bool:
    return balance_of(state, flavor).named(job.queue)


def _largest(job: Waiting, group: TaskGroup, flavor: str, state: QueueState, numbers: dict[str, float]) -> str:
    rooms = rooms_of(job, flavor, state.nodes, avoid=False, empty=True)
    largest = min(largest_count(group, rooms), group.count)
    numbers[f"largest_{group.name}_tasks"] = max(largest, numbers.get(f"largest_{group.name}_tasks", 0))
    excluded = _excluded(job, flavor, state)
    if not rooms:
        nodes = "the only node" if len(excluded) == 1 else f"all {len(excluded)} nodes"
        return f"the job excludes {nodes}{f' with {flavor}' if flavor else ''}"
    left = f" ({len(excluded)} more {'is' if len(excluded) == 1 else 'are'} excluded by the job)" if excluded else ""
    apart = " on nodes of their own" if group.spread else ""
    held = f"hold {largest} of {group.least} tasks with {group.gpus} {_model(flavor)}{apart}"
    return f"all {len(rooms)} usable nodes{left} {held}"


def _quota(job: Waiting, flavor: str, state: QueueState) -> list[Blocker]:
    available = gpus_available(job, flavor, state)
    if available >= job.least_gpus:
        return []
    balance = balance_of(state, flavor)
    numbers = {
        "needed_gpus": job.least_gpus,
        "available_gpus": available,
        "used_gpus": balance.usage(job.queue),
        "guarantee_gpus": balance.quota(job.queue).guarantee,
        "potential_gpus": balance.potential(job.queue),
    }
    root = state.tree.root_of(job.queue)
    sharing = [h for h in state.holdings if h.flavor == flavor and state.tree.root_of(h.queue) == root]
    message = f"queue '{job.queue}' may take {available:g} more {_model(flavor)} now, the job needs {job.least_gpus}"
    return [_with_holders(state, BlockerKind.QUOTA_WAIT, message, numbers, sharing)]


def _hardware(job: Waiting, flavor: str, state: QueueState) -> list[Blocker]:
    up = [n for n in state.nodes if n.up]
    rooms = rooms_of(job, flavor, up, avoid=True)
    smallest = tasks_of(job.groups, {g.name: g.least for g in job.groups})
    if not isinstance(place(smallest, rooms), NoFit):
        return []
    mine = [n for n in state.nodes if n.flavor == flavor and n.name not in job.exclude]
    down = [n for n in mine if not n.up]
    avoided = [n for n in mine if n.up and n.name in job.avoid]
    free = sum(len(r.free) for r in rooms)
    numbers: dict[str, float] = {
        "needed_gpus": job.least_gpus,
        "free_gpus": free,
        "down_gpus": sum(len(n.devices) for n in down),
        "down_nodes": len(down),
        "avoided_nodes": len(avoided),
    }
    notes = [f"node {n.name} is down ({n.reason or 'no reason given'})" for n in down[:TOP_HOLDERS]]
    notes += [f"node {n.name} is avoided because an attempt was lost on it" for n in avoided[:TOP_HOLDERS]]
    excluded = _excluded(job, flavor, state)
    if excluded:
        notes.append(f"the job excludes {len(excluded)} node{'s' * (len(excluded) != 1)}")
    kind, text = BlockerKind.HARDWARE_WAIT, f"{free} {_model(flavor)} free, the job needs {_need(job.groups)}"
    if free >= job.least_gpus and rooms and job.least_gpus:
        kind = BlockerKind.FRAGMENTED
        most = max(len(r.free) for r in rooms)
        text = f"{free} {_model(flavor)} free but at most {most} on one node, the job needs {_need(job.groups)}"
    holding = [h for h in state.holdings if h.flavor == flavor and h.gpus]
    return [_with_holders(state, kind, "; ".join([text, *notes]), numbers, holding)]


def _with_holders(
    state: QueueState, kind: BlockerKind, message: str, numbers: dict[str, float], holdings: Iterable[Holding]
) -> Blocker:
    top = sorted(holdings, key=lambda h: (-h.gpus, len(h.id), h.id))
    ends = [h for h in top if h.ends_by_s is not None]
    step = ""
    if ends:
        first = min(ends, key=lambda h: h.ends_by_s or 0.0)
        left = max(0.0, (first.ends_by_s or 0.0) - state.now_s)
        numbers = {**numbers, "next_release_s": round(left, 3), "next_release_gpus": first.gpus}
        step = f"at the latest in {left:.0f} s job {first.id} frees {first.gpus} GPUs (its time limit)"
    return _blocker(state, kind, message, numbers, [h.id for h in top[:TOP_HOLDERS]], step)


def _need(groups: Sequence[TaskGroup]) -> str:
    return " + ".join(f"{g.least} × {g.gpus} GPU{'s' * (g.gpus != 1)}" for g in groups)


def _model(flavor: str) -> str:
    return f"{flavor} GPUs" if flavor else "GPUs"


def _blocker(
    state: QueueState,
    kind: BlockerKind,
    message: str,
    numbers: dict[str, float] | None = None,
    holders: Sequence[str] = (),
    next_step: str = "",
) -> Blocker:
    return Blocker(kind, message, numbers or {}, tuple(holders), next_step, state.now_s)
