"""What several records say together: one test that ran on several hosts at the same time, counters that were read
twice, a rate beside the check of the path that it took.

Rates of parts that ran together add up, times are that of the slowest. Parts that did not overlap say nothing about
all hosts at once: each stays a reading of its own host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from clusterwright.judging.alignment import Alike, align
from clusterwright.judging.derivations.storages import COPIED
from clusterwright.judging.growing import grow
from clusterwright.judging.recording import evidence_id
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Evidence, Reading

#: Metrics of which the parts add up, and those of which the slowest part counts.
ADDED: Final = frozenset(
    {"storage_read", "storage_write", "storage_read_ops", "storage_write_ops", "gds_read", "gds_write",
     "files_created"}
)  # fmt: skip
SLOWEST: Final = frozenset(
    {"checkpoint_write", "checkpoint_restore", "payload_time", "storage_read_latency_p99",
     "storage_write_latency_p99"}
)  # fmt: skip
#: Share of the whole time in which all parts must have run together; our default.
OVERLAP: Final = 0.8
#: Conditions that are the sum of the parts.
_SUMMED: Final = ("concurrency",)


def combine(records: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The records, followed by one for every test that several of them are parts of, and for counters that grew.

    A rate of GPUDirect Storage on a host whose check says that data may be copied instead is none. A part without a
    value leaves the combined record without one: what is lost of one host is lost of all.
    """
    records = _doubt_copies(records)
    groups: dict[tuple[str, Alike], list[tuple[Evidence, Reading]]] = {}
    for record in records:
        for reading in record.readings:
            if reading.metric in ADDED | SLOWEST and reading.value is not None and len(_hosts(record, reading)) == 1:
                groups.setdefault((record.tool, align(_without_duration(reading))), []).append((record, reading))
    combined: dict[tuple[str, ...], list[Reading]] = {}
    parts_of: dict[tuple[str, ...], list[Evidence]] = {}
    for alike in groups.values():
        for parts in _at_once(alike):
            if not _together(parts):
                continue
            key = tuple(record.id for record, _ in parts)
            combined.setdefault(key, []).append(_sum(parts))
            parts_of[key] = [record for record, _ in parts]
    return (*records, *(_record(parts_of[key], readings) for key, readings in combined.items()), *grow(records))


def _doubt_copies(records: Sequence[Evidence]) -> list[Evidence]:
    """The records, in which a rate of the direct path does not pass on a host where a copy may stand in for it.

    The last check of each host counts. A record keeps its id: it is the same output.
    """
    checks: dict[tuple[str, str], Reading] = {}
    for record in sorted(records, key=lambda r: r.ended):
        for reading in record.readings:
            if dict(reading.conditions).get("checked") and len(reading.nodes) == 1:
                checks[reading.metric, reading.nodes[0]] = reading
    copied = {key: reading for key, reading in checks.items() if reading.unreadable.startswith(COPIED)}
    return [_doubted(record, copied) for record in records]


def _doubted(record: Evidence, copied: Mapping[tuple[str, str], Reading]) -> Evidence:
    doubts = [
        replace(found, conditions=reading.conditions, nodes=reading.nodes)
        for reading in record.readings
        if reading.value is not None
        for host in _hosts(record, reading)
        if (found := copied.get((reading.metric, host))) is not None
    ]
    return replace(record, readings=(*record.readings, *dict.fromkeys(doubts))) if doubts else record


def _at_once(parts: Sequence[tuple[Evidence, Reading]]) -> list[list[tuple[Evidence, Reading]]]:
    """The parts of each repetition of a test: those that ran while all others of it did; one output counts once."""
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    repetitions: list[list[tuple[Evidence, Reading]]] = []
    for record, reading in sorted(parts, key=lambda part: part[0].started):
        output = (record.raw_digest, _hosts(record, reading))
        if record.raw_digest and seen.setdefault(output, record.id) != record.id:
            continue
        if repetitions and record.started < min(other.ended for other, _ in repetitions[-1]):
            repetitions[-1].append((record, reading))
        else:
            repetitions.append([(record, reading)])
    return repetitions


def _hosts(record: Evidence, reading: Reading) -> tuple[str, ...]:
    return reading.nodes or record.nodes


def _without_duration(reading: Reading) -> Reading:
    return replace(reading, conditions=tuple(c for c in reading.conditions if c[0] != "duration"))


def _together(parts: Sequence[tuple[Evidence, Reading]]) -> bool:
    """Whether every part is of another host and all ran at the same time for nearly the whole of it."""
    hosts = [_hosts(record, reading) for record, reading in parts]
    if len(parts) < 2 or len(set(hosts)) < len(hosts):
        return False
    began = [record.started for record, _ in parts]
    ended = [record.ended for record, _ in parts]
    whole = (max(ended) - min(began)).total_seconds()
    shared = (min(ended) - max(began)).total_seconds()
    return whole > 0 and shared / whole >= OVERLAP


def _sum(parts: Sequence[tuple[Evidence, Reading]]) -> Reading:
    first = parts[0][1]
    values = [reading.value for _, reading in parts if isinstance(reading.value, Quantity)]
    number = sum(v.value for v in values) if first.metric in ADDED else max(v.value for v in values)
    conditions = dict(first.conditions)
    for name in _SUMMED:
        counts = [dict(reading.conditions).get(name, "") for _, reading in parts]
        if all(count.isdecimal() for count in counts):
            conditions[name] = str(sum(map(int, counts)))
    if "duration" in conditions:
        conditions["duration"] = f"{_shortest(parts):.9g} s"
    hosts = tuple(host for record, reading in parts for host in _hosts(record, reading))
    return Reading(first.metric, Quantity(number, values[0].powers), tuple(conditions.items()), hosts)


def _shortest(parts: Sequence[tuple[Evidence, Reading]]) -> float:
    return (min(r.ended for r, _ in parts) - max(r.started for r, _ in parts)).total_seconds()


def _record(parts: Sequence[Evidence], readings: Iterable[Reading]) -> Evidence:
    """One record over the hosts of all parts; what a part lost of a metric is lost of the whole."""
    found = list(readings)
    metrics = {reading.metric for reading in found}
    hosts = tuple(dict.fromkeys(host for record in parts for host in record.nodes))
    lost = [
        replace(reading, nodes=hosts)
        for record in parts
        for reading in record.readings
        if reading.value is None and reading.metric in metrics
    ]
    engines = {record.engine for record in parts}
    bare = replace(
        parts[0],
        id="",
        readings=tuple(dict.fromkeys((*found, *lost))),
        nodes=hosts,
        engine=parts[0].engine if len(engines) == 1 else "",
        devices="real" if all(record.devices == "real" for record in parts) else "virtual",
        basis="measured" if all(record.basis == "measured" for record in parts) else "rehearsed",
        started=min(record.started for record in parts),
        ended=max(record.ended for record in parts),
        raw_digest="",
        environment=(*parts[0].environment, ("parts", " ".join(record.id for record in parts))),
        requirements=tuple(dict.fromkeys(i for record in parts for i in record.requirements)),
    )
    return replace(bare, id=evidence_id(bare))
