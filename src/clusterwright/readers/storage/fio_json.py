"""fio --output-format=json and json+, versions 2 and 3, several documents in one file, client/server mode.

Units by version (fio `stat.c`): up to 2.x latencies are microseconds (`clat`) and `io_bytes` counts KiB; from 2.99 on
the key names nanoseconds (`clat_ns`) and `io_bytes` counts bytes. `bw` is KiB/s in both; `bw_bytes` (3.x) bytes/s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.fields import amount, get, objects, plain, text
from clusterwright.readers.json_streams import load_documents
from clusterwright.readers.refusing import Refused
from clusterwright.readers.sizes import read_size
from clusterwright.readers.storage.fio_jobs import DIRECTIONS, Direction, Job, Latency, name_of_percentile, observe_job
from clusterwright.readers.storage.fio_versions import major_version
from clusterwright.readers.values import unreadable

_OPTIONS: Final = {"rw": "operation", "bs": "block_size", "iodepth": "queue_depth", "numjobs": "jobs"}
_CONDITIONS: Final = {
    "ioengine": "engine", "size": "file_size", "runtime": "asked_runtime", "direct": "direct", "sync": "sync",
    "fsync": "fsync", "filename": "file", "directory": "directory",
}  # fmt: skip
#: Largest difference between the printed rate and bytes over time that rounding explains.
_AGREES: Final = 0.02


def read_documents(whole: str) -> list[Run]:
    """A run for every fio document of the text."""
    runs = []
    for document, line in load_documents(whole):
        if isinstance(document.value, dict) and "fio version" in document.value:
            runs.append(_read(document.value, line))
    if not runs:
        raise Refused("JSON without `fio version`", 1, whole.lstrip()[:80])
    return runs


def _read(document: dict[str, Any], line: int) -> Run:
    version = text(document.get("fio version"))
    builder = RunBuilder("fio", version.removeprefix("fio-"))
    nanoseconds = major_version(version, line) >= 3
    if stamp := text(document.get("time")):
        builder.condition("ended", stamp)
    rows = list(_rows(document))
    options = [{**_dict(document.get("global options")), **_dict(row.get("job options"))} for row in rows]
    _say_conditions(builder, options)
    seen: Counter[tuple[str, str, str]] = Counter()
    measured = 0
    for row, chosen in zip(rows, options, strict=True):
        job = _job(builder, row, chosen, nanoseconds, line)
        key = (job.name, job.group, job.labels.get("node", ""))
        measured += observe_job(builder, job, seen[key])
        seen[key] += 1
    clones = max(seen.values(), default=0)
    if clones > 1:
        message = f"{clones} rows of one job without group_reporting: each is the rate of one clone, not of all"
        builder.notice("jobs-not-grouped", message, Weight.INFO, line)
    if not rows:
        builder.missing("jobs: the document holds none")
    elif not measured:
        builder.notice("nothing-measured", "no job moved any data", Weight.ERROR, line)
        builder.missing("results: no job moved any data")
    return builder.build()


def _rows(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from objects(document.get("jobs"))
    yield from objects(document.get("client_stats"))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _say_conditions(builder: RunBuilder, options: list[dict[str, Any]]) -> None:
    """Options that are the same in every job."""
    for option, name in (_OPTIONS | _CONDITIONS).items():
        found = {text(chosen.get(option)) for chosen in options}
        if len(found) == 1 and (value := found.pop()):
            size = read_size(value) if name in ("block_size", "file_size") else None
            if name == "direct":
                builder.condition(name, value not in ("0", "false"))
            else:
                builder.condition(name, value if size is None or isinstance(size, NoValue) else size)
    if any(options) and not any("direct" in chosen or "buffered" in chosen for chosen in options):
        message = "direct is not set: reads may come from memory and writes may end there"
        builder.notice("buffered-io", message, Weight.WARNING)


def _job(builder: RunBuilder, row: dict[str, Any], options: dict[str, Any], nanoseconds: bool, line: int) -> Job:
    job = Job(text(row.get("jobname")) or "?", text(row.get("groupid")) or "0", line)
    job.error = int(plain(row.get("error")) or 0)
    if host := text(row.get("hostname")):
        job.labels["node"] = host
    for option, name in _OPTIONS.items():
        if value := text(options.get(option)):
            job.labels[name] = value
    for name in DIRECTIONS:
        if isinstance(row.get(name), dict):
            job.directions[name] = _direction(builder, f"{job.name} {name}", row[name], nanoseconds, line)
    job.sync = _sync(row, nanoseconds)
    return job


def _direction(builder: RunBuilder, where: str, found: dict[str, Any], nanoseconds: bool, line: int) -> Direction:
    direction = Direction(line)
    direction.moved = amount(found.get("io_bytes"), "B" if "io_kbytes" in found else "KiB")
    direction.rate = amount(found["bw_bytes"], "B/s") if "bw_bytes" in found else amount(found.get("bw"), "KiB/s")
    direction.iops = amount(found.get("iops"), "IOPS")
    runtime = plain(found.get("runtime"))
    direction.runtime_s = None if runtime is None else runtime / 1000
    for measure in ("clat", "lat", "slat"):
        latency = _latency(found, measure, nanoseconds)
        if latency is not None:
            direction.latencies[measure] = latency
    for key in ("short_ios", "drop_ios", "total_err"):
        if count := plain(found.get(key)):
            builder.notice("io-incomplete", f"{where}: {key} {count:.0f}", Weight.ERROR, line)
    _compare(builder, where, direction, line)
    return direction


def _latency(found: dict[str, Any], measure: str, nanoseconds: bool) -> Latency | None:
    key, unit = (f"{measure}_ns", "ns") if nanoseconds else (measure, "µs")
    block = found.get(key)
    if not isinstance(block, dict):
        other = found.get(measure if nanoseconds else f"{measure}_ns")
        if isinstance(other, dict):
            why = "the unit of the key contradicts the version"
            return Latency(mean=unreadable(text(other.get("mean")), why))
        return None
    if plain(block.get("N")) == 0 or not any(plain(block.get(k)) for k in ("mean", "max")):
        return None
    latency = Latency(mean=amount(block.get("mean"), unit), highest=amount(block.get("max"), unit))
    for share, value in _dict(block.get("percentile")).items():
        if name := name_of_percentile(share):
            latency.percentiles[name] = amount(value, unit)
    return latency


def _sync(row: dict[str, Any], nanoseconds: bool) -> Latency | None:
    block = get(row, "sync")
    if not isinstance(block, dict) or not plain(block.get("total_ios")):
        return None
    return _latency(block, "lat", nanoseconds)


def _compare(builder: RunBuilder, where: str, direction: Direction, line: int) -> None:
    """The printed rate against bytes over time: a wrong base would show here."""
    moved, rate, seconds = direction.moved, direction.rate, direction.runtime_s
    if not isinstance(moved, Quantity) or not isinstance(rate, Quantity) or not seconds or not rate.value:
        return
    ratio = moved.value / seconds / rate.value
    if abs(ratio - 1) > _AGREES and abs(moved.value / seconds - rate.value) > 2048:
        message = f"{where}: {moved} in {seconds:g} s is not the printed {rate}"
        builder.notice("rate-disagrees", message, Weight.ERROR, line)
        direction.rate = unreadable(str(rate), "contradicts the bytes and time printed beside it")
