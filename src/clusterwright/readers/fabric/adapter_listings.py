"""ibstat, ibstatus and ibv_devinfo: three spellings of the same list of adapters and ports.

Source: rdma-core (infiniband-diags/ibstat.c, ibstatus; libibverbs/examples/devinfo.c).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.fabric.adapters import Adapter, Port, describe_adapters
from clusterwright.readers.fabric.looking import holds

_CA: Final = re.compile(r"\s*CA '(?P<name>[^']{1,64})'\s*$")
_CA_PORT: Final = re.compile(r"\s*Port (?P<port>\d{1,3}):\s*$")
_HCA: Final = re.compile(r"\s*hca_id:\s*(?P<name>\S{1,64})")
_HCA_PORT: Final = re.compile(r"\s+port:\s*(?P<port>\d{1,3})\s*$")
_STATUS: Final = re.compile(r"\s*Infiniband device '(?P<name>[^']{1,64})' port (?P<port>\d{1,3}) status:")
_FACT: Final = re.compile(r"\s*(?P<key>[A-Za-z_][A-Za-z_ ]{1,30}?)\s*:(?P<value>.*)")
_FIRST_LINE: Final = re.compile(
    r"^[ \t]*(?:CA '[^'\n]{1,64}'[ \t]*$|hca_id:[ \t]*\S|Infiniband device '[^'\n]{1,64}' port \d)", re.MULTILINE
)
_PROMPT: Final = re.compile(r"\S{0,60}[$#] \S|\[[^\]]{1,60}\][$#]")
#: A port of ibv_devinfo whose adapter was cut off above it.
_HEADLESS: Final = re.compile(r"^[ \t]+port:[ \t]*\d{1,3}[ \t]*\n\s+state:[ \t]*PORT_[A-Z]+ \(\d\)", re.MULTILINE)
_DEVICE_FACTS: Final = {
    "CA type": "hca_type", "Number of ports": "ports", "Firmware version": "firmware", "Node GUID": "guid",
    "fw_ver": "firmware", "node_guid": "guid", "vendor_part_id": "hca_type", "board_id": "board",
    "phys_port_cnt": "ports",
}  # fmt: skip
_PORT_FACTS: Final = {
    "State": "state", "Physical state": "physical", "Rate": "rate", "Base lid": "lid", "Port GUID": "guid",
    "Link layer": "layer", "state": "state", "phys state": "physical", "phys_state": "physical", "rate": "rate",
    "base lid": "lid", "link_layer": "layer", "port_lid": "lid", "active_mtu": "mtu", "active_width": "width",
    "active_speed": "speed",
}  # fmt: skip
_FIRST: Final = 20
#: How the first line of an adapter begins, whichever tool printed it.
_STARTS: Final = ("CA '", "hca_id:", "Infiniband device '")


def score_adapters(text: str) -> int:
    """How sure it is that a beginning holds one of these listings."""
    if _FIRST_LINE.search(text):
        return 96
    return 85 if _HEADLESS.search(text) else 0


def read_adapters(lines: Sequence[Line], node: str) -> list[Run]:
    """One run a tool."""
    runs = []
    for tool, device, port, words in (
        ("ibstat", _CA, _CA_PORT, ("CA '",)),
        ("ibv_devinfo", _HCA, _HCA_PORT, ("hca_id:", "port:")),
        ("ibstatus", _STATUS, None, ("Infiniband device '",)),
    ):
        adapters = _collect(lines, device, port) if holds(lines, *words) else []
        if adapters:
            run = RunBuilder(tool)
            if node:
                run.condition("node", node)
            describe_adapters(run, adapters, node)
            if any(not adapter.name for adapter in adapters):
                run.missing("the beginning, with the name of the adapter")
            runs.append(run.build())
    return runs


def _collect(lines: Sequence[Line], device: re.Pattern[str], port: re.Pattern[str] | None) -> list[Adapter]:
    adapters: dict[str, Adapter] = {}
    adapter: Adapter | None = None
    current: Port | None = None
    if device is _HCA and _HEADLESS.search("\n".join(line.text for line in lines[:_FIRST])):
        first = next((line.text for line in lines if line.text.strip() and not _is_prompt(line.text)), "")
        if _HCA_PORT.match(first):
            adapter = adapters[""] = Adapter("", lines[0].number, {"ports": "1"})
    for line in lines:
        text = line.text.lstrip()
        match = device.match(line.text) if text.startswith(_STARTS) else None
        if match is not None:
            adapter = adapters.setdefault(match["name"], Adapter(match["name"], line.number))
            current = None
            if port is None:
                current = Port(match["port"], line.number)
                adapter.ports.append(current)
        elif adapter is None or (text.startswith(_STARTS) and _is_start(line.text)) or _is_prompt(line.text):
            adapter = current = None
        elif port is not None and text[:4] in ("Port", "port") and (match := port.match(line.text)) is not None:
            current = Port(match["port"], line.number)
            adapter.ports.append(current)
        elif (match := _FACT.match(line.text)) is not None:
            key, value = match["key"], match["value"].strip()
            if current is not None and key in _PORT_FACTS:
                current.facts.setdefault(_PORT_FACTS[key], value)
            elif current is None and key in _DEVICE_FACTS:
                adapter.facts.setdefault(_DEVICE_FACTS[key], value)
    return list(adapters.values())


def _is_start(text: str) -> bool:
    return any(start.match(text) for start in (_CA, _HCA, _STATUS))


def _is_prompt(text: str) -> bool:
    return ("$" in text or "#" in text) and _PROMPT.match(text) is not None
