"""What the queue decides about the engine's jobs, and what it says about those that wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterwright.engines.local.configs import ClusterConfig
from clusterwright.engines.local.scheduling import STUCK_S, queue_state, used_devices
from clusterwright.model.jobs import Job, JobId, Node, TaskPlacement
from clusterwright.model.outlooks import Blocker, BlockerKind, Outlook, PromisedStart
from clusterwright.queueing.blockers import TOP_HOLDERS, why
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.decisions import Preemption, Start
from clusterwright.queueing.policies import Backfill
from clusterwright.queueing.state import State


@dataclass(frozen=True, slots=True)
class Begin:
    """A job to start: its tasks in rank order with their devices."""

    job: JobId
    flavor: str
    tasks: tuple[TaskPlacement, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision.

    Args:
        state: with the decision in it.
        at_s: POSIX seconds.
        downs: why nodes that take no jobs do not, by node.
        wake_s: when time alone may bring another decision, None when it cannot.
    """

    state: State
    at_s: float
    begins: tuple[Begin, ...]
    preemptions: tuple[Preemption, ...]
    downs: Mapping[str, str]
    wake_s: float | None

    def blockers(self, job: JobId) -> tuple[Blocker, ...]:
        """Why a job does not start; none for one that did not wait."""
        found = why(job, self.state, self.at_s) if job in self.state.waiting else ()
        return tuple(self._with_downs(job, b) if b.numbers.get("down_nodes") else b for b in found)

    def _with_downs(self, job: JobId, blocker: Blocker) -> Blocker:
        """The blocker with the reasons why nodes that the job could use take none."""
        request, floors = self.state.waiting[job], self.state.cluster.floors
        mine = [n for f in self.state.flavors_of(request) for n in floors[f].names if n not in request.demand.exclude]
        said = [f"{n} is down: {self.downs[n]}" for n in mine if self.downs.get(n)][:TOP_HOLDERS]
        return replace(blocker, message="; ".join([blocker.message, *said]))


def outlook_of(job: JobId, decided: Decided | None, now_s: float) -> Outlook:
    """Where a waiting job stands by the last decision; None: the cluster is stopping and decides no more."""
    if decided is None:
        stopping = Blocker(BlockerKind.HELD, "the cluster is stopping and starts nothing", evaluated_at_s=now_s)
        return Outlook((stopping,))
    state, request = decided.state, decided.state.waiting.get(job)
    line = None if request is None else state.lines.get(request.queue)
    position = None if request is None or line is None or job in state.apart else line.position(request)
    undecided = Blocker(BlockerKind.ORDER, "the queue has not decided about it yet", evaluated_at_s=now_s)
    return Outlook(decided.blockers(job) or (undecided,), position, _promised(job, state, decided.at_s))


def decide(
    jobs: Mapping[JobId, Job],
    nodes: Iterable[Node],
    config: ClusterConfig,
    now_s: float,
    troubles: Mapping[str, str] | None = None,
) -> Decided:
    """What starts now and who must leave; changes nothing.

    Args:
        jobs: all of them, in order of submission.
        troubles: checkpoint directories that cannot be used now, and why.
    """
    nodes = list(nodes)
    state = queue_state(jobs.values(), nodes, config, now_s, troubles)
    decisions = run_cycle(state, now_s)
    used = used_devices(jobs.values())
    free = {n.spec.name: [d for d in n.devices if d not in used.get(n.spec.name, ())] for n in nodes}
    begins = tuple(_begin(s, state, free) for s in decisions.starts)
    downs = {n.spec.name: n.reason for n in nodes if not n.up}
    return Decided(state, now_s, begins, decisions.preemptions, downs, _wake_s(jobs.values(), state, now_s))


def _wake_s(jobs: Iterable[Job], state: State, now_s: float) -> float | None:
    """When time alone may change the decision; the queue does not know that ending attempts may get stuck."""
    ending = (j.active.fencing_at_s for j in jobs if j.active is not None and j.active.fencing_at_s is not None)
    times = [t for at_s in ending if (t := at_s + STUCK_S) > now_s]
    if (next_s := state.next_wake_s(now_s)) is not None:
        times.append(next_s)
    return min(times, default=None)


def _begin(start: Start, state: State, free: dict[str, list[str]]) -> Begin:
    """The first free devices of each node, in rank order; they are free no longer."""
    placement, groups = start.placement, start.request.demand.groups
    names, tasks, count = state.cluster.floors[placement.flavor].names, list[TaskPlacement](), [0] * len(groups)
    for group, node, number in placement.runs:
        gpus, left = groups[group].gpus, free[names[node]]
        for _ in range(number):
            tasks.append(TaskPlacement(groups[group].name, count[group], names[node], tuple(left[:gpus])))
            count[group] += 1
            del left[:gpus]
    return Begin(start.request.id, placement.flavor, tuple(tasks), start.reason)


def _promised(job: JobId, state: State, now_s: float) -> PromisedStart | None:
    """The start that nobody may delay: of the job that backfilling waits for, and of those for which others leave."""
    if (claim := state.claims.get(job)) is not None:
        leaving: Sequence[JobId] = [v for v in claim.victims if v in state.leaving] or sorted(state.leaving)
        at_s = max((state.running[v].leaving_at_s or now_s for v in leaving), default=now_s)
        return PromisedStart(at_s, f"when {_jobs(leaving)} left", tuple(leaving))
    promise = state.promise
    if state.policy.backfill is not Backfill.EASY or promise is None or promise.request.id != job:
        return None
    if promise.basis is None:
        return None
    if promise.basis in state.leaving:
        return PromisedStart(promise.at_s, f"when {_jobs([promise.basis])} left", (promise.basis,))
    return PromisedStart(promise.at_s, f"if job {promise.basis} runs to its limit", (promise.basis,))


def _jobs(jobs: Sequence[JobId]) -> str:
    some = ", ".join(jobs[:3]) + (f" and {len(jobs) - 3} more" if len(jobs) > 3 else "")
    return f"job {some} has" if len(jobs) == 1 else f"jobs {some} have"
