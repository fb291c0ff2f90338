"""What became of each job, as arrays that grow with nothing but the number of jobs."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from clusterwright.simulate.jobs import NONE_MS, Milliseconds


class Fared(IntEnum):
    """How far a job came."""

    NOT_SUBMITTED = 0
    WAITING = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    TIMED_OUT = 5
    CANCELLED = 6


class Tallies:
    """The same columns as `Results`, while they are written."""

    __slots__ = ("attempts", "end_ms", "fared", "held", "left_ms", "lost", "productive", "queued_ms", "start_ms",
                 "unsaved", "waited_ms")  # fmt: skip

    def __init__(self, work_ms: Milliseconds) -> None:
        count = len(work_ms)
        none, zero = array("q", [NONE_MS]), array("q", [0])
        self.fared = bytearray(count)
        self.start_ms, self.end_ms = none * count, none * count
        self.queued_ms, self.waited_ms = zero * count, zero * count
        self.held, self.productive, self.lost = zero * count, zero * count, zero * count
        self.unsaved = zero * count
        self.attempts = array("i", [0]) * count
        self.left_ms = array("q", work_ms.astype(np.int64).tobytes())

    def close(self, at_ms: int) -> Results:
        """The columns as they are at the end; who waits then has waited until then."""
        fared = np.frombuffer(bytes(self.fared), dtype=np.uint8)
        waited = _numbers(self.waited_ms) + np.where(fared == Fared.WAITING, at_ms - _numbers(self.queued_ms), 0)
        return Results(
            fared, _numbers(self.start_ms), _numbers(self.end_ms), waited,
            np.array(self.attempts, dtype=np.int32), _numbers(self.held), _numbers(self.productive),
            _numbers(self.lost), _numbers(self.unsaved),
        )  # fmt: skip


def _numbers(column: array[int]) -> Milliseconds:
    return np.frombuffer(column, dtype=np.int64).copy()


@dataclass(frozen=True, eq=False)
class Results:
    """What became of each job, by its number.

    Args:
        fared: (jobs,) uint8 of `Fared`.
        start_ms: (jobs,) int64, first start, `NONE_MS` when it never started.
        end_ms: (jobs,) int64, end for good, `NONE_MS` when it had not ended.
        waited_ms: (jobs,) int64, in the queue over all attempts, back-off included.
        attempts: (jobs,) int32.
        held_gpu_ms, productive_gpu_ms, lost_gpu_ms: (jobs,) int64: what its attempts that ended held, what of it was
            work that was kept, and what was work that was not.
        unsaved_gpu_ms: (jobs,) int64: work of attempts that still ran at the end, since their last checkpoint; nobody
            knows yet whether it will be kept.
    """

    fared: NDArray[np.uint8]
    start_ms: Milliseconds
    end_ms: Milliseconds
    waited_ms: Milliseconds
    attempts: NDArray[np.int32]
    held_gpu_ms: Milliseconds
    productive_gpu_ms: Milliseconds
    lost_gpu_ms: Milliseconds
    unsaved_gpu_ms: Milliseconds

    def __len__(self) -> int:
        return len(self.fared)

    def count(self, *fared: Fared) -> int:
        """How many jobs came so far."""
        return int(np.isin(self.fared, fared).sum())

    def equal(self, other: Results) -> bool:
        """Whether every column is the same."""
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
