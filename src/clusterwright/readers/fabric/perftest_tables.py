"""The table of perftest (ib_write_bw, ib_read_lat, …): header line → columns with units, line → cells.

`MB/sec` of perftest is 2^20 bytes per second and `Gb/sec` 10^9 bits per second.

Source: linux-rdma/perftest, src/perftest_parameters.h (RESULT_FMT*, 3.0 to 25.x) and src/perftest_parameters.c
(`format_factor`: 0x100000 for MBS, 125000000 for GBS).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.quantities import parse_unit
from clusterwright.model.observations import Lack, NoValue, Value
from clusterwright.readers.values import quantity, read_number, unreadable

_COLUMN: Final = re.compile(
    r"(?P<name>#bytes|#sl|#iterations|BW peak|BW average|BW Port[12]|MsgRate Port[12]|MsgRate|t_min|t_max|t_typical"
    r"|t_avg|t_stdev|99\.9{1,3}% percentile|99% percentile|tps average|CPU_Util|Conn Rate|lat_?\w{0,12})"
    r"(?:\[(?P<unit>[^\]\s]{1,12})\])?"
)
#: Name of a column → name of the observation.
_NAMES: Final = {
    "BW peak": "bandwidth_peak", "BW average": "bandwidth_average", "BW Port1": "bandwidth_port_1",
    "BW Port2": "bandwidth_port_2", "MsgRate": "message_rate", "MsgRate Port1": "message_rate_port_1",
    "MsgRate Port2": "message_rate_port_2", "t_min": "latency_min", "t_max": "latency_max",
    "t_typical": "latency_typical", "t_avg": "latency_mean", "t_stdev": "latency_stdev",
    "99% percentile": "latency_p99", "99.9% percentile": "latency_p99_9", "99.99% percentile": "latency_p99_99",
    "tps average": "transactions", "CPU_Util": "cpu_utilisation",
}  # fmt: skip
_UNITS: Final = {
    "MB/sec": "MiB/s", "Gb/sec": "Gb/s", "usec": "µs", "nsec": "ns", "Mpps": "Mpps", "tps": "op/s", "%": "%",
}  # fmt: skip
_INTEGER: Final = re.compile(r"\d{1,19}")


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `name` is that of the observation, or `#bytes`, `#sl`, `#iterations`; `unit` ours or as printed."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class PerfRow:
    """One row."""

    line: int
    size: int
    level: str
    iterations: float | NoValue
    values: dict[str, Value]


def parse_perf_header(text: str) -> tuple[Column, ...] | str | None:
    """Columns of a header line; the words that no known version prints; None when the line is no header."""
    if not text.lstrip().startswith("#bytes"):
        return None
    columns = tuple(Column(_NAMES.get(m["name"], m["name"]), _unit(m)) for m in _COLUMN.finditer(text))
    rest = _COLUMN.sub(" ", text).strip()
    return rest if rest else columns


def is_cut_header(words: str) -> bool:
    """Whether what a header prints beyond known columns is the beginning of one, cut off."""
    known = ("#iterations", *_NAMES, *(f"{name}[{unit}]" for name in _NAMES for unit in _UNITS))
    return any(name.startswith(words) for name in known)


def _unit(match: re.Match[str]) -> str:
    printed = match["unit"] or ("tps" if match["name"] == "tps average" else "")
    return _UNITS.get(printed, printed)


def looks_like_perf_row(text: str) -> bool:
    """Whether a line begins as a row does: two whole numbers and then something."""
    words = text.split(None, 2)
    return len(words) >= 1 and all(_INTEGER.fullmatch(word) is not None for word in words[:2])


def parse_perf_row(columns: tuple[Column, ...], text: str, line: int, *, cycles: bool = False) -> PerfRow | str:
    """The row, or why it is none.

    Args:
        cycles: whether times are CPU cycles whatever the header says (option -C).
    """
    words = [word.strip("*") or word for word in text.split()]  # set in bold on web pages
    if len(words) != len(columns):
        return f"{'cut: ' if len(words) < len(columns) else ''}{len(words)} of {len(columns)} fields"
    cells = dict(zip(columns, words, strict=True))
    values: dict[str, Value] = {}
    size, level, iterations = 0, "", NoValue(Lack.ABSENT)  # type: tuple[int, str, float | NoValue]
    for column, word in cells.items():
        if column.name == "#bytes":
            size = int(word)
        elif column.name == "#sl":
            level = word[:8]
        elif column.name == "#iterations":
            iterations = read_number(word)
        else:
            values[column.name] = _read(column, word, cycles)
    return PerfRow(line, size, level, iterations, values)


def _read(column: Column, word: str, cycles: bool) -> Value:
    number = read_number(word)
    if isinstance(number, NoValue):
        return number
    if number < 0:
        return unreadable(word, "negative, which is impossible: the tool's sum overflowed")
    if column.name.startswith("latency_") and (cycles or column.unit == "cycles"):
        return unreadable(word, "CPU cycles (option -C), not a time")
    if column.name.startswith("message_rate") and column.unit == "Mpps":
        return quantity(number * 1e6, "op/s")
    try:
        parse_unit(column.unit)
    except ValueError:
        return unreadable(word, f"unit '{column.unit}' is not known" if column.unit else "no unit")
    return quantity(number, column.unit)
