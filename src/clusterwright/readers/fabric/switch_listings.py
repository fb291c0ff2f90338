"""ibswinfo: what an unmanaged switch says about itself, as a table of `key | value`.

Observations: psu_status, psu_dc_power, psu_fan_status (text), psu_power (subject psu), fan_status (text),
fan_speed_rpm (number; subject fan), temperature, temperature_max. Conditions: product, part_number, serial_number,
guid, firmware, uptime, switch_ports.

Source: github.com/stanford-rc/ibswinfo.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.fabric.words import read_guid
from clusterwright.readers.values import lacking, read_number, read_quantity

_CELL: Final = re.compile(r"^(?P<key>[\w /#().:-]{2,40}?)\s*\|\s*(?P<value>.{0,200}?)\s*$")
_PSU: Final = re.compile(r"PSU(\d{1,2}) status")
_FAN: Final = re.compile(r"fan#(\d{1,3}) \(rpm\)")
_ABOUT: Final = {
    "part number": "part_number", "serial number": "serial_number", "product name": "product", "PSID": "psid",
    "firmware version": "firmware", "uptime (d-h:m:s)": "uptime", "revision": "revision",
}  # fmt: skip
_OF_A_PSU: Final = {"DC power": "psu_dc_power", "fan status": "psu_fan_status", "power (W)": "psu_power"}
_WHOLE: Final = ("fan_status", "temperature", "psu_status", "fan_speed_rpm")


def score_switch(text: str) -> int:
    """How sure it is that ibswinfo printed this beginning."""
    found = [
        re.search(pattern, text, re.MULTILINE)
        for pattern in (r"^PSU\d+ status +\|", r"^fan#\d+ \(rpm\) +\|", r"^PSID +\|")
    ]
    return 95 if sum(map(bool, found)) >= 2 else 0


def read_switch(lines: Sequence[Line], node: str) -> list[Run]:
    """One run a switch."""
    blocks: list[list[Line]] = []
    for line in lines:
        if line.text.startswith("part number") or not blocks:
            blocks.append([])
        blocks[-1].append(line)
    runs = [_read_one(block, node) for block in blocks]
    return [run for run in runs if run is not None]


def _read_one(lines: Sequence[Line], node: str) -> Run | None:
    run = RunBuilder("ibswinfo")
    if node:
        run.condition("node", node)
    psu = ""
    for line in lines:
        match = _CELL.match(line.text.rstrip() if "|" in line.text else "")
        if match is None:
            continue
        key, text = match["key"].strip(), match["value"]
        inner = line.text[:1] in " \t"
        if (found := _PSU.fullmatch(key)) is not None:
            psu = found[1]
            _take(run, "psu_status", _status(text), (("psu", psu),), line, f"PSU{psu}")
        elif inner and key in _OF_A_PSU and psu:
            name = _OF_A_PSU[key]
            value: Value = read_quantity(text, "W") if name == "psu_power" else _status(text)
            _take(run, name, value, (("psu", psu),), line, f"{key} of PSU{psu}")
        elif (found := _FAN.fullmatch(key)) is not None:
            _take(run, "fan_speed_rpm", read_number(text), (("fan", found[1]),), line, f"fan {found[1]}")
        elif not inner:
            _take_other(run, key, text, line)
    if run.bare:
        return None
    for psu in sorted({dict(o.subject).get("psu", "") for o in run.observations} - {""}):
        shown = {o.name for o in run.observations if dict(o.subject).get("psu") == psu}
        lost = [key for key, name in _OF_A_PSU.items() if name not in shown]
        if lost:
            run.missing(f"{', '.join(lost)} of PSU{psu}")
    names = {o.name for o in run.observations}
    for name in _WHOLE:
        if name not in names:
            run.missing(f"row of {name.replace('_', ' ')}")
    return run.build()


def _take_other(run: RunBuilder, key: str, text: str, line: Line) -> None:
    if key == "fan status":
        _take(run, "fan_status", _status(text), (), line, "fan status of the chassis")
    elif key in ("temperature (C)", "max temp (C)"):
        name = "temperature" if key.startswith("temp") else "temperature_max"
        _take(run, name, read_quantity(text, "°C"), (), line, key)
    elif key == "GUID":
        run.condition("guid", read_guid(text))
    elif key == "ports":
        run.condition("switch_ports", read_number(text))
    elif key in _ABOUT:
        run.condition(_ABOUT[key], _text(text))


def _text(text: str) -> Value:
    return lacking(text) or text[:80]


def _status(text: str) -> Value:
    """A status as printed; only an empty cell is none, `ERROR` is a status."""
    return text[:80] or NoValue(Lack.ABSENT)


def _take(
    run: RunBuilder, name: str, value: Value, subject: tuple[tuple[str, str], ...], line: Line, what: str
) -> None:
    run.observe(name, value, subject, line.number)
    if isinstance(value, NoValue):
        run.notice("no-data", f"{what} has no value ({value}): neither good nor bad", line=line.number)
    elif isinstance(value, str) and value.upper() != "OK":
        run.notice("switch-fault", f"{what} is {value}", Weight.WARNING, line.number)
