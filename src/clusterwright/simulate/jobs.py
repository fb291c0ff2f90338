"""What arrives, as arrays: a million jobs in some 30 MB, with what many have in common kept once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clusterwright.ledger.lines import size_class, to_ms
from clusterwright.model.jobs import DEFAULT_QUEUE
from clusterwright.queueing.requests import Demand
from clusterwright.simulate.attempts import NEVER, Checkpoints

Milliseconds = NDArray[np.int64]
#: In place of a time that there is not.
NONE_MS: Final = -1


class Fate(IntEnum):
    """How a job ends by itself once its work is done; what the cluster does to it comes on top."""

    SUCCEED = 0
    FAIL = 1
    CANCEL = 2
    TIME_OUT = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """What many jobs have in common.

    Args:
        team: whom the ledger charges.
        starting_ms: from the start of the first attempt until work begins, beside what is loaded.
        restart_ms: the same of later attempts, which restore a checkpoint.
        bytes_each: that every node of an attempt loads from the shared store first.
        reader_bytes_per_s: at which one node reads at most.
        retries: attempts after one that failed by the job's own fault or that only ended the job; None without bound.
            Attempts that lost a node or were preempted are not counted.
        backoff_ms: before such a retry.
        grace_ms: to leave when preempted; None is the policy's.
        reservation: window that it may use.
        speeds: (flavor, how many times as fast its work goes there as where it was measured), where it is not 1.
    """

    demand: Demand
    queue: str = DEFAULT_QUEUE
    team: str = ""
    user: str = ""
    priority: int = 0
    checkpoints: Checkpoints = NEVER
    starting_ms: int = 0
    restart_ms: int = 0
    bytes_each: float = 0.0
    reader_bytes_per_s: float = float("inf")
    preemptible: bool = True
    retries: int | None = 0
    backoff_ms: int = 0
    grace_ms: int | None = None
    reservation: str = ""
    speeds: tuple[tuple[str, float], ...] = ()

    @property
    def size(self) -> str:
        """Class of its size, GPUs of the whole gang."""
        return size_class(self.demand.most_gpus)


class SimJob(NamedTuple):
    """One job, for scenarios that are written by hand.

    Args:
        work_s: at work on all GPUs it asks for, at the measured speed, without starts, stalls and what is lost.
        limit_s: of one attempt from its start; None is no limit.
    """

    submit_s: float
    work_s: float
    kind: Kind
    limit_s: float | None = None
    fate: Fate = Fate.SUCCEED
    name: str = ""


@dataclass(frozen=True, eq=False)
class Jobs:
    """All jobs of a simulation in the order of their submission; a job's number is its place here.

    Args:
        submit_ms: (jobs,) int64, ascending.
        work_ms: (jobs,) int64, at least 1: time at work on all GPUs it asks for, at the measured speed.
        limit_ms: (jobs,) int64, of one attempt, `NONE_MS` without.
        kind: (jobs,) int32, index into `kinds`.
        fate: (jobs,) uint8 of `Fate`.
        names: by number where the source had names; empty else.
        origin_s: POSIX time of instant 0; 0 where the source has no date.
    """

    submit_ms: Milliseconds
    work_ms: Milliseconds
    limit_ms: Milliseconds
    kind: NDArray[np.int32]
    fate: NDArray[np.uint8]
    kinds: tuple[Kind, ...]
    names: tuple[str, ...] = ()
    origin_s: float = 0.0

    def __post_init__(self) -> None:
        count = len(self.submit_ms)
        if any(len(a) != count for a in (self.work_ms, self.limit_ms, self.kind, self.fate)):
            raise ValueError("the arrays of jobs have different lengths")
        if count and (np.any(np.diff(self.submit_ms) < 0) or self.submit_ms[0] < 0):
            raise ValueError("jobs are in the order of their submission, none before instant 0")
        if count and int(self.work_ms.min()) < 1:
            raise ValueError("a job has at least 1 ms of work")

    def __len__(self) -> int:
        return len(self.submit_ms)

    @property
    def gpus(self) -> NDArray[np.int32]:
        """GPUs that each asks for, (jobs,) int32."""
        return np.array([k.demand.most_gpus for k in self.kinds], dtype=np.int32)[self.kind]

    def name(self, job: int) -> str:
        """As its source calls it, else its number."""
        return self.names[job] if self.names else str(job)


def list_jobs(rows: Iterable[SimJob]) -> Jobs:
    """Jobs from single ones in any order; equal times stay in the order given. Work below 1 ms counts as 1 ms."""
    ordered = sorted(rows, key=lambda r: r.submit_s)
    numbers: dict[Kind, int] = {}
    return Jobs(
        submit_ms=np.array([to_ms(r.submit_s) for r in ordered], dtype=np.int64),
        work_ms=np.array([max(1, to_ms(r.work_s)) for r in ordered], dtype=np.int64),
        limit_ms=np.array([NONE_MS if r.limit_s is None else to_ms(r.limit_s) for r in ordered], dtype=np.int64),
        kind=np.array([numbers.setdefault(r.kind, len(numbers)) for r in ordered], dtype=np.int32),
        fate=np.array([r.fate for r in ordered], dtype=np.uint8),
        kinds=tuple(numbers),
        names=tuple(r.name for r in ordered) if any(r.name for r in ordered) else (),
    )
