"""The kernel's log in any form: Xid, SXid, lost GPUs, PCIe (AER) and memory errors (EDAC, MCE), adapters, crashes.

Observations, each with node and pci where known: `xid`, `sxid` (code; subject also count, instance, uuid or link),
`xid_count`, `xid_first`, `xid_last`, `xid_detail`, `xid_cause`, `xid_link`, `recovery_action` and the same for sxid
with `sxid_severity`; `lost_device` (what says so), `aer` (severity), `device_recovery`, `edac`, `mce`, `nic_event`,
`link_down_longest`, `gpu_event` (of amdgpu), `pcie_bandwidth`, `pcie_bandwidth_capable`, `oom_kills`,
`segfault`, `panic`, `gpu_init_failure`. Times are kept as written: `xid_first`, `sxid_first`, `aer_first`,
`lost_device_first`, `nic_event_first`, `gpu_event_first`, `panic_first`, and `_last` of those that recur.
Conditions: `started` and `ended` of what the log covers, `lines`, `driver`, `kernel`, `node`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.kernel.following import Follower
from clusterwright.readers.kernel.messages import events_of
from clusterwright.readers.kernel.notices import say_what_it_means
from clusterwright.readers.kernel.observing import observe
from clusterwright.readers.kernel.records import Coverage, records_of
from clusterwright.readers.kernel.stamps import split_stamp
from clusterwright.readers.kernel.tallies import seconds_between
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import quantity

_SURE: Final = re.compile(
    r"NVRM: Xid \(|Xid \((?:PCI:)?[0-9a-fA-F]{2,8}:|SXid \((?:PCI:)?[0-9a-fA-F]{2,8}:|AER: |PCIe Bus Error: severity="
    r"|EDAC [A-Za-z]+\d*: \d+ [CU]E|mce: \[Hardware Error\]|available PCIe bandwidth, limited by|amdgpu_job_timedout"
    r"|amdgpu [0-9a-f:.]{12}: .{0,12}GPU reset|NVRM: .{0,60}(?:PCI|GPU|NVIDIA)|fallen off the bus"
)
#: One of these stands in every text that _SURE finds; looking for them is far quicker.
_HINTS: Final = (
    "Xid (", "AER: ", "PCIe Bus Error", "EDAC ", "[Hardware Error]", "available PCIe", "amdgpu", "NVRM: ", "fallen off",
)  # fmt: skip
_KERNEL: Final = re.compile(
    r"\bkernel: |^<\d>\[|^kern {1,4}:|^\d{1,3},\d{1,12},\d{3,15},[-c];|\"_TRANSPORT\" ?: ?\"kernel\"", re.MULTILINE
)
_WEAK_HINTS: Final = ("kern", ">[", ",-;", ",c;")
_DMESG: Final = re.compile(r"^\[ *\d{1,8}\.\d{6}\](?:\[ *[TC]\d+\])? \S", re.MULTILINE)
_DMESG_T: Final = re.compile(r"^\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] ", re.MULTILINE)


def recognise(head: Head) -> int:
    """How sure this is a log of the kernel."""
    text = head.text
    hint = 3 if re.search(r"dmesg|kern\.?log|kmsg|journal|syslog|xid", head.name) else 0
    if any(hint in text for hint in _HINTS) and _SURE.search(text):
        return 80 + hint
    if text.lstrip()[:1] == "{" and '"dmesg"' in text[:200]:
        return 80
    if any(hint in text for hint in _WEAK_HINTS) and _KERNEL.search(text):
        return 62 + hint
    bracketed = text.startswith("[") or "\n[" in text
    if bracketed and (len(_DMESG.findall(text)) >= 2 or _DMESG_T.search(text)):
        return 55 + hint
    return 0


def read(source: Source) -> Sequence[Run]:
    """The log as one run; a log without a line of known form is refused."""
    run = RunBuilder("kernel log")
    coverage = Coverage()
    follower = Follower(run)
    for record in records_of(source.lines(prefixes=False), coverage):
        event = events_of(record.stamp.message)
        if event is not None:
            follower.follow(event, record)
    nothing = not (follower.tallies.of or follower.reprinted.of or follower.lost or run.rejected)
    if nothing and not coverage.recognised:
        first = split_stamp(source.head[:200])
        raise Refused("no line has the form of a kernel or system log", 1, first.message)
    _cover(run, coverage)
    follower.finish()
    observe(run, follower)
    say_what_it_means(run, follower, newest_first=_newest_first(coverage))
    return [run.build()]


def _cover(run: RunBuilder, coverage: Coverage) -> None:
    run.condition("lines", float(coverage.lines))
    if coverage.elided:
        run.missing(f"lines that were left out ({coverage.elided} times '...')")
    first, last = coverage.first, coverage.last
    if first is None or last is None:
        return
    if _newest_first(coverage):
        first, last = last, first
    covered = seconds_between(first, last)
    if covered is not None and covered < 0:
        run.notice("times-go-back", f"the times go back from {first.time} to {last.time}: they delimit nothing")
    elif first.clock and last.clock:
        boot = " s after boot"
        run.condition("started", first.time + (boot if first.clock == "since boot" else ""))
        run.condition("ended", last.time + (boot if last.clock == "since boot" else ""))
    if covered is not None and covered >= 0:
        run.condition("duration", quantity(round(covered, 6), "s"))


def _newest_first(coverage: Coverage) -> bool:
    if coverage.first is None or coverage.last is None:
        return False
    covered = seconds_between(coverage.first, coverage.last)
    return covered is not None and covered < 0 and coverage.first.clock == "wall"


READER: Final = Reader("kernel-log", "kernel log: dmesg, journal, syslog, kmsg, pstore", recognise, read)
