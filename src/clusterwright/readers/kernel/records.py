"""Lines of any log of the kernel → records, in constant memory: plain lines, journal JSON, dmesg JSON, journal export.

Only lines that could matter are taken apart; of the others the first and the last are, for the time that is covered.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from clusterwright.readers.cleaning import Line
from clusterwright.readers.kernel.stamps import BOOT, WALL, Stamped, iso_seconds, split_stamp

#: Words without which a line says nothing about a fault; looked for one by one, which is faster than one pattern.
WORDS: Final = (
    "NVRM", "Xid", "AER:", "PCIe Bus Error", "error status/mask", "Hardware Error", "EDAC ", "mce: ", "Memory failure",
    "Uncorrected hardware", "mlx5_core", "off the bus", "lost from the bus", "GPU is lost", "oom-kill:",
    "Out of memory", "Memory cgroup out of", "segfault at", "Kernel panic", "BUG: unable", "Oops: ",
    "general protection", "Trigger a crash", "nvidia-peermem", "nvidia_peermem", "Linux version ", "-- Boot ",
    "-- Reboot", "available PCIe", "amdgpu", '"MESSAGE":[', '"MESSAGE" : [',
)  # fmt: skip
_ELISIONS: Final = frozenset({"...", "..", "…", "[...]", "[…]", "(...)", "[snip]", "<snip>", "--"})
_PAIR: Final = re.compile(r'\s*"(?P<key>\w{1,64})"\s*:\s*(?P<value>.+?),?\s*$')
_FIELD: Final = re.compile(r"\s*(?P<key>_{0,2}[A-Z][A-Z0-9_]{1,60})=(?P<value>.*)$")
_MESSAGES: Final = ("MESSAGE", "textPayload", "msg", "message", "log")
_EDGE: Final = 40
#: How far below its first line a message goes on.
_NEAR: Final = 4
_INDENTED: Final = frozenset(' \t"')


@dataclass(frozen=True, slots=True)
class Record:
    """One message with what stood before it."""

    line: int
    text: str
    stamp: Stamped


@dataclass
class Coverage:
    """What was seen of the log as a whole.

    Args:
        recognised: lines whose beginning has the form of a kernel or system log, of those looked at.
        first, last: the first and last time.
    """

    lines: int = 0
    recognised: int = 0
    elided: int = 0
    first: Stamped | None = None
    last: Stamped | None = None
    _tail: deque[Line] = field(default_factory=lambda: deque(maxlen=8))

    def finish(self) -> None:
        """Find the last time among the last lines."""
        for line in reversed(self._tail):
            stamp = _stamp_of(line.text)
            if stamp is not None and stamp.time:
                self.last = stamp
                return


def records_of(lines: Iterable[Line], coverage: Coverage) -> Iterator[Record]:
    """The lines that could matter."""
    pending: dict[str, str] = {}
    pending_line = 0
    before: Record | None = None
    for line in lines:
        text = line.text
        coverage.lines += 1
        if not text or text.isspace():
            if pending:
                yield from _flush(pending, pending_line)
            continue
        _cover(coverage, line)
        if len(text) < 12 and text.strip() in _ELISIONS:
            coverage.elided += 1
            continue
        pair = _pair_of(text)
        if pair is not None:
            if len(pending) < 200:
                pending.setdefault(pair["key"], pair["value"])
            pending_line = pending_line or line.number
            continue
        if pending:
            coverage.recognised += 1
            yield from _flush(pending, pending_line)
            pending_line = 0
        if matters(text):
            stamp = _stamp_of(text)
            if stamp is not None:
                record = Record(line.number, text, _continued(_named(stamp, line.prefix), line, before))
                before = record if record.stamp.time else before
                yield record
    if pending:
        yield from _flush(pending, pending_line)
    coverage.finish()


def matters(text: str) -> bool:
    """Whether a line could say something about a fault."""
    for word in WORDS:  # noqa: SIM110 (a generator costs a third more, on every line of a log)
        if word in text:
            return True
    return False


def _pair_of(text: str) -> re.Match[str] | None:
    """A field of a record that stands on several lines, None for an ordinary line."""
    begin = text[0]
    if begin in _INDENTED or begin == "_" or "A" <= begin <= "Z":
        return _PAIR.match(text) or _FIELD.match(text)
    return None


def _cover(coverage: Coverage, line: Line) -> None:
    coverage._tail.append(line)
    if coverage.first is None or coverage.lines <= _EDGE:
        stamp = _stamp_of(line.text)
        if stamp is None:
            return
        coverage.recognised += stamp.known
        if coverage.first is None and stamp.time:
            coverage.first = stamp


def _named(stamp: Stamped, prefix: str) -> Stamped:
    if not prefix or stamp.node:
        return stamp
    return Stamped(stamp.message, stamp.time, stamp.seconds, stamp.clock, prefix, stamp.program, stamp.known)


def _continued(stamp: Stamped, line: Line, before: Record | None) -> Stamped:
    """An indented line without a time has that of the message which it goes on with."""
    if stamp.time or line.text[:1] not in (" ", "\t") or before is None or line.number - before.line > _NEAR:
        return stamp
    return replace(before.stamp, message=stamp.message)


def _stamp_of(text: str) -> Stamped | None:
    """The line taken apart; None for JSON that is no record."""
    if text[:1] == "{":
        record = _load(text)
        return _journal(record) if record is not None else split_stamp(text)
    return split_stamp(text)


def _load(text: str) -> dict[str, Any] | None:
    if len(text) > 200_000 or text.count("{") > 50 or text.count("[") > 200:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _journal(record: dict[str, Any]) -> Stamped:
    """A record of the journal, or of a log shipper that keeps the message under a common key, also one level down."""
    for nested in ("jsonPayload", "fields"):
        if isinstance(record.get(nested), dict):
            record = {**record, **record[nested]}
    message = next((record[key] for key in _MESSAGES if key in record), "")
    if isinstance(message, list):
        try:
            message = bytes(message).decode("utf-8", "replace")
        except (ValueError, TypeError):
            message = ""
    inner = split_stamp(message) if isinstance(message, str) else Stamped("")
    time, seconds, clock = _journal_time(record)
    program = record.get("SYSLOG_IDENTIFIER", "kernel" if record.get("_TRANSPORT") == "kernel" else inner.program)
    node = record.get("_HOSTNAME") or record.get("hostname") or record.get("host") or inner.node
    return Stamped(
        message=inner.message,
        time=time or inner.time,
        seconds=seconds if time else inner.seconds,
        clock=clock if time else inner.clock,
        node=node if isinstance(node, str) else "",
        program=program if isinstance(program, str) else "",
        known="MESSAGE" in record or inner.known,
    )


def _journal_time(record: dict[str, Any]) -> tuple[str, float | None, str]:
    for key in ("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"):
        value = record.get(key)
        if isinstance(value, str | int) and str(value).isascii() and str(value).isdigit() and len(str(value)) < 18:
            seconds = int(value) / 1e6
            return datetime.fromtimestamp(seconds, UTC).isoformat(), seconds, WALL
    for key in ("timestamp", "@timestamp", "time", "ts"):
        value = record.get(key)
        if isinstance(value, str) and (moment := iso_seconds(value)) is not None:
            return value, moment, WALL
    boot = record.get("time")
    if isinstance(boot, int | float) and not isinstance(boot, bool):
        return f"{boot:.6f}", float(boot), BOOT
    return "", None, ""


def _flush(pending: dict[str, str], line: int) -> Iterator[Record]:
    """A record that stood on several lines."""
    fields: dict[str, Any] = {}
    for key, value in pending.items():
        fields[key] = _plain(value) if value[:1] in '"[0123456789' else value
    pending.clear()
    stamp = _journal(fields)
    if stamp.message and matters(stamp.message):
        yield Record(line, stamp.message, stamp)


def _plain(value: str) -> Any:
    try:
        return json.loads(value) if len(value) < 100_000 and value.count("[") < 50 else value
    except (ValueError, RecursionError):
        return value
