"""Records of `scontrol show`: blocks or single lines of Key=value, where some values hold blanks.

A key is known by its name; a value of free text (OS, Reason, Comment, JobName …) runs to the next key that Slurm
prints, or to the end of its line.
Source: `slurm_sprint_node_table`, `slurm_sprint_job_info`, `slurm_sprint_partition_info`,
`slurm_sprint_reservation_info` in Slurm's src/api, 17.11 to 25.11.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line

#: The key that begins a record → what the record is.
BEGINNINGS: Final = {
    "NodeName": "node", "JobId": "job", "PartitionName": "partition", "ReservationName": "reservation",
    "StepId": "step", "SwitchName": "switch", "BlockName": "block",
}  # fmt: skip
_FREE: Final = frozenset(
    {
        "OS", "Reason", "Comment", "AdminComment", "SystemComment", "Extra", "Command", "WorkDir", "StdErr", "StdIn",
        "StdOut", "JobName", "SubmitLine", "Features", "Name",
    }
)  # fmt: skip
#: Keys that may follow a value of free text on its line.
_AFTER_FREE: Final = frozenset(
    {
        "RealMemory", "ReservationName", "Comment", "AdminComment", "SystemComment", "Extra", "UserId", "GroupId",
        "StdErr", "StdIn", "StdOut", "WorkDir", "Power", "TresPerNode", "TresPerJob", "TresPerTask", "TresPerSocket",
        "MailUser", "MailType", "SLUID", "DelayBoot", "Command", "Network", "CpusPerTres", "MemPerTres", "TresBind",
        "TresFreq", "NtasksPerTRES", "InstanceId", "InstanceType", "ResumeAfterTime", "OOMKillStep", "SubmitLine",
        "PriorityTier", "RestrictedCoresPerGPU", "Topology", "GpuSpec", "CertFlags", "CgroupInfo", "Dependency",
    }
)  # fmt: skip
_KEY: Final = re.compile(r"([A-Za-z][\w/:.\[\]]{0,60}(?:\([A-Za-z]{1,10}\))?)=")
_MOST_KEYS: Final = 500
_MOST_CONTINUED: Final = 20
_LONGEST: Final = 4000
_OTHER_BLOCK: Final = re.compile(r"(?:Configuration data as of|Slurmctld\((?:primary|backup))")


@dataclass
class Record:
    """One record.

    Args:
        kind: node, job, partition, reservation, step, switch, block; "" for lines before any record.
        details: of a job, the lines that say what it holds on which nodes.
    """

    kind: str
    line: int
    values: dict[str, str] = field(default_factory=dict)
    details: list[dict[str, str]] = field(default_factory=list)
    last: str = ""
    continued: int = 0

    @property
    def name(self) -> str:
        """The value of its first key."""
        return next(iter(self.values.values()), "")


def read_records(lines: Iterable[Line], run: RunBuilder) -> Iterator[Record]:
    """Records in order. Lines that belong to none are rejected and counted."""
    record: Record | None = None
    for line in lines:
        text = line.text.strip()
        if not text:
            continue
        begins = _KEY.match(text)
        key = begins[1] if begins else ""
        indented = line.text[:1] in " \t"
        if key in BEGINNINGS and not (indented and record is not None):
            if record is not None:
                yield record
            record = Record(BEGINNINGS[key], line.number)
        elif not begins:
            if record is not None and indented and record.last in _FREE and record.continued < _MOST_CONTINUED:
                record.continued += 1
                record.values[record.last] += f" {text[:_LONGEST]}"
            elif not text.startswith(("No ", "slurm_load", "scontrol:")):
                run.reject(line.number, line.text, "no Key=value")
            continue
        if record is None:
            record = Record("", line.number)
        _fill(record, text)
    if record is not None:
        yield record


def _fill(record: Record, text: str) -> None:
    """Put the pairs of a line into the record."""
    own = into = record.values
    job = record.kind == "job"
    for key, value in _pairs(text):
        if job and key in ("Nodes", "JOB_GRES"):
            into = {}
            record.details.append(into)
        elif into is not own and key not in ("CPU_IDs", "Mem", "GRES"):
            into = own
        if len(into) < _MOST_KEYS:
            into.setdefault(key, value)
            record.last = key if into is own else ""


def _pairs(text: str) -> list[tuple[str, str]]:
    """Keys and values of a line; words without a key belong to the value before them."""
    pairs: list[tuple[str, str]] = []
    key, value = "", ""
    more: list[str] = []  # further words of the value
    for word in text.split(" "):
        match = _KEY.match(word) if "=" in word else None
        if match is None or (key in _FREE and match[1] not in _AFTER_FREE):
            if word:
                more.append(word)
            continue
        if key:
            pairs.append((key, " ".join([value, *more] if value else more) if more else value))
        key, value = match[1], word[match.end() :]
        more.clear()
    if key:
        pairs.append((key, " ".join([value, *more] if value else more) if more else value))
    return pairs
