"""fio's normal output, versions 2 and 3, several runs in one file.

Units by version (fio `stat.c`, `num2str`): 3 prints binary units with an `i` and decimal ones in brackets; 2 prints
`KB/s` and `MB` for powers of 1024. Rates of the progress line are never results.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.refusing import Refused
from clusterwright.readers.sizes import read_size
from clusterwright.readers.storage.fio_jobs import Direction, Job, Latency, name_of_percentile, observe_job
from clusterwright.readers.storage.fio_versions import major_version
from clusterwright.readers.values import quantity, read_number, unreadable

VERSION: Final = re.compile(r"fio-\d{1,3}\.\d{1,4}\S*")
DEFINITION: Final = re.compile(r"(?P<job>\S.{0,200}?): \(g=(?P<group>\d+)\): rw=(?P<rw>\w+), (?P<rest>bs=.*)")
RESULT: Final = re.compile(r": \(groupid=(?P<group>\d+), jobs=(?P<jobs>\d+)\): err=\s*(?P<error>\d+)(?P<rest>.*)")
_DIRECTION: Final = re.compile(r"\s+(?P<name>read|write|trim)\s?: (?P<rest>(?:IOPS|io|bw)=.*)", re.IGNORECASE)
_MIXED: Final = re.compile(r"\s+mixed\s?: ")
_LATENCY: Final = re.compile(r"\s*(?P<what>slat|clat|lat|sync) \((?P<unit>[num]sec|sec)\)\s*: (?P<rest>min=.*)")
_PERCENTILES: Final = re.compile(r"\s*(?P<what>slat|clat|lat|sync) percentiles \((?P<unit>[num]sec|sec)\)\s*:")
_PERCENTILE: Final = re.compile(r"(\d{1,3}\.\d+|\d{1,3})th=\[\s*([^\[\]]*)\]")
_STATUS: Final = re.compile(r"Run status group (\d+)")
_GROUP: Final = re.compile(r"\s+(?P<name>READ|WRITE|TRIM|MIXED): (?P<rest>.*)")
_PAIR: Final = re.compile(r"(\w{1,24})=\s*([^,\s]+)")
_FAILURE: Final = re.compile(r"fio: .*\b(?:err=\s*[1-9]\d*|error|failed)\b.*", re.IGNORECASE)
#: What a server of `fio --client` says about itself.
_CLIENT: Final = re.compile(r"hostname=\S{1,200}, .{0,200}?\bfio=(fio-\d{1,3}\.\d{1,4}[^,\s]{0,60})")
_STARTED: Final = re.compile(r"Starting (\d+ (?:process(?:es)?|threads?)(?: and \d+ (?:process(?:es)?|threads?))?)")
_COMMAND: Final = re.compile(r"(?:\S*[$#] )?(?:sudo )?fio( --?\w.*)")
_UNITS: Final = {"nsec": "ns", "usec": "µs", "msec": "ms", "sec": "s"}
_BYTES: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGTP]?)(i?)B(/s(?:ec)?)?")
_COUNT: Final = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")


def read_lines(lines: Iterable[Line]) -> list[Run]:
    """A run for every start of fio in the file."""
    reader = _Reader()
    for line in lines:
        reader.take(line)
    reader.finish()
    if not reader.runs:
        raise Refused("neither a version nor a result of fio")
    return reader.runs


class _Reader:
    """What was read so far; a new version line or job definition after results begins a new run."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._begin()

    def _begin(self) -> None:
        self._builder = RunBuilder("fio")
        self._major = 0
        self._jobs: list[Job] = []
        self._definitions: dict[str, dict[str, str]] = {}
        self._direction: Direction | None = None
        self._percentiles: tuple[Latency, str] | None = None
        self._groups = 0
        self._begun = False
        self._unversioned = 0
        self._started = 0

    def take(self, line: Line) -> None:
        """One more line."""
        text = line.text
        if version := VERSION.fullmatch(text.strip()):
            self._start(again=bool(self._jobs) or self._major > 0)
            self._major = major_version(version.group(), line.number)
            self._builder.version = version.group().removeprefix("fio-")
        elif definition := DEFINITION.match(text.strip()):
            self._start(again=bool(self._jobs) or self._groups > 0)
            self._define(definition)
        elif result := RESULT.search(text):
            self._begun = True
            # A progress line may stand before the name where its carriage return was lost.
            name = text[: result.start()].rpartition("]")[2].strip()
            self._result(name[-200:], result, line.number)
        elif client := _CLIENT.match(text):
            if not self._major:
                self._begun = True
                self._major = major_version(client[1], line.number)
                self._builder.version = client[1].removeprefix("fio-")
        elif started := _STARTED.search(text):
            self._started += sum(int(number[:9]) for number in re.findall(r"\d+", started[1]))
        elif command := _COMMAND.match(text):
            self._commanded(command[1])
        elif _FAILURE.match(text):
            self._begun = True
            self._builder.notice("tool-error", text.strip()[:200], Weight.ERROR, line.number)
        elif status := _STATUS.match(text):
            self._begun = True
            self._groups += 1
            self._close_job()
            self._group = status[1]
        elif self._groups:
            self._status(text, line.number)
        elif self._jobs:
            self._row(text, line.number)

    def _start(self, again: bool) -> None:
        if again and not (self._definitions and not self._major):
            self.finish()
        self._begun = True

    def _commanded(self, options: str) -> None:
        """What the command line says where the output does not."""
        for key, value in re.findall(r"--(direct|runtime|size|buffered)[= ]([\w.]{1,20})", options[:4000]):
            if key == "direct":
                self._builder.condition("direct", value != "0")
            elif key == "runtime":
                self._builder.condition("asked_runtime", value)
            elif key == "size":
                size = read_size(value)
                self._builder.condition("file_size", value if isinstance(size, NoValue) else size)

    def _define(self, found: re.Match[str]) -> None:
        labels = {"operation": found["rw"]}
        pairs = dict(re.findall(r"(bs|ioengine|iodepth)=([^,]*(?:-[^,]*)?)", found["rest"]))
        size = re.match(r"bs=(?:\(R\) )?([\w.]+?)-([\w.]+)", found["rest"])
        if size and size[1] == size[2]:
            labels["block_size"] = size[1]
        if depth := pairs.get("iodepth", "").strip():
            labels["queue_depth"] = depth
        if engine := pairs.get("ioengine", "").strip():
            labels["engine"] = engine
        if len(self._definitions) < 10_000:
            self._definitions[found["job"]] = labels

    def _result(self, name: str, found: re.Match[str], number: int) -> None:
        self._unversioned = self._unversioned or (0 if self._major else number)
        job = Job(name, found["group"], number, min(int(found["error"][:9]), 10**9))
        if "error=" in found["rest"]:
            job.message = found["rest"].split("error=", 1)[1].split(")", 1)[0][:80]
        job.labels.update(self._definitions.get(job.name, {}))
        job.labels["jobs"] = found["jobs"]
        if stamp := re.search(r"pid=\d+: (\S.*)", found["rest"]):
            self._builder.condition("ended", stamp[1].strip()) if not self._jobs else None
        self._jobs.append(job)
        self._direction = None
        self._percentiles = None
        self._groups = 0

    def _row(self, text: str, number: int) -> None:
        job = self._jobs[-1]
        if found := _DIRECTION.match(text):
            self._direction = self._read_direction(found["rest"], number)
            job.directions[found["name"].lower()] = self._direction
        elif _MIXED.match(text):
            self._builder.reject(number, text, "reads and writes mixed into one figure (unified_rw_reporting)")
        elif found := _LATENCY.match(text):
            self._latency(job, found)
        elif found := _PERCENTILES.match(text):
            latency = self._block(job, found["what"])
            self._percentiles = (latency, _UNITS[found["unit"]]) if latency else None
        elif "th=[" in text and self._percentiles:
            latency, unit = self._percentiles
            for share, value in _PERCENTILE.findall(text):
                if name := name_of_percentile(share):
                    latency.percentiles[name] = _timed(value, unit)

    def _block(self, job: Job, what: str) -> Latency | None:
        if what == "sync":
            job.sync = job.sync or Latency()
            return job.sync
        return self._direction.latencies.setdefault(what, Latency()) if self._direction else None

    def _latency(self, job: Job, found: re.Match[str]) -> None:
        latency = self._block(job, found["what"])
        pairs = dict(_PAIR.findall(found["rest"]))
        if latency is not None and "avg" in pairs:
            latency.mean = _timed(pairs["avg"], _UNITS[found["unit"]])
            latency.highest = _timed(pairs.get("max", ""), _UNITS[found["unit"]])

    def _read_direction(self, rest: str, number: int) -> Direction:
        direction = Direction(number)
        pairs = {key.lower(): value for key, value in _PAIR.findall(rest)}
        direction.rate = self._bytes(pairs.get("bw", ""), rate=True)
        direction.iops = _counted(pairs.get("iops", ""))
        if "io" in pairs:
            direction.moved = self._bytes(pairs["io"])
        time = re.search(r"(?:runt=\s*|/)(\d{1,12})msec", rest)
        direction.runtime_s = int(time[1]) / 1000 if time else None
        return direction

    def _bytes(self, text: str, rate: bool = False) -> Quantity | NoValue:
        found = _BYTES.match(text)
        if found is None or bool(found[4]) != rate:
            return unreadable(text, "not a rate in bytes" if rate else "not an amount of bytes")
        if not self._major and found[2] and not found[3]:
            return unreadable(text, "the version of fio decides whether this is a power of 1000 or of 1024")
        prefix, binary = found[2], bool(found[3]) or self._major < 3
        unit = (f"{prefix.upper()}iB" if binary and prefix else f"{prefix.replace('K', 'k')}B") + ("/s" if rate else "")
        return quantity(float(found[1]), unit)

    def _status(self, text: str, number: int) -> None:
        found = _GROUP.match(text)
        if found is None:
            return
        pairs = {key.lower(): value for key, value in _PAIR.findall(found["rest"])}
        rate = self._bytes(pairs.get("aggrb", pairs.get("bw", "")), rate=True)
        self._builder.observe(f"{found['name'].lower()}_rate_total", rate, (("group", self._group),), number)

    def _close_job(self) -> None:
        self._direction = None
        self._percentiles = None

    def finish(self) -> None:
        """End the run that is being read."""
        if self._begun:
            if not self._major and not self._tells_units():
                raise Refused(
                    "no line with the version of fio, which decides the units of its results", self._unversioned
                )
            self.runs.append(self._build())
        self._begin()

    def _tells_units(self) -> bool:
        """Whether the results name their units themselves, as `MiB/s (MB/s)` does from 2.17 on."""
        rates = [direction.rate for job in self._jobs for direction in job.directions.values()]
        return any(isinstance(rate, Quantity) for rate in rates) or (not self._jobs and self._groups > 0)

    def _build(self) -> Run:
        builder = self._builder
        if not self._major:
            builder.missing("the line with the version of fio")
        reported = sum(int(job.labels["jobs"][:9]) for job in self._jobs)
        if self._started > reported > 0:
            builder.missing(f"results of {self._started - reported} of {self._started} jobs")
        seen: Counter[tuple[str, str]] = Counter()
        measured = 0
        for job in self._jobs:
            measured += observe_job(builder, job, seen[job.name, job.group])
            seen[job.name, job.group] += 1
        for key, label in (("block_size", "block_size"), ("queue_depth", "queue_depth"), ("operation", "operation")):
            found = {labels.get(label, "") for labels in self._definitions.values()}
            if len(found) == 1 and (text := found.pop()):
                size = read_size(text) if key == "block_size" else text
                builder.condition(key, text if isinstance(size, NoValue) else size)
        if not measured:
            builder.missing("results: no job reported what it moved")
            builder.notice("no-result", "the run has no result; rates of a progress line are none", Weight.ERROR)
        if not self._groups:
            builder.missing("the run status at the end")
        return builder.build()


def _timed(text: str, unit: str) -> Quantity | NoValue:
    found = _COUNT.fullmatch(text.strip())
    if found is None or not found[2]:
        number = read_number(text)
        return number if isinstance(number, NoValue) else quantity(number, unit)
    return quantity(float(found[1]) * _scale(found[2]), unit)


def _counted(text: str) -> Quantity | NoValue:
    found = _COUNT.fullmatch(text.strip())
    if found is None:
        return unreadable(text, "not a number of operations per second")
    return quantity(float(found[1]) * _scale(found[2]), "IOPS")


def _scale(letter: str) -> float:
    return {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}[letter.lower()]
