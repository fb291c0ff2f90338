"""The table of nccl-tests: header line → columns, line → row.

Columns differ by version (`error` before 2.12, `#wrong` since), by operation (`root`, `redop`), by option (`cputime`,
`timestamp`, per-iteration statistics) and by the hands a file went through (`#` stripped); a row is read by the names
in its header. Without a header only a row whose numbers confirm each other (algbw = size / time) is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from clusterwright.lib.quantities import Powers, Quantity, parse_unit
from clusterwright.model.observations import Lack, NoValue, Value
from clusterwright.readers.collectives.programs import ELEMENT_BYTES, REDUCTIONS, ranks_by_count
from clusterwright.readers.memos import remembered
from clusterwright.readers.values import read_number, spell, unreadable

_TEXTS: Final = ("size", "count", "type", "redop", "root")
_UNITS: Final = {
    "time": "µs",
    "algbw": "GB/s",
    "busbw": "GB/s",
    "i_min": "µs",
    "i_max": "µs",
    "i_p99": "µs",
    "i_cv%": "%",
}
_SCALES: Final = {unit: parse_unit(unit)[0] for unit in ("s", "µs", "GB/s")}
_SAME: Final = {"#wrong": "wrong", "cputime": "time"}
#: The first layout (versions before 2.0.1), whose time is in milliseconds: other names for the same columns.
_FIRST: Final = {"bytes": "size", "N": "count", "op": "redop", "res": "error"}
_KNOWN: Final = frozenset({*_TEXTS, *_UNITS, "wrong", "error", "timestamp"})
_INTEGER: Final = re.compile(r"\d{1,20}")
_GROUPED: Final = re.compile(r"\d{1,20}(?:_\d{1,20}){1,8}")
_TIDY: Final = re.compile(r"\d{1,3}(?:_\d{3})+")
_BARE: Final = {
    13: ("size", "count", "type", "redop", "root"),
    12: ("size", "count", "type", "redop"),
    11: ("size", "count", "type"),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a table in order; the second half of a pair of equal names is in place."""

    columns: tuple[str, ...]
    time_unit: str = "µs"

    @property
    def halves(self) -> int:
        """How often the measurement stands in a row."""
        return self.columns.count("busbw")


@dataclass(slots=True)
class Half:
    """What a row says about one place of the result."""

    values: dict[str, Value] = field(default_factory=dict)

    def number(self, name: str, unit: str) -> float | None:
        """A value in `unit` (s, µs or GB/s, as its column is measured), None where there is none."""
        value = self.values.get(name)
        return value.value / _SCALES[unit] if isinstance(value, Quantity) else None


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `halves` has the keys `out` and `in`; `root` is "" without such a column."""

    line: int
    size: int
    count: int | None
    type: str
    redop: str
    root: str
    halves: dict[str, Half]
    edited: str = ""
    timestamp: str = ""


def parse_header(text: str) -> Layout | None:
    """The columns that a header line names, None when the line is no header. Unknown names are kept as they are."""
    if "busbw" not in text or "time" not in text:
        return None
    words = [_SAME.get(word, word) for word in text.replace("#wrong", " wrong").replace("#", " ").split()]
    first = words[:1] == ["bytes"]
    if first:
        words = [_FIRST.get(word, word) for word in words]
    if words[:1] != ["size"] or not 1 <= words.count("busbw") <= 2:
        return None
    return Layout(tuple(words), "ms" if first else "µs")


def unknown_columns(layout: Layout) -> tuple[str, ...]:
    """Names in a header that no known version prints."""
    return tuple(name for name in dict.fromkeys(layout.columns) if name not in _KNOWN)


def looks_like_row(text: str) -> bool:
    """Whether a line begins as a row does: a size and then a number, a placeholder or nothing."""
    words = text.split(None, 2)[:2]
    if not words or not (_INTEGER.fullmatch(words[0]) or _GROUPED.fullmatch(words[0])):
        return False
    return len(words) == 1 or words[1][0].isdigit() or words[1][0] in "xX."


def is_strongly_row(text: str) -> bool:
    """Whether a line is a row even where no header announces one: size, count, type."""
    words = text.split(None, 3)
    return len(words) > 3 and words[1].isdecimal() and words[2] in ELEMENT_BYTES


def looks_like_tail(text: str) -> bool:
    """Whether a line is the second part of a row that was torn: time, two bandwidths and a count, no size."""
    words = text.split(None, 4)
    return len(words) >= 4 and "." in words[0] and all(re.fullmatch(r"\d+\.\d+", word) for word in words[:3])


def parse_row(layout: Layout | None, text: str, line: int) -> Row | str:
    """The row, or why it is none.

    Args:
        layout: of the header above it, None when there was no header.
    """
    words = text.split()
    if "NCCL" in text:
        return "NCCL's own log was written into this row"
    if layout is None:
        return _parse_bare(words, line)
    columns = layout.columns
    if "timestamp" in columns and len(words) == len(columns) + 1:
        words[-2:] = [f"{words[-2]} {words[-1]}"]
    missing = len(columns) - len(words)
    if missing > 0 and "redop" in columns:
        place = columns.index("redop")
        if len(words) > place and words[place] not in REDUCTIONS and not words[place][0].isalpha():
            columns = (*columns[:place], *columns[place + 1 :])
            missing -= 1
    if missing:
        what = "cut or torn: " if missing > 0 else "too many fields: "
        return f"{what}{len(words)} of {len(columns)} fields"
    return _build(columns, words, line, layout.time_unit)


def _parse_bare(words: list[str], line: int) -> Row | str:
    """A row without a header: accepted only when algbw is size over time in both halves."""
    texts = _BARE.get(len(words))
    if texts is None:
        return "no header above it, and not a whole row of a known layout"
    names = list(texts)
    if len(words) == 12 and words[3] not in REDUCTIONS:
        names[3] = "root"
    last = "wrong" if len(words) == 13 else "error"
    columns = (*names, "time", "algbw", "busbw", last, "time", "algbw", "busbw", last)
    row = _build(columns, words, line)
    if isinstance(row, Row) and not all(agrees(row, half) for half in row.halves.values()):
        return "no header above it, and its numbers do not confirm each other"
    return row


def agrees(row: Row, half: Half) -> bool:
    """Whether algbw is size over time, within what rounding to two decimals leaves open.

    Operations that split the buffer counted n - 1 of n shares before 2.12, hypercube does still.
    """
    time, algbw = half.number("time", "s"), half.number("algbw", "GB/s")
    if time is None or algbw is None or time <= 0:
        return True
    shares = ranks_by_count(row.size, row.count or 0, row.type) or 1
    whole = row.size / time / 1e9
    expected = [whole] if shares == 1 else [whole, whole * (shares - 1) / shares]
    return any(abs(speed - algbw) <= 0.02 + 0.02 * speed for speed in expected)


class _Cell(NamedTuple):
    """Where a value of one half stands and how it is read; `unit` is "" for plain numbers and unknown columns."""

    name: str
    place: int
    unit: str
    scale: float
    powers: Powers


@dataclass(frozen=True, slots=True)
class _Plan:
    """The places of a layout's columns, made once and not for every row. -1 where there is no such column."""

    texts: tuple[int, ...]
    timestamp: int
    halves: tuple[tuple[str, tuple[_Cell, ...]], ...]


@lru_cache(maxsize=64)
def _plan(columns: tuple[str, ...], time_unit: str) -> _Plan:
    firsts = {name: columns.index(name) for name in dict.fromkeys(columns)}
    halves = []
    for index, half in enumerate(("out", "in")[: columns.count("busbw")]):
        cells = []
        for name in firsts:
            places = [place for place, column in enumerate(columns) if column == name]
            if name in _TEXTS or name == "timestamp" or index >= len(places):
                continue
            unit = time_unit if name == "time" else _UNITS.get(name, "")
            scale, powers = parse_unit(unit) if unit else (1.0, ())
            cells.append(_Cell(name, places[index], unit, scale, powers))
        halves.append((half, tuple(cells)))
    return _Plan(tuple(firsts.get(name, -1) for name in _TEXTS), firsts.get("timestamp", -1), tuple(halves))


def _build(columns: tuple[str, ...], words: list[str], line: int, time_unit: str = "µs") -> Row | str:
    plan = _plan(columns, time_unit)
    printed, count, kind, redop, root = (words[place] if place >= 0 else "" for place in plan.texts)
    size, edited = _read_size(printed)
    if size is None:
        return "its size is no number"
    if count and not _INTEGER.fullmatch(count):
        return "its count is no number"
    if kind and kind not in ELEMENT_BYTES and not kind[0].isalpha():
        return "its type is no name"
    halves = {}
    for place, cells in plan.halves:
        half = _read_half(cells, words)
        if isinstance(half, str):
            return half
        halves[place] = half
    timestamp = words[plan.timestamp] if plan.timestamp >= 0 else ""
    return Row(line, size, int(count) if count else None, kind, redop, root, halves, edited, timestamp)


def _read_size(word: str) -> tuple[int | None, str]:
    """(bytes, what hands did to it)."""
    if _INTEGER.fullmatch(word):
        return int(word), ""
    if _GROUPED.fullmatch(word):
        return int(word.replace("_", "")), "digit groups" if _TIDY.fullmatch(word) else "wrong digit groups"
    return None, ""


def _read_half(cells: tuple[_Cell, ...], words: list[str]) -> Half | str:
    values: dict[str, Value] = {}
    for name, place, unit, scale, powers in cells:
        word = words[place]
        number = _read_number(word) if unit or name in ("wrong", "error") else None
        if isinstance(number, float):
            if number < 0:
                return f"{name} is negative, which is impossible"
            values[name] = Quantity(number * scale, powers, spell(number, unit)) if unit else number
        elif number is None:
            values[name] = unreadable(word, f"column '{name}' is not known")
        elif number.lack is Lack.UNREADABLE and name in ("time", "algbw", "busbw"):
            return f"{name} is '{word[:20]}': {number.why}"
        else:
            values[name] = number
    return Half(values)


@remembered
def _read_number(word: str) -> float | NoValue:
    return read_number(word)
