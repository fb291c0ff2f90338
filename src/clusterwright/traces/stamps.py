"""Times as a source prints them → POSIX seconds, with what a change of the clock makes of a local time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from math import isfinite
from typing import Final

from clusterwright.traces.rules import LATEST_S

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Hours that a clock remembers.
_MOST_HOURS: Final = 50_000


class Clock:
    """Reads times of one zone; hours in which the clock is not changed are looked up once.

    Args:
        zone: of times that name none.
    """

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._hours: dict[str | int, float | None] = {}

    def read(self, text: str) -> tuple[float, str] | None:
        """POSIX seconds of `2017-10-09 07:01:55` (T, fraction and zone as in ISO 8601), with the remark it needs.

        None for a text that is no time. The remark is "" for nearly all times; see `seconds_of`.
        """
        if len(text) == 19 and text[13] == text[16] == ":":
            hour = text[:13]
            begin_s = self._hours[hour] if hour in self._hours else self._remember(hour, read_stamp(hour))
            minute, second = text[14:16], text[17:]
            if begin_s is not None and minute.isdecimal() and second.isdecimal() and minute < "60" and second < "60":
                return begin_s + 60 * int(minute) + int(second), ""
        stamp = read_stamp(text)
        return None if stamp is None else seconds_of(stamp, self.zone)

    def seconds(self, stamp: datetime) -> tuple[float, str]:
        """POSIX seconds of a time, with the remark it needs; see `seconds_of`."""
        if stamp.tzinfo is not None:
            return seconds_of(stamp, self.zone)
        hour = stamp.toordinal() * 24 + stamp.hour
        if hour in self._hours:
            begin_s = self._hours[hour]
        else:
            begin_s = self._remember(hour, stamp.replace(minute=0, second=0, microsecond=0))
        if begin_s is None:
            return seconds_of(stamp, self.zone)
        return begin_s + 60 * stamp.minute + stamp.second + stamp.microsecond / 1e6, ""

    def _remember(self, hour: str | int, begin: datetime | None) -> float | None:
        """Seconds at which an hour begins; None for an hour with a change of the clock, and for no hour."""
        if len(self._hours) >= _MOST_HOURS:
            self._hours.clear()
        found: float | None = None
        if begin is not None:
            first, second = (seconds_of(begin + timedelta(minutes=m), self.zone) for m in (0, 59))
            plain = not first[1] and not second[1] and second[0] - first[0] == 59 * 60
            found = first[0] if plain else None
        self._hours[hour] = found
        return found


def read_stamp(text: str) -> datetime | None:
    """A date with a time as ISO 8601 has them; None for any other text."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def seconds_of(stamp: datetime, zone: tzinfo) -> tuple[float, str]:
    """POSIX seconds of a time, with the remark it needs, "" for none.

    A time with a zone of its own needs no other. A local time that a change of the clock repeats is the first of the
    two, one that it skips is read as if the clock had not been changed (PEP 495, fold=0).

    Args:
        zone: of times that name none.
    """
    if stamp.tzinfo is not None:
        return (stamp - _EPOCH).total_seconds(), ""
    local = stamp.replace(tzinfo=zone)
    seconds = (local - _EPOCH).total_seconds()
    first, second = local.utcoffset(), local.replace(fold=1).utcoffset()
    if first == second or first is None or second is None:
        return seconds, ""
    return seconds, "time-not-there" if first < second else "time-twice"


def within_range(seconds: float) -> bool:
    """Whether it is a finite time from 1970 to the year 2100."""
    return isfinite(seconds) and 0 <= seconds < LATEST_S
