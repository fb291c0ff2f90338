"""The lower tables of plain `nvidia-smi`: MIG devices and processes."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.model.observations import Labels, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.nvidia.boxes import Box, Row
from clusterwright.readers.nvidia.cells import as_absent, as_count, as_text, in_unit
from clusterwright.readers.nvidia.devices import is_elision, labels

#: What ends a row of the table of processes: memory, or words for none.
_MEMORY: Final = re.compile(r"\s(?P<memory>\d+ ?MiB|N/A|Insufficient Permissions|Not Supported|ERR!|Unknown Error)$")
_NEW: Final = re.compile(
    r"(?P<gpu>\d+)\s+(?P<gi>\d+|N/A)\s+(?P<ci>\d+|N/A)\s+(?P<pid>\d+)\s+(?P<type>M?\+?[CG](?:\+[CG])*)\s+(?P<name>\S.*)"
)
_OLD: Final = re.compile(r"(?P<gpu>\d+)\s+(?P<pid>\d+)\s+(?P<type>M?\+?[CG](?:\+[CG])*)\s+(?P<name>\S.*)")
_DEVICE: Final = re.compile(r"(?P<gpu>\d+)\s+(?P<gi>\d+)\s+(?P<ci>\d+)\s+(?P<mig>\d+)")


def observe_mig_devices(builder: RunBuilder, box: Box, node: str) -> None:
    """MIG devices; the memory of a GPU instance once, however many compute instances share it."""
    devices: dict[str, int] = {}
    instances: dict[tuple[str, str], int] = {}
    for row in box.rows:
        text = " ".join(" ".join(row.cells[0]).split())
        if text.lower().startswith("no mig devices found"):
            builder.notice("mig-without-devices", "MIG is on and no MIG device exists: no job can use the GPU",
                           Weight.WARNING, row.number)  # fmt: skip
            builder.observe("mig_devices", 0.0, labels(node=node), row.number)
            continue
        if is_elision(text):
            builder.missing("rows left out at an ellipsis")
            continue
        device = _DEVICE.fullmatch(" ".join(row.cells[0][0].split()))
        if device is None or len(row.cells[0]) < 3 or len(row.cells) < 2:
            builder.reject(row.number, row.lines[0].text, "a MIG device has 2 lines and 4 cells")
            continue
        subject = labels(gpu=device["gpu"], node=node)
        devices[device["gpu"]] = devices.get(device["gpu"], 0) + 1
        _observe_device(builder, row, device, subject)
        key = (device["gpu"], device["gi"])
        instances[key] = instances.get(key, 0) + 1
        if instances[key] == 1:
            _observe_memory(builder, row, (*subject, ("gpu_instance", device["gi"])))
    for gpu, count in devices.items():
        own = sum(1 for owner, _ in instances if owner == gpu)
        builder.observe("mig_devices", float(count), labels(gpu=gpu, node=node))
        builder.observe("gpu_instances", float(own), labels(gpu=gpu, node=node))
        if own < count:
            said = f"GPU {gpu}: {count} MIG devices in {own} GPU instances; shared memory is counted once"
            builder.notice("mig-memory-shared", said, Weight.INFO)
    if not box.closed:
        builder.missing("end of the table of MIG devices")


def _observe_device(builder: RunBuilder, row: Row, device: re.Match[str], subject: Labels) -> None:
    part = (*subject, ("mig", device["mig"]), ("gpu_instance", device["gi"]), ("compute_instance", device["ci"]))
    counts = row.cells[0][2].split()
    builder.observe("mig_device", f"{counts[0]} SM" if counts else as_absent("nothing printed"), part, row.number)
    ecc: Value = as_count(counts[1]) if len(counts) > 1 else as_absent("nothing printed")
    builder.observe("ecc_uncorrected", ecc, (*part, ("scope", "volatile")), row.number)


def _observe_memory(builder: RunBuilder, row: Row, subject: Labels) -> None:
    used, _, total = row.cells[0][1].partition("/")
    builder.observe("mig_memory_used", in_unit("MiB")(_spaced(used)), subject, row.number)
    builder.observe("mig_memory_total", in_unit("MiB")(_spaced(total)), subject, row.number)


def _spaced(text: str) -> str:
    return text.strip().replace("MiB", " MiB").replace("  ", " ")


def observe_processes(builder: RunBuilder, box: Box, node: str) -> None:
    """Processes with their memory; where the driver hides it, it is unknown and not 0.

    An empty table proves nothing: in a container the processes of others are not shown.
    """
    form = _NEW if " GI CI " in f" {box.heading} " else _OLD
    count = 0
    for row in box.rows:
        for line, cells in zip(row.lines, row.cells, strict=True):
            text = " ".join(cells).strip()
            if text.lower().startswith("no running processes found"):
                builder.observe("processes", 0.0, labels(node=node), line.number)
                continue
            if not text:
                continue
            if is_elision(text):
                builder.missing("rows left out at an ellipsis")
                continue
            memory = _MEMORY.search(f" {text}")
            match = form.fullmatch(text[: memory.start() - 1].rstrip()) if memory else None
            if memory is None or match is None:
                builder.reject(line.number, line.text, "not a row of the table of processes")
                continue
            count += 1
            known = match.groupdict()
            more = {"gpu_instance": known.get("gi"), "compute_instance": known.get("ci")}
            parts = {key: value for key, value in more.items() if value and value != "N/A"}
            subject = labels(gpu=known["gpu"], node=node, pid=known["pid"], process=known["name"].strip(),
                             type=known["type"], **parts)  # fmt: skip
            size = memory["memory"]
            value = in_unit("MiB")(_spaced(size)) if size[0].isdigit() else as_text(size)
            builder.observe("process_memory", value, subject, line.number)
    if count:
        builder.observe("processes", float(count), labels(node=node))
    if not box.closed:
        builder.missing("end of the table of processes")
