"""elbencho's live statistics (`--livecsv`): samples while a phase runs, in a file of their own or between the results.

They are no result: names say so (`read_live_rate_mean` over all samples, `_min` and `_max` of single ones,
`read_live_iops_mean`, `read_live_samples`, `read_live_time`). Subject: phase, label where one was given.
Source: elbencho `source/statistics/Statistics.cpp`, printLiveStatsCSV, versions 2.0 to 3.0.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Final

from clusterwright.model.observations import Labels, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.storage.elbencho_phases import name_of
from clusterwright.readers.values import quantity, read_number

_START: Final = "ISO Date,Label,Phase,RuntimeMS,Rank,"
_MOST_PHASES: Final = 1000


@dataclass
class _Phase:
    line: int
    samples: int = 0
    time_ms: float = 0.0
    bytes: float = 0.0
    lowest: float | None = None
    highest: float | None = None
    iops: float = 0.0


def is_header(text: str) -> bool:
    """Whether a line is the header of live statistics."""
    return text.startswith(_START)


class LiveRows:
    """Rows below a header of live statistics, summed by phase in constant memory."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._phases: dict[tuple[str, str], _Phase] = {}
        self._workers = 0

    def take(self, text: str, number: int, builder: RunBuilder) -> bool:
        """Whether the line belongs to the live statistics; rows that do not fit are rejected."""
        if is_header(text):
            self._columns = [name.strip() for name in text.split(",")]
            return True
        if not self._columns or text[:2] != "20" or text.count(",") < 4:
            return False
        cells = next(csv.reader([text]), [])
        if len(cells) != len(self._columns):
            builder.reject(number, text, f"{len(cells)} cells, the header has {len(self._columns)}")
            return True
        self._keep(dict(zip(self._columns, cells, strict=True)), number)
        return True

    def _keep(self, row: dict[str, str], number: int) -> None:
        if row["Rank"] != "Total":
            self._workers += 1
            return
        key = (row["Phase"], row["Label"])
        if key not in self._phases and len(self._phases) >= _MOST_PHASES:
            return
        phase = self._phases.setdefault(key, _Phase(number))
        time, moved, rate = (read_number(row.get(name, "")) for name in ("RuntimeMS", "DoneBytes", "MiB/s"))
        if not (isinstance(time, float) and isinstance(moved, float) and isinstance(rate, float)):
            return
        phase.samples += 1
        phase.time_ms, phase.bytes = max(phase.time_ms, time), max(phase.bytes, moved)
        phase.lowest = rate if phase.lowest is None else min(phase.lowest, rate)
        phase.highest = rate if phase.highest is None else max(phase.highest, rate)
        iops = read_number(row.get("IOPS", ""))
        phase.iops += iops if isinstance(iops, float) else 0.0

    def finish(self, builder: RunBuilder) -> int:
        """Observe the phases; how many there were."""
        for (name, label), phase in self._phases.items():
            subject: Labels = (("phase", name), *((("label", label),) if label else ()))
            start = name_of(name)
            builder.observe(f"{start}_live_samples", float(phase.samples), subject, phase.line)
            if phase.samples and phase.time_ms > 0:
                builder.observe(f"{start}_live_time", quantity(phase.time_ms / 1000, "s"), subject, phase.line)
                mean = phase.bytes / 2**20 / (phase.time_ms / 1000)
                for suffix, rate in (("mean", mean), ("min", phase.lowest), ("max", phase.highest)):
                    if rate is not None:
                        builder.observe(f"{start}_live_rate_{suffix}", quantity(rate, "MiB/s"), subject, phase.line)
                iops = quantity(phase.iops / phase.samples, "IOPS")
                builder.observe(f"{start}_live_iops_mean", iops, subject, phase.line)
        if self._phases:
            message = "live statistics are samples of a run that goes on; the result table says what it reached"
            builder.notice("live-statistics", message, Weight.INFO)
        return len(self._phases)
