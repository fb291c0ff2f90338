"""What would happen if: questions that leave the state as it is. The answer is what doing it would give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from clusterwright.model.jobs import JobId
from clusterwright.model.outlooks import Blocker
from clusterwright.queueing.blockers import why
from clusterwright.queueing.commitments import Promise
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.decisions import Decisions
from clusterwright.queueing.promising import find_promise
from clusterwright.queueing.quotas import Quota
from clusterwright.queueing.requests import Request
from clusterwright.queueing.state import State


@dataclass(frozen=True, slots=True)
class Answer:
    """What the next cycle would do.

    Args:
        blockers: of the job that was asked about, empty where it would start.
        promise: its start if every running job ran to its limit and nothing else came; None where no known end helps.
    """

    decisions: Decisions
    blockers: tuple[Blocker, ...] = ()
    promise: Promise | None = None


def what_if_job(request: Request, state: State, now_s: float) -> Answer:
    """What if this job were submitted now?"""
    other = state.fork()
    other.submit(request)
    decisions = run_cycle(other, now_s)
    if request.id not in other.waiting:
        return Answer(decisions)
    return Answer(decisions, why(request.id, other, now_s), find_promise(request, other, now_s))


def what_if_quota(quotas: Mapping[tuple[str, str], Quota], state: State, now_s: float) -> Answer:
    """What if queues had these quotas, by (queue, flavor)?"""

    def change(other: State) -> None:
        for (queue, flavor), quota in quotas.items():
            other.set_quota(queue, flavor, quota)

    return _changed(state, change, now_s)


def what_if_nodes(state: State, now_s: float, *, gone: Iterable[str] = (), back: Iterable[str] = ()) -> Answer:
    """What if nodes took no more jobs, or took jobs again? What runs on them stays."""

    def change(other: State) -> None:
        for node in gone:
            other.set_usable(node, usable=False)
        for node in back:
            other.set_usable(node, usable=True)

    return _changed(state, change, now_s)


def what_if_gone(jobs: Iterable[JobId], state: State, now_s: float) -> Answer:
    """What if these running jobs ended now?"""

    def change(other: State) -> None:
        for job in jobs:
            other.release(job, now_s)

    return _changed(state, change, now_s)


def _changed(state: State, change: Callable[[State], None], now_s: float) -> Answer:
    other = state.fork()
    change(other)
    return Answer(run_cycle(other, now_s))
