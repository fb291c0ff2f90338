"""Tables of genai-perf and AIPerf: drawn with box characters, and as CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.refusing import Refused
from clusterwright.readers.serving.benchmarks import Benchmark
from clusterwright.readers.serving.genai_metrics import is_metric, is_statistic, put_metric, say_goodput, split_title
from clusterwright.readers.values import read_number

TITLE: Final = re.compile(r"NVIDIA (GenAI-Perf|AIPerf)\s*\|\s*([\w ,-]{0,60}?Metrics)")
_BARS: Final = re.compile(r"[│┃║|]")
_BOTTOM: Final = re.compile(r"\s*[└╚╰┗+][─═━┴╧-]")
_HEADS: Final = ("metric", "statistic")


def read_tables(lines: Iterable[Line]) -> list[Run]:
    """A run for every table."""
    reader = _Tables()
    for line in lines:
        reader.take(line)
    reader.finish()
    if not reader.runs:
        raise Refused("no table of metrics")
    return reader.runs


class _Tables:
    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._tool = "genai-perf"
        self._benchmark: Benchmark | None = None
        self._columns: list[str] = []
        self._row: tuple[list[str], int] | None = None
        self._ended = False
        self._rows = 0

    def take(self, line: Line) -> None:
        """One more line."""
        if title := TITLE.search(line.text):
            self.finish()
            self._tool = {"GenAI-Perf": "genai-perf", "AIPerf": "aiperf"}[title[1]]
            return
        if _BOTTOM.match(line.text) and self._benchmark is not None:
            self._close_row()
            self._ended = True
            return
        cells = _cells(line.text)
        if len(cells) < 2:
            if line.text.strip() in ("...", "[...]") and self._benchmark is not None and not self._ended:
                self._benchmark.builder.missing("rows that were cut out of the middle")
            return
        if cells[0].lower() in _HEADS and any(is_statistic(c) for c in cells[1:]):
            self.finish()
            self._benchmark = Benchmark(RunBuilder(self._tool))
            self._columns = cells
        elif self._benchmark is not None:
            self._cells(self._benchmark, cells, line.number)

    def _cells(self, benchmark: Benchmark, cells: list[str], number: int) -> None:
        if len(cells) != len(self._columns):
            why = f"{len(cells)} cells, the header has {len(self._columns)}"
            benchmark.builder.reject(number, " | ".join(cells), why)
        elif not any(cells[1:]):
            if self._row is not None:
                self._row[0][0] += " " + cells[0]
        else:
            self._close_row()
            self._row = (cells, number)

    def _close_row(self) -> None:
        if self._row is None or self._benchmark is None:
            return
        (cells, number), self._row = self._row, None
        name, unit = split_title(cells[0])
        if not is_metric(name):
            self._benchmark.builder.reject(number, cells[0], "a metric of an unknown name")
            return
        self._rows += 1
        for column, cell in zip(self._columns[1:], cells[1:], strict=True):
            if is_statistic(column):
                put_metric(self._benchmark, name, unit, column, read_number(cell, grouped=True), number)

    def finish(self) -> None:
        """End the table that is being read."""
        self._close_row()
        if self._benchmark is not None:
            builder = self._benchmark.builder
            if not self._ended:
                builder.missing("the lower edge of the table")
            if not self._rows:
                builder.missing("rows")
            say_goodput(self._benchmark)
            self._benchmark.finish()
            self.runs.append(builder.build())
        self._benchmark, self._ended, self._rows = None, False, 0


def _cells(text: str) -> list[str]:
    parts = _BARS.split(text)
    return [part.strip() for part in parts[1:-1]] if len(parts) > 3 else []


def read_csv(lines: Iterable[Line]) -> list[Run]:
    """The one run of a CSV export: a part with statistics and a part with single values."""
    builder = RunBuilder("genai-perf")
    benchmark = Benchmark(builder)
    columns: list[str] = []
    rows = 0
    for line in lines:
        cells = [cell.strip() for cell in next(csv.reader([line.text], strict=False), [])]
        if not any(cells):
            columns = []
        elif cells[0].lower() in _HEADS:
            columns = ["avg" if c.lower() == "value" else c for c in cells]
        elif columns and len(cells) != len(columns):
            builder.reject(line.number, line.text, f"{len(cells)} cells, the header has {len(columns)}")
        elif columns:
            name, unit = split_title(cells[0])
            if not is_metric(name):
                continue
            rows += 1
            for column, cell in zip(columns[1:], cells[1:], strict=True):
                if is_statistic(column):
                    put_metric(benchmark, name, unit, column, read_number(cell, grouped=True), line.number)
    if not rows:
        raise Refused("the CSV holds no metric that is known")
    say_goodput(benchmark)
    benchmark.finish()
    return [builder.build()]
