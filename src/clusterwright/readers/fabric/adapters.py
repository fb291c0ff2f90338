"""Adapters and their ports as listings describe them → observations and notices.

Observations: port_state, port_physical_state, port_rate, port_layer, port_guid, port_lid, port_mtu (subject device,
port, node); firmware, hca_type, node_guid (subject device, node). Conditions: adapters, ports, ports_active.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Labels, Lack, NoValue, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.fabric.words import (
    read_guid,
    read_layer,
    read_physical,
    read_rate,
    read_state,
    width_times_speed,
)
from clusterwright.readers.values import lacking, read_number, read_quantity

_NAMED: Final = 8


@dataclass(slots=True)
class Port:
    """One port with what is said about it, by our names: state, physical, rate, layer, guid, lid, mtu, width, speed."""

    number: str
    line: int
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Adapter:
    """One device: its ports, how many it says it has, and type, firmware and guid where printed."""

    name: str
    line: int
    facts: dict[str, str] = field(default_factory=dict)
    ports: list[Port] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Seen:
    place: str
    state: str
    layer: str
    rate: float
    kind: str


def labels(device: str, port: str = "", node: str = "") -> Labels:
    """The subject of a port or device."""
    pairs = (("device", device), ("port", port), ("node", node))
    return tuple(pair for pair in pairs if pair[1])


def describe_adapters(run: RunBuilder, adapters: Sequence[Adapter], node: str) -> None:
    """Everything that a listing says about its adapters; ports that it announces and does not show are missing."""
    seen: list[_Seen] = []
    layered = any("layer" in port.facts for adapter in adapters for port in adapter.ports)
    for adapter in adapters:
        _describe_adapter(run, adapter, node)
        for port in adapter.ports:
            seen.append(_describe_port(run, adapter, port, node))
            wanted = ("state", "layer") if layered and "netdevs" not in adapter.facts else ("state",)
            lost = [name for name in wanted if name not in port.facts]
            if lost:
                run.missing(f"{' and '.join(lost)} of {adapter.name} port {port.number}")
        asked = adapter.facts.get("ports", "")
        if asked.isdecimal() and int(asked[:4]) > len(adapter.ports):
            run.missing(f"{int(asked[:4]) - len(adapter.ports)} of {asked} ports of {adapter.name}")
        elif not adapter.ports and "ports" not in adapter.facts:
            run.missing(f"the record of {adapter.name}")
    run.condition("adapters", float(len(adapters)))
    run.condition("ports", float(len(seen)))
    run.condition("ports_active", float(sum(port.state == "Active" for port in seen)))
    _compare(run, adapters, seen)


def _describe_adapter(run: RunBuilder, adapter: Adapter, node: str) -> None:
    subject = labels(adapter.name, node=node)
    for name in ("hca_type", "firmware", "board"):
        if name in adapter.facts:
            text = adapter.facts[name]
            run.observe(name, lacking(text) or text[:80], subject, adapter.line)
    if "guid" in adapter.facts:
        run.observe("node_guid", read_guid(adapter.facts["guid"]), subject, adapter.line)


def _describe_port(run: RunBuilder, adapter: Adapter, port: Port, node: str) -> _Seen:
    subject, facts = labels(adapter.name, port.number, node), port.facts
    state, physical = read_state(facts.get("state", "")), read_physical(facts.get("physical", ""))
    up = state in ("Active", "Active (deferred)", "Armed", "Initializing") and physical in (
        "LinkUp",
        NoValue(Lack.ABSENT),
    )
    layer = read_layer(facts.get("layer", ""))
    rate: Value | None = None
    if "rate" in facts:
        rate = read_rate(facts["rate"], up=up)
    elif "width" in facts and "speed" in facts and up:
        rate = width_times_speed(facts["width"], facts["speed"])
    found: tuple[tuple[str, Value | None], ...] = (
        ("port_state", state if "state" in facts else None),
        ("port_physical_state", physical if "physical" in facts else None),
        ("port_rate", rate),
        ("port_layer", layer if "layer" in facts else None),
        ("port_guid", read_guid(facts["guid"]) if "guid" in facts else None),
        ("port_lid", _lid(facts["lid"]) if "lid" in facts else None),
        ("port_mtu", read_quantity(facts["mtu"].split(" ")[0], "B") if "mtu" in facts else None),
    )
    for name, value in found:
        if value is not None:
            run.observe(name, value, subject, port.line)
    gbps = rate.to("Gb/s") if isinstance(rate, Quantity) else 0.0
    texts = [value if isinstance(value, str) else "" for value in (state, physical, layer)]
    _judge_port(run, adapter, port, texts, node)
    return _Seen(_place(adapter, port, node), texts[0], texts[2], gbps, adapter.facts.get("hca_type", ""))


def _lid(text: str) -> float | NoValue:
    word = text.strip().lower()
    if word.startswith("0x") and len(word) < 11 and all(c in "0123456789abcdef" for c in word[2:]) and len(word) > 2:
        return float(int(word, 16))
    return read_number(text)


def _place(adapter: Adapter, port: Port, node: str) -> str:
    return f"{node + ' ' if node else ''}{adapter.name} port {port.number}"


def _judge_port(run: RunBuilder, adapter: Adapter, port: Port, texts: list[str], node: str) -> None:
    state, physical, layer = texts
    where, after = _place(adapter, port, node), f", physical state {physical}" if physical else ""
    if state == "Down" and physical == "Disabled":
        run.notice("port-disabled", f"{where} is down and disabled: somebody switched it off", line=port.line)
    elif state == "Down":
        weight = Weight.WARNING if layer == "Ethernet" else Weight.ERROR
        hint = ": no signal from the other side" if physical == "Polling" else ""
        run.notice("port-down", f"{where} is down{after}{hint}", weight, port.line)
    elif state in ("Initializing", "Armed"):
        run.notice(
            "port-not-active", f"{where} is {state}: no subnet manager has made it active", Weight.ERROR, port.line
        )
    elif state == "Active" and physical not in ("", "LinkUp"):
        run.notice("port-unstable", f"{where} is Active with physical state {physical}", line=port.line)
    if (
        state == "Active"
        and layer == "InfiniBand"
        and port.facts.get("lid", "").strip() in ("0", "0x0", "65535", "0xffff")
    ):
        run.notice("port-without-lid", f"{where} is Active without a LID", line=port.line)
    if "bond" in adapter.name and "rate" in port.facts:
        run.notice(
            "bond-rate",
            f"{adapter.name} is a bond: whether its rate is that of one leg or of all is not said; capacity unknown",
            Weight.INFO,
            port.line,
        )


def _compare(run: RunBuilder, adapters: Sequence[Adapter], seen: Sequence[_Seen]) -> None:
    """What differs among ports of one type: rate of active ports, firmware."""
    rates: defaultdict[tuple[str, str], list[_Seen]] = defaultdict(list)
    for port in seen:
        if port.state == "Active" and port.rate:
            rates[port.layer, port.kind].append(port)
    for (_, kind), group in rates.items():
        usual, count = Counter(port.rate for port in group).most_common(1)[0]
        slow = [port.place for port in group if port.rate < usual]
        if slow and kind and count > len(group) / 2:
            run.notice(
                "rate-below-peers", f"{_list(slow)} run below {usual:g} Gb/s, the rate of {count} ports of {kind}"
            )
    firmware: defaultdict[str, set[str]] = defaultdict(set)
    for adapter in adapters:
        if adapter.facts.get("firmware") and adapter.facts.get("hca_type"):
            firmware[adapter.facts["hca_type"]].add(adapter.facts["firmware"])
    for kind, versions in firmware.items():
        if len(versions) > 1:
            run.notice("firmware-differs", f"adapters of {kind} run different firmware: {', '.join(sorted(versions))}")


def _list(names: Iterable[str]) -> str:
    every = list(names)
    rest = len(every) - _NAMED
    return ", ".join(every[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
