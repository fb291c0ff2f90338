"""The plugged module in mlxlink -m: currents, light and flags of each lane against the module's own limits.

Observations (subject device, port, lane where there are several): module_temperature, module_voltage_mv,
module_bias_ma, module_rx_power_dbm, module_tx_power_dbm, and one count for each flag, such as module_rx_los.

Source: Mellanox/mstflint, mlxlink/modules/mlxlink_commander.cpp; limits stand in brackets behind the values.
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.model.observations import Labels, NoValue, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.values import lacking, quantity, read_number, unreadable

_MEASURED: Final = (
    (re.compile(r"Temperature \[C\]"), "module_temperature"),
    (re.compile(r"Voltage \[mV\]"), "module_voltage_mv"),
    (re.compile(r"Bias Current \[mA\]"), "module_bias_ma"),
    (re.compile(r"Rx Power(?: Current)? \[dBm\]"), "module_rx_power_dbm"),
    (re.compile(r"Tx Power(?: Current)? \[dBm\]"), "module_tx_power_dbm"),
)
#: Flags of a lane or of the module; the others (loss of lock, equaliser) are warnings.
_FLAG: Final = re.compile(
    r"(?P<what>(?:Module|DataPath) FW Fault|[RT]x (?:Fault|LOS|CDR LOL|Adaptive EQ Fault))(?: \[per lane\])?"
)
_GRAVE: Final = re.compile(r"(?:Module|DataPath) FW Fault|[RT]x (?:Fault|LOS)")
_LIMITS: Final = re.compile(r"(?P<values>[^\[]{0,160}?)\s*\[\s*(?P<low>[\w./-]{1,12}?)\.\.(?P<high>[\w./-]{1,12})\s*\]")

Facts = dict[str, tuple[str, int]]


def describe_module(run: RunBuilder, facts: Facts, subject: Labels) -> None:
    """Everything that the output says of the module."""
    for key, (text, number) in facts.items():
        name = next((name for form, name in _MEASURED if form.fullmatch(key)), "")
        if name:
            _measured(run, (key, name), text, subject, number)
        elif (flag := _FLAG.fullmatch(key)) is not None:
            _flag(run, flag["what"], text, subject, number)
    state, number = facts.get("Module State", ("", 0))
    if state and lacking(state) is None:
        run.observe("module_state", state, subject, number)
        if not state.lower().startswith("ready"):
            run.notice("module-not-ready", f"the module is in {state}", Weight.ERROR, number)


def _measured(run: RunBuilder, what: tuple[str, str], text: str, subject: Labels, number: int) -> None:
    key, name = what
    limited = _LIMITS.fullmatch(text)
    body = limited["values"] if limited else text
    low, high = (read_number(limited[side]) if limited else read_number("") for side in ("low", "high"))
    words = [word.strip() for word in body.split(",")]
    outside = []
    for lane, word in enumerate(words, 1):
        place = (*subject, ("lane", str(lane))) if len(words) > 1 else subject
        read = read_number(word)
        value: Value = quantity(read, "°C") if name == "module_temperature" and isinstance(read, float) else read
        if isinstance(value, NoValue) and lacking(word) is None:
            value = unreadable(word, "no number")
        run.observe(name, value, place, number)
        above = isinstance(read, float) and isinstance(high, float) and read > high
        below = isinstance(read, float) and isinstance(low, float) and read < low
        if above or below:
            outside.append(f"{word} on lane {lane}" if len(words) > 1 else word)
    if outside and limited is not None:
        limits = f"{limited['low']} to {limited['high']}"
        run.notice("module-out-of-range", f"{key}: {', '.join(outside[:8])}; allowed {limits}", line=number)
    if name == "module_temperature" and lacking(body) is not None:
        run.notice("no-data", "the module gives no temperature", Weight.INFO, number)


def _flag(run: RunBuilder, what: str, text: str, subject: Labels, number: int) -> None:
    words = [word.strip() for word in text.split(",")]
    values = [read_number(word) for word in words]
    name = "module_" + re.sub(r"\W+", "_", what.lower()).removeprefix("module_")
    for lane, value in enumerate(values, 1):
        run.observe(name, value, (*subject, ("lane", str(lane))) if len(values) > 1 else subject, number)
    lanes = [str(lane) for lane, value in enumerate(values, 1) if isinstance(value, float) and value]
    if lanes:
        where = f" on lane {', '.join(lanes)}" if len(values) > 1 else ""
        grave = _GRAVE.fullmatch(what) is not None
        run.notice("module-fault", f"{what}{where}", Weight.ERROR if grave else Weight.WARNING, number)
