"""Counting events by what they are about, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from clusterwright.readers.kernel.messages import Event, process_of
from clusterwright.readers.kernel.records import Record
from clusterwright.readers.kernel.stamps import Stamped

#: Most different events that are kept; a node with every fault there is has some hundred.
MOST_TALLIES: Final = 20_000
#: Events of one kind this close together are one incident.
INCIDENT_S: Final = 60.0
_MOST_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class Key:
    """What makes two events the same: the boot and node, the kind and code, the device and its part."""

    boot: int
    node: str
    kind: str
    code: str
    pci: str
    what: str


@dataclass(slots=True)
class Tally:
    """How often and when an event was seen."""

    line: int
    first: Stamped
    last: Stamped
    detail: str
    count: int = 0
    incidents: int = 1
    processes: dict[str, None] = field(default_factory=dict)
    links: dict[str, None] = field(default_factory=dict)
    causes: dict[str, int] = field(default_factory=dict)

    @property
    def span_s(self) -> float | None:
        """Seconds between the first and the last, None when the times cannot be compared."""
        return seconds_between(self.first, self.last)


class Tallies:
    """All events of a log."""

    def __init__(self) -> None:
        self.of: dict[Key, Tally] = {}
        self.left_out = 0

    def add(self, event: Event, record: Record, boot: int, pci: str | None = None) -> Tally | None:
        """Count an event; None when there is no room for another kind of it."""
        key = Key(boot, record.stamp.node, event.kind, event.code, event.pci if pci is None else pci, event.what)
        tally = self.of.get(key)
        if tally is None:
            if len(self.of) >= MOST_TALLIES:
                self.left_out += 1
                return None
            tally = self.of[key] = Tally(record.line, record.stamp, record.stamp, event.detail[:300])
        else:
            gap = seconds_between(tally.last, record.stamp)
            if gap is not None and gap > INCIDENT_S:
                tally.incidents += 1
            tally.last = record.stamp
        tally.count += event.count
        _note(tally.processes, process_of(event.detail) if event.kind == "xid" else "")
        _note(tally.links, event.link)
        if event.cause and (event.cause in tally.causes or len(tally.causes) < _MOST_NAMES):
            tally.causes[event.cause] = tally.causes.get(event.cause, 0) + 1
        return tally

    def kinds(self, *kinds: str) -> list[tuple[Key, Tally]]:
        """The events of these kinds, in the order of their first line."""
        return sorted(((k, t) for k, t in self.of.items() if k.kind in kinds), key=lambda pair: pair[1].line)


def seconds_between(first: Stamped, last: Stamped) -> float | None:
    """Seconds from one time to another, None when they are not of one clock."""
    if first.seconds is None or last.seconds is None or first.clock != last.clock:
        return None
    return last.seconds - first.seconds


def _note(names: dict[str, None], name: str) -> None:
    if name and len(names) < _MOST_NAMES * 8:
        names[name] = None
