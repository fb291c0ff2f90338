"""The links of a fabric: ibnetdiscover (full and -p) and iblinkinfo.

Observations: link (text such as 4xHDR; subject from, from_port, to, to_port and GUIDs), each link once; link_rate with
the same subject; node_kind (switch, adapter, router, aggregation node; subject name, guid). Conditions: switches,
adapters, hosts, links.

Source: rdma-core, infiniband-diags/ibnetdiscover.c and iblinkinfo.c.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Labels, Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.fabric.adapters import labels
from clusterwright.readers.fabric.looking import holds
from clusterwright.readers.fabric.words import read_guid, width_times_speed
from clusterwright.readers.memos import remembered

_NODE: Final = re.compile(
    r'^(?P<kind>Switch|Ca|Rt)\s+(?P<ports>\d{1,5})\s+"(?P<id>[SHR]-[0-9a-fA-F]{1,16})"\s*#\s*"(?P<name>[^"]{0,200})"'
)
_EDGE: Final = re.compile(
    r'^\[(?P<port>\d{1,5})\](?:\([0-9a-fA-F]{1,16}\))?\s+"(?P<peer>[SHR]-[0-9a-fA-F]{1,16})"\[(?P<peer_port>\d{1,5})\]'
    r"(?:\([0-9a-fA-F]{1,16}\))?\s*#(?P<comment>.{0,400})$"
)
_WIDTH: Final = re.compile(r"\b(\d{1,2}x)([A-Z]{2,4}\d{0,2})\b")
_LISTED: Final = re.compile(
    r"^(?P<kind>CA|SW|RT)\s+(?P<lid>\d{1,6})\s+(?P<port>\d{1,5})\s+(?P<guid>0x[0-9a-fA-F]{1,16})\s+(?P<width>\d{1,2}x|\?+)\s+"
    r"(?P<speed>[A-Z0-9]{2,5}|\?{1,3})(?P<rest>.*)$"
)
_PEER: Final = re.compile(
    r"^\s*-\s+(?P<kind>CA|SW|RT)\s+(?P<lid>\d{1,6})\s+(?P<port>\d{1,5})\s+(?P<guid>0x[0-9a-fA-F]{1,16})\s*(?P<rest>.*)$"
)
_NAMES: Final = re.compile(r"\(\s*'(?P<name>[^']{0,200})'\s*-\s*'(?P<peer>[^']{0,200})'\s*\)")
_ALONE: Final = re.compile(r"^\s*'(?P<name>[^']{0,200})'\s*$")
_HEADING: Final = re.compile(
    r"^(?P<kind>CA|Switch|Router):\s+(?:(?P<guid>0x[0-9a-fA-F]{1,16})\s+)?(?P<name>.{1,200}?):\s*$"
)
_LINKINFO: Final = re.compile(
    r'^\s*(?:(?P<guid>0x[0-9a-fA-F]{1,16})\s+)?(?:"(?P<name>[^"]{0,200})"\s+)?(?P<lid>\d{1,6})\s+(?P<port>\d{1,5})\[\s*\]'
    r"\s*==\(\s*(?P<body>[^)]{0,120})\)==>\s*(?:(?P<peer_guid>0x[0-9a-fA-F]{1,16})\s+)?(?P<peer_lid>\d{0,6})\s*(?P<peer_port>\d{0,5})"
    r'\[\s*\]\s*"(?P<peer>[^"]{0,200})"\s*\((?P<remark>[^)]{0,200})\)'
)
_BODY: Final = re.compile(
    r"(?:(?P<width>\d{1,2}[xX])\s+(?P<speed>[\d.]{1,10})\s+Gbps\s+)?(?P<state>\w{2,16})\s*/\s*(?P<physical>\w{2,30})\s*"
)
#: How an adapter describes itself: host and device.
_ADAPTER: Final = re.compile(r"(\S{1,100}) (\S{1,64})")
_HELPERS: Final = ("Aggregation Node", "Mellanox Technologies Aggregation", "SHARP")


@dataclass(slots=True)
class _Fabric:
    """Nodes by id and links, each with both ends and how often it was listed."""

    kinds: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    links: dict[tuple[tuple[str, str], tuple[str, str]], tuple[str, str, int]] = field(default_factory=dict)
    listed: Counter[tuple[tuple[str, str], tuple[str, str]]] = field(default_factory=Counter)
    open_ports: list[tuple[str, str, int]] = field(default_factory=list)
    described: set[str] = field(default_factory=set)

    def node(self, identity: str, kind: str, name: str, line: int) -> None:
        """Keep a node; a name that says that it computes for the switches makes it an aggregation node."""
        helper = kind == "adapter" and any(word in name for word in _HELPERS)
        self.kinds[identity] = "aggregation node" if helper else self.kinds.get(identity, kind)
        if name or identity not in self.names:
            self.names[identity] = name
        self.lines.setdefault(identity, line)

    def link(self, one: tuple[str, str], other: tuple[str, str], width: str, speed: str, line: int) -> None:
        """Keep a link, whichever of its ends names it first."""
        key = (one, other) if (other, one) not in self.links else (other, one)
        self.links.setdefault(key, (width, speed, line))
        self.listed[key] += 1


_KINDS: Final = {
    "Switch": "switch", "SW": "switch", "S": "switch", "Ca": "adapter", "CA": "adapter", "H": "adapter", "Rt": "router",
    "RT": "router", "R": "router", "Router": "router",
}  # fmt: skip


def score_topology(text: str) -> int:
    """How sure it is that a beginning holds one of these listings."""
    if re.search(r'^(?:Switch|Ca|Rt)\s+\d{1,5}\s+"[SHR]-[0-9a-fA-F]{1,16}"', text, re.MULTILINE):
        return 97
    if re.search(r"^(?:CA|SW|RT)\s+\d{1,6}\s+\d{1,5}\s+0x[0-9a-fA-F]{1,16}\s+(?:\d{1,2}x|\?)", text, re.MULTILINE):
        return 97
    return 97 if re.search(r"\d\[ {0,4}\] ?==\([^)\n]{1,120}\)==>", text) else 0


def read_topology(lines: Sequence[Line], node: str) -> list[Run]:
    """One run for each of the tools whose lines are there."""
    found = []
    if holds(lines, '"S-', '"H-', '"R-'):
        found.append(("ibnetdiscover", _read_full(lines)))
    if holds(lines, "0x"):
        found.append(("ibnetdiscover -p", _read_ports(lines)))
    runs = [_describe(tool, fabric, node) for tool, fabric in found if fabric.kinds]
    linkinfo = _read_linkinfo(lines, node) if holds(lines, "==(") else None
    return [*runs, *([linkinfo] if linkinfo is not None else [])]


def _read_full(lines: Sequence[Line]) -> _Fabric:
    fabric, current = _Fabric(), ""
    for line in lines:
        match = _NODE.match(line.text)
        if match is not None:
            current = match["id"]
            fabric.described.add(current)
            fabric.node(current, _KINDS[match["kind"]], match["name"], line.number)
            continue
        match = _EDGE.match(line.text) if current else None
        if match is not None:
            names = re.search(r'"([^"]{0,200})"', match["comment"])
            peer = match["peer"]
            fabric.node(peer, _KINDS[peer[0]], names[1] if names else "", line.number)
            width = _WIDTH.search(match["comment"])
            speeds = (width[1], width[2]) if width is not None else ("", "")
            fabric.link((current, match["port"]), (peer, match["peer_port"]), *speeds, line.number)
    return fabric


def _read_ports(lines: Sequence[Line]) -> _Fabric:
    fabric = _Fabric()
    for line in lines:
        match = _LISTED.match(line.text)
        if match is None:
            continue
        peer = _PEER.match(match["rest"])
        names = _NAMES.search(match["rest"])
        alone = _ALONE.match(match["rest"])
        plain = "" if peer or "'" in match["rest"] else match["rest"]
        name = (names["name"] if names else alone["name"] if alone else plain).strip()
        guid = match["guid"].lower()
        fabric.described.add(guid)
        fabric.node(guid, _KINDS[match["kind"]], name, line.number)
        if peer is None:
            fabric.open_ports.append((guid, match["port"], line.number))
            continue
        other = peer["guid"].lower()
        fabric.node(other, _KINDS[peer["kind"]], names["peer"].strip() if names else "", line.number)
        fabric.link((guid, match["port"]), (other, peer["port"]), match["width"], match["speed"], line.number)
    return fabric


def _describe(tool: str, fabric: _Fabric, node: str) -> Run:
    run = RunBuilder(tool)
    if node:
        run.condition("node", node)
    for identity, kind in fabric.kinds.items():
        about = (("name", fabric.names[identity]), ("guid", _guid(identity)))
        run.observe("node_kind", kind, about, fabric.lines[identity])
    speeds: dict[tuple[str, str], tuple[Value, Value]] = {}
    for (one, other), (width, speed, line) in fabric.links.items():
        subject: Labels = (
            ("from", fabric.names[one[0]]), ("from_port", one[1]),
            ("to", fabric.names[other[0]]), ("to_port", other[1]),
            ("from_guid", _guid(one[0])), ("to_guid", _guid(other[0])),
        )  # fmt: skip
        known = speeds.get((width, speed)) or speeds.setdefault((width, speed), _link(width, speed))
        run.observe("link", known[0], subject, line)
        run.observe("link_rate", known[1], subject, line)
    for identity, port, line in fabric.open_ports:
        subject = (("from", fabric.names[identity]), ("from_port", port), ("from_guid", _guid(identity)))
        run.observe("link", NoValue(Lack.ABSENT, "", "nothing is connected"), subject, line)
    _count(run, fabric)
    return run.build()


def _link(width: str, speed: str) -> tuple[Value, Value]:
    """What is said about a link, and its rate."""
    whole = width and speed and "?" not in speed
    said: Value = f"{width}{speed}" if whole else NoValue(Lack.ABSENT, f"{width} {speed}".strip())
    return said, width_times_speed(width, speed)


@remembered
def _guid(identity: str) -> str:
    return str(read_guid(identity.partition("-")[2] or identity))


def _count(run: RunBuilder, fabric: _Fabric) -> None:
    kinds = Counter(fabric.kinds.values())
    hosts = {fabric.names[i].split(" ")[0] or i for i, kind in fabric.kinds.items() if kind == "adapter"}
    counts = {
        "switches": kinds["switch"],
        "adapters": kinds["adapter"],
        "hosts": len(hosts),
        "links": len(fabric.links),
    }
    for name, number in counts.items():
        run.condition(name, float(number))
    if fabric.open_ports:
        run.notice(
            "ports-unconnected",
            f"{len(fabric.open_ports)} ports have no peer: no fault by itself, something may never have been connected",
            Weight.INFO,
        )
    unknown = [
        identity
        for identity in fabric.kinds
        if identity not in fabric.described and fabric.kinds[identity] != "aggregation node"
    ]
    if unknown:
        run.missing(
            f"the records of {len(unknown)} nodes that others link to, such as {fabric.names[unknown[0]] or unknown[0]}"
        )
    _say_slow(
        run, [(link[0], speed) for link, (width, speed, _) in fabric.links.items() if width.startswith("1x")], fabric
    )


def _say_slow(run: RunBuilder, narrow: list[tuple[tuple[str, str], str]], fabric: _Fabric) -> None:
    if narrow:
        (identity, port), _ = narrow[0]
        run.notice("link-narrow", f"{len(narrow)} links run on one lane, first {fabric.names[identity]} port {port}")


def _read_linkinfo(lines: Sequence[Line], node: str) -> Run | None:
    run = RunBuilder("iblinkinfo")
    if node:
        run.condition("node", node)
    name, down, below = "", 0, 0
    adapter: re.Match[str] | None = None
    seen: set[frozenset[tuple[str, str]]] = set()
    for line in lines:
        heading = _HEADING.match(line.text)
        if heading is not None:
            name = heading["name"].strip().strip('"')
            adapter = _ADAPTER.fullmatch(name) if heading["kind"] == "CA" else None
            continue
        match = _LINKINFO.match(line.text)
        if match is None:
            if "==(" in line.text:
                run.reject(line.number, line.text, "a link that is cut or of an unknown layout")
            continue
        body = _BODY.fullmatch(match["body"])
        if body is None:
            run.reject(line.number, line.text, "an unknown state between the arrows")
            continue
        own = match["name"] or name
        ends = frozenset({(own, match["port"]), (match["peer"], match["peer_port"])})
        if match["peer"] and ends in seen:
            continue
        seen.add(ends)
        subject = (("from", own), ("from_port", match["port"]), ("to", match["peer"]), ("to_port", match["peer_port"]))
        rate: Value = NoValue(Lack.ABSENT, "", "no link")
        if body["width"]:
            rate = width_times_speed(body["width"], body["speed"])
        text: Value = f"{body['width'].lower()} {body['speed']} Gb/s a lane" if body["width"] else rate
        run.observe("link", text, subject, line.number)
        for what, value in (("state", body["state"]), ("physical_state", body["physical"]), ("rate", rate)):
            run.observe(f"link_{what}", value, subject, line.number)
            if adapter is not None:
                run.observe(f"port_{what}", value, labels(adapter[2], match["port"], adapter[1]), line.number)
        down += body["state"] == "Down"
        if "Could be" in match["remark"]:
            below += 1
            run.notice(
                "link-below-capability", f"{own} port {match['port']}: {match['remark'].strip()}", line=line.number
            )
    if run.bare:
        return None
    rates = Counter(
        o.value.to("Gb/s") for o in run.observations if o.name == "link_rate" and isinstance(o.value, Quantity)
    )
    run.condition("links", float(sum(rates.values())))
    run.condition("ports_down", float(down))
    run.condition("links_below_capability", float(below))
    return run.build()
