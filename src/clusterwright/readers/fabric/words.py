"""The words of InfiniBand ports in one spelling: states, rates, GUIDs.

Source: InfiniBand Architecture Specification 1.4, PortInfo; rdma-core (ibstat, ibv_devinfo), kernel sysfs
(`4: ACTIVE`), iproute2 (`LINK_UP`).
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue
from clusterwright.readers.values import lacking, quantity, unreadable

_STATES: Final = {
    "DOWN": "Down", "INIT": "Initializing", "INITIALIZING": "Initializing", "INITIALIZE": "Initializing",
    "ARMED": "Armed", "ACTIVE": "Active", "ACTIVE_DEFER": "Active (deferred)", "ACTDEFER": "Active (deferred)",
    "NOP": "no state change",
}  # fmt: skip
_PHYSICAL: Final = {
    "SLEEP": "Sleep", "POLLING": "Polling", "DISABLED": "Disabled", "LINKUP": "LinkUp", "LINK_UP": "LinkUp",
    "TRAINING": "PortConfigurationTraining", "PORTCONFIGURATIONTRAINING": "PortConfigurationTraining",
    "PORT_CONFIGURATION_TRAINING": "PortConfigurationTraining", "LINKERRORRECOVERY": "LinkErrorRecovery",
    "LINK_ERROR_RECOVERY": "LinkErrorRecovery", "PHY_TEST": "PhyTest", "PHYTEST": "PhyTest", "NOP": "no state change",
    "<UNKNOWN>": "unknown",
}  # fmt: skip
#: Gb/s of one lane, as link rates are named (4X NDR is 400).
LANE_GBPS: Final = {
    "SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.0, "FDR": 14.0, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0,
    "XDR": 200.0,
}  # fmt: skip
#: Signalling rate of a lane as tools print it → nominal Gb/s.
_SIGNALLING: Final = {
    14.0625: 14.0,
    10.3125: 10.0,
    25.78125: 25.0,
    26.5625: 25.0,
    53.125: 50.0,
    106.25: 100.0,
    212.5: 200.0,
}
_RATE: Final = re.compile(r"(\d{1,5}(?:\.\d{1,6})?)(?: *(?:Gb/sec|Gbps|Gb/s))?(?: *\(.{0,30}\))?")


def read_state(text: str) -> str | NoValue:
    """`Active`, `Down`, … for any spelling of a logical port state."""
    return _word(text, _STATES, "no state of a port")


def read_physical(text: str) -> str | NoValue:
    """`LinkUp`, `Polling`, … for any spelling of a physical port state."""
    return _word(text, _PHYSICAL, "no physical state of a port")


def _word(text: str, words: dict[str, str], why: str) -> str | NoValue:
    bare = re.sub(r"^\d+: *|\(\d+\)$|^PORT_(?=[A-Z]+ *(?:\(|$))", "", text.strip()).strip()
    known = words.get(bare.upper().replace(" ", ""))
    return known or lacking(text) or unreadable(text, why)


def read_layer(text: str) -> str | NoValue:
    """`InfiniBand` or `Ethernet`."""
    word = text.strip().lower()
    known = {"infiniband": "InfiniBand", "ib": "InfiniBand", "ethernet": "Ethernet"}.get(word)
    return known or lacking(text) or unreadable(text, "no link layer")


def read_rate(text: str, *, up: bool) -> Quantity | NoValue:
    """Rate of a port in Gb/s; a port without a link shows a default there, which is no rate."""
    if (lack := lacking(text)) is not None:
        return lack
    match = _RATE.fullmatch(text.strip())
    if match is None:
        return unreadable(text, "no rate")
    if not up:
        return NoValue(Lack.ABSENT, text.strip()[:40], "what a port without a link shows, not a rate")
    return quantity(float(match[1]), "Gb/s")


def width_times_speed(width: str, speed: str) -> Quantity | NoValue:
    """Rate of `4x` and `NDR`, of `4X (2)` and `100.0 Gbps (128)`, of `4X` and `25.78125`."""
    lanes = re.match(r"(\d{1,2})[xX]", width.strip())
    word = speed.strip().removeprefix("IB-")
    number = re.match(r"\d{1,3}(?:\.\d{1,6})?", word)
    lane = LANE_GBPS.get(word.upper())
    if lane is None and number is not None:
        lane = _SIGNALLING.get(float(number.group()), float(number.group()))
    if lanes is None or lane is None:
        return lacking(speed) or unreadable(f"{width} {speed}", "no width and speed")
    return quantity(int(lanes[1]) * lane, "Gb/s")


def read_guid(text: str) -> str | NoValue:
    """`0x` and 16 hex digits for any spelling (`58a2:e103:…`, `0x58a2e103…`, leading zeros left out)."""
    if (lack := lacking(text)) is not None:
        return lack
    digits = text.strip().lower().removeprefix("0x").replace(":", "")
    if re.fullmatch(r"[0-9a-f]{1,16}", digits) is None:
        return unreadable(text, "no GUID")
    return f"0x{digits:0>16}"
