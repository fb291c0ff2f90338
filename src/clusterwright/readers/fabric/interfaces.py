"""Which network interface belongs to which RDMA port, and how interfaces stand: ibdev2netdev, rdma link, ip, ethtool.

Observations: netdev (text), netdev_state (subject device, port, netdev, node), port_state and port_physical_state
where printed, port_rate of ethtool (subject netdev). The state of ibdev2netdev is that of the IP interface.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from clusterwright.lib.pci import pci_address
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.fabric.adapters import Adapter, Port, describe_adapters, labels
from clusterwright.readers.fabric.looking import holds
from clusterwright.readers.fabric.words import read_state
from clusterwright.readers.values import lacking, quantity, unreadable

_MAPPED: Final = re.compile(
    r"^(?P<head>\S.{0,200}?)\s+port\s+(?P<port>\d{1,3})\s+(?:\((?P<state>[A-Z_]{2,16}) *\)\s+)?==>"
    r"\s+(?P<netdev>\S{1,64})\s+\((?P<up>\w{2,16})\)"
)
_MAPPED_CUT: Final = re.compile(r"^\S+\s+port\s+\d{1,3}\s.{0,40}==>")
_RDMA: Final = re.compile(r"^(?:link |\d+/\d+: )(?P<device>[^/\s]{1,64})/(?P<port>\d{1,3}):? (?P<rest>.*\bstate .*)$")
_IP: Final = re.compile(
    r"^\d{1,6}: (?P<netdev>[^:@\s]{1,64})(?:@\S+)?: <(?P<flags>[A-Z0-9_,-]{0,200})> mtu (?P<mtu>\d{1,6}) (?P<rest>.*)$"
)
_BRIEF: Final = re.compile(
    r"^(?P<netdev>[\w.@-]{1,64})\s+(?P<state>UP|DOWN|UNKNOWN)\s+(?P<mac>[0-9a-f]{2}(?::[0-9a-f]{2}){5,19})\s+<"
)
_ETHTOOL: Final = re.compile(r"^Settings for (?P<netdev>[^\s:]{1,64}):?\s*$")
_SPEED: Final = re.compile(r"(\d{1,7})Mb/s")


def score_interfaces(text: str) -> int:
    """How sure it is that a beginning holds one of these listings."""
    if re.search(r"^\S.{0,200} port +\d{1,3} .{0,24}==> +\S+ +\(\w+\)", text, re.MULTILINE):
        return 96
    if re.search(r"^link [^/\s]+/\d+ .{0,200}\bstate [A-Z]+ physical_state [A-Z_]+", text, re.MULTILINE):
        return 96
    if re.search(r"^\d+/\d+: [^/\s]+/\d+: .{0,200}\bstate [A-Z]+ physical_state ", text, re.MULTILINE):
        return 96
    if re.search(r"^Settings for \S{1,64}$", text, re.MULTILINE) and "Link detected:" in text:
        return 85
    listed = re.search(r"^\d{1,6}: \S{1,64}: <[A-Z0-9_,-]{0,200}> mtu \d+ ", text, re.MULTILINE)
    brief = re.search(r"^[\w.@-]{1,64} +(?:UP|DOWN|UNKNOWN) +[0-9a-f]{2}(?::[0-9a-f]{2}){5,19} +<", text, re.MULTILINE)
    return 75 if listed or brief else 0


def read_interfaces(lines: Sequence[Line], node: str) -> list[Run]:
    """One run for each of the tools whose lines are there."""
    forms = ((_read_mapped, "==>"), (_read_rdma, "state "), (_read_ip, "<"), (_read_ethtool, "Settings for "))
    runs = [read(lines, node) for read, word in forms if holds(lines, word)]
    return [run for run in runs if run is not None]


def _begin(tool: str, node: str) -> RunBuilder:
    run = RunBuilder(tool)
    if node:
        run.condition("node", node)
    return run


def _read_mapped(lines: Sequence[Line], node: str) -> Run | None:
    run = _begin("ibdev2netdev", node)
    infiniband = ethernet = 0
    for line in lines:
        match = _MAPPED.match(line.text)
        if match is None:
            if _MAPPED_CUT.match(line.text):
                run.reject(line.number, line.text, "a line that is cut")
            continue
        words = match["head"].split()
        device, pci = words[0], ""
        if len(words) > 1:
            try:
                pci, device = pci_address(words[0]), words[1]
            except ValueError:
                pci = ""
        subject = labels(device, match["port"], node) + ((("pci", pci),) if pci else ())
        run.observe("netdev", match["netdev"], subject, line.number)
        run.observe("netdev_state", match["up"], subject, line.number)
        infiniband += match["netdev"].startswith("ib")
        ethernet += not match["netdev"].startswith("ib")
        if match["state"]:
            state = read_state(match["state"])
            run.observe("port_state", state, subject, line.number)
            if state != "Active":
                run.notice("port-down", f"{device} port {match['port']} is {state}", Weight.ERROR, line.number)
    if run.bare:
        return None
    run.condition("infiniband_interfaces", float(infiniband))
    run.condition("ethernet_interfaces", float(ethernet))
    if any(o.name == "netdev_state" and o.value == "Down" for o in run.observations):
        run.notice(
            "ip-interface-only",
            "Up and Down are states of the IP interface: without IPoIB an InfiniBand port is Down on a healthy node",
            Weight.INFO,
        )
    return run.build()


def _read_rdma(lines: Sequence[Line], node: str) -> Run | None:
    adapters: dict[str, Adapter] = {}
    netdevs: list[tuple[str, str, str, int]] = []
    for line in lines:
        match = _RDMA.match(line.text)
        if match is None:
            continue
        words = match["rest"].split()
        pairs = dict(pairwise(words))
        adapter = adapters.setdefault(
            match["device"], Adapter(match["device"], line.number, {"netdevs": "", "ports": "0"})
        )
        facts = {"state": pairs.get("state", ""), "physical": pairs.get("physical_state", "")}
        if "subnet_prefix" in pairs or "sm_lid" in pairs:
            facts |= {"layer": "InfiniBand", "lid": pairs.get("lid", "")}
        elif "netdev" in pairs:
            facts["layer"] = "Ethernet"  # iproute2 prints a subnet for InfiniBand and an interface for Ethernet
        adapter.ports.append(Port(match["port"], line.number, facts))
        if "netdev" in pairs:
            netdevs.append((match["device"], match["port"], pairs["netdev"], line.number))
    if not adapters:
        return None
    run = _begin("rdma link", node)
    describe_adapters(run, list(adapters.values()), node)
    for device, port, netdev, number in netdevs:
        run.observe("netdev", netdev, labels(device, port, node), number)
    return run.build()


def _read_ip(lines: Sequence[Line], node: str) -> Run | None:
    run = _begin("ip link", node)
    for line in lines:
        match = _IP.match(line.text) or _BRIEF.match(line.text)
        if match is None:
            continue
        groups = match.groupdict()
        words = (groups.get("rest") or "").split()
        state = groups.get("state") or dict(pairwise(words)).get("state", "")
        subject = (("netdev", match["netdev"].split("@")[0]), *labels("", node=node))
        run.observe("netdev_state", lacking(state) or state.capitalize(), subject, line.number)
        if groups.get("mtu"):
            run.observe("netdev_mtu", quantity(float(groups["mtu"]), "B"), subject, line.number)
    return None if run.bare else run.build()


def _read_ethtool(lines: Sequence[Line], node: str) -> Run | None:
    run = _begin("ethtool", node)
    for netdev, number, facts in _ethtool_blocks(lines):
        subject = (("netdev", netdev), *labels("", node=node))
        detected = facts.get("Link detected", "")
        up = detected.startswith("yes")
        run.observe("netdev_state", "Up" if up else lacking(detected) or "Down", subject, number)
        run.observe("port_rate", _speed(facts.get("Speed", ""), up), subject, number)
        if "Link detected" not in facts:
            run.missing(f"line 'Link detected' of {netdev}")
        elif not up:
            run.notice("link-not-detected", f"{netdev}: Link detected: {detected}", line=number)
    return None if run.bare else run.build()


def _ethtool_blocks(lines: Sequence[Line]) -> Iterator[tuple[str, int, dict[str, str]]]:
    netdev, number = "", 0
    facts: dict[str, str] = {}
    for line in lines:
        match = _ETHTOOL.match(line.text)
        if match is not None:
            if netdev:
                yield netdev, number, facts
            netdev, number, facts = match["netdev"], line.number, {}
        elif netdev and ":" in line.text:
            key, _, value = line.text.strip().partition(":")
            facts.setdefault(key[:40], value.strip()[:60])
    if netdev:
        yield netdev, number, facts


def _speed(text: str, up: bool) -> Value:
    match = _SPEED.fullmatch(text)
    if match is None:
        return (
            NoValue(Lack.ABSENT, text[:40])
            if text.startswith("Unknown")
            else lacking(text) or unreadable(text, "no speed")
        )
    rate: Quantity = quantity(int(match[1]) / 1000, "Gb/s")
    return rate if up else NoValue(Lack.ABSENT, text, "no link is detected")
