"""Phases of elbencho: what their results are called here, from the text table as from CSV and JSON.

FIRST DONE is the moment at which the fastest worker ended, LAST DONE that at which the slowest did. The value of a
phase is LAST DONE; FIRST DONE keeps its own name (`write_rate_first`).
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.values import quantity, read_number, read_quantity, unreadable

_RATES: Final = {
    "iops": ("iops", "IOPS"), "files/s": ("files_rate", "op/s"), "dirs/s": ("dirs_rate", "op/s"),
    "entries/s": ("entries_rate", "op/s"), "objects/s": ("objects_rate", "op/s"), "buckets/s": ("buckets_rate", "op/s"),
    "total mib": ("amount", "MiB"), "total mb": ("amount", "MB"), "mib/s": ("rate", "MiB/s"), "mb/s": ("rate", "MB/s"),
    "throughput mib/s": ("rate", "MiB/s"), "throughput mb/s": ("rate", "MB/s"), "elapsed ms": ("elapsed", "ms"),
    "time ms": ("elapsed", "ms"), "elapsed us": ("elapsed", "µs"), "time us": ("elapsed", "µs"),
    "mib": ("amount", "MiB"),
}  # fmt: skip
_COUNTS: Final = {
    "total files": "files", "total dirs": "dirs", "total entries": "entries", "total objects": "objects",
    "total ops": "ops", "entries": "entries", "files total": "files", "dirs total": "dirs",
    "entries total": "entries", "objects total": "objects", "buckets total": "buckets",
}  # fmt: skip
_DURATION: Final = re.compile(
    r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?(?:(\d+(?:\.\d+)?)us)?"
)
#: Below this mean file size files per second say what the storage does, and MiB/s does not.
_SMALL_FILE: Final = 1024 * 1024


def name_of(phase: str) -> str:
    """`write` of WRITE, `read` of READ, `mkdirs` of MKDIRS."""
    return re.sub(r"\W+", "_", phase.strip().lower()).strip("_")[:40]


def observe_result(
    builder: RunBuilder, phase: str, label: str, first: str, last: str, number: int, labels: dict[str, str]
) -> bool:
    """Keep one result of a phase; whether the label is known."""
    key = label.strip().lower()
    subject = (("phase", phase.strip()), *labels.items())
    if key in _COUNTS:
        builder.observe(f"{name_of(phase)}_{_COUNTS[key]}", read_number(last), subject, number)
        return True
    if key == "elapsed time":
        name, values = "elapsed", [read_duration(cell) for cell in (last, first)]
    elif key in _RATES:
        name, unit = _RATES[key]
        values = [read_quantity(cell, unit) for cell in (last, first)]
    else:
        return False
    for value, suffix in zip(values, ("", "_first"), strict=True):
        if not (suffix and isinstance(value, NoValue)):
            builder.observe(f"{name_of(phase)}_{name}{suffix}", value, subject, number)
    return True


def observe_latency(builder: RunBuilder, phase: str, label: str, text: str, number: int) -> bool:
    """Keep `IO latency : [ min=25us avg=120us max=3.1ms ]` or `IO lat % us : [ 50%<=4096 99%<=6889 ]`."""
    found = re.match(r"(IO|Ent|Entries|RW IO)\w* lat(?:ency)?( %)?(?: (us|ms))?$", label.strip())
    if found is None:
        return False
    which = "latency" if "IO" in found[1] else "entry_latency"
    subject = (("phase", phase.strip()),)
    unit = {"us": "µs", "ms": "ms", None: ""}[found[3]]
    for key, cell in re.findall(r"([\w.]{1,20}%?)<?=\s*([\d.]+\s?[a-zµ]*)", text):
        name = f"p{key[:-1].replace('.', '_')}" if key.endswith("%") else {"avg": "mean"}.get(key, key)
        value: Value = read_quantity(cell, unit) if unit else read_duration(cell)
        builder.observe(f"{name_of(phase)}_{which}_{name}", value, subject, number)
    return True


def read_duration(text: str) -> Quantity | NoValue:
    """`2m3.241s`, `850ms`, `1h2m3.4s`."""
    word = text.strip()
    found = _DURATION.fullmatch(word)
    if found is None or not word or len(word) > 40:
        return unreadable(text, "not a duration")
    scales = (3600.0, 60.0, 1.0, 1e-3, 1e-6)
    seconds = sum(float(part) * scale for part, scale in zip(found.groups(), scales, strict=True) if part)
    return Quantity(quantity(seconds, "s").value, (("s", 1),), word)


def say_small_files(builder: RunBuilder, phase: str, results: dict[str, str], number: int) -> None:
    """Say it where files are so small that a throughput means nothing.

    Args:
        results: LAST DONE of the phase by label in lower case.
    """
    files, mib = read_number(results.get("total files", "")), read_number(results.get("total mib", ""))
    if isinstance(files, float) and isinstance(mib, float) and files > 0 and 0 < mib * 2**20 / files < _SMALL_FILE:
        size = Quantity(mib * 2**20 / files, (("B", 1),))
        message = f"{phase.strip()}: files of {size} each; files per second is the figure, not the throughput"
        builder.notice("small-files", message, Weight.INFO, number)
