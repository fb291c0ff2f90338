"""What ior and mdtest both print: fill of the file system, stonewalling, lines of a transport that fails."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder

_FILE_SYSTEM: Final = re.compile(
    r"\s*FS\s*: (?P<size>[\d.]+ \S+)\s+Used FS: (?P<used>[\d.]+)%\s+Inodes: (?P<inodes>[\d.]+ ?\S*)\s+"
    r"Used Inodes: (?P<share>[\d.]+)%"
)
_TRANSPORT: Final = re.compile(
    r"\bUCX\s+ERROR\b|\bMXM\s+ERROR\b|\bopal_\w{1,40} .{0,200}?error|Connection reset by peer|psm2?_.{0,200}?error"
)
_FULL: Final = 99.95
_NEARLY_FULL: Final = 95.0


class HostReports:
    """Counts what the lines beside a table say, and says it at the end."""

    def __init__(self) -> None:
        self._transport = 0
        self._first = (0, "")

    def take(self, builder: RunBuilder, text: str, number: int) -> bool:
        """Whether the line was one of these."""
        if found := _FILE_SYSTEM.match(text):
            _say_fill(builder, found, number)
            return True
        if _TRANSPORT.search(text):
            self._first = self._first if self._transport else (number, text.strip()[:120])
            self._transport += 1
            return True
        return False

    def finish(self, builder: RunBuilder) -> None:
        """Say how many transport errors there were."""
        if self._transport:
            message = f"{self._transport} lines of transport errors in the run, first: {self._first[1]}"
            builder.notice("transport-errors", message, Weight.WARNING, self._first[0])
        self._transport = 0


def _say_fill(builder: RunBuilder, found: re.Match[str], number: int) -> None:
    used, inodes = _percent(found["used"]), _percent(found["share"])
    builder.condition("file_system_size", found["size"])
    builder.condition("file_system_used", f"{found['used']}%")
    builder.condition("inodes_used", f"{found['share']}%")
    if inodes >= _FULL:
        builder.notice(
            "out-of-inodes", f"{found['share']} % of {found['inodes']} inodes are used", Weight.ERROR, number
        )
    elif inodes >= _NEARLY_FULL:
        builder.notice("inodes-nearly-used", f"{found['share']} % of the inodes are used", Weight.WARNING, number)
    if used >= _NEARLY_FULL:
        builder.notice("file-system-full", f"{found['used']} % of {found['size']} are used", Weight.WARNING, number)


def _percent(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
