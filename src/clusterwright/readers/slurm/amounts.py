"""Durations, times, memory and counts as Slurm prints them.

Sources: man sacct (--units, ReqMem, MaxRSS), `secs2time_str`, `mins2time_str`, `slurm_make_time_str`,
`time_str2secs` and `convert_num_unit` in Slurm's src/common, 17.11 to 25.11. Memory prefixes are powers of 1024.
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue
from clusterwright.readers.memos import remembered
from clusterwright.readers.values import lacking, quantity, unreadable

_DURATION: Final = re.compile(r"(?:(\d{1,7})-)?(\d{1,8})(?::(\d{1,3}))?(?::(\d{1,3}))?(\.\d{1,6})?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?")
_MEMORY: Final = re.compile(r"(\d{1,20}(?:\.\d{1,6})?)([KMGTPE]?)([cn]?)")
_COUNT: Final = re.compile(r"(-?\d{1,20}(?:\.\d{1,9})?)([KMGTP]?)")
_BOUNDLESS: Final = frozenset({"unlimited", "infinite", "4294967295"})
_NO_TIME: Final = frozenset({"", "unknown", "none", "n/a", "not_set", "(null)", "now", "noval", "na"})
_DECIMAL: Final = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY: Final = {"": "B", "K": "KiB", "M": "MiB", "G": "GiB", "T": "TiB", "P": "PiB", "E": "EiB"}
#: Numbers by which Slurm means "no value" (NO_VAL, NO_VAL64, NO_VAL16) and "no limit" (INFINITE, INFINITE64).
NO_VALUE: Final = frozenset({4294967294, 18446744073709551614, 65534, -2})
INFINITE: Final = frozenset({4294967295, 18446744073709551615, 65535})


@remembered
def read_duration(text: str) -> Quantity | str | NoValue:
    """`[D-]HH:MM:SS`, `MM:SS.mmm`, `D-HH` as seconds; "unlimited"; or no value.

    A single number is refused: whether it means minutes or seconds depends on the column.
    """
    word = text.strip()
    if (seconds := seconds_of(word)) is not None:
        return quantity(seconds, "s")
    if word.lower() in _BOUNDLESS:
        return "unlimited"
    if word.lower() in ("not_set", "partition_limit", "invalid"):
        why = "negative: the clock went backwards" if word.lower() == "invalid" else "the partition's limit holds"
        return NoValue(Lack.UNREADABLE if word.lower() == "invalid" else Lack.ABSENT, word, why)
    return lacking(word) or unreadable(word, "not a duration like 1-02:03:04")


@remembered
def seconds_of(text: str) -> float | None:
    """Seconds of a duration with at least one colon or a day; None for any other text."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    days, first, second, third, fraction = match.groups()
    if third is not None:
        total = (int(first) * 60 + int(second)) * 60 + int(third)
    elif second is not None:  # with a day in front these are hours and minutes
        total = (int(first) * 60 + int(second)) * (60 if days is not None else 1)
    elif days is not None:
        total = int(first) * 3600
    else:
        return None
    if days is not None:
        total += int(days) * 86400
    return total + float(fraction) if fraction is not None else float(total)


def read_time(text: str) -> str | NoValue:
    """A time as printed (the cluster's local time, no zone), or absent."""
    word = text.strip()
    if _TIME.fullmatch(word):
        return word
    if word.lower() in _NO_TIME:
        return NoValue(Lack.ABSENT, word)
    return unreadable(word, "not a time like 2025-01-31T08:00:00")


def read_memory(text: str, *, plain: str = "B") -> Quantity | NoValue:
    """Bytes of `3960K`, `438.50M`, `5000Mc`; the suffix c or n (per core, per node) is dropped, see `memory_scope`.

    Args:
        plain: unit of a number without a prefix, which depends on the column: B or MiB.
    """
    return _read_memory_mib(text) if plain == "MiB" else _read_memory(text)


@remembered
def _read_memory(text: str) -> Quantity | NoValue:
    return _memory_in(text, "B")


@remembered
def _read_memory_mib(text: str) -> Quantity | NoValue:
    return _memory_in(text, "MiB")


def _memory_in(text: str, plain: str) -> Quantity | NoValue:
    word = text.strip()
    if (lack := lacking(word)) is not None:
        return lack
    match = _MEMORY.fullmatch(word)
    if match is None:
        return unreadable(word, "not an amount of memory like 3960K")
    return quantity(float(match.group(1)), _BINARY[match.group(2)] if match.group(2) else plain)


def memory_scope(text: str) -> str:
    """Of a request: `per core` (suffix c), `per node` (suffix n, 21.07 and before), or "" for the whole job."""
    return {"c": "per core", "n": "per node"}.get(text.strip()[-1:], "")


@remembered
def read_count(text: str) -> float | NoValue:
    """A whole or decimal count with Slurm's decimal prefixes (`1.5K`)."""
    word = text.strip()
    if (lack := lacking(word)) is not None:
        return lack
    match = _COUNT.fullmatch(word)
    if match is None:
        return unreadable(word, "cut by the column's width" if word.endswith("+") else "not a number")
    return float(match.group(1)) * _DECIMAL[match.group(2)]


def is_time(text: str) -> bool:
    """Whether this is a time with date."""
    return _TIME.fullmatch(text.strip()) is not None
