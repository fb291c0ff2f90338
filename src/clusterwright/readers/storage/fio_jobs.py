"""What every form of fio output says about a job, and the observations that come of it.

Names: `{read,write,trim}_{rate,iops}`, `_latency_mean`, `_latency_p99` and so on. Where the job syncs its writes
(fsync, fdatasync), a write is done when it is synced: then `write_latency_*` is that of the sync, and what fio calls
completion is `write_completion_*`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Labels, NoValue, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.values import quantity

DIRECTIONS: Final = ("read", "write", "trim")
#: A run below this says nothing about caches that fill and drives that collect garbage; our default, seconds.
SHORT_S: Final = 30.0
#: No storage device answers faster than this (median completion, seconds): it was memory.
_MEMORY_S: Final = 5e-6
_LOWEST_PERCENTILE: Final = 50
_ERRNO: Final = {
    2: "no such file or directory", 5: "input/output error", 11: "try again", 12: "out of memory", 13: "no permission",
    16: "device busy", 17: "exists", 22: "invalid argument", 24: "too many open files", 27: "file too large",
    28: "no space left on device", 30: "read-only file system", 84: "data verification failed",
    95: "not supported", 110: "timed out", 122: "quota exceeded",
}  # fmt: skip


@dataclass(slots=True)
class Latency:
    """One latency block: `clat`, `lat` or `sync`. Values carry their unit."""

    mean: Quantity | NoValue | None = None
    highest: Quantity | NoValue | None = None
    percentiles: dict[str, Quantity | NoValue] = field(default_factory=dict)


@dataclass(slots=True)
class Direction:
    """Reads, writes or trims of a job."""

    line: int = 0
    rate: Quantity | NoValue | None = None
    iops: Quantity | NoValue | None = None
    runtime_s: float | None = None
    moved: Quantity | NoValue | None = None
    latencies: dict[str, Latency] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """Whether nothing was moved: the direction was not part of the job."""
        amounts = [v.value for v in (self.moved, self.rate, self.iops) if isinstance(v, Quantity)]
        return not any(amounts) and bool(amounts)


@dataclass(slots=True)
class Job:
    """One row of results: a job, or with group_reporting all clones of it."""

    name: str
    group: str = "0"
    line: int = 0
    error: int = 0
    message: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    directions: dict[str, Direction] = field(default_factory=dict)
    sync: Latency | None = None


def name_of_percentile(text: str) -> str:
    """`p99_9` of `99.900000`; "" below the median, for the padding 0 and for what is no number."""
    number, dot, rest = text.strip().partition(".")
    if not number.isdecimal() or (dot and not rest.isdecimal()) or len(text) > 12:
        return ""
    rest = rest.rstrip("0")
    if int(number) < _LOWEST_PERCENTILE:
        return ""
    return f"p{int(number)}" + (f"_{rest}" if rest else "")


def observe_job(builder: RunBuilder, job: Job, instance: int = 0) -> bool:
    """Keep what a job measured; whether it measured anything.

    Args:
        instance: which of several rows of the same name and group, 0 for the first.
    """
    subject: dict[str, str] = {"job": job.name, "group": job.group, **job.labels}
    if instance:
        subject["instance"] = str(instance)
    if job.error or job.message:
        said = job.message or _ERRNO.get(job.error, "")
        reason = f"error {job.error}" + (f" ({said})" if said else "")
        builder.notice("job-failed", f"job {job.name} ended with {reason}", Weight.ERROR, job.line)
    measured = False
    for name, direction in job.directions.items():
        if not direction.idle:
            measured = True
            _observe_direction(builder, name, direction, job.sync if name == "write" else None, subject)
    if job.sync is not None:
        _observe_latency(builder, "sync_latency", job.sync, _labels(subject), job.line)
    return measured


def _observe_direction(
    builder: RunBuilder, name: str, direction: Direction, sync: Latency | None, subject: Mapping[str, str]
) -> None:
    labels = _labels(subject)
    values: dict[str, Value | None] = {f"{name}_rate": direction.rate, f"{name}_iops": direction.iops}
    if direction.runtime_s is not None:
        values[f"{name}_time"] = quantity(direction.runtime_s, "s")
    for key, value in values.items():
        if value is not None:
            builder.observe(key, value, labels, direction.line)
    for measure, latency in direction.latencies.items():
        kind = {"clat": "latency", "lat": "total_latency", "slat": "submission_latency"}.get(measure, measure)
        if kind == "latency" and sync is not None:
            kind = "completion"
        _observe_latency(builder, f"{name}_{kind}", latency, labels, direction.line)
    if sync is not None:
        _observe_latency(builder, f"{name}_latency", sync, (*labels, ("measure", "sync")), direction.line)
        _say_synced(builder, direction, sync)
    _check(builder, name, direction, sync)


def _observe_latency(builder: RunBuilder, name: str, latency: Latency, labels: Labels, line: int) -> None:
    for suffix, value in (("mean", latency.mean), ("max", latency.highest), *latency.percentiles.items()):
        if value is not None:
            builder.observe(f"{name}_{suffix}", value, labels, line)


def _say_synced(builder: RunBuilder, direction: Direction, sync: Latency) -> None:
    clat = direction.latencies.get("clat")
    done, durable = clat and clat.percentiles.get("p99"), sync.percentiles.get("p99")
    if isinstance(done, Quantity) and isinstance(durable, Quantity):
        message = f"a write is durable after the sync: 99th percentile {durable}, not the completion's {done}"
        builder.notice("sync-latency", message, Weight.INFO, direction.line)


def _check(builder: RunBuilder, name: str, direction: Direction, sync: Latency | None) -> None:
    if direction.runtime_s is not None and 0 < direction.runtime_s < SHORT_S:
        message = f"{name}s ran for {direction.runtime_s:g} s; below {SHORT_S:.0f} s is too short for acceptance"
        builder.notice("short-run", message, Weight.WARNING, direction.line)
    clat = direction.latencies.get("clat")
    middle = clat and clat.percentiles.get("p50")
    if isinstance(middle, Quantity) and 0 < middle.value < _MEMORY_S and sync is None:
        message = f"half of the {name}s completed within {middle}: that is memory (page cache), not storage"
        builder.notice("page-cache", message, Weight.WARNING, direction.line)
    if clat:
        ordered = [
            v for k in ("p50", "p90", "p95", "p99", "p99_9") if isinstance(v := clat.percentiles.get(k), Quantity)
        ]
        if any(a.value > b.value for a, b in pairwise(ordered)):
            builder.notice("percentiles-fall", f"{name} percentiles fall as they rise", Weight.ERROR, direction.line)


def _labels(subject: Mapping[str, str]) -> Labels:
    return tuple(subject.items())
