"""The lines of the ledger: every installed GPU-second is in exactly one of them, and there is no remainder line.

Sums are whole GPU-milliseconds. Seconds that come in as float are rounded once, at the border, and only as *instants*
(`to_ms`), never as durations: intervals that touch share the rounded instant, so no millisecond is lost between them or
counted twice, and sums of any number of intervals are exact.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

#: GPU-milliseconds in a GPU-hour.
GPU_MS_PER_GPU_H: Final = 3_600_000


class Line(StrEnum):
    """What a GPU did, or why it did nothing; the values are the words of reports."""

    FREE = "free without demand"
    FREE_WITH_DEMAND = "free with demand"
    RESERVED = "reserved"
    DRAINED = "drained or maintenance"
    UNHEALTHY = "unhealthy"
    STARTING = "starting"
    PRODUCTIVE = "productive"
    CHECKPOINT = "checkpoint-blocked"
    HELD_IDLE = "held idle"
    LOST = "lost since checkpoint"
    FAILED = "failed"
    PREEMPTED = "preempted"
    UNKNOWN = "unknown"


#: Detail of `UNKNOWN` where an attempt was interrupted and nobody wrote down whether it had saved its work.
NO_CHECKPOINT_DATA: Final = "checkpoints not recorded"
#: Detail of `PRODUCTIVE` for work of an attempt cut off while it ran: a later failure may still lose it.
UNDECIDED: Final = "not saved yet"
#: Lines of GPUs that an attempt holds; the others are of GPUs that nobody holds, `UNKNOWN` is of an attempt's with the
#: detail `NO_CHECKPOINT_DATA`.
HELD: Final = frozenset(
    {
        Line.STARTING,
        Line.PRODUCTIVE,
        Line.CHECKPOINT,
        Line.HELD_IDLE,
        Line.LOST,
        Line.FAILED,
        Line.PREEMPTED,
    }
)
#: Lines of GPUs that cannot be given to a job although no attempt holds them.
OUT: Final = frozenset({Line.RESERVED, Line.DRAINED, Line.UNHEALTHY, Line.UNKNOWN})


class Entry(NamedTuple):
    """A line and its detail.

    Args:
        why: the blocker of the head for `FREE_WITH_DEMAND`, the cause for `FAILED` and `LOST`, what is missing for
            `UNKNOWN`, else "".
    """

    line: Line
    why: str = ""


class Account(NamedTuple):
    """Who a GPU-second is charged to; GPUs that nobody holds are charged to their flavor alone.

    Args:
        size: class of the job's size (`size_class`).
        job: "" unless every job is to have rows of its own, which costs memory by the number of jobs.
    """

    flavor: str
    queue: str = ""
    team: str = ""
    size: str = ""
    job: str = ""


#: Upper ends of the classes of size, GPUs. A choice: one GPU, a part of a node of 8, a node, then up by about four.
_SIZES: Final = (
    (0, "0"),
    (1, "1"),
    (7, "2-7"),
    (8, "8"),
    (31, "9-31"),
    (127, "32-127"),
    (511, "128-511"),
    (2047, "512-2047"),
)
_LARGEST: Final = "2048+"


def size_class(gpus: int) -> str:
    """The class of a job's size, GPUs of the whole gang."""
    return next((name for most, name in _SIZES if gpus <= most), _LARGEST)


def to_ms(at_s: float) -> int:
    """An instant in whole milliseconds, half to even; the only place where time is rounded."""
    return round(at_s * 1000)
