"""ior's JSON (3.2 and later). Keys carry the unit (`bwMiB`); times are seconds.

Source: ior `ior-output.c`. Results of a test are lists of lists in some versions and one list in others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.fields import amount, get, objects, text
from clusterwright.readers.json_streams import load_documents
from clusterwright.readers.refusing import Refused
from clusterwright.readers.sizes import read_size
from clusterwright.readers.storage.ior_tables import CONDITIONS

_KEYS: Final = {
    "bwMiB": ("rate", "MiB/s"), "iops": ("iops", "IOPS"), "latency": ("latency_mean", "s"),
    "openTime": ("open_time", "s"), "wrRdTime": ("transfer_time", "s"), "closeTime": ("close_time", "s"),
    "totalTime": ("total_time", "s"),
}  # fmt: skip
_SUMMARY: Final = {
    "bwMaxMIB": ("rate_max", "MiB/s"), "bwMinMIB": ("rate_min", "MiB/s"), "bwMeanMIB": ("rate_mean", "MiB/s"),
    "OPsMean": ("iops_mean", "IOPS"), "MeanTime": ("time_mean", "s"),
}  # fmt: skip


def is_json(head: str) -> bool:
    """Whether the text holds ior's JSON keys."""
    return '"bwMiB"' in head or '"bwMaxMIB"' in head or ('"Command line"' in head and '"tests"' in head)


def read_documents(whole: str) -> list[Run]:
    """A run for every document."""
    runs = [_read(d.value, line) for d, line in load_documents(whole) if isinstance(d.value, dict)]
    if not runs:
        raise Refused("JSON without results of ior", 1, whole.lstrip()[:80])
    return runs


def _read(document: dict[str, Any], line: int) -> Run:
    builder = RunBuilder("ior", text(document.get("Version")))
    for key in ("Began", "Command line", "Machine"):
        if value := text(document.get(key)):
            builder.condition(CONDITIONS[key.lower()], value)
    rows = 0
    for test in objects(document.get("tests")):
        _options(builder, get(test, "Options"))
        seen: Counter[str] = Counter()
        for row in _flat(test.get("Results")):
            access = text(row.get("access"))
            rows += _observe(builder, row, _KEYS, access, str(seen[access]), line)
            seen[access] += 1
    for row in _flat(document.get("summary")):
        rows += _observe(builder, row, _SUMMARY, text(row.get("operation")), "", line)
    if ended := text(document.get("Finished")):
        builder.condition("ended", ended)
    else:
        builder.missing("the line Finished")
    if not rows:
        builder.missing("results: the document holds none")
    return builder.build()


def _options(builder: RunBuilder, options: Any) -> None:
    for key, value in options.items() if isinstance(options, dict) else ():
        name = CONDITIONS.get(str(key).lower())
        if name and (said := text(value)):
            size = read_size(said) if name.endswith("_size") else None
            builder.condition(name, size if isinstance(size, Quantity) else said)


def _flat(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list) and depth < 4:
        for item in value:
            yield from _flat(item, depth + 1)


def _observe(
    builder: RunBuilder, row: dict[str, Any], keys: dict[str, tuple[str, str]], access: str, index: str, line: int
) -> int:
    if access not in ("write", "read", "remove"):
        return 0
    subject = (("operation", access), *((("iteration", index),) if index else ()))
    for key, (name, unit) in keys.items():
        if key in row:
            builder.observe(f"{access}_{name}", amount(row[key], unit), subject, line)
    return 1
