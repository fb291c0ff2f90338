"""scontrol show config: the running configuration, an echo of settings and no state of nodes or jobs.

Observations: `setting` (subject: key; in other sections of the output also section), with units where they are
printed; `controller` (subject: role, host). Conditions: `cluster`, `slurm_version`, `accounting_tres`, `printed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from clusterwright.model.observations import Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.values import lacking, quantity

_PAIR: Final = re.compile(r"([A-Za-z][\w\[\]]{0,60})\s{0,40}= ?(.*)")
_WITH_UNIT: Final = re.compile(r"(-?\d{1,15}(?:\.\d{1,6})?)\s?(sec|min|usec|msec|hours?|days?|MB|%|percent)")
_UNITS: Final = {"sec": "s", "min": "min", "usec": "µs", "msec": "ms", "hour": "h", "hours": "h", "day": "d",
                 "days": "d", "MB": "MiB", "%": "%", "percent": "%"}  # fmt: skip
_CONTROLLER: Final = re.compile(r"Slurmctld\(([\w ]{1,20})\) at (\S{1,200}) is (\S{1,40})")
_CONDITIONS: Final = {
    "ClusterName": "cluster", "SLURM_VERSION": "slurm_version", "AccountingStorageTRES": "accounting_tres",
    "SelectType": "select_type", "GresTypes": "gres_types", "TopologyPlugin": "topology", "BOOT_TIME": "started",
}  # fmt: skip


def read_lines(lines: Iterable[Line]) -> Run:
    """The run that one `scontrol show config` holds."""
    run = RunBuilder("scontrol show config")
    section = ""
    controllers = 0
    for line in lines:
        text = line.text.strip()
        pair = _PAIR.fullmatch(text)
        state = _CONTROLLER.match(text)
        if text.startswith("Configuration data as of"):
            run.condition("printed", text.removeprefix("Configuration data as of").strip())
        elif state is not None:
            controllers += 1
            run.observe("controller", state[3], (("role", state[1]), ("host", state[2])), line.number)
            if state[3] != "UP":
                run.notice("controller-not-up", f"the {state[1]} controller at {state[2]} is {state[3]}")
        elif pair is not None:
            _keep(pair[1], pair[2].strip(), section, run, line.number)
        elif text.endswith(":"):
            section = text[:-1]
        elif text:
            run.reject(line.number, text, "no setting")
    if not controllers:
        run.missing("end: the controllers' state")
    run.notice("configuration-only", "settings, no state: nothing here says what runs or what is usable", Weight.INFO)
    return run.build()


def _keep(key: str, text: str, section: str, run: RunBuilder, line: int) -> None:
    value = _read(text)
    subject = (("key", key), ("section", section)) if section else (("key", key),)
    run.observe("setting", value, subject, line)
    if not section and key in _CONDITIONS and isinstance(value, str):
        run.condition(_CONDITIONS[key], value)
        if key == "SLURM_VERSION":
            run.version = value


def _read(text: str) -> Value:
    lack = lacking(text)
    if lack is not None or text == "(null type)":
        return lack or lacking("(null)") or text
    amount = _WITH_UNIT.fullmatch(text)
    return quantity(float(amount[1]), _UNITS[amount[2]]) if amount is not None else text
