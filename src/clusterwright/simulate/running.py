"""An attempt while it runs, and what its end means for the job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from clusterwright.ledger.attempts import AttemptRecord, Ending
from clusterwright.ledger.lines import Account
from clusterwright.model.jobs import Cause
from clusterwright.queueing.requests import Placement, Request
from clusterwright.simulate.attempts import Attempt, Spent, spend
from clusterwright.simulate.jobs import Fate, Kind
from clusterwright.simulate.records import record_spent

#: In place of the start of an attempt that still loads.
LOADING_MS: Final = 2**60


class Stop(Enum):
    """Why an attempt ends."""

    DONE = auto()
    LIMIT = auto()
    NODE_LOST = auto()
    JOB_LOST = auto()
    LEFT = auto()


@dataclass(slots=True)
class Run:
    """A running attempt.

    Args:
        number: of the job.
        full_gpus: that the job asks for; with fewer its work takes longer, in proportion.
        shares: GPUs by node.
        due: number of the agenda's entry that ends it.
        stopped_ms: when its work stopped, while it still holds its GPUs; None while it works.
        wrong_ms: since when its work is wrong.
        spent: where its time goes, when it leaves in order.
        resumed: whether it went on from work that was saved.
    """

    number: int
    kind: Kind
    fate: int
    request: Request
    placement: Placement
    borrowed: bool
    account: Account
    admitted_ms: int
    gpus: int
    full_gpus: int
    attempt: Attempt
    shares: dict[int, int]
    resumed: bool
    stop: Stop = Stop.DONE
    due: int = 0
    stopped_ms: int | None = None
    wrong_ms: int | None = None
    spent: Spent | None = None

    @property
    def fails(self) -> bool:
        """Whether it ends by itself before its work is complete."""
        return self.fate != Fate.SUCCEED

    @property
    def natural_end_ms(self) -> int:
        """When it ends by itself. An attempt that fails has 1 ms more to do than it does."""
        return self.admitted_ms + self.attempt.length_ms - self.fails

    def account_for(self, now_ms: int) -> Spent:
        """Where its time went, when it gives its GPUs back now."""
        if self.spent is not None:
            return self.spent
        stopped_ms = now_ms if self.stopped_ms is None else self.stopped_ms
        wrong_ms = None if self.wrong_ms is None else self.wrong_ms - self.admitted_ms
        return spend(self.attempt, stopped_ms - self.admitted_ms, now_ms - stopped_ms, wrong_ms)

    def account_at_end(self, now_ms: int) -> Spent:
        """The same when it gives them back because its end is reached."""
        if self.stop is Stop.DONE and self.wrong_ms is None and not self.fate:
            attempt = self.attempt
            stalled_ms = now_ms - self.admitted_ms - attempt.starting_ms - attempt.work_ms
            return Spent(attempt.starting_ms, attempt.work_ms, stalled_ms, finished=True)
        return self.account_for(now_ms)

    def record(self, spent: Spent, ending: Ending, cause: Cause) -> AttemptRecord:
        """What the ledger wants to know."""
        if spent.finished and not spent.held_ms:
            admitted_s, now_s = self.admitted_ms / 1000, (self.admitted_ms + spent.total_ms) / 1000
            started_s, stalled_s = (self.admitted_ms + spent.starting_ms) / 1000, spent.stalled_ms / 1000
            return AttemptRecord(self.gpus, admitted_s, now_s, ending, started_s, now_s, None, stalled_s)
        return record_spent(self.attempt, spent, self.gpus, self.admitted_ms / 1000, ending, cause, self.resumed)


def ending_of(run: Run, spent: Spent) -> tuple[Ending, Cause]:
    """How an attempt ended, and what a failure of it is charged to."""
    if run.stop is Stop.NODE_LOST:
        return Ending.FAILED, Cause.HARDWARE
    if run.stop is Stop.JOB_LOST:
        return Ending.FAILED, Cause.PLATFORM
    if run.stop is Stop.LEFT:
        return Ending.PREEMPTED, Cause.UNKNOWN
    if run.stop is Stop.LIMIT:
        return Ending.TIME_LIMIT, Cause.UNKNOWN
    if spent.finished:
        return Ending.COMPLETED, Cause.UNKNOWN
    if run.wrong_ms is not None:
        return Ending.FAILED, Cause.HARDWARE
    return {
        Fate.FAIL: (Ending.FAILED, Cause.USER_CODE),
        Fate.CANCEL: (Ending.CANCELLED, Cause.UNKNOWN),
        Fate.TIME_OUT: (Ending.TIME_LIMIT, Cause.UNKNOWN),
    }[Fate(run.fate)]
