"""The log of NVIDIA Fabric Manager, its lines in the journal, and its wrapper that starts NVLSM.

Source: Fabric Manager user guide (log format, configuration, error classes); records may go on over several lines.
A run for each node. Observations: `sxid` (code; subject pci, port, count), `sxid_severity`, `sxid_count`,
`fabric_state` (the last one: configured, failed, started, stopped), `nvswitch_port_device` (mlx5 name; subject guid).
Conditions: `fabric_manager`, `driver`, `node`,
`started`, `ended`, `records`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.kernel.messages import address
from clusterwright.readers.kernel.stamps import Stamped, split_stamp
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused, shorten

_RECORD: Final = re.compile(
    r"\[(?P<time>[A-Z][a-z]{2} \d{1,2} \d{4} \d\d:\d\d:\d\d)\] \[(?P<level>[A-Z]{3,10})\]"
    r"(?: \[tid \d{1,10}\])? (?P<text>.*)$"
)
_SWITCH: Final = re.compile(
    r"detected NVSwitch (?P<severity>non-fatal|fatal) error (?P<code>\d{4,6})(?: on fid (?P<fid>\d{1,5}))? on NVSwitch "
    r"pci bus id (?P<pci>[0-9a-fA-F:.]{7,16})(?: physical id (?P<id>\d{1,4}))?(?: port (?P<port>\d{1,4}))?"
)
_MISMATCH: Final = re.compile(
    r"fabric manager NVIDIA GPU driver interface version (?P<fm>\d[\d.]{4,14}) don(?P<rest>.t match with driver "
    r"version (?P<driver>\d[\d.]{4,14}?)(?:\.?(?:\s|$)))?"
)
_VERSION: Final = re.compile(r"[Ff]abric [Mm]anager (?:version (?:is : ?)?|v)(?P<version>\d{3}\.\d{1,4}(?:\.\d{1,3})?)")
_LPF: Final = re.compile(
    r"found NVSwitch LPF(?:: device=| device: )(?P<device>mlx5_\d{1,4})\b(?: guid=(?P<guid>0x[0-9a-f]{1,16}))?"
)
_802: Final = re.compile(r"[Ee]rror 802: system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY")
_CONFIGURED: Final = re.compile(r"[Ss]uccessfully configured all the available (?:GPUs|NVSwitches)")
_SERVICE: Final = r'(?:"?NVIDIA fabric manager|nvidia-fabricmanager\.service)'
_STATES: Final = (
    (
        re.compile(
            rf"Failed to start {_SERVICE}|Active: failed|fabricmanager\S{0,80} failed! Exit code: \d"
            r"|nvidia-fabricmanager\.service: (?:Failed with result|\w{1,12} process exited,.{0,40}/FAILURE)"
        ),
        "failed",
    ),
    (re.compile(rf"Started {_SERVICE}|Active: active \(running\)", re.I), "started"),
    (re.compile(rf"Stopped {_SERVICE}|Active: inactive", re.I), "stopped"),
)  # fmt: skip
_STARTING: Final = re.compile(rf"Starting {_SERVICE}", re.I)
_FAULTS: Final = (
    (re.compile(r"NV_WARN_NOTHING_TO_DO|failed to find any NVSwitch|no NVSwitch"), "no-nvswitch", "finds no NVSwitch"),
    (
        re.compile(r"NVLink.{0,60}(?:training|train)\b.{0,40}fail|failed to train", re.I),
        "nvlink-training",
        "could not train a link",
    ),
    (
        re.compile(r"NVLink fatal error|(?:access|trunk) (?:NVLink|link).{0,40}fail|degraded mode", re.I),
        "nvlink-failure",
        "reports a failed link",
    ),
    (
        re.compile(r"failed to (?:initialize|configure|detect|connect)", re.I),
        "fabric-setup-failed",
        "could not set the fabric up",
    ),
)  # fmt: skip
_RECOGNISED: Final = re.compile(
    r"^\[[A-Z][a-z]{2} \d{1,2} \d{4} \d\d:\d\d:\d\d\] \[(?:INFO|ERROR|WARN\w*|CRITICAL|NOTICE|DEBUG)\] "
    r"|nv-fabricmanager\b|nvidia-fabricmanager|fabric manager NVIDIA GPU driver|Fabric Manager version",
    re.MULTILINE,
)
_BAD: Final = frozenset({"ERROR", "CRITICAL", "FATAL", "ALERT", "EMERGENCY"})
_MOST_KINDS: Final = 10_000
_MOST_NODES: Final = 4096


@dataclass(slots=True)
class _Count:
    line: int
    first: str
    last: str
    severity: str
    count: int = 0


def recognise(head: Head) -> int:
    """How sure this is a log of Fabric Manager; a kernel log may hold a few of its lines."""
    found = _RECOGNISED.findall(head.text)
    if not found:
        return 0
    lines = max(1, sum(1 for line in head.text.split("\n") if line.strip()))
    return 90 if len(found) >= 0.2 * lines else 35


def read(source: Source) -> Sequence[Run]:
    """A run for each node, in constant memory."""
    logs = {"": _Log()}
    current, left_out = logs[""], 0
    for line in source.lines():
        tagged = "fabricmanager" in line.prefix
        text = f"{line.prefix}: {line.text}" if tagged else line.text
        record = _RECORD.match(text)
        stamp = None if record is not None else split_stamp(text)
        if stamp is not None and not _is_ours(stamp):
            stamp = None
        node = "" if tagged else line.prefix
        if stamp is not None and not node and "." not in stamp.node:
            node = stamp.node
        if node and node not in logs:
            if len(logs) > _MOST_NODES:
                left_out += 1
                continue
            logs[node] = logs.pop("") if "" in logs else _Log()
            logs[node].node = node
        current = logs[node] if node else current
        current.line(line.number, text, record, stamp)
    known = [log for log in logs.values() if log.known]
    if not known:
        raise Refused("no line is one of Fabric Manager")
    if left_out:
        known[-1].run.missing(f"{left_out:,} lines of further nodes")
    return [log.finish() for log in known]


def _is_ours(stamp: Stamped) -> bool:
    """Whether a line of the journal speaks of Fabric Manager."""
    body = stamp.message
    return "fabricmanager" in stamp.program or "fabricmanager" in body or "fabric manager" in body.lower()


class _Log:
    def __init__(self) -> None:
        self.run = RunBuilder("fabric manager")
        self.known = False
        self._records = self._bad = 0
        self._first = self._last = ""
        self._errors: dict[tuple[str, str, str], _Count] = {}
        self._left_out = 0
        self._said: dict[str, tuple[int, str]] = {}
        self.node = ""
        self._devices: dict[str, None] = {}
        self._uncertain = False
        self._state = ""
        self._state_line = 0
        self._failed_line = 0

    def line(self, number: int, text: str, record: re.Match[str] | None, stamp: Stamped | None) -> None:
        if _802.search(text):
            self.run.notice(
                "cuda-not-ready",
                "CUDA reports error 802, system not yet initialized: the fabric is not set up, and a list of GPUs by "
                "nvidia-smi is no proof that they can be used",
                Weight.ERROR,
                number,
            )
        if record is not None:
            self._record(number, record["time"], record["level"], record["text"])
            return
        if self.known and text.lstrip().startswith("Active: "):
            self._record(number, "", "", text.strip())
            return
        if stamp is not None:
            self._record(number, stamp.time, "", stamp.message)

    def _record(self, number: int, time: str, level: str, text: str) -> None:
        self.known = True
        self._records += 1
        if time:
            self._first, self._last = self._first or time, time
        if match := _SWITCH.search(text):
            self._switch(number, time, match)
        elif match := _MISMATCH.search(text):
            self._mismatch(number, text, match)
        elif match := _LPF.search(text):
            if len(self._devices) < 1024:
                self._devices[match["device"]] = None
            subject = (("guid", match["guid"]),) if match["guid"] else ()
            self.run.observe("nvswitch_port_device", match["device"], subject, number)
        elif level in _BAD:
            self._bad += 1
            self._said.setdefault("fabric-error", (number, f"reports: {shorten(text, 160)}"))
        if match := _VERSION.search(text):
            self.run.condition("fabric_manager", match["version"])
        if _CONFIGURED.search(text):
            self._enter("configured", number)
        for form, state in _STATES:
            if form.search(text):
                self._enter(state, number)
        if _STARTING.search(text):
            self._uncertain = True
            self._state = "failed" if self._state == "failed" else ""
        if level in _BAD or not level:
            for form, code, says in _FAULTS:
                if form.search(text):
                    self._said.setdefault(code, (number, f"{says}: {shorten(text, 160)}"))

    def _enter(self, state: str, number: int) -> None:
        self._uncertain = False
        if state == "failed":
            self._failed_line = self._failed_line or number
        if (self._state, state) != ("configured", "started"):
            self._state, self._state_line = state, number

    def _switch(self, number: int, time: str, match: re.Match[str]) -> None:
        key = (match["code"], address(match["pci"]), match["port"] or "")
        if key not in self._errors:
            if len(self._errors) >= _MOST_KINDS:
                self._left_out += 1
                return
            self._errors[key] = _Count(number, time, time, match["severity"])
        count = self._errors[key]
        count.count += 1
        count.last = time

    def _mismatch(self, number: int, text: str, match: re.Match[str]) -> None:
        self.run.condition("fabric_manager", match["fm"])
        if match["driver"]:
            self.run.condition("driver", match["driver"])
            other = f"driver {match['driver']}"
        else:
            self.run.reject(number, text, "the line is cut")
            other = "another driver version (the line is cut)"
        self._enter("failed", number)
        self.run.notice(
            "fabric-manager-mismatch",
            f"Fabric Manager {match['fm']} meets {other}: they must be equal in full, the fabric is not set up "
            "and CUDA ends with error 802",
            Weight.ERROR,
            number,
        )

    def finish(self) -> Run:
        run = self.run
        if self.node:
            run.condition("node", self.node)
        run.condition("records", float(self._records))
        if self._first:
            run.condition("started", self._first)
            run.condition("ended", self._last)
        for (code, pci, port), count in self._errors.items():
            subject = tuple((k, v) for k, v in (("node", self.node), ("pci", pci), ("port", port)) if v)
            run.observe("sxid", float(code), (*subject, ("count", str(count.count))), count.line)
            named = (*subject, ("sxid", code))
            run.observe("sxid_severity", count.severity, named, count.line)
            run.observe("sxid_count", float(count.count), named, count.line)
            run.observe("sxid_first", count.first, named, count.line)
            run.observe("sxid_last", count.last, named, count.line)
            weight = Weight.ERROR if count.severity == "fatal" else Weight.WARNING
            where = f"{pci} port {port}" if port else pci
            run.notice(
                "nvswitch-error", f"{count.count:,} × {count.severity} error {code} at {where}", weight, count.line
            )
        for code, (number, says) in self._said.items():
            run.notice(code, f"Fabric Manager {says}", Weight.ERROR, number)
        if self._devices:
            run.notice(
                "nvswitch-devices",
                f"{', '.join(self._devices)} are ports of NVSwitches, not adapters of the network: they do not "
                "count as NICs",
                Weight.INFO,
            )
        if self._left_out:
            run.missing(f"{self._left_out:,} errors of further ports")
        if self._state:
            run.observe("fabric_state", self._state, (), self._state_line)
            if self._failed_line and self._state != "failed":
                run.notice(
                    "failed-before", f"Fabric Manager failed before it was {self._state}", line=self._failed_line
                )
        if self._uncertain:
            run.missing("whether the start succeeded")
        elif run.bare and not self._said:
            run.missing("whether the fabric was set up: no line says it")
        return run.build()


READER: Final = Reader("fabric-manager-log", "log of NVIDIA Fabric Manager", recognise, read)
