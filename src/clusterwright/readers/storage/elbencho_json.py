"""elbencho --jsonfile: one object a phase, `first_done` and `last_done` with every scalar in quotes.

Source: elbencho `Statistics.cpp` and its tests: `bytes/s`, `ios/s`, `entries/s`; a counter that is zero is left out;
`latency` stands in `last_done` only.
"""

from __future__ import annotations

import re
from typing import Any, Final

from clusterwright.model.observations import Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.fields import amount, get, number, plain, text
from clusterwright.readers.json_streams import load_documents
from clusterwright.readers.refusing import Refused
from clusterwright.readers.storage.elbencho_phases import name_of

_FIGURES: Final = {
    "bytes/s": ("rate", "B/s"), "ios/s": ("iops", "IOPS"), "iops": ("iops", "IOPS"),
    "entries/s": ("entries_rate", "op/s"), "bytes": ("amount", "B"), "elapsed_us": ("elapsed", "µs"),
    "elapsed_ms": ("elapsed", "ms"), "time_us": ("elapsed", "µs"), "time_ms": ("elapsed", "ms"),
}  # fmt: skip
_COUNTS: Final = {"entries": "entries", "ios": "ops"}
_CONFIG: Final = {
    "block_size": "block_size", "file_size": "file_size", "threads": "jobs", "io_depth": "queue_depth",
    "hosts": "clients", "num_hosts": "clients", "random": "random", "label": "label",
}  # fmt: skip


def is_json(head: str) -> bool:
    """Whether the text holds such objects."""
    return '"phase_type"' in head and '"last_done"' in head


def read_documents(whole: str) -> list[Run]:
    """A run for every phase."""
    runs = []
    for document, line in load_documents(whole):
        if isinstance(get(document.value, "last_done"), dict):
            runs.append(_phase(document.value, line))
    if not runs:
        raise Refused("JSON without a phase of elbencho", 1, whole.lstrip()[:80])
    return runs


def _phase(found: dict[str, Any], line: int) -> Run:
    builder = RunBuilder("elbencho", text(found.get("version")))
    phase = text(found.get("phase_type"))
    config = found.get("config")
    for key, name in _CONFIG.items():
        if said := text(get(config, key)):
            size = amount(get(config, key), "B") if name.endswith("_size") else said
            builder.condition(name, size)
    if said := text(get(config, "direct_io")):
        builder.condition("direct", said.lower() in ("1", "true"))
    subject = (("phase", phase),)
    kept = 0
    for section, suffix in (("last_done", ""), ("first_done", "_first")):
        part = get(found, section)
        for key, value in part.items() if isinstance(part, dict) else ():
            if key in _FIGURES:
                name, unit = _FIGURES[key]
                builder.observe(f"{name_of(phase)}_{name}{suffix}", amount(value, unit), subject, line)
                kept += not suffix
            elif key in _COUNTS and not suffix:
                builder.observe(f"{name_of(phase)}_{_COUNTS[key]}", number(value), subject, line)
    for kind, name in (("IO", "latency"), ("entries", "entry_latency")):
        _latency(builder, f"{name_of(phase)}_{name}", get(found, "last_done", "latency", kind), line)
    if errors := plain(get(found, "last_done", "errors", "total")):
        builder.notice("io-errors", f"{phase}: {errors:.0f} operations failed", Weight.ERROR, line)
    if not kept:
        builder.missing("results: the phase holds none")
    return builder.build()


def _latency(builder: RunBuilder, name: str, part: Any, line: int) -> None:
    for key, value in part.items() if isinstance(part, dict) else ():
        if step := re.fullmatch(r"(min|avg|max)_us", str(key)):
            kept: Value = amount(value, "µs")
            builder.observe(f"{name}_{ {'avg': 'mean'}.get(step[1], step[1]) }", kept, (), line)
