"""What jobs held before, told to a state that is built anew: budgets and fair share over time remember it.

Everything is told in the order in which it happened, because a budget closes its periods one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clusterwright.model.jobs import Attempt, Job, JobId
from clusterwright.queueing.requests import Holding
from clusterwright.queueing.state import State

#: (POSIX seconds, 0 for an end and 1 for a begin, what is told)
Step = tuple[float, int, Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Hold:
    """What a job holds; `leaves_at_s` once it was told to leave."""

    holding: Holding
    leaves_at_s: float | None = None


def replay(state: State, holds: Iterable[Hold], past: Sequence[Step]) -> None:
    """Tell a state who holds what, and what was held before."""
    steps: list[Step] = [*past, *((h.holding.started_at_s, 1, _holds(state, h)) for h in holds)]
    for _, _, tell in sorted(steps, key=lambda s: s[:2]):
        tell()


def count_past(jobs: Iterable[Job], state: State) -> list[Step]:
    """Begins and ends of all attempts that are over, where the state remembers such things."""
    if state.budgets is None and state.decayed is None:
        return []
    return [step for j in jobs for a in j.attempts if not a.active for step in _of_attempt(j, a, state)]


def _holds(state: State, hold: Hold) -> Callable[[], object]:
    def tell() -> None:
        state.hold(hold.holding)
        if hold.leaves_at_s is not None:
            state.leave(hold.holding.request.id, hold.leaves_at_s)

    return tell


def _of_attempt(job: Job, attempt: Attempt, state: State) -> list[Step]:
    begins, spec, gpus = attempt.admitted_at_s, job.spec, attempt.gpus
    ends = attempt.ended_at_s or begins
    if ends <= begins:
        return []
    name = JobId(f"{job.id}/{attempt.number}")
    key = f"{spec.queue}/{spec.user}" if state.policy.fair.by_user else spec.queue

    def begin() -> None:
        if state.budgets is not None:
            state.budgets.start(name, spec.queue, spec.user, gpus, 0.0, begins)

    def end() -> None:
        if state.budgets is not None:
            state.budgets.end(name, ends)
        if state.decayed is not None:
            state.decayed.charge(key, gpus, begins, ends)

    return [(begins, 1, begin), (ends, 0, end)]
