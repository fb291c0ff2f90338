"""A CSV file of anybody's, with a mapping that says which column is what in which unit.

The mapping is `submit=created_at,run=duration:ms,gpus=num_gpus`: our field, `=`, the column's name, and after a colon
its unit where that is not the usual one. `submit`, and `run` or `start` and `end`, are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from math import inf, isnan, nan
from typing import Any, Final

from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.spelling import did_you_mean
from clusterwright.traces.building import TraceBuilder
from clusterwright.traces.checking import settle
from clusterwright.traces.counting import Tally
from clusterwright.traces.imports import Gap, Imported, Lines
from clusterwright.traces.numbers import is_blank, read_count, read_number
from clusterwright.traces.rows import CsvRows
from clusterwright.traces.stamps import Clock
from clusterwright.traces.tables import UNKNOWN
from clusterwright.traces.units import CLOCK, DURATIONS, MEMORIES, MOMENTS, read_duration

#: Field → (units that it may have, the first is the usual one; what it is).
FIELDS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "id": ((), "the job's id; without it the rows are numbered"),
    "submit": (MOMENTS, "when it was submitted"),
    "eligible": (MOMENTS, "when it could first start"),
    "start": (MOMENTS, "when it started"),
    "end": (MOMENTS, "when it ended"),
    "wait": ((*DURATIONS, CLOCK), "from submission to start"),
    "run": ((*DURATIONS, CLOCK), "from start to end"),
    "limit": ((*DURATIONS, CLOCK), "its time limit"),
    "gpus": ((), "GPUs of the whole job"),
    "gpu_milli": ((), "thousandths of each GPU"),
    "nodes": ((), "nodes of the whole job"),
    "cpus": ((), "cores of the whole job"),
    "memory": (("GiB", *(unit for unit in MEMORIES if unit != "GiB")), "memory of the whole job"),
    "priority": ((), "higher first"),
    "queue": ((), "queue, partition or virtual cluster"),
    "account": ((), "account, project or group"),
    "user": ((), "user"),
    "qos": ((), "quality of service"),
    "flavor": ((), "GPU type"),
    "state": ((), "how it ended"),
    "cause": ((), "what a failure is charged to"),
}
_WORDS: Final = ("queue", "account", "user", "qos", "flavor", "state", "cause")
_NO_LIMITS: Final = frozenset({"unlimited", "infinite", "inf"})


@dataclass(frozen=True, slots=True)
class Column:
    """Which column holds a field.

    Args:
        unit: one of those that the field may have; "" for fields without.
    """

    name: str
    unit: str


def parse_mapping(text: str) -> dict[str, Column]:
    """Field → column of `submit=created_at,run=duration:ms`.

    Raises:
        InvalidInput: with every field or unit that does not exist, and what is missing.
    """
    found: dict[str, Column] = {}
    wrong = list[str]()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        field, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or not column:
            wrong.append(f"--map: '{part}' is not FIELD=COLUMN or FIELD=COLUMN:UNIT")
        elif field not in FIELDS:
            near = did_you_mean(field, FIELDS)
            wrong.append(f"--map: no field '{field}'; {near or 'fields: ' + ', '.join(FIELDS)}")
        else:
            found[field] = _column(field, column, wrong)
    if "submit" not in found:
        wrong.append("--map: needs submit=COLUMN")
    if "run" not in found and not {"start", "end"} <= found.keys() and not {"wait", "end"} <= found.keys():
        wrong.append("--map: needs run=COLUMN, or start= and end=")
    if wrong:
        raise InvalidInput(*wrong)
    return found


def _column(field: str, column: str, wrong: list[str]) -> Column:
    units = FIELDS[field][0]
    name, colon, unit = column.rpartition(":")
    if not colon or not units:
        return Column(column, units[0] if units else "")
    if unit not in units:
        wrong.append(f"--map: {field} has no unit '{unit}'; units: {', '.join(units)}")
    return Column(name, unit)


def read_mapped(lines: Lines, mapping: Mapping[str, Column], zone: tzinfo) -> Imported:
    """The jobs of a CSV file.

    Raises:
        InvalidInput: when a column of the mapping is not in the header.
    """
    tally, builder = Tally(), TraceBuilder()
    rows = CsvRows(lines, tally)
    _check(rows.header, mapping)
    places = {field: (rows.header.index(column.name), column.unit) for field, column in mapping.items()}
    clock = Clock(zone)
    for number, cells in enumerate(rows, 1):
        row = {field: (cells[place].strip(), unit) for field, (place, unit) in places.items()}
        _add(builder, tally, rows, row, clock, number)
    gaps = tuple(
        Gap(f"{field} ({FIELDS[field][1]})", "not mapped", f"--map {field}=COLUMN")
        for field in ("start", "gpus", "nodes", "limit", "user")
        if field not in mapping and not (field == "start" and "wait" in mapping)
    )
    zoned = any(unit == "iso" for _, unit in places.values())
    return Imported("csv", builder.build(), tally.build(), gaps, str(zone) if zoned else "")


def _check(header: Sequence[str], mapping: Mapping[str, Column]) -> None:
    missing = [column.name for column in mapping.values() if column.name not in header]
    if missing:
        raise InvalidInput(*(f"--map: no column '{name}'; columns: {', '.join(header)}" for name in missing))


class _Unreadable(ValueError):
    """A cell that cannot be read: the rule and what stands there."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(code)
        self.code = code
        self.why = why


def _add(
    builder: TraceBuilder, tally: Tally, rows: CsvRows, row: dict[str, tuple[str, str]], clock: Clock, number: int
) -> None:
    line, text = rows.line, rows.text
    odd = dict[str, None]()
    try:
        moments = {name: _moment(row, name, clock, odd) for name in ("submit", "eligible", "start", "end")}
        wait_s, run_s, limit_s = (_duration(row, name) for name in ("wait", "run", "limit"))
        counts = {name: _count(row, name) for name in ("gpus", "gpu_milli", "nodes")}
        known: dict[str, Any] = {"cpus": _number(row, "cpus"), "priority": _number(row, "priority")}
        known["memory_gib"] = _number(row, "memory") * MEMORIES[row.get("memory", ("", "GiB"))[1]]
    except _Unreadable as error:
        return tally.reject(error.code, line, text, error.why)
    start_s = moments["submit"] + wait_s if isnan(moments["start"]) else moments["start"]
    times = settle(tally, line, text, submit_s=moments["submit"], start_s=start_s, end_s=moments["end"], run_s=run_s)
    if times is None:
        return None
    for code in odd:
        tally.remark(code, line, text)
    gpus, nodes = counts["gpus"], counts["nodes"]
    per_node = gpus // nodes if gpus >= 0 and nodes > 0 and gpus % nodes == 0 else UNKNOWN
    if nodes > 0 and gpus >= 0 and per_node == UNKNOWN:
        tally.remark("gpus-not-per-node", line, text, f"{gpus} GPUs, {nodes} nodes")
    known |= {name: row[name][0] for name in _WORDS if name in row}
    tally.job()
    builder.add(
        row["id"][0] if "id" in row else str(number), times.submit_s, eligible_s=moments["eligible"],
        start_s=times.start_s, end_s=times.end_s, run_s=times.run_s, limit_s=limit_s, gpus=gpus,
        gpu_milli=1000 if counts["gpu_milli"] < 0 else counts["gpu_milli"], tasks=nodes if nodes > 0 else UNKNOWN,
        gpus_per_task=per_node, line=line, **known,
    )  # fmt: skip
    return None


def _moment(row: Mapping[str, tuple[str, str]], name: str, clock: Clock, odd: dict[str, None]) -> float:
    text, unit = row.get(name, ("", "iso"))
    if is_blank(text):
        return nan
    if unit == "iso":
        read = clock.read(text)
        if read is None:
            raise _Unreadable("bad-time", f"{name} {text}")
        if read[1]:
            odd[read[1]] = None
        return read[0]
    number = read_number(text)
    if number is None:
        raise _Unreadable("bad-time", f"{name} {text}")
    return number * DURATIONS[unit]


def _duration(row: Mapping[str, tuple[str, str]], name: str) -> float:
    text, unit = row.get(name, ("", "s"))
    if is_blank(text):
        return nan
    if name == "limit" and text.lower() in _NO_LIMITS:
        return inf
    read = read_duration(text, unit)
    if read is None:
        raise _Unreadable("bad-number", f"{name} {text}")
    return read


def _number(row: Mapping[str, tuple[str, str]], name: str) -> float:
    text = row.get(name, ("", ""))[0]
    number = nan if is_blank(text) else read_number(text)
    if number is None:
        raise _Unreadable("bad-number", f"{name} {text}")
    return number


def _count(row: Mapping[str, tuple[str, str]], name: str) -> int:
    text = row.get(name, ("", ""))[0]
    count = UNKNOWN if is_blank(text) else read_count(text)
    if count is None:
        raise _Unreadable("bad-gpus", f"{name} {text}")
    return count
