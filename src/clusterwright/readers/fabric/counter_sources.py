"""The listings of port counters: perfquery, sysfs (`path: value`), ibqueryerrors, ethtool -S → counters of a port."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from clusterwright.readers.cleaning import Line
from clusterwright.readers.fabric.adapters import Adapter, Port

#: Most ports in one output.
MOST_PORTS: Final = 100_000

_BLOCK: Final = re.compile(
    r"^# (?P<what>Port\w{0,24}) (?P<kind>extended )?counters: Lid (?P<lid>\d{1,6}) port (?P<port>\d{1,5}|ALL)\b"
)
_PM: Final = re.compile(
    r"^Port=(?P<port>\d{1,5}) Lid=(?P<lid>0x[0-9a-fA-F]{1,8}) GUID=(?P<guid>0x[0-9a-fA-F]{1,16}) Device=\d{1,9}"
    r" Port Name=(?P<name>.{0,200})$"
)
_PM_VALUE: Final = re.compile(r"^(?P<name>[a-z][\w.-]{2,80})=(?P<value>\S{1,40})\s*$")
_DOTTED: Final = re.compile(r"^(?P<name>[A-Za-z][A-Za-z0-9]{1,48}):\.{0,60}(?P<value>\S{0,40})\s*$")
_CUT_DOTTED: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{4,48}(?::\.*)?$")
_CUT_PM_VALUE: Final = re.compile(r"[a-z][\w.-]{2,80}=?$")
_PATH: Final = re.compile(
    r"^(?:\./)?(?:\S{0,200}/)?infiniband/(?P<device>[^/\s]{1,64})/(?P<rest>[^\s:=]{1,120})(?:\s*[:=]\s*|\s+)(?P<value>.{0,80}?)\s*$"
)
_PORT_PATH: Final = re.compile(r"^ports/(?P<port>\d{1,3})/(?P<group>counters|hw_counters)/(?P<name>[\w.-]{1,64})$")
_STATE_PATH: Final = re.compile(r"^ports/(?P<port>\d{1,3})/(?P<name>state|phys_state|rate|link_layer|lid)$")
_HEAD: Final = re.compile(r"^==> (\S{0,200}infiniband/\S{1,200}) <==$")
_RDMA: Final = re.compile(r"^link (?P<device>[^/\s]{1,64})/(?P<port>\d{1,3})\s+(?P<rest>[a-z]\w{2,48} \d.*)$")
_ERRORS: Final = re.compile(r'^Errors for (?:(?P<guid>0x[0-9a-fA-F]{1,16}) )?"(?P<name>[^"]{0,200})"')
_ERROR_PORT: Final = re.compile(
    r"^\s+GUID (?P<guid>0x[0-9a-fA-F]{1,16}) port (?P<port>\d{1,5}|ALL):(?P<rest>.{0,8000})$"
)
_ERROR: Final = re.compile(r"\[(?P<name>[A-Za-z0-9_]{2,48}) == (?P<value>\d{1,20})(?: \([^)\]]{0,40}\))?\]")
_STATISTICS: Final = re.compile(r"^NIC statistics(?: for (?P<netdev>\S{1,64}))?:?\s*$")
_STATISTIC: Final = re.compile(r"^\s+(?P<name>[\w.\[\]-]{1,64}):\s*(?P<value>\S{0,40})\s*$")
_TORN_STATISTIC: Final = re.compile(r"^\s{2,}[a-z][\w.\[\]-]{1,63}:?\s*$")
#: Statistics of which grep took the heading away.
_BARE_STATISTIC: Final = re.compile(r"^[ \t]{1,16}[rt]x_\w{3,60}: \d{1,20}[ \t]*$", re.MULTILINE)
_FEWEST_BARE: Final = 3
_ETHTOOL: Final = re.compile(r"ethtool\s+(?:-S|--statistics)\s+(?P<netdev>\S{1,64})")
_FACTS: Final = {"state": "state", "phys_state": "physical", "rate": "rate", "link_layer": "layer", "lid": "lid"}
_DEVICE_FACTS: Final = {"hca_type": "hca_type", "fw_ver": "firmware", "board_id": "board", "node_guid": "guid"}


@dataclass(slots=True)
class Counters:
    """The counters of one port of one listing.

    Args:
        subject: labels that name the port.
        extended: whether they are 64 bits wide.
        part: which of the tables of a port these are, `Port` for the main one.
        values: name → (text as printed, line).
    """

    subject: tuple[tuple[str, str], ...]
    line: int
    extended: bool = False
    values: dict[str, tuple[str, int]] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    part: str = "Port"

    def put(self, name: str, text: str, line: int) -> None:
        """Keep a counter; a second value for the same name is noted, the first one stays."""
        if name in self.values:
            if self.values[name][0] != text and len(self.twice) < 20:
                self.twice.append(name)
            return
        self.values[name] = (text, line)


@dataclass(slots=True)
class Listing:
    """What one tool printed. `adapters` is what sysfs says about devices beside their counters."""

    tool: str
    ports: list[Counters] = field(default_factory=list)
    adapters: list[Adapter] = field(default_factory=list)
    summary: tuple[int, str] | None = None
    cut: list[tuple[int, str]] = field(default_factory=list)


def collect_perfquery(lines: Sequence[Line]) -> Listing:
    """Blocks of perfquery, each begun by its comment line."""
    listing = Listing("perfquery")
    for line in lines:
        match = _BLOCK.match(line.text)
        if match is not None:
            labels = (("lid", match["lid"]), ("port", match["port"]), ("node", line.prefix))
            subject = tuple(pair for pair in labels if pair[1])
            part = Counters(subject, line.number, extended=match["kind"] is not None, part=match["what"])
            listing.ports.append(part)
        elif listing.ports and (match := _DOTTED.match(line.text)) is not None:
            listing.ports[-1].put(match["name"], match["value"], line.number)
        elif listing.ports and _CUT_DOTTED.match(line.text):
            listing.cut.append((line.number, line.text))
    return listing


def collect_ibdiagnet(lines: Sequence[Line]) -> Listing:
    """Blocks of ibdiagnet2.pm: a line that names the port, then `counter=0x…`. The names say which are 64 bits wide."""
    listing = Listing("ibdiagnet")
    for line in lines:
        if (match := _PM.match(line.text)) is not None:
            labels = (("name", match["name"].strip()), ("lid", str(int(match["lid"], 16))))
            subject = (*labels, ("guid", match["guid"].lower()), ("port", match["port"]))
            listing.ports.append(Counters(tuple(p for p in subject if p[1]), line.number, extended=True))
        elif listing.ports and (match := _PM_VALUE.match(line.text)) is not None:
            listing.ports[-1].put(match["name"], match["value"], line.number)
        elif listing.ports and _CUT_PM_VALUE.match(line.text):
            listing.cut.append((line.number, line.text))
    return listing


def collect_sysfs(lines: Sequence[Line]) -> Listing:
    """Files under /sys/class/infiniband as `path: value`, `path:value` or `path value`."""
    listing = Listing("sysfs")
    ports: dict[tuple[str, str, str], Counters] = {}
    adapters: dict[str, Adapter] = {}
    for line in _join_heads(lines):
        match = _PATH.match(line.text)
        if match is None:
            continue
        device, rest, value = match["device"], match["rest"], match["value"]
        counter, state = _PORT_PATH.match(rest), _STATE_PATH.match(rest)
        adapter = adapters.setdefault(device, Adapter(device, line.number, {"ports": "0"}))
        if counter is not None:
            key = (device, counter["port"], line.prefix)
            subject = tuple(p for p in (("device", device), ("port", counter["port"]), ("node", line.prefix)) if p[1])
            ports.setdefault(key, Counters(subject, line.number)).put(counter["name"], value, line.number)
        elif state is not None:
            port = next((p for p in adapter.ports if p.number == state["port"]), None)
            if port is None:
                port = Port(state["port"], line.number)
                adapter.ports.append(port)
            port.facts.setdefault(_FACTS[state["name"]], value)
        elif rest in _DEVICE_FACTS:
            adapter.facts.setdefault(_DEVICE_FACTS[rest], value)
    listing.ports = list(ports.values())
    listing.adapters = [a for a in adapters.values() if a.ports or len(a.facts) > 1]
    return listing


def _join_heads(lines: Iterable[Line]) -> Iterator[Line]:
    """Lines with `==> path <==` (head, tail) joined with the value that follows."""
    path = ""
    for line in lines:
        head = _HEAD.match(line.text)
        if head is not None:
            path = head[1]
        elif path and line.text.strip():
            yield Line(line.number, f"{path}: {line.text.strip()}", line.prefix)
            path = ""
        else:
            yield line


def collect_errors(lines: Sequence[Line]) -> Listing:
    """Ports above the threshold of ibqueryerrors. The sum `port ALL` is left out, its parts are listed."""
    listing = Listing("ibqueryerrors")
    name = ""
    for line in lines:
        if (match := _ERRORS.match(line.text)) is not None:
            name = match["name"]
        elif (match := _ERROR_PORT.match(line.text)) is not None and match["port"] != "ALL":
            subject = (("name", name), ("guid", match["guid"].lower()), ("port", match["port"]))
            counters = Counters(subject, line.number)
            for found in _ERROR.finditer(match["rest"]):
                counters.put(found["name"], found["value"], line.number)
            if match["rest"].count("[") != len(counters.values) + len(counters.twice):
                listing.cut.append((line.number, line.text))
            listing.ports.append(counters)
        elif line.text.startswith("## Summary:"):
            listing.summary = (line.number, line.text[11:].strip())
    return listing


def collect_rdma(lines: Sequence[Line]) -> Listing:
    """Lines of `rdma statistic show`: pairs of name and value, continued on indented lines."""
    listing = Listing("rdma statistic")
    inside = False
    for line in lines:
        match = _RDMA.match(line.text)
        if match is not None:
            labels = (("device", match["device"]), ("port", match["port"]), ("node", line.prefix))
            listing.ports.append(Counters(tuple(p for p in labels if p[1]), line.number, extended=True))
        inside = match is not None or (inside and line.text[:1] in " \t")
        words = (match["rest"] if match is not None else line.text).split() if inside else []
        for name, value in zip(words[::2], words[1::2], strict=False):
            listing.ports[-1].put(name[:64], value, line.number)
    return listing


def collect_statistics(lines: Sequence[Line]) -> Listing:
    """Blocks of ethtool -S; the interface is named only by the command or by who gathered them."""
    listing = Listing("ethtool -S")
    netdev, inside = "", False
    bare = sum("x_" in line.text and _BARE_STATISTIC.match(line.text) is not None for line in lines) >= _FEWEST_BARE
    for line in lines:
        command = _ETHTOOL.search(line.text) if "ethtool" in line.text else None
        start = _STATISTICS.match(line.text) if line.text[:3] == "NIC" else None
        if command is not None:
            netdev, inside = command["netdev"], False
        elif start is not None or (bare and not inside and _BARE_STATISTIC.match(line.text) is not None):
            name = (start["netdev"] if start is not None else "") or netdev
            labels = (("netdev", name), ("node", line.prefix))
            listing.ports.append(Counters(tuple(p for p in labels if p[1]), line.number, extended=True))
            inside = True
        if inside and (match := _STATISTIC.match(line.text)) is not None:
            listing.ports[-1].put(match["name"], match["value"], line.number)
        elif inside and _TORN_STATISTIC.match(line.text):
            listing.cut.append((line.number, line.text))
        elif start is None and line.text.strip():
            inside = False
    return listing


def score_counters(text: str) -> int:
    """How sure it is that a beginning holds one of these listings."""
    if re.search(r"^# Port\w{0,24} (?:extended )?counters: Lid \d", text, re.MULTILINE):
        return 98
    if re.search(r"^Port=\d+ Lid=0x[0-9a-fA-F]+ GUID=0x[0-9a-fA-F]+ Device=", text, re.MULTILINE):
        return 98
    if re.search(r"infiniband/[^/\s]{1,64}/ports/\d{1,3}/(?:hw_)?counters/\w", text):
        return 97
    if re.search(r"^Errors for .{0,200}\n\s+GUID 0x[0-9a-fA-F]+ port ", text, re.MULTILINE) or "## Summary: " in text:
        return 97
    if re.search(r"^NIC statistics(?: for \S+)?:?[ \t]*$", text, re.MULTILINE):
        return 90
    if len(_BARE_STATISTIC.findall(text)) >= _FEWEST_BARE:
        return 55
    return 95 if re.search(r"^link [^/\s]{1,64}/\d{1,3} [a-z]\w{2,48} \d+ [a-z]\w{2,48} \d", text, re.MULTILINE) else 0


def score_sysfs_states(text: str) -> int:
    """How sure it is that a beginning lists the states of ports in sysfs and no counters."""
    found = re.search(r"infiniband/[^/\s]{1,64}/ports/\d{1,3}/(?:state|phys_state|rate|link_layer)\b", text)
    return 80 if found and not score_counters(text) else 0
