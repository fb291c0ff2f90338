"""Short listings of InfiniBand: ibhosts and ibswitches, ibv_devices, ibportstate.

Observations: node_kind (subject name, guid); node_guid (subject device, node); port_state, port_physical_state and
port_rate of ibportstate (subject device "lid N", port).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.fabric.adapters import Adapter, Port, describe_adapters, labels
from clusterwright.readers.fabric.looking import holds
from clusterwright.readers.fabric.words import read_guid

_NODE: Final = re.compile(
    r'^(?P<kind>Ca|Switch|Rt)\s*: (?P<guid>0x[0-9a-fA-F]{1,16}) ports (?P<ports>\d{1,5}) "(?P<name>[^"]{0,200})"'
)
_DEVICES: Final = re.compile(r"^\s*device\s+node GUID\s*$")
_DEVICE: Final = re.compile(r"^\s+(?P<device>[A-Za-z]\S{0,63})\s+(?P<guid>[0-9a-fA-F]{16})\s*$")
_PORT: Final = re.compile(r"^# Port info: (?P<where>\S.{0,80}?) port (?P<port>\d{1,5})\s*$")
_FACT: Final = re.compile(r"^(?P<key>[A-Za-z]{3,40}):\.{0,60}(?P<value>\S.{0,60}?)\s*$")
_FACTS: Final = {
    "LinkState": "state", "PhysLinkState": "physical", "LinkWidthActive": "width", "LinkSpeedActive": "speed",
    "LinkSpeedExtActive": "speed_extended", "Lid": "lid",
}  # fmt: skip
_KINDS: Final = {"Ca": "adapter", "Switch": "switch", "Rt": "router"}


def score_short(text: str) -> int:
    """How sure it is that a beginning holds one of these listings."""
    for pattern in (
        r"^(?:Ca|Switch|Rt)[ \t]*: 0x[0-9a-fA-F]{1,16} ports \d",
        r"^[ \t]*device[ \t]+node GUID[ \t]*$",
        r"^# Port info: \S",
    ):
        if re.search(pattern, text, re.MULTILINE):
            return 95
    return 0


def read_short(lines: Sequence[Line], node: str) -> list[Run]:
    """One run for each of the tools whose lines are there."""
    forms = ((_read_nodes, ": 0x"), (_read_devices, "node GUID"), (_read_ports, "Port info"))
    runs = [read(lines, node) for read, word in forms if holds(lines, word)]
    return [run for run in runs if run is not None]


def _begin(tool: str, node: str) -> RunBuilder:
    run = RunBuilder(tool)
    if node:
        run.condition("node", node)
    return run


def _read_nodes(lines: Sequence[Line], node: str) -> Run | None:
    run = _begin("ibnodes", node)
    for line in lines:
        match = _NODE.match(line.text)
        if match is not None:
            helper = match["kind"] == "Ca" and "Aggregation Node" in match["name"]
            subject = (("name", match["name"]), ("guid", str(read_guid(match["guid"]))))
            run.observe("node_kind", "aggregation node" if helper else _KINDS[match["kind"]], subject, line.number)
    if run.bare:
        return None
    for name, kind in (("switches", "switch"), ("adapters", "adapter")):
        run.condition(name, float(sum(o.value == kind for o in run.observations)))
    return run.build()


def _read_devices(lines: Sequence[Line], node: str) -> Run | None:
    run = _begin("ibv_devices", node)
    inside = False
    for line in lines:
        inside = inside or _DEVICES.match(line.text) is not None
        match = _DEVICE.match(line.text) if inside else None
        if match is not None:
            run.observe("node_guid", read_guid(match["guid"]), labels(match["device"], node=node), line.number)
    return None if run.bare else run.build()


def _read_ports(lines: Sequence[Line], node: str) -> Run | None:
    adapters: dict[str, Adapter] = {}
    port: Port | None = None
    for line in lines:
        start, fact = _PORT.match(line.text), _FACT.match(line.text)
        if start is not None:
            name = start["where"].lower()
            port = Port(start["port"], line.number)
            adapters.setdefault(name, Adapter(name, line.number, {"ports": "0"})).ports.append(port)
        elif port is not None and fact is not None and fact["key"] in _FACTS:
            port.facts.setdefault(_FACTS[fact["key"]], fact["value"])
    if not adapters:
        return None
    for adapter in adapters.values():
        for each in adapter.ports:
            extended = each.facts.pop("speed_extended", "")
            if extended[:1].isdigit() and not extended.startswith("No"):
                each.facts["speed"] = extended
    run = _begin("ibportstate", node)
    describe_adapters(run, list(adapters.values()), node)
    return run.build()
