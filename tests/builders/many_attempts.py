"""Many interrupted attempts at once, as arrays: the arithmetic of `attempts.spend`, for sampling by the million."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clusterwright.simulate.attempts import Checkpoints

Milliseconds = NDArray[np.int64]


@dataclass(frozen=True)
class SpentMany:
    """Where the time of each attempt went, (attempts,) int64 ms; the parts have the meaning of `attempts.Spent`."""

    starting_ms: Milliseconds
    productive_ms: Milliseconds
    stalled_ms: Milliseconds
    lost_ms: Milliseconds
    stalled_since_ms: Milliseconds

    @property
    def total_ms(self) -> Milliseconds:
        """Length of each attempt, (attempts,) int64 ms."""
        return self.starting_ms + self.productive_ms + self.stalled_ms + self.lost_ms + self.stalled_since_ms


def spend_many(work_ms: ArrayLike, starting_ms: ArrayLike, checkpoints: Checkpoints, ran_ms: ArrayLike) -> SpentMany:
    """Where the time of attempts went that run at most `ran_ms` each.

    Args:
        work_ms, starting_ms, ran_ms: whole ms, of one shape or a single value, as of `attempts.Attempt` and `spend`.
        checkpoints: the same for all.
    """
    work, starting, ran = np.broadcast_arrays(*(np.asarray(a, dtype=np.int64) for a in (work_ms, starting_ms, ran_ms)))
    every, stall = checkpoints.every_ms, checkpoints.stall_ms
    started = np.minimum(starting, ran)
    at_work = np.maximum(0, ran - starting)
    if not every:
        done = np.minimum(work, at_work)
        saved = np.where((every == 0) | (done == work), done, 0)
        none = np.zeros_like(done)
        return SpentMany(started, saved, none, done - saved, none)
    most = (work - 1) // every
    at_work = np.minimum(at_work, work + most * stall)
    stalls = np.minimum(at_work // (every + stall), most)
    rest = at_work - stalls * (every + stall)
    in_work = np.where(stalls == most, rest, np.minimum(rest, every))
    done = stalls * every + in_work
    complete = np.minimum(np.maximum(0, at_work - checkpoints.write_ms) // (every + stall), most)
    ended = at_work == work + most * stall
    saved = np.where(ended, work, complete * every)
    stalled = np.where(ended, most, complete) * stall
    return SpentMany(started, saved, stalled, done - saved, stalls * stall + rest - in_work - stalled)
