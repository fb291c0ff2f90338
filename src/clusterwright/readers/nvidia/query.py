"""`nvidia-smi -q`: the full log or the sections asked for with -d, as text or XML (-x), one run per log.

A line of nothing but N/A stays absent. `Attached GPUs` counts what the driver shows; sections are counted apart,
because `-i` selects some of them. MIG devices of one GPU instance share its memory, which is counted once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Labels, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.documents import load_xml
from clusterwright.readers.nvidia.cells import as_count, as_text
from clusterwright.readers.nvidia.devices import (
    is_command,
    is_elision,
    iso_time,
    labels,
    runs_of_hosts,
    selects,
)
from clusterwright.readers.nvidia.excerpts import excerpts_of, holds_excerpt
from clusterwright.readers.nvidia.failures import note_failure, refuse_failure
from clusterwright.readers.nvidia.findings import Faults
from clusterwright.readers.nvidia.gpu_logs import observe_gpu
from clusterwright.readers.nvidia.trees import Node, split_label, tree_of_element, tree_of_lines
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

_GPU: Final = re.compile(r"\s*(?:GPU|Gpu) (?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*")
_BANNER: Final = re.compile(r"\s*=+ ?NVSMI LOG ?=+\s*")
_SECTION: Final = re.compile(
    r"^[ \t]+(?:Product Name|FB Memory Usage|Retired Pages|Remapped Rows|ECC Errors|Temperature|Utilization|PCI|Clocks"
    r"|Processes|.{0,12}Power Readings)\b",
    re.MULTILINE,
)
_HEADER: Final = {
    "driver_version": "driver",
    "kmd_version": "driver",
    "cuda_version": "cuda",
    "cuda_umd_version": "cuda",
}


def recognise(head: Head) -> int:
    """Sure by its banner or root element; fairly sure by a GPU heading with a known section below."""
    if "NVSMI LOG" in head.text or "<nvidia_smi_log" in head.text:
        return 100
    gpu = any(_GPU.fullmatch(line) for line in head.text.split("\n")[:60] if len(line) < 60)
    if gpu:
        return 82 if _SECTION.search(head.text) else 0
    return 78 if holds_excerpt(head.text) else 0


def read(source: Source) -> Sequence[Run]:
    """One run for each log of each host."""
    if "<nvidia_smi_log" in source.head or source.head.lstrip().startswith("<?xml"):
        return _read_xml(source.text())
    return runs_of_hosts(source, _read_lines)


def _read_lines(lines: list[Line], node: str) -> list[Run]:
    starts = [n for n, line in enumerate(lines) if _BANNER.fullmatch(line.text)]
    if not starts:
        if not any(_GPU.fullmatch(line.text) for line in lines):
            return [_read_excerpt(lines, node)]
        return [_read_log(lines, node, "", banner=False)]
    runs = []
    for begin, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        before = lines[max(0, begin - 4) : begin]
        command = next((line.text for line in reversed(before) if is_command(line.text)), "")
        runs.append(_read_log(lines[begin + 1 : end], node, command, banner=True))
    return runs


def _read_excerpt(lines: list[Line], node: str) -> Run:
    """Sections without the heading of their GPU, as grep leaves them: `GPU #2` is the second one of the excerpt."""
    groups = excerpts_of(lines)
    if not groups:
        refuse_failure(lines)
        raise Refused("no NVSMI LOG banner and no GPU section", lines[0].number if lines else 0)
    builder = RunBuilder("nvidia-smi -q")
    builder.missing("banner of the log")
    builder.missing("headings of the GPUs: which ones these are")
    for count, body in enumerate(groups, 1):
        gpu = Node("gpu", "", body[0].number)
        tree_of_lines(body, gpu)
        observe_gpu(builder, gpu, labels(gpu=f"#{count}", node=node))
    Faults(builder).say()
    return builder.build()


def _read_log(lines: list[Line], node: str, command: str, *, banner: bool) -> Run:
    builder = RunBuilder("nvidia-smi -q")
    if not banner:
        builder.missing("banner of the log")
    if node:
        builder.condition("node", node)
    header: list[Line] = []
    sections: list[tuple[str, Line, list[Line]]] = []
    for line in lines:
        if not line.text.strip() or is_command(line.text):
            continue
        gpu = _GPU.fullmatch(line.text)
        if gpu is not None:
            sections.append((gpu["pci"], line, []))
        elif is_elision(line.text):
            builder.missing("lines left out at an ellipsis")
        elif note_failure(builder, line, node):
            continue
        else:
            (sections[-1][2] if sections else header).append(line)
    attached = _read_header(builder, header)
    gpus = []
    for pci, line, body in sections:
        gpu_node = Node("gpu", pci, line.number)
        tree_of_lines(body, gpu_node)
        gpus.append(gpu_node)
    _drop_torn_end(builder, gpus, lines)
    _observe(builder, gpus, attached, node, chosen=selects(command))
    return builder.build()


def _read_header(builder: RunBuilder, lines: list[Line]) -> float | None:
    """Conditions of the log; gives the number of attached GPUs where it is printed."""
    attached = None
    seen: dict[str, str] = {}
    for line in lines:
        label, value = split_label(line.text)
        key = label.lower().replace(" ", "_")
        if value is None:
            builder.reject(line.number, line.text, "no line of the log's header")
        elif key == "timestamp":
            builder.condition("started", iso_time(value) or value[:40])
        elif key in _HEADER:
            seen.setdefault(key, value)
        elif key == "attached_gpus":
            count = as_count(value)
            builder.observe("attached_gpus", count, labels(), line.number)
            attached = count if isinstance(count, float) else None
    for key, value in seen.items():
        builder.condition(_HEADER[key], as_text(value))
    builder.version = str(builder.conditions().get("driver", ""))
    if not seen:
        builder.missing("driver version")
    return attached


def _drop_torn_end(builder: RunBuilder, gpus: list[Node], lines: list[Line]) -> None:
    """Where the last section stops early, say so, and drop its last line, which may be cut itself."""
    if not gpus:
        return
    last = gpus[-1]
    whole = last.child("product_name") is None or last.child("processes") is not None
    tops = {child.label for child in last.children}
    sibling = {child.label for child in gpus[-2].children} if len(gpus) > 1 else tops
    optional = {"processes", "mig_device", "capabilities", "accounted_processes"}
    last_top, first_top = (
        gpu.children[-1] if gpu.children else None for gpu in (last, gpus[-2] if len(gpus) > 1 else last)
    )
    inner = (
        last_top is not None and first_top is not None and last_top.label == first_top.label
        and last_top.label not in optional and len(last_top.children) < len(first_top.children)
    )  # fmt: skip
    if whole and not (sibling - tops - optional) and not inner and last.children:
        return
    builder.missing(f"end of the section of GPU {last.value}")
    node, parent = last, None
    while node.children:
        parent, node = node, node.children[-1]
    if parent is not None and node.value is not None:
        text = next((line.text for line in reversed(lines) if line.number == node.line), "")
        builder.reject(node.line, text, "last line of a section that is cut; it may be cut itself")
        parent.children.pop()


def _read_xml(text: str) -> list[Run]:
    runs: list[Run] = []
    starts = [m.start() for m in re.finditer(r"<\?xml\b", text)]
    if len(starts) < 2:
        starts = [m.start() for m in re.finditer(r"<nvidia_smi_log\b", text)]
        starts = starts if len(starts) > 1 else [max(text.find("<"), 0)]
    line, done = 1, 0
    for begin, end in zip(starts, [*starts[1:], len(text)], strict=True):
        line, done = line + text.count("\n", done, max(begin, 0)), max(begin, 0)
        closed = text.rfind("</nvidia_smi_log>", begin, end)
        stop = closed + len("</nvidia_smi_log>") if closed >= 0 else end
        try:
            runs.append(_read_document(tree_of_element(load_xml(text[begin:stop]))))
        except Refused as refused:
            refusal = refused.refusal
            whole = text.rfind("</gpu>", begin, end) if closed < 0 else -1
            if whole >= 0:
                rescued = text[begin : whole + len("</gpu>")] + "</nvidia_smi_log>"
                runs.append(_read_document(tree_of_element(load_xml(rescued)), cut=True))
                continue
            if not runs:
                raise Refused(refusal.reason, line + max(refusal.line - 1, 0), refusal.found) from None
            builder = RunBuilder("nvidia-smi -q -x")
            builder.missing(f"this log: {refusal.reason}")
            runs.append(builder.build())
    return runs


def _read_document(root: Node, *, cut: bool = False) -> Run:
    if root.label != "nvidia_smi_log":
        raise Refused("not an nvidia_smi_log document", 1, root.label)
    builder = RunBuilder("nvidia-smi -q -x")
    if cut:
        builder.missing("the end of the XML, which breaks off")
    stamp = root.said("timestamp")
    if stamp:
        builder.condition("started", iso_time(stamp) or stamp[:40])
    for label, name in _HEADER.items():
        if root.said(label):
            builder.condition(name, as_text(root.said(label)))
    builder.version = str(builder.conditions().get("driver", ""))
    if not builder.version:
        builder.missing("driver version")
    attached = None
    if root.said("attached_gpus"):
        count = as_count(root.said("attached_gpus"))
        builder.observe("attached_gpus", count)
        attached = count if isinstance(count, float) else None
    _observe(builder, [node for node in root.children if node.label == "gpu"], attached, "", chosen=False)
    return builder.build()


def _observe(builder: RunBuilder, gpus: list[Node], attached: float | None, node: str, *, chosen: bool) -> None:
    if attached is None:
        builder.missing("number of attached GPUs")
    elif len(gpus) > attached:
        builder.notice(
            "more-gpus-than-attached", f"{len(gpus)} GPU sections, but {attached:.0f} attached GPUs", Weight.ERROR
        )
    elif len(gpus) < attached:
        said = f"{attached:.0f} GPUs are attached, {len(gpus)} of them printed"
        if chosen and gpus:
            builder.notice("gpus-selected", f"{said}: the command selects them; the others are unknown", Weight.INFO)
        else:
            builder.missing(f"sections of {attached - len(gpus):.0f} of {attached:.0f} attached GPUs")
            builder.notice("gpus-not-printed", f"{said}; selected with -i, or cut", Weight.WARNING)
    seen: dict[str, int] = {}
    for index, gpu in enumerate(gpus):
        pci = _pci_of(gpu)
        if pci and pci in seen:
            builder.notice("gpu-twice", f"GPU {pci} has two sections; the first one counts", Weight.ERROR, gpu.line)
            continue
        seen[pci] = index
        position = str(index) if attached == len(gpus) else ""
        observe_gpu(builder, gpu, _subject(gpu, pci, position, node))
    Faults(builder).say()


def _pci_of(gpu: Node) -> str:
    inner = gpu.child("pci")
    return gpu.value or (inner.said("bus_id", "pci_bus_id") if inner else "")


def _subject(gpu: Node, pci: str, position: str, node: str) -> Labels:
    uuid = as_text(gpu.said("gpu_uuid", "uuid"))
    return labels(gpu=position, uuid=uuid if isinstance(uuid, str) else "", pci=pci, node=node)


READER: Final = Reader("nvidia-smi-q", "nvidia-smi -q: text with any -d sections, or XML", recognise, read)
