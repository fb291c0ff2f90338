"""Units in which a CSV file of anybody's gives durations, times and memory."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.traces.numbers import read_number

#: Unit → seconds.
DURATIONS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86400.0}
#: Unit → GiB.
MEMORIES: Final = {
    "B": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 2.0**10,
    "kB": 1e3 / 2**30, "MB": 1e6 / 2**30, "GB": 1e9 / 2**30, "TB": 1e12 / 2**30,
}  # fmt: skip
#: Units of a time: seconds since 1970 in one of the durations; `iso` is a date with a time.
MOMENTS: Final = ("iso", "s", "ms", "us", "ns")
#: A duration in colons: `[D-]HH:MM:SS`, `H:MM:SS.f`, `1 day, 2:03:04`.
CLOCK: Final = "hms"
_CLOCK: Final = re.compile(r"(?:(\d{1,6})(?:-| days?,? ))?(\d{1,6}):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)")


def read_duration(text: str, unit: str) -> float | None:
    """Seconds of a number in a unit, or of `1-02:03:04` where the unit is `hms`; None for any other text."""
    if unit == CLOCK:
        match = _CLOCK.fullmatch(text.strip())
        if match is None:
            return None
        return int(match[1] or 0) * 86400.0 + int(match[2]) * 3600.0 + int(match[3]) * 60.0 + float(match[4])
    number = read_number(text)
    return None if number is None else number * DURATIONS[unit]
