"""ior 3 and 4: its text with the result table, and JSON (`-O summaryFormat=JSON`).

`block_size` is the size of one transfer (ior's xfersize), as in every storage reader; ior's own blocksize, what one
task writes in a row, is `task_block_size`. Names: `write_rate`, `read_rate`, `_iops`, `_latency_mean`, `_open_time`,
`_close_time`, `_total_time`, per iteration; `write_rate_max` of the summary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.sizes import read_size
from clusterwright.readers.storage import ior_json
from clusterwright.readers.storage.host_reports import HostReports
from clusterwright.readers.storage.ior_tables import CONDITIONS, observe_row, observe_summary
from clusterwright.readers.values import lacking, read_quantity

_BANNER: Final = re.compile(r"IOR-(\d+)\.(\d+)(\S{0,40}): MPI Coordinated Test of Parallel I/O")
_OPTION: Final = re.compile(r"([A-Za-z][\w ,/-]{1,30}?)\s*: ?(.*)")
_MAXIMUM: Final = re.compile(r"Max (Write|Read):\s+([\d.]+) MiB/sec")
_TOTALS: Final = re.compile(r"^Max (?:Write|Read): +[\d.]+ MiB/sec \([\d.]+ MB/sec\)", re.MULTILINE)
_SUMMARY: Final = re.compile(r"^Operation\s+Max\(MiB\)\s+Min\(MiB\)\s+Mean\(MiB\)", re.MULTILINE)
#: The number of a process that a launcher put before a row.
_LABEL: Final = re.compile(r"\d{1,7}: +")
_HEADLESS: Final = re.compile(r"(?:write|read)\s+\d[\d.]*\s+\d[\d.]*\s+\d")
_STONEWALL: Final = re.compile(r"stonewalling pairs accessed .*time: ([\d.]+)s")
_SIZES: Final = re.compile(r"WARNING: (Expected aggregate file size|Using actual aggregate bytes moved)\s*= (\d{1,30})")
_WRONG: Final = re.compile(r".*(?:incorrect data on|data check error|Differing|FAILED comparison)", re.IGNORECASE)
_FAILURE: Final = re.compile(r"(?:ior )?ERROR\b.*|.*\bMPI_ABORT was invoked.*")


def recognise(head: Head) -> int:
    """Sure by the banner, strong by the keys of its JSON."""
    if _BANNER.search(head.text):
        return 100
    if '"bwMaxMIB"' in head.text or ('"bwMiB"' in head.text and '"access"' in head.text):
        return 97
    if re.search(r"^access[\s,]+bw\(MiB/s\)", head.text, re.MULTILINE):
        return 80
    return 75 if _SUMMARY.search(head.text) or _TOTALS.search(head.text) else 0


def read(source: Source) -> Sequence[Run]:
    """A run for every start of ior."""
    if ior_json.is_json(source.head):
        return ior_json.read_documents(source.text(prefixes=True))
    reader = _Reader()
    for line in source.lines():
        reader.take(line)
    reader.finish()
    if not reader.runs:
        raise Refused("neither the banner nor a result table of ior")
    return reader.runs


class _Reader:
    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._begin("")

    def _begin(self, version: str) -> None:
        self._builder = RunBuilder("ior", version)
        self._reports = HostReports()
        self._section = ""
        self._header: list[str] = []
        self._rows = 0
        self._sizes: dict[str, int] = {}
        self._stonewall_s = ""
        self._ended = False
        self._summary = False
        self._accesses: set[str] = set()
        self._comma = False
        self._sums: list[str] = []
        self._summed: set[str] = set()

    def take(self, line: Line) -> None:
        """One more line."""
        text = line.text.strip()
        if banner := _BANNER.match(text):
            self.finish()
            if int(banner[1][:4]) < 3:
                raise Refused("this version of ior is not read (3 and 4 are)", line.number, text)
            self._begin(f"{banner[1]}.{banner[2]}{banner[3]}")
            self._section = "head"
        elif text:
            self._inside(text, line.number)

    def _inside(self, text: str, number: int) -> None:
        builder = self._builder
        if self._reports.take(builder, text, number):
            return
        text = _LABEL.sub("", text, count=1) if text[:1].isdigit() else text
        if text.startswith(("access ", "access,")) and "bw(" in text:
            self._comma = text.startswith("access,")
            self._header = self._cells(text)
            self._section = "results"
        elif _SUMMARY.match(text):
            self._section, self._summary, self._sums = "summary", True, text.split()
        elif text.startswith("Options:"):
            self._section = "options"
        elif text.startswith("Results:"):
            self._section = "results"
        elif text.startswith("Summary of all tests"):
            self._section, self._summary = "summary", True
        elif found := _MAXIMUM.match(text):
            self._section, self._summary = self._section or "summary", True
            self._summed.add(found[1].lower())
            builder.observe(f"{found[1].lower()}_rate_max", read_quantity(found[2], "MiB/s"), (), number)
        elif text.startswith("Finished"):
            self._ended = True
            builder.condition("ended", text.partition(":")[2].strip())
        elif text.startswith("Elided") or re.fullmatch(r"\[?\.\.\.\]?", text):
            builder.missing("rows that were cut out of the middle")
        elif found := _STONEWALL.match(text):
            self._stonewall_s = found[1]
        elif found := _SIZES.match(text):
            self._sizes[found[1]] = int(found[2])
        elif _WRONG.match(text):
            builder.notice("data-errors", text[:200], Weight.ERROR, number)
        elif _FAILURE.match(text):
            builder.notice("tool-error", text[:200], Weight.ERROR, number)
        elif self._section in ("head", "options"):
            self._option(text)
        elif self._section == "results" and self._header:
            self._result(text, number)
        elif self._section == "summary" and self._sums:
            self._sum(text, number)
        elif not self._header and _HEADLESS.match(text):
            builder.reject(number, text, "a row without the header above it: its columns are not known")

    def _cells(self, text: str) -> list[str]:
        return [cell.strip() for cell in text.split(",")] if self._comma else text.split()

    def _sum(self, text: str, number: int) -> None:
        """A row of the summary; its rates count where no line Max Write or Max Read gave them."""
        cells = text.split()
        if cells[0] not in ("write", "read") or cells[0] in self._summed:
            return
        if len(cells) != len(self._sums):
            self._builder.reject(number, text, f"{len(cells)} cells, the summary has {len(self._sums)}")
            return
        self._summed.add(cells[0])
        observe_summary(self._builder, dict(zip(self._sums, cells, strict=True)), number)

    def _option(self, text: str) -> None:
        found = _OPTION.match(text)
        if found is None:
            return
        key, value = found[1].strip().lower(), found[2].strip()
        name = CONDITIONS.get(key)
        if name is None or lacking(value) is not None:
            return
        size = read_size(value) if name.endswith("_size") else None
        self._builder.condition(name, size if isinstance(size, Quantity) else value[:300])

    def _result(self, text: str, number: int) -> None:
        cells = self._cells(text)
        if cells[0] not in ("write", "read", "remove"):
            return
        if len(cells) != len(self._header):
            why = f"{len(cells)} cells, the header has {len(self._header)}"
            self._builder.reject(number, text, why)
            return
        self._rows += 1
        self._accesses.add(cells[0])
        observe_row(self._builder, dict(zip(self._header, cells, strict=True)), number)

    def finish(self) -> None:
        """End the run that is being read."""
        if self._section:
            self.runs.append(self._build())
        self._begin("")

    def _build(self) -> Run:
        builder = self._builder
        self._reports.finish(builder)
        conditions = builder.conditions()
        self._say_stonewall(conditions)
        ordering = str(conditions.get("ordering", ""))
        if {"write", "read"} <= self._accesses and ordering and "constant task offset" not in ordering:
            message = "what a task wrote is read back by the same task: the rate may be that of its cache"
            builder.notice("read-back", message, Weight.WARNING)
        if not self._rows:
            builder.missing("results: no row was read")
        if not self._summary and not self._comma:
            builder.missing("the summary")
        if not self._ended and not self._comma:
            builder.missing("the line Finished")
        return builder.build()

    def _say_stonewall(self, conditions: dict[str, Any]) -> None:
        expected = self._sizes.get("Expected aggregate file size")
        moved = self._sizes.get("Using actual aggregate bytes moved")
        asked = conditions.get("stonewall_time")
        if moved is None or expected is None:
            if asked not in (None, "0") and self._rows:
                message = f"stonewalling after {asked} s: file_size is what was planned; what was moved is not printed"
                self._builder.notice("stonewall", message, Weight.INFO)
            return
        if moved == expected:
            return
        said = f"{moved:,} of {expected:,} planned bytes were moved"
        if self._stonewall_s or (asked is not None and asked != "0"):
            self._builder.notice("stonewall", f"stopped by the clock: {said}", Weight.INFO)
        else:
            self._builder.notice("size-differs", said, Weight.WARNING)


IOR: Final = Reader("ior", "ior 3 and 4: result table and JSON", recognise, read)
