"""`dcgmi dmon`: samples of fields in columns.

Source: dcgmi/DeviceMonitor.cpp of DCGM 2 to 4. Names are the printed short names (GPUTL, POWER), in lower case; the
unit is the one in the second line of the heading, where it names one. Subject: gpu or another entity, sample.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.dcgm.fields import UNITS, Unit, read_value
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

_HEADING: Final = re.compile(r"#\s*Entity\b")
_UNITS: Final = re.compile(r"(?:ID|Id)(?:\s|$)")
_ROW: Final = re.compile(
    r"(?P<kind>GPU-CI|GPU-I|GPU|vGPU|Switch|Link|CPU-Core|CPU|ConnectX)\s+(?P<id>\d{1,6})\s+(?P<rest>\S.*)$"
)
_KINDS: Final = {"GPU": "gpu", "GPU-I": "gpu_instance", "GPU-CI": "compute_instance"}
_STOPPED: Final = "dmon was stopped"


def recognise(head: Head) -> int:
    """How sure this is dmon of DCGM and not that of nvidia-smi, whose heading begins with `# gpu`."""
    return 96 if re.search(r"^#[ \t]*Entity[ \t]+\S", head.text, re.MULTILINE) else 0


def read(source: Source) -> Sequence[Run]:
    """The samples of each host."""
    tables: dict[str, _Table] = {}
    for line in source.lines():
        if len(tables) < 10_000 or line.prefix in tables:
            tables.setdefault(line.prefix, _Table(line.prefix)).line(line.number, line.text)
    runs = [table.finish() for table in tables.values() if not table.run.bare]
    if not runs:
        raise Refused("holds a heading at most, no sample: nothing was measured")
    return runs


class _Table:
    def __init__(self, node: str) -> None:
        self.run = RunBuilder("dcgmi dmon")
        if node:
            self.run.condition("node", node)
        self._columns: list[tuple[str, Unit | None]] = []
        self._offsets: list[int] = []
        self._samples: dict[tuple[str, str], int] = {}

    def line(self, number: int, text: str) -> None:
        if _HEADING.match(text):
            names = list(re.finditer(r"\S+", text))[1 if text[1:2] != " " else 2 :]
            self._columns = [(match.group().lower(), None) for match in names]
            self._offsets = [match.start() for match in names]
        elif _UNITS.match(text) and self._columns:
            self._units(text)
        elif row := _ROW.match(text.strip()):
            self._row(number, text, row)
        elif text.strip() and not text.startswith("#") and _STOPPED not in text and self._columns:
            self.run.reject(number, text, "no row of an entity")

    def _units(self, text: str) -> None:
        ends = [*self._offsets[1:], len(text) + 1]
        for index, (begin, end) in enumerate(zip(self._offsets, ends, strict=True)):
            name, _ = self._columns[index]
            self._columns[index] = (name, UNITS.get(text[begin:end].strip()))

    def _row(self, number: int, text: str, row: re.Match[str]) -> None:
        cells = re.split(r"\s{2,}", row["rest"].strip())
        if len(cells) != len(self._columns):
            cells = row["rest"].split()
        if not self._columns or len(cells) != len(self._columns):
            self.run.reject(number, text, f"{len(cells)} cells in a row of {len(self._columns)}")
            return
        entity = (_KINDS.get(row["kind"], row["kind"].lower()), row["id"])
        sample = self._samples[entity] = self._samples.get(entity, 0) + 1
        for (name, unit), cell in zip(self._columns, cells, strict=True):
            self.run.observe(name, read_value(cell, unit), (entity, ("sample", str(sample))), number)

    def finish(self) -> Run:
        self.run.condition("attached_gpus", float(sum(kind == "gpu" for kind, _ in self._samples)))
        counts = sorted(set(self._samples.values()))
        self.run.condition("samples", float(counts[-1]))
        if counts[0] < counts[-1] - 1:
            self.run.notice("samples-differ", f"entities have between {counts[0]:,} and {counts[-1]:,} samples")
        return self.run.build()


READER: Final = Reader("dcgm-dmon", "dcgmi dmon: samples in columns", recognise, read)
