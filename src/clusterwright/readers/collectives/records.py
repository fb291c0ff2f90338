"""What one run of nccl-tests left in its output, before anything is concluded from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from clusterwright.readers.collectives.ranks import Rank
from clusterwright.readers.collectives.rows import Layout, Row
from clusterwright.readers.refusing import shorten

#: Rows that are kept of one run; the tools print some tens.
MOST_ROWS: Final = 100_000
_MOST_LINES: Final = 200


@dataclass(slots=True)
class Record:
    """One run as printed.

    Args:
        stage: how far the output came, see `tables.STAGES`.
        program: without `_perf`, "" when not named.
        parameters: of the `# nThread …` line, such as {"nGpus": "1", "step": "2(factor)"}.
        versions: what was printed as version, by name.
        bounds: (line, number of values out of bounds as printed, what the tool says).
        average: (line, average bus bandwidth as printed, what the tool says).
        footer: whether this form of output ends with both sums.
        cut_rank: number of the line at which the list of ranks breaks off.
        alone: processes that each ran this by themselves, 0 when they ran together.
    """

    stage: int = 0
    program: str = ""
    named_by: str = ""
    command: str = ""
    library: str = "nccl"
    started: str = ""
    ended: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    ranks: list[Rank] = field(default_factory=list)
    declared_ranks: dict[str, int] = field(default_factory=dict)
    layout: Layout | None = None
    rows: list[Row] = field(default_factory=list)
    zero_rows: int = 0
    first_zero: int = 0
    rejected: list[tuple[int, str, str]] = field(default_factory=list)
    rejections: int = 0
    placeholders: int = 0
    torn: list[int] = field(default_factory=list)
    elisions: list[int] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    transport: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    bounds: tuple[int, str, str] | None = None
    average: tuple[int, str, str] | None = None
    footer: bool = True
    cut_rank: int = 0
    rows_left_out: int = 0
    alone: int = 0

    def keep_row(self, row: Row) -> None:
        """Keep a row; rows of size 0 are only counted."""
        if row.size == 0:
            self.zero_rows += 1
            self.first_zero = self.first_zero or row.line
        elif len(self.rows) < MOST_ROWS:
            self.rows.append(row)
        else:
            self.rows_left_out += 1

    def reject(self, line: int, text: str, why: str) -> None:
        """Count a row that was not read."""
        self.rejections += 1
        self.placeholders += "placeholder" in why
        if "NCCL's own log" in why or "second part" in why:
            self.torn = [*self.torn[: _MOST_LINES - 1], line]
        if len(self.rejected) < _MOST_LINES:
            self.rejected.append((line, text, why))

    def fail(self, line: int, text: str) -> None:
        """Keep a line by which something says that the run failed."""
        if len(self.failures) < _MOST_LINES:
            self.failures.append((line, shorten(text)))

    def warn(self, line: int, text: str) -> None:
        """Keep a warning of the library."""
        if len(self.warnings) < _MOST_LINES:
            self.warnings.append((line, shorten(text)))

    def elide(self, line: int) -> None:
        """Note that somebody left something out at this line."""
        if len(self.elisions) < _MOST_LINES:
            self.elisions.append(line)
