"""The beginning of a kernel log line: time, node, program, in every form that dmesg, journalctl and syslog write.

Forms: dmesg plain, `-T`, `-x`/--decode, `--reltime`, `--time-format=iso`, with caller; /dev/kmsg and pstore; journalctl
short, short-full, short-iso, short-precise, short-monotonic, short-unix; RFC 3164 and RFC 5424 syslog; a host's name
before any of them; container logs.

A time is kept as it was written. Seconds for comparing exist only where the form has them; a month in another language
or the steps of `--reltime` have none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

#: Clock of a time: two times can be compared when both are of one.
WALL, YEARLESS, BOOT = "wall", "wall without year", "since boot"

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_HOST: Final = r"[A-Za-z0-9](?:[\w.:-]{0,252}[A-Za-z0-9])?"
_PRIORITY: Final = re.compile(r"<\d{1,3}>(?:1 )?")
_DECODED: Final = re.compile(r"[a-z0-9]{2,9} {0,6}: ?[a-z]{3,7} {0,4}: ")
_KMSG: Final = re.compile(r"(?P<prefix>\d{1,4}),(?P<seq>\d{1,20}),(?P<usec>\d{1,20}),[^;\s]{1,40};")
_BRACKET: Final = re.compile(
    r"\[ *(?:(?P<boot>\d{1,12}\.\d{1,9})|(?P<delta>[+<] *\d{1,9}\.\d{1,9}>?)"
    r"|(?P<short>[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d)"
    r"|(?P<date>[^\W\d]{2,9}\.? [^\W\d]{3,9}\.? +\d{1,2} \d\d:\d\d:\d\d \d{4}))\]"
    r"(?:\[ *[TC]\d{1,9}\]| \[ *[TC]\d{1,9}\])?:? ?"
)
_ISO: Final = re.compile(
    r"(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?)(?: UTC)?[ \t]+"
)
_SLASHED: Final = re.compile(r"(?P<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) ")
_SYSLOG: Final = re.compile(
    r"(?P<time>(?P<month>[^\W\d]{2,9}\.?|\d{1,2}月) {1,2}(?P<day>\d{1,2})(?P<year> \d{4})? "
    r"(?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,9})?)) "
)
_FULL: Final = re.compile(
    r"[^\W\d]{2,9}\.? (?P<iso>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) (?P<zone>[A-Z]{1,5}|[+-]\d\d(?:\d\d)?) "
)
_UNIX: Final = re.compile(r"(?P<unix>1\d{9}\.\d{6}) ")
_STREAM: Final = re.compile(r"(?:stdout|stderr) [FP] ")
_ORIGIN: Final = re.compile(
    rf"(?P<host>{_HOST}) (?:\w{{1,20}}(?:\.\w{{1,20}})? )?(?P<program>[\w./@-]{{1,64}})"
    r"(?:\[\d{1,10}\])?(?:: | - - - )"
)
#: Beginnings of messages that look like a host and a program.
_SUBSYSTEMS: Final = ("NVRM:", "nvidia-nvswitch", "EDAC ", "mce: ", "usb ", "pci ", "nvme ", "nvidia ")
_PROGRAM: Final = re.compile(
    r"(?P<program>kernel|systemd|nv-fabricmanager|nvidia-(?:persistenced|fabricmanager[\w-]{0,20}))(?:\[\d{1,10}\])?: "
)
_LAUNCHED: Final = re.compile(
    rf"(?P<host>(?!(?:NVRM|kernel|nvidia|pcieport|mlx5|EDAC|mce|kern|BUG|IP|RIP)\b){_HOST}): "
    r"(?=[<\[]|NVRM|kernel:|kern |\d{4}-|\w{3} [ \d]\d \d\d:)"
)


@dataclass(frozen=True, slots=True)
class Stamped:
    """A line without its beginning.

    Args:
        time: as written, "" when there is none.
        seconds: on `clock`, None when the time cannot be compared.
        node: "" when the line does not name one.
        program: `kernel` where the line says so, another program's name, or "".
        known: whether the beginning has a form of a kernel or system log.
    """

    message: str
    time: str = ""
    seconds: float | None = None
    clock: str = ""
    node: str = ""
    program: str = ""
    known: bool = False


def split_stamp(text: str) -> Stamped:
    """A line taken apart."""
    rest = text.lstrip(" \t>`")
    node = ""
    if launched := _LAUNCHED.match(rest):
        node, rest = launched["host"], rest[launched.end() :]
    priority = _PRIORITY.match(rest)
    rest = rest[priority.end() :] if priority else rest
    decoded = _DECODED.match(rest)
    rest = rest[decoded.end() :] if decoded else rest
    time, seconds, clock, rest = _time_of(rest)
    known = bool(node or priority or decoded or time)
    if match := _STREAM.match(rest):
        rest = rest[match.end() :]
    program = ""
    if time and clock != "delta" and (origin := _origin_of(rest, dmesg=bool(decoded) or clock == BOOT)) is not None:
        node, program, rest = origin["host"], origin["program"], rest[origin.end() :]
    elif match := _PROGRAM.match(rest):
        program, rest, known = match["program"], rest[match.end() :], True
    if inner := _BRACKET.match(rest):
        known = True
        if not time:
            time, seconds, clock = _bracket(inner)
        rest = rest[inner.end() :]
        if match := _PROGRAM.match(rest):
            program, rest = match["program"], rest[match.end() :]
    return Stamped(rest, time, seconds, "" if clock == "delta" else clock, node, program.rsplit("/", 1)[-1], known)


def _origin_of(text: str, *, dmesg: bool) -> re.Match[str] | None:
    """Host and program before a message; dmesg prints none, so there only what is certain counts."""
    match = _ORIGIN.match(text)
    if match is None or text.startswith(_SUBSYSTEMS):
        return None
    certain = match["program"] == "kernel" or "]" in match.group()
    return match if certain or not dmesg else None


def _time_of(text: str) -> tuple[str, float | None, str, str]:
    """(time, seconds, clock, rest of the line)."""
    if match := _KMSG.match(text):
        micros = int(match["usec"])
        return f"{micros / 1e6:.6f}", micros / 1e6, BOOT, text[match.end() :]
    if text[:1] == "[" and (match := _BRACKET.match(text)):
        return *_bracket(match), text[match.end() :]
    if match := _ISO.match(text):
        return match["iso"], iso_seconds(match["iso"]), WALL, text[match.end() :]
    if match := _SLASHED.match(text):
        return match["time"], iso_seconds(match["time"].replace("/", "-")), WALL, text[match.end() :]
    if match := _FULL.match(text):
        return f"{match['iso']} {match['zone']}", iso_seconds(match["iso"]), WALL, text[match.end() :]
    if match := _UNIX.match(text):
        return match["unix"], float(match["unix"]), WALL, text[match.end() :]
    if match := _SYSLOG.match(text):
        return *_syslog(match), text[match.end() :]
    return "", None, "", text


def _bracket(match: re.Match[str]) -> tuple[str, float | None, str]:
    if match["boot"]:
        return match["boot"], float(match["boot"]), BOOT
    if match["date"]:
        words = match["date"].split()
        month = _MONTHS.get(words[1].lower().rstrip(".")[:3])
        if month is None:
            return match["date"], None, ""
        return match["date"], _seconds(int(words[4]), month, int(words[2]), words[3]), WALL
    return match["delta"] or match["short"], None, "delta"


def _syslog(match: re.Match[str]) -> tuple[str, float | None, str]:
    time = match["time"]
    month = _MONTHS.get(match["month"].lower().rstrip("."))
    if month is None:
        return time, None, ""
    if match["year"]:
        return time, _seconds(int(match["year"]), month, int(match["day"]), match["clock"]), WALL
    return time, _seconds(2000, month, int(match["day"]), match["clock"]), YEARLESS


def _seconds(year: int, month: int, day: int, clock: str) -> float | None:
    return iso_seconds(f"{year:04d}-{month:02d}-{day:02d}T{clock}")


def iso_seconds(text: str) -> float | None:
    """Seconds of an ISO time; without an offset it counts as UTC. None when it is no time."""
    plain = text.replace(",", ".").replace(" ", "T", 1).replace(" ", "")
    whole, dot, fraction = plain.partition(".")
    if dot:
        digits = re.match(r"\d+", fraction)
        count = digits.end() if digits else 0
        plain = f"{whole}.{fraction[:count][:6].ljust(6, '0')}{fraction[count:]}"
    try:
        moment = datetime.fromisoformat(plain)
    except ValueError:
        return None
    base = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    offset = moment.utcoffset()
    return (moment - base).total_seconds() - (offset.total_seconds() if offset else 0.0)
