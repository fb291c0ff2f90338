"""One record of accounting as values: what a trace, a bill or a sum needs of an allocation or step.

A record that contradicts itself is told apart here; which attempt of its job it is, `accounts` finds out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from clusterwright.model.observations import Labels, Lack, NoValue
from clusterwright.readers.memos import Memo
from clusterwright.readers.slurm.amounts import is_time, read_count, read_memory, seconds_of
from clusterwright.readers.slurm.gres import gpus_of
from clusterwright.readers.slurm.states import read_job_state

_NEGATIVE: Final = ("ElapsedRaw", "CPUTimeRAW")
_AMOUNTS: Final = ("MaxRSS", "AveRSS", "MaxVMSize", "AveVMSize")


class JobRow(NamedTuple):
    """One record: an allocation, or a step inside one.

    Args:
        line: in the file, from 1; 0 when it has no lines.
        step: such as `batch` or `0`; "" for the allocation itself.
        attempt: from 1; a requeued job has several, and so has an id that was used again.
        state: the long name; None where it is cut, unknown or not printed.
        elapsed_s: None where it is not printed.
        gpus: that it held; NoValue where the record does not tell (which is not 0).
        submit, eligible, start, end: as printed, in the cluster's local time; None where there is none yet.
        cells: every column as printed, by sacct's names.
        cut: columns whose cell was cut to the column's width.
    """

    line: int
    job: str
    step: str
    attempt: int
    state: str | None
    elapsed_s: float | None
    gpus: int | NoValue
    submit: datetime | None
    eligible: datetime | None
    start: datetime | None
    end: datetime | None
    cells: Mapping[str, str]
    cut: frozenset[str]

    @property
    def gpu_seconds(self) -> float | None:
        """GPUs × elapsed seconds; None where either is not known."""
        return self.elapsed_s * self.gpus if self.elapsed_s is not None and isinstance(self.gpus, int) else None

    @property
    def waited_s(self) -> float | None:
        """From when it was eligible (where not printed: submitted) to its start; None where one is not there."""
        return seconds_between(self.eligible if self.cells.get("Eligible") else self.submit, self.start)

    @property
    def subject(self) -> Labels:
        """The job, its step and the attempt, as far as they differ from the first allocation."""
        if not self.step and self.attempt == 1:
            return (("job", self.job),)
        step = (("step", self.step),) if self.step else ()
        return (("job", self.job), *step, *((("attempt", str(self.attempt)),) if self.attempt > 1 else ()))


class Describing:
    """Cells → rows; equal cells of one output are read once."""

    def __init__(self) -> None:
        self._states = Memo(read_job_state)
        self._elapsed = Memo(seconds_of)
        self._raw = Memo(_seconds_in)
        self._gpus = Memo(gpus_of)
        self._times = Memo(instant)
        self._suspicious = [(column, _negative(column)) for column in _NEGATIVE]
        self._suspicious += [(column, _unit_wrong(column)) for column in _AMOUNTS]

    def describe(self, text: str, cells: Mapping[str, str], line: int = 0, cut: frozenset[str] = frozenset()) -> JobRow:
        """The record, as a first attempt.

        Args:
            text: the job's id with its step: `12_3.batch` is step `batch` of job `12_3`.
        """
        get, times = cells.get, self._times
        job, _, step = text.strip().partition(".")
        elapsed = self._elapsed[get("Elapsed", "")]
        if elapsed is None:
            elapsed = self._raw[get("ElapsedRaw", "")]
        return _new(
            JobRow,
            (
                line, job, step, 1, self._states[get("State", "")], elapsed, self._gpus[get("AllocTRES", "")],
                times[get("Submit", "")], times[get("Eligible", "")], times[get("Start", "")], times[get("End", "")],
                cells, cut,
            ),
        )  # fmt: skip

    def contradiction(self, row: JobRow) -> str:
        """What makes a record unfit: an end before its start, negative times, unknown units; "" if nothing."""
        between = seconds_between(row.start, row.end)
        if between is not None and between < 0:
            return f"ends {-between:.0f} s before it starts"
        cells = row.cells
        for column, wrong in self._suspicious:
            if column in cells and (said := wrong[cells[column]]):
                return said
        elapsed = cells.get("Elapsed", "")
        if elapsed[:1] == "-" or elapsed.upper() == "INVALID":
            return f"Elapsed is {elapsed[:40]}"
        return ""


_new: Final = tuple.__new__


def instant(text: str) -> datetime | None:
    """A printed time; None where none is printed."""
    if not is_time(text):
        return None
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:  # 30 February
        return None


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds between two times, None when one is not there, or only one has a zone."""
    if start is None or end is None or (start.tzinfo is None) != (end.tzinfo is None):
        return None
    return (end - start).total_seconds()


def _seconds_in(text: str) -> float | None:
    number = read_count(text)
    return None if isinstance(number, NoValue) else number


def _negative(column: str) -> Memo[str]:
    def wrong(text: str) -> str:
        number = read_count(text)
        return f"{column} is {text}: negative" if isinstance(number, float) and number < 0 else ""

    return Memo(wrong)


def _unit_wrong(column: str) -> Memo[str]:
    def wrong(text: str) -> str:
        amount = read_memory(text)
        unread = isinstance(amount, NoValue) and amount.lack is Lack.UNREADABLE and not text.endswith("+")
        return f"{column} {text[:40]!r} has no unit that Slurm prints" if unread else ""

    return Memo(wrong)
