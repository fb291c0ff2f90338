"""Following a log line by line: what belongs together on several lines, boots, links that go down and come up."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kernel.messages import Event
from clusterwright.readers.kernel.records import Record
from clusterwright.readers.kernel.stamps import BOOT, Stamped
from clusterwright.readers.kernel.tallies import Key, Tallies, seconds_between

#: Lines within which a message that names no device belongs to the device named before.
_NEAR: Final = 6
_MOST_NODES: Final = 10_000
_PROGRAMS: Final = frozenset({"", "kernel"})
#: How a line begins that the driver itself wrote.
_OWN: Final = ("NVRM:", "nvidia-nvswitch", "Xid (", "SXid (")
_UUID: Final = re.compile(r"(?P<uuid>GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass
class LostGpu:
    """A GPU that no longer answers, and what says so."""

    line: int
    first: Stamped
    last: Stamped
    said: dict[str, None] = field(default_factory=dict)


@dataclass
class _Node:
    boot: int = 0
    last: Stamped | None = None
    device: str = ""
    device_line: int = 0
    ghes: str = ""
    links: dict[tuple[str, str], Stamped] = field(default_factory=dict)


class Follower:
    """Events of a log with what connects them.

    Args:
        run: takes rejected lines and facts about the system.
    """

    def __init__(self, run: RunBuilder) -> None:
        self.run = run
        self.tallies = Tallies()
        self.reprinted = Tallies()
        self.lost: dict[tuple[int, str, str], LostGpu] = {}
        self.uuids: dict[tuple[str, str], str] = {}
        self.serials: dict[str, int] = {}
        self.downtimes: dict[tuple[str, str, str], float] = {}
        self._nodes: dict[str, _Node] = {}

    def follow(self, event: Event, record: Record) -> None:
        """Take the next event."""
        node = self._nodes.get(record.stamp.node)
        if node is None:
            if len(self._nodes) >= _MOST_NODES:
                self.tallies.left_out += 1
                return
            node = self._nodes[record.stamp.node] = _Node()
        self._boot(node, event, record)
        handler = _HANDLERS.get(event.kind)
        if handler is not None:
            handler(self, node, event, record)
        if event.pci and event.kind in ("xid", "uuid", "probed", "lost", "amd"):
            node.device, node.device_line = event.pci, record.line

    def finish(self) -> None:
        """Merge what only the end of the log settles."""
        self.run.condition("boots", float(1 + max((n.boot for n in self._nodes.values()), default=0)))
        nodes = [name for name in self._nodes if name]
        if len(nodes) == 1:
            self.run.condition("node", nodes[0])
        named = {(boot, node) for boot, node, pci in self.lost if pci}
        for boot, node, pci in list(self.lost):
            if not pci and (boot, node) in named:
                del self.lost[boot, node, pci]
        self._keep_details()
        seen = {(k.node, k.kind, k.code, k.pci) for k in self.tallies.of}
        devices = {(k.kind, k.code, k.pci) for k in self.tallies.of}
        for key, tally in self.reprinted.of.items():
            if (key.node, key.kind, key.code, key.pci) not in seen and (key.kind, key.code, key.pci) not in devices:
                self.tallies.of[key] = tally
                name = "Xid" if key.kind == "xid" else "SXid"
                self.run.notice(
                    "reprinted",
                    f"{name} {key.code} stands only in the log of another program that repeats the kernel's line",
                    line=tally.line,
                )

    def _keep_details(self) -> None:
        """Details of a switch error without the line of the error itself are the only trace of it."""
        events = {(k.node, k.code) for k, _ in self.tallies.kinds("sxid")}
        for key, tally in self.tallies.kinds("sxid-detail"):
            if tally.count and (key.node, key.code) not in events:
                self.tallies.of[Key(key.boot, key.node, "sxid", key.code, key.pci, "")] = tally

    def _boot(self, node: _Node, event: Event, record: Record) -> None:
        gone_back = (
            node.last is not None
            and record.stamp.clock == BOOT
            and (seconds_between(node.last, record.stamp) or 0) < -5
        )
        if event.kind in ("boot", "kernel") or gone_back:
            if node.last is not None and (event.kind != "kernel" or self._anything(record.stamp.node, node.boot)):
                node.boot += 1
            node.device = ""
        node.last = record.stamp

    def _anything(self, node: str, boot: int) -> bool:
        return any(key.node == node and key.boot == boot for key in self.tallies.of)

    def _xid(self, node: _Node, event: Event, record: Record) -> None:
        own = record.stamp.program in _PROGRAMS and record.stamp.message.startswith(_OWN)
        (self.tallies if own else self.reprinted).add(event, record, node.boot)
        if not own and (known := _UUID.search(record.text)) and len(self.uuids) < _MOST_NODES:
            self.uuids.setdefault((record.stamp.node, event.pci), known["uuid"])
        if event.kind == "xid" and event.code == "79":
            self._lose(node, event.pci, "Xid 79", record)

    def _lost(self, node: _Node, event: Event, record: Record) -> None:
        near = node.device if record.line - node.device_line <= _NEAR else ""
        self._lose(node, event.pci or near, event.code, record)

    def _lose(self, node: _Node, pci: str, said: str, record: Record) -> None:
        key = (node.boot, record.stamp.node, pci)
        if key not in self.lost and len(self.lost) >= _MOST_NODES:
            self.tallies.left_out += 1
            return
        gpu = self.lost.setdefault(key, LostGpu(record.line, record.stamp, record.stamp))
        gpu.last = record.stamp
        gpu.said[said] = None

    def _count(self, node: _Node, event: Event, record: Record) -> None:
        self.tallies.add(event, record, node.boot)

    def _near(self, node: _Node, event: Event, record: Record) -> None:
        near = node.device if record.line - node.device_line <= _NEAR else ""
        self.tallies.add(event, record, node.boot, event.pci or near)

    def _cut(self, node: _Node, event: Event, record: Record) -> None:
        self.run.reject(record.line, record.text, "the line is cut")

    def _uuid(self, node: _Node, event: Event, record: Record) -> None:
        if len(self.uuids) < _MOST_NODES:
            self.uuids.setdefault((record.stamp.node, event.pci), event.code)

    def _serial(self, node: _Node, event: Event, record: Record) -> None:
        if len(self.serials) < _MOST_NODES:
            self.serials.setdefault(event.code, record.line)

    def _fact(self, node: _Node, event: Event, record: Record) -> None:
        self.run.condition(event.kind, event.code)
        if event.kind == "driver":
            self.run.condition("kernel_module", event.what)

    def _mismatch(self, node: _Node, event: Event, record: Record) -> None:
        self.run.notice(
            "driver-mismatch", f"a client of driver {event.code} meets another kernel module", line=record.line
        )

    def _ghes(self, node: _Node, event: Event, record: Record) -> None:
        if event.kind == "ghes-severity":
            node.ghes = event.code
        elif event.kind == "ghes-device" and node.ghes:
            word = node.ghes.lower()
            severity = {"fatal": "uncorrected fatal", "recoverable": "uncorrected non-fatal"}.get(word, "corrected")
            if word in ("fatal", "recoverable", "corrected"):
                self.tallies.add(Event("aer", severity, event.pci, detail="reported by firmware"), record, node.boot)
            node.ghes = ""

    def _nic(self, node: _Node, event: Event, record: Record) -> None:
        self.tallies.add(event, record, node.boot)
        port = (event.pci, event.what)
        if event.code == "link down" and len(node.links) < 1024:
            node.links.setdefault(port, record.stamp)
        elif event.code == "link up" and port in node.links:
            down = seconds_between(node.links.pop(port), record.stamp)
            key = (record.stamp.node, *port)
            if down is not None and down >= 0:
                self.downtimes[key] = max(down, self.downtimes.get(key, 0.0))

    def links_still_down(self) -> list[tuple[str, str, str]]:
        """(node, pci, port) of every link that went down and did not come up in this log."""
        return [(name, *port) for name, node in self._nodes.items() for port in node.links]


_HANDLERS: Final = {
    "xid": Follower._xid, "sxid": Follower._xid, "sxid-detail": Follower._count, "lost": Follower._lost,
    "aer": Follower._count, "aer-received": Follower._count, "recovery": Follower._count, "edac": Follower._count,
    "mce": Follower._count, "mce-logged": Follower._count, "amd": Follower._near, "pcie-limited": Follower._count,
    "rate-limited": Follower._count, "nic": Follower._nic, "oom": Follower._count, "oom-event": Follower._count,
    "segfault": Follower._count, "panic": Follower._count, "sysrq": Follower._count, "init-failure": Follower._near,
    "peermem": Follower._count, "cut": Follower._cut, "uuid": Follower._uuid, "serial": Follower._serial,
    "driver": Follower._fact, "kernel": Follower._fact, "mismatch": Follower._mismatch,
    "ghes-severity": Follower._ghes, "ghes-device": Follower._ghes,
}  # fmt: skip
