"""Times as logs print them, and whether two of them can be put in order.

A time with a zone can be compared with every other one with a zone. A time without zone is that of its host: it can be
compared with times of the same host, and with none of another. Seconds since boot count within one log only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

Clock = Literal["zoned", "local", "local without year", "since boot"]
_UTC: Final = frozenset({"Z", "UTC", "GMT"})
_UNIX: Final = re.compile(r"1\d{9}\.\d{1,9}")
_BOOT: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(?: s after boot)?")
_GLOG: Final = re.compile(r"(\d{1,2})(\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,9})?)")
_FORMS: Final = ("%a %b %d %H:%M:%S %Y", "%b %d %Y %H:%M:%S", "%b %d %H:%M:%S %Y", "%Y/%m/%d %H:%M:%S")
_YEARLESS: Final = ("%Y %b %d %H:%M:%S", "%Y %m %d %H:%M:%S")
#: The year in which times without one are kept; it has a 29 February.
_YEAR: Final = 2000


@dataclass(frozen=True, slots=True)
class When:
    """A time.

    Args:
        text: as printed.
        at: in UTC for a zoned clock, else as printed; since the epoch for seconds since boot.
        frame: what times of the same clock must share to be compared: "" for zoned, the host for local ones, the log
            for seconds since boot.
    """

    text: str
    at: datetime
    clock: Clock
    frame: str = ""


def read_when(text: str, *, host: str, log: str) -> When | None:
    """A printed time; None when it is none that can be placed.

    Args:
        host: on which it was printed, "" when that is not known.
        log: what seconds since boot are told apart by.
    """
    plain = " ".join(text.split())
    local = f"host {host}" if host else f"log {log}"
    if _UNIX.fullmatch(plain):
        return When(text, datetime.fromtimestamp(float(plain), UTC).replace(tzinfo=None), "zoned")
    if boot := _BOOT.fullmatch(plain):
        return When(text, datetime(1970, 1, 1) + timedelta(seconds=float(boot[1])), "since boot", f"log {log}")
    body, _, last = plain.rpartition(" ")
    zone = last if body and last.isalpha() and last.isupper() else ""
    if zone:
        plain = body
    moment = _iso(plain)
    if moment is not None and moment.tzinfo is not None:
        return When(text, moment.astimezone(UTC).replace(tzinfo=None), "zoned")
    if moment is None:
        moment = next((m for form in _FORMS if (m := _parse(plain, form)) is not None), None)
    if moment is not None:
        return When(text, moment, "zoned" if zone in _UTC else "local", "" if zone in _UTC else local)
    if glog := _GLOG.fullmatch(plain):
        plain = f"{glog[1]} {glog[2]} {glog[3].split('.')[0]}"
    for form in _YEARLESS:
        if (moment := _parse(f"{_YEAR} {plain}", form)) is not None:
            return When(text, moment, "local without year", local)
    return None


def _iso(text: str) -> datetime | None:
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?( ?(?:Z|[+-]\d\d:?\d\d))?", text)
    if found is None:
        return None
    fraction = f".{found[2][:6].ljust(6, '0')}" if found[2] else ""
    try:
        return datetime.fromisoformat(found[1] + fraction + (found[3] or "").strip())
    except ValueError:
        return None


def _parse(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def seconds_between(first: When | None, second: When | None) -> float | None:
    """Seconds from one time to another, None when they cannot be compared."""
    if first is None or second is None:
        return None
    one, other = _alike(first, second)
    if one.clock != other.clock or one.frame != other.frame:
        return None
    return (other.at - one.at).total_seconds()


def _alike(first: When, second: When) -> tuple[When, When]:
    """Both without year when one of them is; the turn of a year between them is not noticed."""
    if {first.clock, second.clock} == {"local", "local without year"}:
        return _without_year(first), _without_year(second)
    return first, second


def _without_year(when: When) -> When:
    return replace(when, at=when.at.replace(year=_YEAR), clock="local without year")


def seconds_if_one_zone(first: When | None, second: When | None) -> float | None:
    """Seconds from one time without zone to another, if their hosts are of one zone; None for other clocks."""
    if first is None or second is None or "since boot" in (first.clock, second.clock):
        return None
    if "zoned" in (first.clock, second.clock):
        return None
    one, other = _alike(first, second)
    return (other.at - one.at).total_seconds()


def why_not_compared(first: When | None, second: When | None) -> str:
    """Why the order of two times is not known."""
    if first is None or second is None:
        return "one of them has no time"
    if "since boot" in (first.clock, second.clock):
        return "seconds since boot and another clock" if first.clock != second.clock else "two logs count from boot"
    gap = seconds_if_one_zone(first, second)
    rest = "" if gap is None else f"; {gap:.0f} s after it if these are of one zone"
    return f"times without a zone, of different hosts{rest}"
