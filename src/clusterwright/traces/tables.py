"""A trace as arrays: one entry for each job, a million of them in some 200 MB.

Unknown is NaN in a column of numbers, -1 in a column of counts and "" in a column of words; none of them means 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]
Mask = NDArray[np.bool_]

#: A count that the source does not tell.
UNKNOWN: Final = -1
#: States of jobs that had not ended when the source was written; the words are Slurm's (man sacct, JOB STATE CODES).
OPEN_STATES: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "RESIZING"})


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A column of words.

    Args:
        codes: (jobs,) int32, indices into `words`.
        words: each once; the first is "", which is: not recorded.
    """

    codes: Counts
    words: tuple[str, ...] = ("",)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, job: int) -> str:
        return self.words[int(self.codes[job])]

    @property
    def known(self) -> Mask:
        """Whether the word is recorded, (jobs,) bool."""
        return np.asarray(self.codes != 0)

    def are(self, *words: str) -> Mask:
        """Whether the word is one of these, (jobs,) bool."""
        return np.isin(self.codes, [code for code, word in enumerate(self.words) if word in words])

    def counts(self) -> dict[str, int]:
        """Word → jobs, the most frequent first; "" for those without."""
        counted = np.bincount(self.codes, minlength=len(self.words))
        order = np.argsort(-counted, kind="stable")
        return {self.words[code]: int(counted[code]) for code in order if counted[code]}

    def take(self, chosen: NDArray[Any]) -> Words:
        """The same column for the chosen jobs, by index or mask."""
        return Words(self.codes[chosen], self.words)


class TraceJob(NamedTuple):
    """One job of a trace; the fields are those of `Trace`, with None and -1 as there."""

    id: str
    submit_s: float
    eligible_s: float
    start_s: float
    end_s: float
    run_s: float
    lost_s: float
    limit_s: float
    gpus: int
    gpu_milli: int
    tasks: int
    gpus_per_task: int
    attempts: int
    cpus: float
    memory_gib: float
    priority: float
    censored: bool
    queue: str
    account: str
    user: str
    qos: str
    flavor: str
    state: str
    cause: str
    line: int


@dataclass(frozen=True, eq=False)
class Trace:
    """Jobs in the order of their submission; equal times in the order of the source.

    Times are POSIX seconds (UTC), or seconds since the start of the trace where the source has no date. All arrays are
    (jobs,); those of times and durations float64 s, those of counts int32.

    Args:
        ids: as the source names them.
        submit_s: when the job was first submitted; always known.
        eligible_s: when its own conditions (dependencies, begin time) let it start; NaN: not recorded.
        start_s: when it first got what it asked for; NaN: never, or not recorded.
        end_s: when its last attempt ended; NaN: not yet, or not recorded.
        run_s: how long its last attempt ran; NaN: it never ran, or not recorded. A lower bound where `censored`.
        lost_s: how long its earlier attempts ran in all; 0 for a job with one attempt.
        limit_s: its time limit; infinite: none; NaN: not recorded.
        gpus: of the whole job; -1: not recorded, 0: none.
        gpu_milli: thousandths of each of its GPUs; 1000 unless it shares one.
        tasks: slices of one node each; -1: not recorded.
        gpus_per_task: GPUs on each node; -1: not recorded, or not the same on each.
        attempts: how often it was started or queued, at least 1.
        cpus: cores of the whole job; NaN: not recorded.
        memory_gib: of the whole job; NaN: not recorded.
        priority: as the source has it, higher first; NaN: not recorded.
        censored: the job still ran when the source was written.
        flavor: GPU type that it asked for; several, any of which would do, with `|` between.
        cause: what a failure is charged to, where the source says so.
        line: in the source, from 1; 0 where it has none.
    """

    ids: tuple[str, ...]
    submit_s: Floats
    eligible_s: Floats
    start_s: Floats
    end_s: Floats
    run_s: Floats
    lost_s: Floats
    limit_s: Floats
    gpus: Counts
    gpu_milli: Counts
    tasks: Counts
    gpus_per_task: Counts
    attempts: Counts
    cpus: Floats
    memory_gib: Floats
    priority: Floats
    censored: Mask
    queue: Words
    account: Words
    user: Words
    qos: Words
    flavor: Words
    state: Words
    cause: Words
    line: Counts

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, job: int) -> TraceJob:
        return TraceJob(*(_plain(getattr(self, _COLUMN.get(name, name))[job]) for name in TraceJob._fields))

    def jobs(self) -> Iterator[TraceJob]:
        """Every job, in order."""
        columns = [_column(getattr(self, _COLUMN.get(name, name))) for name in TraceJob._fields]
        return (TraceJob(*row) for row in zip(*columns, strict=True))

    @cached_property
    def ran(self) -> Mask:
        """Whether it ran, as far as is recorded."""
        return ~np.isnan(self.run_s)

    @cached_property
    def wait_s(self) -> Floats:
        """From when it was eligible (where not recorded: submitted) to its first start; NaN where one is not known."""
        ready = np.where(np.isnan(self.eligible_s), self.submit_s, np.maximum(self.eligible_s, self.submit_s))
        return np.maximum(self.start_s - ready, 0.0)

    @cached_property
    def held_s(self) -> Floats:
        """How long it held its GPUs over all attempts; NaN where not recorded, a lower bound where censored."""
        return self.run_s + self.lost_s

    @cached_property
    def whole_gpus(self) -> Floats:
        """GPUs with shares of them counted as such: half a GPU is 0.5; NaN where not recorded."""
        known = np.where(self.gpus < 0, np.nan, self.gpus.astype(np.float64))
        return known * self.gpu_milli / 1000.0

    @cached_property
    def window_s(self) -> tuple[float, float]:
        """First submission and last submission, start or end that the trace tells of; (0, 0) without jobs."""
        if not len(self):
            return (0.0, 0.0)
        moments = (self.start_s, self.end_s, self.start_s + self.run_s)
        last = max(float(np.nanmax(times, initial=self.submit_s[-1])) for times in moments)
        return (float(self.submit_s[0]), last)

    def take(self, chosen: NDArray[Any]) -> Trace:
        """The chosen jobs, by index or mask; the indices must grow for the order to hold."""
        places = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        columns: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "ids"}
        taken: dict[str, Any] = {
            name: c.take(places) if isinstance(c, Words) else c[places] for name, c in columns.items()
        }
        return replace(self, ids=tuple(self.ids[place] for place in places), **taken)


#: Names of a job's fields that are not those of the table's columns.
_COLUMN: Final = {"id": "ids"}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _column(column: Any) -> Any:
    if isinstance(column, Words):
        return [column.words[code] for code in column.codes.tolist()]
    return column.tolist() if isinstance(column, np.ndarray) else column
