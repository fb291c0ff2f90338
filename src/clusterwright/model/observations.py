"""What a reader makes of a tool's output: observations with units, what it could not read, or a refusal.

Every value is one of three things: a number (with its unit), flag or text; *absent* (the tool says that it has none,
such as N/A); or *unreadable* (something stands there that is no value). The last two are `NoValue`, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from clusterwright.lib.quantities import Quantity

Labels = tuple[tuple[str, str], ...]


class Lack(StrEnum):
    """Why there is no value."""

    ABSENT = "absent"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class NoValue:
    """The place of a value that is not there.

    Args:
        text: what stands in its place, at most a few words.
        why: for UNREADABLE what is wrong with it; for ABSENT what it means, if known.
    """

    lack: Lack
    text: str = ""
    why: str = ""

    def __str__(self) -> str:
        said = f"{self.lack.value} ({self.text})" if self.text else self.lack.value
        return f"{said}: {self.why}" if self.why else said


Value = Quantity | float | bool | str | NoValue


class Observation(NamedTuple):
    """One value that a tool printed; a tuple, since a month of accounting holds millions.

    Args:
        name: what was measured, such as `busbw`; the same name for the same thing in every reader.
        subject: what it is about, as (key, value): ("node", "gpu-001"), ("pci", "0000:1b:00.0"),
            ("size", "8589934592").
        line: in the file, from 1; 0 when the file has no lines.
    """

    name: str
    value: Value
    subject: Labels = ()
    line: int = 0


class Weight(StrEnum):
    """How much a notice weighs."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a careful person would say about the output.

    Args:
        code: stable name such as `validation-off`.
        message: one sentence with the numbers.
    """

    code: str
    message: str
    weight: Weight = Weight.WARNING
    line: int = 0


@dataclass(frozen=True, slots=True)
class Unread:
    """A sample of what looked like data but was not read, and why."""

    line: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a tool.

    Args:
        version: as the tool printed it, "" when it did not.
        conditions: what was printed about how it was run, such as ("operation", "all-reduce").
        missing: parts of a whole output that are not there; empty means complete.
        rejected: rows that looked like data and were not read; `unread` holds a sample of them.
    """

    tool: str
    version: str = ""
    conditions: tuple[tuple[str, Value], ...] = ()
    observations: tuple[Observation, ...] = ()
    notices: tuple[Notice, ...] = ()
    missing: tuple[str, ...] = ()
    rejected: int = 0
    unread: tuple[Unread, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every part of a whole output is there."""
        return not self.missing

    def condition(self, name: str) -> Value | None:
        """What was printed about a condition, None when nothing was."""
        return next((value for key, value in self.conditions if key == name), None)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an output was not read at all.

    Args:
        found: what stands at the line, shortened.
    """

    reason: str
    line: int = 0
    found: str = ""

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return place + self.reason + (f"; found {self.found!r}" if self.found else "")


class Outcome(StrEnum):
    """How much of an output was read."""

    READ = "read"
    PARTLY = "partly"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Transcript:
    """Everything that was read from one output.

    Args:
        kind: of the reader, such as `nccl-tests`; "" when no reader knows the output.
        cleaned: what cleaning removed or replaced, as (what, how often).
    """

    kind: str
    runs: tuple[Run, ...] = ()
    refusal: Refusal | None = None
    cleaned: tuple[tuple[str, int], ...] = ()

    @property
    def outcome(self) -> Outcome:
        """READ when every run is complete with no row rejected, REFUSED without any run, PARTLY otherwise."""
        if self.refusal is not None or not self.runs:
            return Outcome.REFUSED
        whole = all(run.complete and not run.rejected for run in self.runs)
        return Outcome.READ if whole else Outcome.PARTLY
