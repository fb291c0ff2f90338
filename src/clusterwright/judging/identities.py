"""Devices that two hosts seem to have: then one of both outputs is a copy, or was filed under another host.

Most tools print no host, and a directory names it; serial numbers, UUIDs and GUIDs tell whether that can be true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.lib.hostlists import fold
from clusterwright.model.evidence import Evidence
from clusterwright.model.observations import Transcript

#: Labels and observations that name one device in the world.
_LABELS: Final = frozenset({"uuid"})
_NAMES: Final = frozenset({"serial", "node_guid", "port_guid"})
#: What stands there when a device has none.
_NO_IDENTITY: Final = frozenset({"", "0", "n/a", "unknown", "none", "0x0000000000000000"})
#: Identities of one output that are looked at; a host has some dozens.
_MOST: Final = 2000


@dataclass(frozen=True, slots=True)
class Twice:
    """Devices that outputs of several hosts hold.

    Args:
        devices: their identities as printed.
        nodes: the hosts.
        paths: of outputs that hold the first of them, one of each host.
    """

    devices: tuple[str, ...]
    nodes: tuple[str, ...]
    paths: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.devices[0]} is in outputs of {fold(self.nodes)}: all but one of these are of another host"


def find_twice(outputs: Iterable[tuple[str, Transcript, Evidence]]) -> tuple[Twice, ...]:
    """Devices that outputs of different hosts hold, those of the same hosts together.

    Args:
        outputs: path, what was read, and its record; only those of exactly one host are looked at.
    """
    seen: dict[str, dict[str, str]] = {}
    for path, transcript, evidence in outputs:
        if len(evidence.nodes) == 1:
            for device in _devices(transcript):
                seen.setdefault(device, {}).setdefault(evidence.nodes[0], path)
    found: dict[tuple[str, ...], Twice] = {}
    for device, places in seen.items():
        if len(places) > 1:
            nodes = tuple(sorted(places))
            first = found.get(nodes, Twice((), nodes, tuple(places[node] for node in nodes)))
            found[nodes] = replace(first, devices=(*first.devices, device))
    return tuple(found.values())


def _devices(transcript: Transcript) -> Sequence[str]:
    found: dict[str, None] = {}
    for run in transcript.runs:
        for o in run.observations:
            if len(found) >= _MOST:
                return list(found)
            if o.name in _NAMES and isinstance(o.value, str):
                found[o.value] = None
            found.update((text, None) for key, text in o.subject if key in _LABELS)
    return [device for device in found if device.strip().lower() not in _NO_IDENTITY]


def doubt_twins(outputs: Iterable[tuple[str, Transcript, Evidence]], twice: Sequence[Twice]) -> list[Evidence]:
    """The records, of which those that hold such a device pass nothing; what fails in them still fails.

    A record keeps its id: it is the same output.
    """
    return [_doubted(evidence, transcript, twice) for _, transcript, evidence in outputs]


def _doubted(evidence: Evidence, transcript: Transcript, twice: Sequence[Twice]) -> Evidence:
    about = [t for t in twice if set(t.nodes) & set(evidence.nodes)]
    devices = set(_devices(transcript)) if about else set()
    why = next((f"invalid: {t}" for t in about if devices.intersection(t.devices)), "")
    if not why or len(evidence.nodes) != 1:
        return evidence
    metrics = dict.fromkeys(r.metric for r in evidence.readings if r.value is not None)
    lost = [
        replace(next(r for r in evidence.readings if r.metric == metric), value=None, conditions=(), unreadable=why)
        for metric in metrics
    ]
    return replace(evidence, readings=(*evidence.readings, *lost))
