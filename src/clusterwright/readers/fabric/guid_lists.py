"""Bare lists of port GUIDs: `ibstat -p` alone, or gathered from hosts with a line that names each.

Observations: port_guid (subject node, where the list names one).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.fabric.words import read_guid

_HOST: Final = re.compile(r"^\s*(?:VM_hostname|hostname|host)\s*:?\s+(\S{1,253})\s*$", re.IGNORECASE)
_GUID: Final = re.compile(r"^\s*((?:0x)?[0-9a-fA-F]{15,16})\s*$")


def score_guids(text: str) -> int:
    """How sure it is that a beginning is such a list: nearly every line is a GUID or names a host."""
    lines = [line for line in text.split("\n")[:400] if line.strip()]
    guids = sum(_GUID.match(line) is not None for line in lines)
    hosts = sum(_HOST.match(line) is not None for line in lines)
    if not guids or guids + hosts < 0.9 * len(lines):
        return 0
    return 85 if hosts else 60 if all("0x" in line for line in lines) else 30


def read_guids(lines: Sequence[Line], node: str) -> list[Run]:
    """The list as one run."""
    run = RunBuilder("ibstat -p")
    host, hosts = node, 0
    for line in lines:
        named, guid = _HOST.match(line.text), _GUID.match(line.text)
        if named is not None:
            host, hosts = named[1], hosts + 1
        elif guid is not None:
            run.observe("port_guid", read_guid(guid[1]), (("node", host),) if host else (), line.number)
        elif line.text.strip():
            run.reject(line.number, line.text, "neither a GUID nor a host")
    if run.bare:
        return []
    run.condition("hosts", float(hosts))
    guids = [o.value for o in run.observations]
    if len(set(guids)) < len(guids):
        run.notice("guid-twice", f"{len(guids) - len(set(guids))} GUIDs stand more than once")
    return [run.build()]
