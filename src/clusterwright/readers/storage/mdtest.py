"""mdtest 1.9 to 4: the tables of rates and of times.

The rate table is in operations per second and the time table in seconds, whatever its title says (4.x titles both
"in ops/sec"). Zeros in every column are a phase that was not run. Names: `file_creation` and so on for the mean rate,
`file_creation_max`, `_min`; `file_creation_time` for the mean time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.storage.host_reports import HostReports
from clusterwright.readers.values import quantity, read_number

_BANNER: Final = re.compile(
    r"mdtest-(\d+\.\S{1,40}) was launched with (\d{1,9}) total task\(s\) on (\d{1,9}) node\(?s?\)?", re.MULTILINE
)
_TITLE: Final = re.compile(r"SUMMARY(?: (rate|time))?\b[^:\n]{0,80}:[ \t]*\(of (\d+) iterations?\)")
_ROW: Final = re.compile(r"\s*+([A-Z][a-z]++ [a-z]++(?: \(\w++\))?)\s*+(?::\s++|(?<=\s))(\S.*)")
_EDGE: Final = re.compile(r"-- (started|finished) at (.*?) --")
_COLUMNS: Final = {"max": "_max", "min": "_min", "mean": "", "std dev": "_stddev"}
_FAILURE: Final = re.compile(r".*\bERROR\b.*|.*MPI_ABORT was invoked.*|.*\bFAILED\b.*")
_NOT_RUN: Final = NoValue(Lack.ABSENT, "0.000", "the phase was not run")


def recognise(head: Head) -> int:
    """Sure by the launch line."""
    if _BANNER.search(head.text):
        return 100
    return 90 if _TITLE.search(head.text) and "File creation" in head.text else 0


def read(source: Source) -> Sequence[Run]:
    """A run for every launch of mdtest."""
    reader = _Reader()
    for line in source.lines():
        reader.take(line)
    reader.finish()
    if not reader.runs:
        raise Refused("neither a launch line nor a table of mdtest")
    return reader.runs


class _Reader:
    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._started = ""
        self._begin("")

    def _begin(self, version: str) -> None:
        self._builder = RunBuilder("mdtest", version)
        self._reports = HostReports()
        self._columns: list[str] = []
        self._table = ""
        self._rows = 0
        self._ended = self._begun = False

    def take(self, line: Line) -> None:
        """One more line."""
        text = line.text.rstrip()
        if banner := _BANNER.match(text.lstrip()):
            self.finish()
            self._begin(banner[1])
            self._begun = True
            self._builder.condition("ranks", banner[2])
            self._builder.condition("node_count", banner[3])
            if self._started:
                self._builder.condition("started", self._started)
        elif edge := _EDGE.match(text.strip()):
            self._edge(edge)
        elif title := _TITLE.match(text.strip()):
            self._begun = True
            self._table, self._columns = title[1] or "rate", []
            self._builder.condition("iterations", title[2])
        elif self._reports.take(self._builder, text, line.number):
            return
        elif self._table:
            self._inside(text, line.number)
        elif text.startswith("Command line used:"):
            self._builder.condition("command", text.partition(":")[2].strip()[:300])
        elif _FAILURE.match(text):
            self._builder.notice("tool-error", text.strip()[:200], Weight.ERROR, line.number)

    def _edge(self, edge: re.Match[str]) -> None:
        if edge[1] == "started":
            self._started = edge[2]
        elif self._begun:
            self._ended = True
            self._builder.condition("ended", edge[2])

    def _inside(self, text: str, number: int) -> None:
        stripped = text.strip()
        if stripped.startswith("Operation"):
            self._columns = re.split(r"\s{2,}", stripped)[1:]
            return
        row = _ROW.match(text)
        if row is None or not self._columns:
            return
        cells = row[2].split()
        if len(cells) != len(self._columns):
            why = f"{len(cells)} cells, the header has {len(self._columns)}"
            self._builder.reject(number, stripped, why)
            return
        self._rows += 1
        self._observe(row[1], cells, number)

    def _observe(self, operation: str, cells: list[str], number: int) -> None:
        name = re.sub(r"\W+", "_", operation.lower()).strip("_") + ("_time" if self._table == "time" else "")
        unit = "s" if self._table == "time" else "op/s"
        numbers = [read_number(cell) for cell in cells]
        idle = all(n == 0 for n in numbers)
        for column, found in zip(self._columns, numbers, strict=True):
            suffix = _COLUMNS.get(column.lower())
            if suffix is None or (idle and suffix):
                continue
            value: Value = _NOT_RUN if idle else found if isinstance(found, NoValue) else quantity(found, unit)
            self._builder.observe(name + suffix, value, (("operation", operation),), number)

    def finish(self) -> None:
        """End the run that is being read."""
        if self._begun:
            self._reports.finish(self._builder)
            if not self._rows:
                self._builder.missing("results: no row was read")
            if not self._ended:
                self._builder.missing("the line that it finished")
            self.runs.append(self._builder.build())
        self._begin("")


MDTEST: Final = Reader("mdtest", "mdtest: rates and times of metadata operations", recognise, read)
