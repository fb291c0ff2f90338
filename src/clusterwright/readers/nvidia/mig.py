"""`nvidia-smi -L` and `nvidia-smi mig -lgi, -lci, -lgip, -lcip, -lgipp`: GPUs, their MIG devices, instances, profiles.

Sizes come from the profile's own name (`2g.35gb`), never from a table of sizes: they differ between products. A
profile with a leading `c` is a part of a GPU instance, whose memory it shares.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Labels, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.nvidia.boxes import Box, Row, boxes_of
from clusterwright.readers.nvidia.cells import as_count, as_flag, as_text, in_unit
from clusterwright.readers.nvidia.devices import is_command, is_cut_by, is_elision, labels, runs_of_hosts
from clusterwright.readers.nvidia.failures import note_failure, refuse_failure
from clusterwright.readers.nvidia.nvlink import GPU
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import names_a_device, quantity

_PROFILE: Final = re.compile(r"(?:(?P<c>\d{1,2})c\.)?(?P<g>\d{1,2})g\.(?P<gb>\d{1,4})gb(?P<more>[+.-][\w.+-]{1,20})?")
_DEVICE: Final = re.compile(
    r"\s*MIG (?P<profile>\S{3,40})\s+Device\s+(?P<index>\d{1,3}):\s*\(UUID: (?P<uuid>MIG-[\w/-]{1,100})\)\s*"
)
_PLACES: Final = re.compile(r"\s*GPU\s+(?P<gpu>\d+) Profile ID\s+(?P<id>\d+) Placements?\s*:\s*(?P<places>\{.*)")
_NONE: Final = re.compile(
    r"\s*No (?:GPU instances|compute instances|MIG-supported devices|MIG-enabled devices).*found.*", re.IGNORECASE
)
_TITLES: Final = {
    "GPU instances:": "gpu_instance", "Compute instances:": "compute_instance",
    "GPU instance profiles:": "gpu_instance_profile", "Compute instance profiles:": "compute_instance_profile",
}  # fmt: skip
_WORDS: Final = {
    "gpu_instance": ("Name", "Profile", "Instance", "Placement"),
    "compute_instance": ("Name", "Profile", "Instance", "Placement"),
    "gpu_instance_profile": ("Name", "ID", "Instances", "Memory", "P2P", "SM"),
    "compute_instance_profile": ("Name", "Instances", "Exclusive", "Shared"),
}


def recognise(head: Head) -> int:
    """By the titles of `mig` tables, or GPUs with UUIDs and no links below."""
    if any(f"| {title} " in head.text for title in _TITLES) or any(
        _PLACES.match(x[:400]) for x in head.text.split("\n")[:20]
    ):
        return 97
    if any(_NONE.fullmatch(line[:200]) for line in head.text.split("\n")[:5]):
        return 90
    listed = re.search(r"^[ \t]*GPU \d+: .{1,120}\(UUID: ", head.text, re.MULTILINE)
    return 90 if listed else 0


def read(source: Source) -> Sequence[Run]:
    """One run for each command of each host."""
    return runs_of_hosts(source, _read_host)


def _read_host(lines: list[Line], node: str) -> list[Run]:
    parts = [part for part in _split(lines) if any(not is_command(x.text) and x.text.strip() for x in part)]
    return [_read_part(part, node) for part in parts]


def _split(lines: list[Line]) -> list[list[Line]]:
    """At a typed command, at the title of a table, and where the GPUs begin again."""
    parts: list[list[Line]] = [[]]
    last = -1
    for line in lines:
        gpu = GPU.fullmatch(line.text[:400])
        if is_command(line.text) or (gpu is not None and int(gpu["index"]) <= last):
            parts.append([])
            last = -1
        if gpu is not None:
            last = int(gpu["index"])
        parts[-1].append(line)
    return parts


def _read_part(lines: list[Line], node: str) -> Run:
    builder = RunBuilder("nvidia-smi -L")
    if node:
        builder.condition("node", node)
    listed = any(GPU.fullmatch(line.text[:400]) for line in lines)
    boxes, outside = boxes_of(lines, split_rows=False)
    for line in outside:
        if boxes and line.text.lstrip().startswith("|"):
            builder.reject(line.number, line.text, "a row of the table that is cut")
            builder.missing("end of the table, which breaks off in a row")
    for line in lines:
        if is_command(line.text) and is_cut_by(line.text):
            builder.missing(f"lines that {is_cut_by(line.text)} left out; the last GPU may be incomplete")
        elif is_elision(line.text):
            builder.missing("lines left out at an ellipsis")
        elif _NONE.fullmatch(line.text[:200]):
            builder.observe("gpu_instances", 0.0, labels(node=node), line.number)
            builder.notice("mig-without-instances", line.text.strip()[:200], Weight.INFO, line.number)
        else:
            note_failure(builder, line, node)
    if listed:
        _read_list(builder, lines, node)
    for box in boxes:
        _read_box(builder, box, node)
    for line in lines:
        if (places := _PLACES.fullmatch(line.text[:2000])) is not None:
            builder.tool = "nvidia-smi mig"
            subject = labels(gpu=places["gpu"], node=node, profile_id=places["id"])
            builder.observe("placements", places["places"].strip()[:200], subject, line.number)
    if builder.bare and not builder.rejected:
        refuse_failure(lines)
        raise Refused("no GPU, no MIG device and no table of them", lines[0].number, lines[0].text)
    return builder.build()


def _read_list(builder: RunBuilder, lines: list[Line], node: str) -> None:
    subject: Labels = ()
    counts: dict[Labels, list[re.Match[str]]] = {}
    seen: set[str] = set()
    for line in lines:
        gpu, device = GPU.fullmatch(line.text[:400]), _DEVICE.fullmatch(line.text[:400])
        if gpu is not None:
            subject = labels(gpu=gpu["index"], uuid=gpu["uuid"], node=node)
            if gpu["uuid"] in seen and names_a_device(gpu["uuid"]):
                builder.notice("gpu-twice", f"two GPUs have the UUID {gpu['uuid']}", Weight.ERROR, line.number)
            seen.add(gpu["uuid"])
            counts[subject] = []
            builder.observe("gpu", as_text(gpu["name"]), subject, line.number)
        elif device is not None and subject:
            form = _PROFILE.fullmatch(device["profile"])
            if form is None:
                builder.reject(line.number, line.text, "not a MIG profile such as 1g.10gb")
                continue
            counts[subject].append(form)
            _observe_device(builder, device, form, subject, line.number)
        elif line.text.strip().startswith(("GPU ", "MIG ")):
            builder.reject(line.number, line.text, "neither a GPU nor a MIG device, or cut")
    for owner, forms in counts.items():
        builder.observe("mig_devices", float(len(forms)), owner)
        if forms:
            slices = sum(int(form["c"] or form["g"]) for form in forms)
            builder.observe("mig_compute_slices", float(slices), owner)
    if any(form["c"] for forms in counts.values() for form in forms):
        said = "profiles such as 1c.3g share the memory of their GPU instance; it must be counted once"
        builder.notice("mig-memory-shared", said, Weight.INFO)
    if not any(counts.values()):
        builder.observe("gpus_visible", float(len(counts)), labels(node=node))


def _observe_device(builder: RunBuilder, words: re.Match[str], form: re.Match[str], owner: Labels, line: int) -> None:
    part = (*owner, ("mig", words["index"]), ("mig_uuid", words["uuid"]))
    builder.observe("mig_device", words["profile"], part, line)
    shared = (("shared", "yes"),) if form["c"] else ()
    builder.observe("mig_profile_memory", quantity(float(form["gb"]), "GB"), (*part, *shared), line)


def _read_box(builder: RunBuilder, box: Box, node: str) -> None:
    title = next((name for name in _TITLES if any(name in line.text for line in box.title)), "")
    if not title:
        return
    builder.tool = "nvidia-smi mig"
    kind = _TITLES[title]
    words = box.heading.split()
    lacking = [word for word in _WORDS[kind] if word not in words]
    if lacking:
        raise Refused(f"unknown layout of the table '{title}'", box.title[0].number, box.heading)
    count = 0
    for row in box.rows:
        text = row.cells[0][0] if row.cells and row.cells[0] else ""
        if is_elision(text):
            builder.missing("rows left out at an ellipsis")
        elif " MIG " in text:
            count += _observe_row(builder, kind, text, row, node)
        elif not all(word.isdigit() for word in text.split()):
            builder.reject(row.number, row.lines[0].text, f"not a row of '{title}'")
    builder.observe(f"{kind}s", float(count), labels(node=node))
    if not box.closed:
        builder.missing(f"end of the table '{title}'")


_ROWS: Final = {
    "gpu_instance": re.compile(
        r"(?P<gpu>\d+)\s+MIG (?P<name>\S+)\s+(?P<profile_id>\d+)\s+(?P<instance>\d+)\s+(?P<placement>\d+:\d+)"
    ),
    "compute_instance": re.compile(
        r"(?P<gpu>\d+)\s+(?P<gpu_instance>\d+)\s+MIG (?P<name>\S+)\s+(?P<profile_id>\d+)\*?\s+(?P<instance>\d+)"
        r"\s+(?P<placement>\d+:\d+)"
    ),
    "gpu_instance_profile": re.compile(
        r"(?P<gpu>\d+)\s+MIG (?P<name>\S+)\s+(?P<profile_id>\d+)\s+(?P<free>\d+)/(?P<total>\d+)\s+(?P<memory>[\d.]+)"
        r"\s+(?P<p2p>\S+)\s+(?P<sm>\d+)\s.*"
    ),
    "compute_instance_profile": re.compile(
        r"(?P<gpu>\d+)\s+(?P<gpu_instance>\d+)\s+MIG (?P<name>\S+)\s+(?P<profile_id>\d+)\*?"
        r"\s+(?P<free>\d+)/(?P<total>\d+)\s+(?P<sm>\d+)\s.*"
    ),
}


def _observe_row(builder: RunBuilder, kind: str, text: str, row: Row, node: str) -> int:
    match = _ROWS[kind].fullmatch(text)
    if match is None:
        builder.reject(row.number, row.lines[0].text, "too few fields, or another order than this table has")
        return 0
    known = match.groupdict()
    ids = {key: known[key] for key in ("profile_id", "gpu_instance", "instance") if known.get(key)}
    subject = labels(gpu=known["gpu"], node=node, **ids)
    builder.observe(kind, known["name"], subject, row.number)
    if "placement" in known:
        builder.observe("placement", known["placement"], subject, row.number)
    if "free" in known:
        builder.observe("instances_free", as_count(known["free"]), subject, row.number)
        builder.observe("instances_total", as_count(known["total"]), subject, row.number)
        builder.observe("profile_multiprocessors", as_count(known["sm"]), subject, row.number)
    if "memory" in known:
        builder.observe("profile_memory", in_unit("GiB")(known["memory"]), subject, row.number)
        builder.observe("profile_p2p", as_flag(known["p2p"]), subject, row.number)
    return 1


READER: Final = Reader("nvidia-smi-mig", "nvidia-smi -L; nvidia-smi mig -lgi, -lci, -lgip, -lcip", recognise, read)
