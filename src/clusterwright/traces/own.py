"""Our own CSV form of a trace, which loses nothing: one column for each of the table, with its unit in its name.

`submit_s`, `eligible_s`, `start_s` and `end_s` are called `submit_unix_s` and so on where they are POSIX seconds (UTC).
A blank is *not recorded*; `inf` is *no limit*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isnan, nan
from typing import Any, Final

from clusterwright.traces.building import TraceBuilder
from clusterwright.traces.checking import settle
from clusterwright.traces.counting import Tally
from clusterwright.traces.imports import Imported, Lines
from clusterwright.traces.numbers import read_count, read_number
from clusterwright.traces.rows import CsvRows, NotThisKind
from clusterwright.traces.tables import UNKNOWN, Trace, TraceJob

_MOMENTS: Final = ("submit_s", "eligible_s", "start_s", "end_s")
_FLOATS: Final = ("run_s", "lost_s", "limit_s", "cpus", "memory_gib", "priority")
_COUNTS: Final = ("gpus", "gpu_milli", "tasks", "gpus_per_task", "attempts")
_WORDS: Final = ("queue", "account", "user", "qos", "flavor", "state", "cause")
_FIELDS: Final = tuple(name for name in TraceJob._fields if name != "line")
#: Values where a blank is not "not recorded".
_BLANKS: Final[dict[str, Any]] = {"lost_s": 0.0, "gpu_milli": 1000, "attempts": 1}


def columns(*, dated: bool) -> tuple[str, ...]:
    """The header of the form."""
    return tuple(_dated(name) if dated and name in _MOMENTS else name for name in _FIELDS)


def is_own(header: Sequence[str]) -> bool:
    """Whether this is a header of the form."""
    return tuple(header) in (columns(dated=True), columns(dated=False))


def own_rows(trace: Trace) -> Iterator[list[str]]:
    """The rows of a trace, in the order of `columns`; numbers are exact."""
    for job in trace.jobs():
        yield [_cell(name, getattr(job, name)) for name in _FIELDS]


def read_own(lines: Lines) -> Imported:
    """The jobs of our own form.

    Raises:
        NotThisKind: when the header is another.
    """
    tally, builder = Tally(), TraceBuilder()
    rows = CsvRows(lines, tally)
    if not is_own(rows.header):
        raise NotThisKind("columns " + ", ".join(columns(dated=True)))
    dated = rows.header == columns(dated=True)
    for cells in rows:
        _add(builder, tally, rows, dict(zip(_FIELDS, map(str.strip, cells), strict=True)))
    return Imported("cw-csv", builder.build(), tally.build(), dated=dated)


def _dated(name: str) -> str:
    return name.replace("_s", "_unix_s")


def _cell(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else ""
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.17g}" if value % 1 else f"{value:.0f}"
    return "" if value == UNKNOWN and name in _COUNTS else str(value)


def _add(builder: TraceBuilder, tally: Tally, rows: CsvRows, row: Mapping[str, str]) -> None:
    line, text = rows.line, rows.text
    floats = {name: _float(name, row[name]) for name in (*_MOMENTS, *_FLOATS)}
    counts = {name: _count(row[name], _BLANKS.get(name, UNKNOWN)) for name in _COUNTS}
    if not row["id"]:
        return tally.reject("no-id", line, text)
    for name, value in (*floats.items(), *counts.items()):
        if value is None:
            code = "bad-time" if name in _MOMENTS else "bad-gpus" if name in _COUNTS else "bad-number"
            return tally.reject(code, line, text, f"{name} {row[name]}")
    known: dict[str, Any] = {**floats, **counts}
    submit_s, ends = known.pop("submit_s"), known["end_s"]
    if known["attempts"] > 1 or row["censored"] == "1":  # its end is not start + run time
        times = settle(tally, line, text, submit_s=submit_s, start_s=known["start_s"], run_s=known["run_s"])
    else:
        times = settle(tally, line, text, submit_s=submit_s, start_s=known["start_s"], end_s=ends, run_s=known["run_s"])
        ends = ends if times is None else times.end_s
    if times is None:
        return None
    tally.job()
    known |= {"end_s": ends, "run_s": times.run_s, **{name: row[name] for name in _WORDS}}
    builder.add(row["id"], submit_s, **known, censored=row["censored"] == "1", line=line)
    return None


def _float(name: str, text: str) -> float | None:
    if not text:
        return float(_BLANKS.get(name, nan))
    return inf if text == "inf" and name == "limit_s" else read_number(text)


def _count(text: str, blank: int) -> int | None:
    return read_count(text) if text else blank
