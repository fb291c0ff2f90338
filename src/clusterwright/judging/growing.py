"""Port counters that were read twice: how fast they grew in between.

A counter by itself dates nothing. One that went back was cleared, one that is saturated has stopped: neither gives a
rate. Readings that are less than LEAST_S apart give none either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from clusterwright.judging.derivations.kernels import LEAST_S
from clusterwright.judging.recording import evidence_id
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Evidence, Reading

_GROWING: Final = ("ib_symbol_errors", "ib_link_downs")
_HOUR_S: Final = 3600.0
_POWERS: Final = (("event", 1), ("s", -1))
#: One port's counter: metric, host, and everything that names the port.
_Port = tuple[str, str, tuple[tuple[str, str], ...]]


def grow(records: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """A record for every two successive readings of the counters of a host: per metric the port that grew most.

    A port that has a value in one of both only, or was cleared, leaves the record without a value that it could pass
    with, and says so.
    """
    by_host: dict[str, list[tuple[Evidence, dict[_Port, Reading]]]] = {}
    for record in records:
        for host, ports in _counters(record).items():
            by_host.setdefault(host, []).append((record, ports))
    grown = []
    for host, found in by_host.items():
        found.sort(key=lambda pair: pair[0].ended)
        for (before, old), (after, new) in pairwise(found):
            if (after.ended - before.ended).total_seconds() > 0 and set(old) & set(new):
                grown.append(_record(host, before, after, list(_compare(old, new, before, after))))
    return tuple(grown)


def _counters(record: Evidence) -> dict[str, dict[_Port, Reading]]:
    """host → its ports."""
    found: dict[str, dict[_Port, Reading]] = {}
    for reading in record.readings:
        if reading.metric in _GROWING and len(reading.nodes) == 1 and "counter" in dict(reading.conditions):
            named = tuple(c for c in reading.conditions if c[0] != "count")
            found.setdefault(reading.nodes[0], {})[reading.metric, reading.nodes[0], named] = reading
    return found


def _compare(
    old: dict[_Port, Reading], new: dict[_Port, Reading], before: Evidence, after: Evidence
) -> Iterator[Reading]:
    seconds = (after.ended - before.ended).total_seconds()
    for metric in _GROWING:
        rates: list[tuple[float, Reading]] = []
        for port in dict.fromkeys((*old, *new)):
            if port[0] != metric:
                continue
            told = new.get(port) or old[port]
            grown = _growth(old.get(port), new.get(port), seconds)
            if isinstance(grown, str):
                yield replace(told, conditions=port[2], value=None, unreadable=grown)
            else:
                rates.append((grown, told))
        if rates:
            rate, told = max(rates, key=lambda found: found[0])
            said = (*(c for c in told.conditions if c[0] != "count"), ("duration", f"{seconds:.9g} s"))
            value = Quantity(rate / _HOUR_S, _POWERS, f"{rate:.4g} events/h")
            yield Reading(metric, value, (*said, ("ports", str(len(rates)))), told.nodes)


def _growth(old: Reading | None, new: Reading | None, seconds: float) -> float | str:
    """Events per hour, or why there are none to tell."""
    if old is None or new is None:
        return "partial view: a port that only one of two readings has"
    first, second = (_count(reading) for reading in (old, new))
    if first is None or second is None:
        return (old if first is None else new).unreadable
    if second < first:
        return f"no value: the counter went back from {first:g} to {second:g}: it was cleared in between"
    if seconds < LEAST_S:
        return f"partial view: the readings are {seconds:.0f} s apart; at least {LEAST_S / 60:.0f} min make a rate"
    return (second - first) * _HOUR_S / seconds


def _count(reading: Reading) -> float | None:
    text = dict(reading.conditions).get("count", "")
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 25 else None


def _record(host: str, before: Evidence, after: Evidence, readings: Sequence[Reading]) -> Evidence:
    """One record of the time between two; it is as fresh as the second, and from an engine when both are."""
    bare = replace(
        after,
        id="",
        tool=f"{after.tool}, twice",
        readings=tuple(readings),
        nodes=(host,),
        engine=after.engine if after.engine == before.engine else "",
        devices="real" if before.devices == after.devices == "real" else "virtual",
        basis="measured" if before.basis == after.basis == "measured" else "rehearsed",
        started=before.ended,
        raw_digest="",
        environment=(*after.environment, ("parts", f"{before.id} {after.id}")),
        requirements=tuple(dict.fromkeys((*before.requirements, *after.requirements))),
    )
    return replace(bare, id=evidence_id(bare))
