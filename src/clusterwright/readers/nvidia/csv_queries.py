"""`nvidia-smi --query-gpu=… --format=csv` and its kin for processes, accounted processes, remapped rows and pages.

Columns are read by their names; without the header (`noheader`) nobody can say what they are, and the output is
refused. `nounits` leaves the unit in the header. Looped output (`-l`) gives several samples of one GPU.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Labels, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.nvidia.cells import as_absent, as_count, as_flag, as_text
from clusterwright.readers.nvidia.columns import (
    IDENTITY,
    NAMES,
    PROCESS,
    REASON_BITS,
    field_of,
    header_score,
    reason_column,
    split_header,
)
from clusterwright.readers.nvidia.devices import is_command, is_elision, iso_time, labels, name_of, runs_of_hosts
from clusterwright.readers.nvidia.failures import note_failure, refuse_failure
from clusterwright.readers.nvidia.findings import Faults
from clusterwright.readers.nvidia.gpu_logs import reason_of
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import unreadable

#: Most columns of one query; all of driver 610 are 240.
_MOST_COLUMNS: Final = 2_000
_BARE_CELL: Final = re.compile(
    r"GPU-[0-9a-f]{8}-[0-9a-f-]{27}|[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d|[\d.]+ (?:MiB|W|%|MHz)"
    r"|(?:NVIDIA|Tesla|GeForce|Quadro) .{1,60}|\[(?:N/A|Not Supported)\]"
)


def recognise(head: Head) -> int:
    """By a first line of column names that nvidia-smi has; rows of a query without header are known, to be refused."""
    for line in head.text.split("\n", 12)[:12]:
        if not line.strip() or is_command(line[:400]):
            continue
        cells = line[:16_000].split(",")
        score = header_score(cells)
        if score:
            return score + (3 if score < 90 and "smi" in head.name else 0)
        bare = [cell for cell in cells if len(cell) < 100 and _BARE_CELL.fullmatch(cell.strip())]
        return 45 if len(cells) > 1 and len(bare) > 1 and ", " in line else 0
    return 0


def read(source: Source) -> Sequence[Run]:
    """One run for each header of each host."""
    return runs_of_hosts(source, _read_host)


def _read_host(lines: list[Line], node: str) -> list[Run]:
    tables: list[tuple[Line, list[Line]]] = []
    for line in lines:
        if not line.text.strip() or is_command(line.text):
            continue
        if header_score(line.text.split(",")):
            tables.append((line, []))
        elif tables:
            tables[-1][1].append(line)
        else:
            refuse_failure([line])
            why = "no header line, so nobody can say what the columns are; run the query again without noheader"
            raise Refused(why, line.number, line.text)
    return [_Table(header, node).read(rows) for header, rows in tables]


class _Table:
    """One header with its rows."""

    def __init__(self, header: Line, node: str) -> None:
        self._cells = [cell.strip() for cell in header.text.split(",")]
        if len(self._cells) > _MOST_COLUMNS:
            raise Refused(f"more than {_MOST_COLUMNS} columns", header.number)
        self._names = [split_header(cell)[0] for cell in self._cells]
        self._place = {name: column for column, name in reversed(list(enumerate(self._names)))}
        self._about = "process" if set(PROCESS) & set(self._names) else "gpu"
        self._node = node
        self._builder = RunBuilder(f"nvidia-smi --query-{'compute-apps' if self._about == 'process' else 'gpu'}")
        if node:
            self._builder.condition("node", node)
        for name, times in Counter(self._names).items():
            if times > 1:
                self._builder.notice("column-twice", f"column {name} stands {times} times; the first one counts",
                                     Weight.WARNING, header.number)  # fmt: skip
        self._fields = {
            column: field for column, cell in enumerate(self._cells)
            if (field := field_of(cell)) is not None and self._place[self._names[column]] == column
        }  # fmt: skip
        self._reasons = {column: name for column, cell in enumerate(self._cells) if (name := reason_column(cell))}
        self._named: set[Labels] = set()
        self._times: dict[Labels, list[str]] = {}

    def read(self, lines: list[Line]) -> Run:
        """Every row; Refused when there is none of a device."""
        rows = [(line, row) for line in lines if (row := self._split(line)) is not None]
        if not rows and self._about == "gpu" and not self._builder.rejected and self._builder.bare:
            raise Refused("a header without rows: nothing was measured", found=", ".join(self._cells))
        if not rows and self._about == "process" and not self._builder.rejected:
            self._builder.observe("processes", 0.0, labels(node=self._node))
        subjects = [self._subject(row) for _, row in rows]
        repeated = Counter(subjects)
        sample: Counter[Labels] = Counter()
        for (line, row), subject in zip(rows, subjects, strict=True):
            sample[subject] += 1
            again = repeated[subject] > 1 and self._about == "gpu"
            self._observe(line, row, subject, sample[subject] if again else 0)
        self._say_times()
        self._say_attached(rows, len(repeated))
        if self._about == "gpu":
            Faults(self._builder).say()
        else:
            for subject, count in repeated.items():
                self._builder.observe("processes", float(count), subject)
        return self._builder.build()

    def _split(self, line: Line) -> list[str] | None:
        if is_elision(line.text):
            self._builder.missing("rows left out at an ellipsis")
            return None
        if note_failure(self._builder, line, self._node):
            return None
        row = [cell.strip() for cell in line.text.split(",")]
        extra = len(row) - len(self._cells)
        free = next((n for n, name in enumerate(self._names) if name == "process_name"), None)
        if extra > 0 and free is not None:
            row[free : free + extra + 1] = [", ".join(row[free : free + extra + 1])]
        if len(row) != len(self._cells):
            self._builder.reject(line.number, line.text, f"{len(row)} fields under {len(self._cells)} column names")
            return None
        return row

    def _cell(self, row: list[str], *names: str) -> str:
        for name in names:
            if name in self._place:
                value = as_text(row[self._place[name]])
                if isinstance(value, str):
                    return value
        return ""

    def _subject(self, row: list[str]) -> Labels:
        known = {"node": self._node}
        for column, label in IDENTITY.items():
            if value := self._cell(row, column):
                known[label] = value
        return labels(**known)

    def _observe(self, line: Line, row: list[str], subject: Labels, sample: int) -> None:
        stamp = self._cell(row, "timestamp")
        if subject not in self._named:
            self._named.add(subject)
            known = [row[self._place[name]] for name in NAMES if name in self._place]
            product = as_text(known[0]) if known else as_absent("no column with the product name")
            self._builder.observe("gpu", product, subject, line.number)
            driver = self._cell(row, "driver_version", "kmd_version")
            if driver:
                self._builder.condition("driver", driver)
                self._builder.version = self._builder.version or driver
            if stamp and "started" not in self._builder.conditions():
                self._builder.condition("started", iso_time(stamp) or stamp)
        if stamp:
            self._times.setdefault(subject, []).append(stamp)
        more = [("sample", str(sample))] if sample else []
        if stamp:
            more.append(("time", iso_time(stamp) or stamp[:40]))
        if self._about == "process":
            pairs = (("pid", self._cell(row, "pid")), ("process", self._cell(row, "process_name")[:200]))
            more.extend(pair for pair in pairs if pair[1])
        whom = (*subject, *more)
        for column, field in self._fields.items():
            self._builder.observe(field.name, field.read(row[column]), (*whom, *field.labels), line.number)
        self._observe_reasons(row, whom, line.number)

    def _observe_reasons(self, row: list[str], subject: Labels, line: int) -> None:
        single = {column: name for column, name in self._reasons.items() if name != "active"}
        flags = [(name, as_flag(row[column])) for column, name in single.items()]
        active: list[Value] = [reason_of(name) for name, flag in flags if flag is True]
        unclear: list[Value] = [flag for _, flag in flags if not isinstance(flag, bool)]
        if self._reasons and not single:
            active, unclear = _bits(row[next(iter(self._reasons))])
        if not self._reasons:
            return
        whole = not single or len(single) >= 6
        for value in active or unclear[:1] or (["none"] if whole else []):
            self._builder.observe("throttle", value, subject, line)

    def _say_attached(self, rows: list[tuple[Line, list[str]]], devices: int) -> None:
        """Hold the column `count` against the devices printed; the driver may have more than were selected."""
        counts = {as_count(self._cell(row, "count")) for _, row in rows} if "count" in self._names else set()
        for count in counts:
            self._builder.observe("attached_gpus", count, labels(node=self._node))
            if isinstance(count, float) and devices < count and self._about == "gpu":
                self._builder.missing(f"rows of {count - devices:.0f} of {count:.0f} attached GPUs")

    def _say_times(self) -> None:
        for subject, stamps in self._times.items():
            distinct = len(set(stamps))
            if self._about == "gpu" and distinct < len(stamps):
                said = f"{len(stamps)} samples of {name_of(subject)} carry {distinct} different times"
                self._builder.notice("equal-timestamps", f"{said}: rates and energy cannot be computed", Weight.WARNING)
        last = [stamp for stamps in self._times.values() for stamp in stamps[-1:]]
        if last:
            self._builder.condition("ended", max(iso_time(stamp) or stamp for stamp in last))


def _bits(text: str) -> tuple[list[Value], list[Value]]:
    """(active reasons, what is unreadable) of `0x0000000000000044`."""
    word = as_text(text)
    if not isinstance(word, str):
        return [], [word]
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,16}", word):
        return [], [unreadable(text, "not a mask of clock event reasons")]
    mask = int(word, 16)
    return [name for bit, name in REASON_BITS.items() if mask & bit], []


READER: Final = Reader("nvidia-smi-csv", "nvidia-smi --query-… --format=csv, with header", recognise, read)
