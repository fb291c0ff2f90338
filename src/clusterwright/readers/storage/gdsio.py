"""gdsio: one result line a run, for every way between storage and GPU.

Source: NVIDIA GPUDirect Storage benchmarking guide. Throughput is GiB per second, latency microseconds. GPUD is the
direct path (without a compatibility mode, which the line does not show), CPU_GPU copies through the host, CPUONLY
never reaches the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Notice, NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import quantity, read_number, read_quantity, unreadable

#: Begins at the second key: cleaning may take `IoType:` for the name of a host where every line begins with it.
_KNOWN: Final = re.compile(r"XferType:\s*\w+\s+Threads:")
_ROW: Final = re.compile(r"IoType:\s*(?:RAND)?(?:READ|WRITE)\b.{0,40}XferType:")
_KEYS: Final = "IoType|XferType|Threads|IoDepth|DataSetSize|IOSize|Throughput|Avg_Latency|ops|total_time"
_PAIR: Final = re.compile(rf"({_KEYS}):?\s+(\S+)(?: ([KMG]i?B/sec|[um]?secs)(?![\w/]))?")
_COMMAND: Final = re.compile(r"(?:^|[\s/])gdsio (-.*)")
_FAILURE: Final = re.compile(r".*\b(?:error|failed)\b.*", re.IGNORECASE)
_THROUGH_HOST: Final = ("CPU_GPU", "CPUONLY")
#: The direct path must be this much faster before a gain is claimed; our default.
_GAIN: Final = 1.10
_SHORT_S: Final = 10.0


def recognise(head: Head) -> int:
    """Sure by the keys of a result line."""
    return 100 if _KNOWN.search(head.text) else 0


def read(source: Source) -> Sequence[Run]:
    """A run for every result line."""
    runs: list[Run] = []
    command, failures = "", list[tuple[int, str]]()
    for line in source.lines(prefixes=False):
        if _ROW.search(line.text):
            runs.append(_read_row(line, command, failures))
            command, failures = "", []
        elif found := _COMMAND.search(line.text):
            command = found[1].strip()
        elif _FAILURE.match(line.text) and len(failures) < 20:
            failures.append((line.number, line.text.strip()[:200]))
    if not runs:
        raise Refused("no result line of gdsio")
    if failures or command:
        builder = RunBuilder("gdsio")
        for number, text in failures:
            builder.notice("tool-error", text, Weight.ERROR, number)
        builder.missing("results: the last run has none")
        runs.append(builder.build())
    return _compare(runs)


def _read_row(line: Line, command: str, failures: list[tuple[int, str]]) -> Run:
    builder = RunBuilder("gdsio")
    text = line.text.replace("**", "")
    if text != line.text:
        builder.notice("markup", "asterisks of a document stand between the values", Weight.INFO, line.number)
    for number, said in failures:
        builder.notice("tool-error", said, Weight.ERROR, number)
    cells = {key: (value, unit) for key, value, unit in _PAIR.findall(text)}
    operation, transfer = cells.get("IoType", ("", ""))[0], cells.get("XferType", ("", ""))[0]
    direction = "write" if operation.endswith("WRITE") else "read"
    builder.condition("operation", operation)
    builder.condition("transfer", transfer)
    for key, name in (("Threads", "jobs"), ("IoDepth", "queue_depth")):
        if key in cells:
            builder.condition(name, cells[key][0])
    if command:
        builder.condition("command", command[:300])
    _sizes(builder, cells, line.number)
    subject = (("operation", operation), ("transfer", transfer))
    for key, name in (("Throughput", "rate"), ("Avg_Latency", "latency_mean")):
        builder.observe(f"{direction}_{name}", _amount(*cells.get(key, ("", ""))), subject, line.number)
    builder.observe("operations", read_number(cells.get("ops", ("", ""))[0]), subject, line.number)
    seconds = read_number(cells.get("total_time", ("", ""))[0])
    builder.observe("duration", _amount(*cells.get("total_time", ("", ""))), subject, line.number)
    if isinstance(seconds, float) and seconds < _SHORT_S:
        message = f"ran for {seconds:g} s; a run below {_SHORT_S:.0f} s is no evidence"
        builder.notice("short-run", message, Weight.WARNING, line.number)
    if missing := [key for key in ("Throughput", "Avg_Latency", "total_time") if key not in cells]:
        builder.missing(", ".join(missing))
    return builder.build()


def _sizes(builder: RunBuilder, cells: dict[str, tuple[str, str]], number: int) -> None:
    if found := re.fullmatch(r"(\d{1,18})\(?(KiB|MiB|B)?\)?", cells.get("IOSize", ("", ""))[0]):
        builder.condition("block_size", quantity(float(found[1]), found[2] or "KiB"))
    if found := re.fullmatch(r"(\d{1,18})/(\d{1,18})\((KiB|MiB|B)\)", cells.get("DataSetSize", ("", ""))[0]):
        done, asked = float(found[1]), float(found[2])
        builder.condition("file_size", quantity(asked, found[3]))
        if asked and done < 0.95 * asked:
            message = f"{done:.0f} of {asked:.0f} {found[3]} were moved"
            builder.notice("not-all-moved", message, Weight.WARNING, number)


def _amount(value: str, unit: str) -> Quantity | NoValue:
    known = {"GiB/sec": "GiB/s", "MiB/sec": "MiB/s", "GB/sec": "GB/s", "usecs": "µs", "msecs": "ms", "secs": "s"}
    if unit not in known:
        return unreadable(f"{value} {unit}", "the unit is missing or not known")
    return read_quantity(value, known[unit])


def _compare(runs: list[Run]) -> list[Run]:
    """Say on the direct runs where the path through the host is as fast."""
    found: dict[tuple[str, str], list[Quantity]] = {}
    for run in runs:
        for o in run.observations:
            if o.name in ("read_rate", "write_rate") and isinstance(o.value, Quantity):
                subject = dict(o.subject)
                found.setdefault((subject["operation"], subject["transfer"]), []).append(o.value)
    return [_with_gain(run, found) for run in runs]


def _with_gain(run: Run, found: dict[tuple[str, str], list[Quantity]]) -> Run:
    operation = str(run.condition("operation"))
    if not str(run.condition("transfer")).startswith("GPUD"):
        return run
    direct = next((o.value for o in run.observations if o.name.endswith("_rate")), None)
    notices = list(run.notices)
    for other in _THROUGH_HOST:
        for value in found.get((operation, other), ())[:1]:
            if isinstance(direct, Quantity) and direct.value < _GAIN * value.value:
                message = f"{direct} directly and {value} with {other}: no gain, perhaps the compatibility mode; "
                message += "see gdscheck"
                notices.append(Notice("no-gain", message, Weight.WARNING))
    return replace(run, notices=tuple(notices))


GDSIO: Final = Reader("gdsio", "gdsio: GPUDirect Storage benchmark", recognise, read)
