"""cgroup.conf: whether jobs see only the cores, memory and devices they were given.

Observations: `setting` (subject: key).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.conf_lines import key_share, read_conf

_KEYS: Final = frozenset(
    {
        "allowedkmemspace", "allowedramspace", "allowedswapspace", "cgroupautomount", "cgroupmountpoint",
        "cgroupplugin", "cgroupreleaseagentdir", "constraincores", "constraindevices", "constrainkmemspace",
        "constrainramspace", "constrainswapspace", "enablecontrollers", "ignoresystemd", "maxkmempercent",
        "maxrampercent", "maxswappercent", "memoryswappiness", "minkmemspace", "minramspace", "taskaffinity",
        "allowed_devices_file", "alloweddevicesfile", "enableextracontrollers", "ignoresystemdonfailure",
        "systemdtimeout",
    }
)  # fmt: skip


def recognise(head: Head) -> int:
    """Lines that begin with the keys of cgroup.conf."""
    hits, lines = key_share(head.text, _KEYS)
    return 90 if hits and hits * 10 >= lines * 6 else 0


def read(source: Source) -> Sequence[Run]:
    """The run that one file holds."""
    run = RunBuilder("cgroup.conf")
    settings: dict[str, str] = {}
    for line in read_conf(source.lines(prefixes=False), run):
        for key, value in line.pairs:
            run.observe("setting", value, (("key", key),), line.line)
            settings[key.lower()] = value
        if line.include:
            run.missing(f"included file {line.include}")
    if not settings:
        raise Refused("no line of cgroup.conf holds anything but comments")
    if settings.get("constraindevices", "no").lower() != "yes":
        run.notice(
            "devices-not-constrained",
            "ConstrainDevices is not yes: a job can use GPUs that it was not given, so allocations do not bound use",
        )
    return [run.build()]


READER: Final = Reader("slurm-cgroup-conf", "cgroup.conf: what confines a job", recognise, read)
