"""An account of every row of a source: job, part of a job, or rejected, with samples of whatever was odd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from clusterwright.traces.rules import PARTS, REJECTED, REMARKS, Rule

#: Samples kept of each rule.
SAMPLES: Final = 5
_LONGEST: Final = 160


@dataclass(frozen=True, slots=True)
class Sample:
    """One place where a rule was met.

    Args:
        line: in the source, from 1; 0 where it has none.
        text: the row, shortened.
        why: what exactly, "" where the rule says all.
    """

    line: int
    text: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """How often a rule was met."""

    code: str
    rule: Rule
    count: int
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What became of the rows of a source: `rows` = `jobs` + `parts` + `rejected`.

    Args:
        rows: with content; headers, comments and blank lines are none.
        jobs: rows that begin a job (one row may begin several, see the remark `array`).
        parts: rows that belong to a job that another row begins, or to no job because they never could.
        rejected: by reason, with samples.
        remarks: what is odd about jobs that are kept, with samples; they count jobs, not rows.
    """

    rows: int
    jobs: int
    parts: tuple[Finding, ...]
    rejected: tuple[Finding, ...]
    remarks: tuple[Finding, ...]

    @property
    def rejected_rows(self) -> int:
        """Rows that are in no job."""
        return sum(found.count for found in self.rejected)

    @property
    def part_rows(self) -> int:
        """Rows that are parts."""
        return sum(found.count for found in self.parts)


class Tally:
    """Counts while rows go by; `build` gives the account.

    Attributes:
        rows, jobs, rejected: so far, as in `RowCounts`.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.jobs = 0
        self.rejected = 0
        self._counts: Counter[str] = Counter()
        self._samples: dict[str, list[Sample]] = {}

    def job(self) -> None:
        """This row begins a job."""
        self.rows += 1
        self.jobs += 1

    def part(self, code: str, line: int = 0, text: str = "", rows: int = 1) -> None:
        """This row is a part (or several are); `code` is one of `rules.PARTS`."""
        self.rows += rows
        self._count(code, line, text, "", rows)

    def reject(self, code: str, line: int, text: str, why: str = "", rows: int = 1) -> None:
        """This row is in no job (or several are not); `code` is one of `rules.REJECTED`."""
        self.rows += rows
        self.rejected += rows
        self._count(code, line, text, why, rows)

    def remark(self, code: str, line: int, text: str, why: str = "") -> None:
        """Something is odd about a job that is kept; `code` is one of `rules.REMARKS`."""
        self._count(code, line, text, why)

    def remark_all(self, code: str, samples: Iterable[Sample], count: int) -> None:
        """The same for several jobs at once, the first of which are samples."""
        if count:
            self._counts[code] += count
            kept = self._samples.setdefault(code, [])
            kept += list(islice(samples, SAMPLES - len(kept)))

    def count(self, code: str) -> int:
        """How often a rule was met so far."""
        return self._counts[code]

    def build(self) -> RowCounts:
        """The account so far."""
        return RowCounts(self.rows, self.jobs, self._found(PARTS), self._found(REJECTED), self._found(REMARKS))

    def _count(self, code: str, line: int, text: str, why: str, count: int = 1) -> None:
        self._counts[code] += count
        kept = self._samples.setdefault(code, [])
        if len(kept) < SAMPLES:
            kept.append(Sample(line, _shorten(text), why[:_LONGEST]))

    def _found(self, table: dict[str, Rule]) -> tuple[Finding, ...]:
        return tuple(
            Finding(code, rule, self._counts[code], tuple(self._samples[code]))
            for code, rule in table.items()
            if self._counts[code]
        )


def _shorten(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text[: _LONGEST + 1])
    return shown if len(text) <= _LONGEST else shown[: _LONGEST - 1] + "…"
