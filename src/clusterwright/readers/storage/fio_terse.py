"""fio --minimal (terse) versions 3 to 5: one line a job, fields by the version of the format in the first field.

Source: fio HOWTO, "Terse output". Latencies are microseconds and amounts KiB in every version. The percentile fields
carry their own names (`99.000000%=107`), which shows that the fields are where they should be.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.refusing import Refused
from clusterwright.readers.storage.fio_jobs import DIRECTIONS, Direction, Job, Latency, name_of_percentile, observe_job
from clusterwright.readers.storage.fio_versions import major_version
from clusterwright.readers.values import read_number, read_quantity

ROW: Final = re.compile(r"\d;fio-\d{1,3}\.\d{1,4}[^;]*;")
#: Fields of one direction, and how many directions there are.
_LAYOUTS: Final = {"3": (41, 2), "4": (41, 3), "5": (47, 3)}
_FIRST: Final = 5
_PERCENTILES: Final = 20


def read_rows(lines: Iterable[Line]) -> list[Run]:
    """One run with every job of the file."""
    builder = RunBuilder("fio")
    seen: Counter[tuple[str, str]] = Counter()
    measured = rows = 0
    for line in lines:
        if ROW.match(line.text) is None:
            continue
        rows += 1
        job = _job(builder, line)
        if job is not None:
            measured += observe_job(builder, job, seen[job.name, job.group])
            seen[job.name, job.group] += 1
    if not rows:
        raise Refused("no line of fio's terse format")
    if not measured:
        builder.missing("results: no job moved any data")
        builder.notice("nothing-measured", "no job moved any data", Weight.ERROR)
    return [builder.build()]


def _job(builder: RunBuilder, line: Line) -> Job | None:
    fields = line.text.split(";")
    if fields[0] not in _LAYOUTS:
        raise Refused("this version of fio's terse format is not read (3, 4 and 5 are)", line.number, fields[0])
    major_version(fields[1], line.number)
    builder.version = builder.version or fields[1].removeprefix("fio-")
    width, directions = _LAYOUTS[fields[0]]
    if len(fields) < _FIRST + width * directions:
        builder.reject(line.number, line.text, f"{len(fields)} fields, at least {_FIRST + width * directions} expected")
        return None
    error = read_number(fields[4])
    job = Job(fields[2], fields[3], line.number, int(error) if isinstance(error, float) else 0)
    for index, name in enumerate(DIRECTIONS[:directions]):
        block = fields[_FIRST + index * width : _FIRST + (index + 1) * width]
        if not all("%=" in cell for cell in block[12 : 12 + _PERCENTILES]):
            builder.reject(line.number, line.text, f"the percentiles of {name} are not where they should be")
            return None
        job.directions[name] = _direction(block, line.number)
    return job


def _direction(block: list[str], number: int) -> Direction:
    direction = Direction(number)
    direction.moved = read_quantity(block[0], "KiB")
    direction.rate = read_quantity(block[1], "KiB/s")
    direction.iops = read_quantity(block[2], "IOPS")
    runtime = read_number(block[3])
    direction.runtime_s = runtime / 1000 if isinstance(runtime, float) else None
    latency = Latency(mean=read_quantity(block[10], "µs"), highest=read_quantity(block[9], "µs"))
    for cell in block[12 : 12 + _PERCENTILES]:
        share, _, value = cell.partition("%=")
        if name := name_of_percentile(share):
            latency.percentiles[name] = read_quantity(value, "µs")
    direction.latencies["clat"] = latency
    direction.latencies["lat"] = Latency(mean=read_quantity(block[34], "µs"), highest=read_quantity(block[33], "µs"))
    return direction
