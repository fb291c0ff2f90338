"""An attempt while it runs, and what its end means for the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from clusterwright.ledger.attempts import AttemptRecord, Ending
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
class Terms:
    """What the attempts of one kind have in common, worked out once.

    Args:
        full_gpus: that its jobs ask for; with fewer their work takes longer, in proportion.
        every_ms: work between two checkpoints that stall it, 0 for none.
        paces: flavor → speed in millionths, where it is not 1.
        sums: flavor → what its account was charged.
    """

    kind: Kind
    full_gpus: int
    every_ms: int
    stall_ms: int
    paces: Mapping[str, int]
    sums: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: Kind, paces: Mapping[str, int]) -> Terms:
        """Of a kind, with its speeds."""
        checkpoints = kind.checkpoints
        return cls(kind, kind.demand.most_gpus, checkpoints.every_ms or 0, checkpoints.stall_ms, paces)


@dataclass(slots=True)
class Run:
    """A running attempt.

    Args:
        number: of the job.
        sums: of its account in the ledger.
        work_ms: left to do when it began, on the GPUs that it has. An attempt that fails has 1 ms more than it does.
        starting_ms: until work begins.
        shares: GPUs by node, empty where nodes never change.
        resumed: whether it went on from work that was saved.
        due: number of the agenda's entry that ends it.
        stopped_ms: when its work stopped, while it still holds its GPUs; None while it works.
        wrong_ms: since when its work is wrong.
        spent: where its time goes, when it leaves in order.
    """

    number: int
    terms: Terms
    fate: int
    request: Request
    placement: Placement
    borrowed: bool
    sums: list[int]
    admitted_ms: int
    gpus: int
    work_ms: int
    starting_ms: int
    shares: dict[int, int]
    resumed: bool
    stop: Stop = Stop.DONE
    due: int = 0
    stopped_ms: int | None = None
    wrong_ms: int | None = None
    spent: Spent | None = None

    @property
    def kind(self) -> Kind:
        """Of its job."""
        return self.terms.kind

    @property
    def attempt(self) -> Attempt:
        """What it sets out to do."""
        return Attempt(self.work_ms, self.terms.kind.checkpoints, self.starting_ms)

    @property
    def natural_end_ms(self) -> int:
        """When it ends by itself: after its start, its work, and the stalls in between."""
        work, terms = self.work_ms, self.terms
        end_ms = self.admitted_ms + self.starting_ms + work
        if terms.every_ms:
            end_ms += (work - 1) // terms.every_ms * terms.stall_ms
        return end_ms - 1 if self.fate else end_ms

    def account_for(self, now_ms: int) -> Spent:
        """Where its time went, when it gives its GPUs back now."""
        if self.spent is not None:
            return self.spent
        stopped_ms = now_ms if self.stopped_ms is None else self.stopped_ms
        wrong_ms = None if self.wrong_ms is None else self.wrong_ms - self.admitted_ms
        return spend(self.attempt, stopped_ms - self.admitted_ms, now_ms - stopped_ms, wrong_ms)

    def record(self, spent: Spent, ending: Ending, cause: Cause) -> AttemptRecord:
        """What the ledger wants to know."""
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
