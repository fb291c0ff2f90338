"""Columns and options of ior: what they are called here, and in which unit they are printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.values import read_quantity

CONDITIONS: Final = {
    "began": "started", "command line": "command", "machine": "machine", "api": "api", "access": "access",
    "type": "type", "segments": "segments", "ordering in a file": "ordering_in_file", "ordering inter file": "ordering",
    "nodes": "node_count", "tasks": "ranks", "clients per node": "ranks_per_node", "repetitions": "repetitions",
    "xfersize": "block_size", "blocksize": "task_block_size", "aggregate filesize": "file_size",
    "stonewallingtime": "stonewall_time", "gpudirect": "gpu_direct",
}  # fmt: skip
_COLUMNS: Final = {
    "bw(MiB/s)": ("rate", "MiB/s"), "bw(GiB/s)": ("rate", "GiB/s"), "IOPS": ("iops", "IOPS"),
    "Latency(s)": ("latency_mean", "s"), "Latency": ("latency_mean", "s"),
    "open(s)": ("open_time", "s"), "wr/rd(s)": ("transfer_time", "s"),
    "close(s)": ("close_time", "s"), "total(s)": ("total_time", "s"),
}  # fmt: skip


def observe_row(builder: RunBuilder, cells: Mapping[str, str], number: int) -> None:
    """Keep one row of the table; `-` is absent."""
    subject = (("operation", cells["access"]), ("iteration", cells.get("iter", "0")))
    for column, (name, unit) in _COLUMNS.items():
        if column not in cells:
            continue
        value: Quantity | NoValue = read_quantity(cells[column], unit)
        if cells["access"] == "remove" and isinstance(value, NoValue):
            continue
        builder.observe(f"{cells['access']}_{name}", value, subject, number)


def observe_summary(builder: RunBuilder, cells: Mapping[str, str], number: int) -> None:
    """Keep one row of the summary of all tests, and what it says about how they were run."""
    operation = cells["Operation"]
    for column, suffix in (("Max(MiB)", "max"), ("Min(MiB)", "min"), ("Mean(MiB)", "mean"), ("StdDev", "deviation")):
        if column in cells:
            builder.observe(f"{operation}_rate_{suffix}", read_quantity(cells[column], "MiB/s"), (), number)
    for column, name, unit in (("blksiz", "task_block_size", "B"), ("xsize", "block_size", "B"),
                               ("aggs(MiB)", "file_size", "MiB")):  # fmt: skip
        size = read_quantity(cells.get(column, ""), unit)
        if isinstance(size, Quantity):
            builder.condition(name, size)
    for column, name in (("#Tasks", "ranks"), ("tPN", "ranks_per_node"), ("reps", "repetitions"), ("API", "api")):
        if cells.get(column):
            builder.condition(name, cells[column])
