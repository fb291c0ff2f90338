"""mlxlink: one port as the adapter's firmware sees it.

Observations: port_state, port_physical_state, port_rate, and counters and error rates by their printed names in small
letters (subject device), and of the plugged module what mlxlink_modules says. Conditions: recommendation, fec, device.

Source: Mellanox/mstflint, mlxlink/modules/mlxlink_commander.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Labels, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.documents import find_json, load_json
from clusterwright.readers.fabric.adapters import labels
from clusterwright.readers.fabric.mlxlink_modules import describe_module
from clusterwright.readers.fabric.words import read_physical, read_state, width_times_speed
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import lacking, quantity, read_number, unreadable

_FACT: Final = re.compile(r"^(?P<key>[A-Z][\w .,/()\[\]-]{1,48}?)\s*:\s?(?P<value>.{0,200}?)\s*$")
_DEVICE: Final = re.compile(r"mlxlink\s.{0,80}?-d\s+(\S{1,64})")
_ETHERNET: Final = re.compile(r"(\d{1,4})(?:G|GbE)\b.*")
_NUMBERS: Final = (
    "Effective Physical Errors", "Effective Physical BER", "Raw Physical BER", "Raw Physical Errors Per Lane",
    "Link Down Counter", "Link Error Recovery Counter", "Symbol Errors", "Symbol BER", "Time Since Last Clear [Min]",
)  # fmt: skip


def score_mlxlink(text: str) -> int:
    """How sure it is that mlxlink printed this beginning."""
    if '"Operational Info"' in text and '"Physical state"' in text:
        return 94
    return 94 if re.search(r"^Operational Info\b", text, re.MULTILINE) and "Physical state" in text else 0


def read_mlxlink(lines: Sequence[Line], node: str) -> list[Run]:
    """One run for each `Operational Info`, as text or JSON."""
    if any('"Operational Info"' in line.text for line in lines):
        return _read_json(lines, node)
    blocks: list[tuple[str, list[Line]]] = []
    device = ""
    for line in lines:
        named = _DEVICE.search(line.text)
        if named is not None:
            device = named[1]
        if line.text.startswith("Operational Info"):
            blocks.append((device, []))
            device = ""
        if blocks:
            blocks[-1][1].append(line)
    return [_read_one(_facts_of(block), name, node) for name, block in blocks]


def _read_json(lines: Sequence[Line], node: str) -> list[Run]:
    """`--json`: the same labels and values in sections below result and output."""
    text = "\n".join(line.text for line in lines)
    place = find_json(text)
    if place is None:
        raise Refused("the JSON of mlxlink does not end", lines[0].number)
    value = load_json(text[place[0] : place[1]]).value
    output = value.get("result", {}).get("output", {}) if isinstance(value.get("result", {}), dict) else {}
    number = lines[0].number + text.count("\n", 0, place[0])
    facts: dict[str, tuple[str, int]] = {}
    for section in output.values() if isinstance(output, dict) else ():
        for key, said in section.items() if isinstance(section, dict) else ():
            if isinstance(said, dict) and isinstance(said.get("values"), list):
                said = ",".join(str(one) for one in said["values"][:64])
            if isinstance(said, str | int | float):
                facts.setdefault(key, (str(said)[:200], number))
    device = next((found[1] for line in lines if (found := _DEVICE.search(line.text))), "")
    return [_read_one(facts, device, node)]


def _facts_of(lines: Sequence[Line]) -> dict[str, tuple[str, int]]:
    facts: dict[str, tuple[str, int]] = {}
    for line in lines:
        match = _FACT.match(line.text)
        if match is not None:
            facts.setdefault(match["key"], (match["value"], line.number))
    return facts


def _read_one(facts: dict[str, tuple[str, int]], device: str, node: str) -> Run:
    run = RunBuilder("mlxlink")
    subject = labels(device, "1" if device else "", node)
    for name, text in (("device", device), ("node", node)):
        if text:
            run.condition(name, text)
    _take_link(run, facts, subject)
    describe_module(run, facts, subject)
    for key in _NUMBERS:
        if key in facts and not key.endswith("Lane"):
            text, number = facts[key]
            run.observe(_name(key), read_number(text), subject, number)
    recommendation, number = facts.get("Recommendation", ("", 0))
    if recommendation:
        run.condition("recommendation", recommendation)
        if not recommendation.startswith("No issue"):
            run.notice("recommendation", recommendation, line=number)
    return run.build()


def _name(key: str) -> str:
    return re.sub(r"\W+", "_", key.lower()).strip("_")


def _take_link(run: RunBuilder, facts: dict[str, tuple[str, int]], subject: Labels) -> None:
    text, number = facts.get("State", ("", 0))
    if not number:
        run.missing("State")
        return
    state = read_state(text)
    active = state == "Active"
    run.observe("port_state", state if isinstance(state, str) else lacking(text) or text, subject, number)
    physical, line = facts.get("Physical state", ("", 0))
    if line:
        known = read_physical(physical)
        run.observe(
            "port_physical_state", known if isinstance(known, str) else lacking(physical) or physical, subject, line
        )
    speed, line = facts.get("Speed", ("", 0))
    if line:
        run.observe("port_rate", _rate(speed, facts.get("Width", ("", 0))[0]), subject, line)
    if "FEC" in facts:
        run.condition("fec", lacking(facts["FEC"][0]) or facts["FEC"][0])
    if not active:
        run.notice(
            "port-down",
            f"the port is {text or 'without a state'}, physical state {physical or 'unknown'}",
            Weight.ERROR,
            number,
        )


def _rate(speed: str, width: str) -> Value:
    if (lack := lacking(speed)) is not None:
        return lack
    if speed.startswith("IB-"):
        return width_times_speed(width, speed)
    match = _ETHERNET.fullmatch(speed.removeprefix("BaseT").strip())
    return quantity(float(match[1]), "Gb/s") if match is not None else unreadable(speed, "no speed")
