"""How the time of an attempt divides into lines, from its own facts.

    admitted ── starting ── started ── kept work ── saved ── unsaved work ── stopped ── held idle ── ended

Kept work is productive: its result survives the attempt. Whether unsaved work was productive is known only when the
attempt has ended, so an attempt is charged then (or at a cut-off, as `RUNNING`). Stalls for checkpoints are taken out
of either part; where only their total is known they are spread evenly, by a cumulative whole number, so that an
interval cut in two gives the same lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from clusterwright.ledger.lines import NO_CHECKPOINT_DATA, UNDECIDED, Entry, Line
from clusterwright.model.jobs import Cause


class Ending(StrEnum):
    """How an attempt ended, as far as the lines depend on it; RUNNING is a cut-off before its end."""

    COMPLETED = "completed"
    FAILED = "failed"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    TIME_LIMIT = "time limit"
    RUNNING = "running"


@dataclass(slots=True)
class AttemptRecord:
    """What is known about an attempt; a gang whose size changes is one record for each size.

    Args:
        gpus: it holds from admission to its end.
        started_s: every rank runs and its state is restored; None if it never came to that.
        saved_s: the instant up to which its work is safe (the end of the blocking part of the last checkpoint that
            became durable); None without. A service, whose work counts as it is done, is safe until it stops.
        stopped_s: work ended, by itself or by a failure that was noticed later; None is `ended_s`.
        ended_s: its GPUs were given back.
        stalled_s: total of the stalls for checkpoints until `saved_s`.
        stalled_since_s: total of the stalls after it.
        cause: of a failure.
        resumed: whether it went on from a checkpoint of an earlier attempt.
        checkpoints_known: whether somebody would have written down a checkpoint; else work that was interrupted
            without one is `UNKNOWN`, neither lost nor kept.
    """

    gpus: int
    admitted_s: float
    ended_s: float
    ending: Ending
    started_s: float | None = None
    saved_s: float | None = None
    stopped_s: float | None = None
    stalled_s: float = 0.0
    stalled_since_s: float = 0.0
    cause: Cause = Cause.UNKNOWN
    resumed: bool = False
    checkpoints_known: bool = True


#: Every entry that an attempt can be charged to; sums of attempts are lists in this order.
ENTRIES: Final = (
    Entry(Line.STARTING),
    Entry(Line.PRODUCTIVE),
    Entry(Line.CHECKPOINT),
    Entry(Line.HELD_IDLE),
    Entry(Line.PRODUCTIVE, UNDECIDED),
    Entry(Line.PREEMPTED),
    Entry(Line.UNKNOWN, NO_CHECKPOINT_DATA),
    Entry(Line.LOST, Ending.CANCELLED.value),
    Entry(Line.LOST, Ending.TIME_LIMIT.value),
    *(Entry(Line.LOST, cause.value) for cause in Cause),
    *(Entry(Line.FAILED, cause.value) for cause in Cause),
)
_STARTING, _PRODUCTIVE, _CHECKPOINT, _HELD_IDLE, _UNDECIDED, _PREEMPTED, _UNKNOWN = range(7)
_LOST: Final = {cause: ENTRIES.index(Entry(Line.LOST, cause.value)) for cause in Cause}
_FAILED: Final = {cause: ENTRIES.index(Entry(Line.FAILED, cause.value)) for cause in Cause}
#: Where unsaved work goes when the attempt did not fail.
_UNSAVED: Final = {
    Ending.COMPLETED: _PRODUCTIVE,
    Ending.RUNNING: _UNDECIDED,
    Ending.PREEMPTED: _PREEMPTED,
    Ending.CANCELLED: ENTRIES.index(Entry(Line.LOST, Ending.CANCELLED.value)),
    Ending.TIME_LIMIT: ENTRIES.index(Entry(Line.LOST, Ending.TIME_LIMIT.value)),
}
#: Where an attempt that never ran goes when it did not fail.
_UNSTARTED: Final = dict.fromkeys(Ending, _STARTING) | {Ending.PREEMPTED: _PREEMPTED}
_DECIDED: Final = frozenset({Ending.COMPLETED, Ending.RUNNING})
_FAILED_ENDING: Final = Ending.FAILED


def charge_attempt(sums: list[int], record: AttemptRecord) -> None:
    """Add the GPU-ms of a whole attempt, GPUs × (ended − admitted) in all, none negative, to sums by `ENTRIES`.

    Raises:
        ValueError: when its instants are out of order, or its stalls longer than the time they are in.
    """
    gpus = record.gpus
    unsaved, admitted, started, saved, stopped, ended, stalled, stalled_since = _times(record)
    sums[_STARTING] += gpus * (started - admitted)
    sums[_PRODUCTIVE] += gpus * (saved - started - stalled)
    sums[unsaved] += gpus * (stopped - saved - stalled_since)
    sums[_CHECKPOINT] += gpus * (stalled + stalled_since)
    sums[_HELD_IDLE] += gpus * (ended - stopped)


def charge_finished(sums: list[int], gpus: int, starting_ms: int, work_ms: int, stalled_ms: int) -> None:
    """Add an attempt that did all of its work and ended then, what `charge_attempt` adds for it, without a record."""
    sums[_STARTING] += gpus * starting_ms
    sums[_PRODUCTIVE] += gpus * work_ms
    sums[_CHECKPOINT] += gpus * stalled_ms


def charge_part(sums: list[int], record: AttemptRecord, since_ms: int, until_ms: int) -> None:
    """Add what of an attempt is within an interval; adjoining intervals add up to what `charge_attempt` adds.

    Raises:
        ValueError: as `charge_attempt`.
    """
    unsaved, admitted, started, saved, stopped, ended, stalled, stalled_since = _times(record)
    parts = (
        (_STARTING, admitted, started, 0),
        (_PRODUCTIVE, started, saved, stalled),
        (unsaved, saved, stopped, stalled_since),
        (_HELD_IDLE, stopped, ended, 0),
    )
    for index, begin, end, stalls in parts:
        low, high = max(begin, since_ms), min(end, until_ms)
        if low < high:
            stall = stalls * (high - begin) // (end - begin) - stalls * (low - begin) // (end - begin)
            sums[_CHECKPOINT] += record.gpus * stall
            sums[index] += record.gpus * (high - low - stall)


def _times(record: AttemptRecord) -> tuple[int, int, int, int, int, int, int, int]:
    """Index of the entry of its unsaved work; admitted, started, saved, stopped, ended and both stalls, ms.

    An attempt that never started has all its time until it stopped as unsaved work.
    """
    admitted, ended = round(record.admitted_s * 1000), round(record.ended_s * 1000)  # to_ms, in line for its speed
    stopped = ended if record.stopped_s is None else round(record.stopped_s * 1000)
    if record.started_s is None:
        if not admitted <= stopped <= ended or record.saved_s is not None:
            raise ValueError(f"instants are out of order, or work was saved that never started: {record}")
        return _unstarted(record), admitted, admitted, admitted, stopped, ended, 0, 0
    started = round(record.started_s * 1000)
    saved = started if record.saved_s is None else round(record.saved_s * 1000)
    stalled = stalled_since = 0
    if record.stalled_s or record.stalled_since_s:
        stalled, stalled_since = round(record.stalled_s * 1000), round(record.stalled_since_s * 1000)
    if not admitted <= started <= saved <= stopped <= ended:
        raise ValueError(f"admitted, started, saved, stopped and ended are not in this order: {record}")
    if not (0 <= stalled <= saved - started and 0 <= stalled_since <= stopped - saved):
        raise ValueError(f"stalls are longer than the work they are in: {record}")
    return _unsaved(record), admitted, started, saved, stopped, ended, stalled, stalled_since


def _unstarted(record: AttemptRecord) -> int:
    return _FAILED[record.cause] if record.ending is _FAILED_ENDING else _UNSTARTED[record.ending]


def _unsaved(record: AttemptRecord) -> int:
    ending = record.ending
    if ending in _DECIDED:
        return _UNSAVED[ending]
    saves = record.resumed or record.saved_s is not None
    if not (saves or record.checkpoints_known):
        return _UNKNOWN
    if ending is _FAILED_ENDING:
        return _LOST[record.cause] if saves else _FAILED[record.cause]
    return _UNSAVED[ending]
