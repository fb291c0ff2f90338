"""`clusterwright-cpu-collective`: all-reduce between processes on CPUs. Never a bandwidth of GPUs.

Observations with subject size: cpu_time (duration), cpu_algbw (byte rate), cpu_wrong (count). Conditions: node,
operation, ranks, backend, device (`cpu`). Names differ from those of nccl-tests on purpose: nothing of it may stand
for a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.probes.lines import number_of, read_reports, recognise_format, text_of
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.values import quantity

KIND: Final = "clusterwright-cpu-collective"
_VERSION: Final = 1


def _recognise(head: Head) -> int:
    return recognise_format(head.text, KIND)


def _read(source: Source) -> Sequence[Run]:
    guard = RunBuilder("collective_cpu.py", str(_VERSION))
    runs = []
    for line, report in read_reports(source, guard, KIND, _VERSION):
        builder = RunBuilder("collective_cpu.py", text_of(report, "version"))
        _read_report(report, line, builder)
        runs.append(builder.build())
    if guard.rejected:
        runs.append(guard.build())
    return runs


def _read_report(report: dict[str, Any], line: int, builder: RunBuilder) -> None:
    for key in ("node", "operation", "backend", "device"):
        if text := text_of(report, key):
            builder.condition(key, text)
    builder.condition("ranks", number_of(report, "ranks"))
    builder.notice("cpu-only", "measured on CPUs; it says nothing about GPUs or their network", Weight.INFO, line)
    rows = report.get("rows")
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            builder.reject(line, str(row), "a row is an object")
            continue
        size, seconds = number_of(row, "bytes", "B"), number_of(row, "seconds", "s")
        if not isinstance(size, Quantity):
            builder.reject(line, str(row), "a row names its size")
            continue
        subject = (("size", f"{size.value:.0f}"),)
        builder.observe("cpu_time", seconds, subject, line)
        if isinstance(seconds, Quantity) and seconds.value > 0:
            builder.observe("cpu_algbw", quantity(size.value / seconds.value / 1e9, "GB/s"), subject, line)
        wrong = number_of(row, "wrong")
        builder.observe("cpu_wrong", wrong, subject, line)
        if isinstance(wrong, float) and wrong > 0:
            builder.notice("wrong-results", f"{wrong:.0f} wrong elements at {size}", Weight.ERROR, line)
    if builder.bare:
        builder.missing("rows of results")


READER: Final = Reader(KIND, "all-reduce between CPU processes, by the exported script", _recognise, _read)
