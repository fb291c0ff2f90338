"""amd-smi: list, static, metric, monitor and topology as text or JSON, their CSV, and the table it prints alone."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from clusterwright.model.observations import Labels, Run, Value
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.documents import Json
from clusterwright.readers.nvidia.amd_devices import (
    observe_pair,
    product_of,
    say_duplicates,
    say_faults,
    subject_of,
)
from clusterwright.readers.nvidia.amd_fields import AMD, MONITOR, in_amd_unit
from clusterwright.readers.nvidia.boxes import Box, boxes_of
from clusterwright.readers.nvidia.cells import as_count, as_text, nothing
from clusterwright.readers.nvidia.devices import is_command, is_elision, labels
from clusterwright.readers.nvidia.matrices import Matrix, absent_rows, add_row, header_of
from clusterwright.readers.refusing import Refused

_TOOL: Final = "amd-smi"
_GPU: Final = re.compile(r"GPU: (\d{1,4})")
_VERSION: Final = re.compile(r"AMDSMI Tool: (\S{1,40})|\| AMD-SMI (\S{1,40})")
_DRIVER: Final = re.compile(r"amdgpu version: (\S{1,40})")
_UNIT: Final = frozenset({"W", "°C", "C", "%", "MHz", "MB", "GB", "Mb/s", "GT/s", "V", "mV", "J", "s", "us"})
_NUMBERS: Final = re.compile(r"[\d.]{1,20}(?:/[\d.]{1,20})?")
#: Column of the monitor with two sizes: `0.3/191.7 GB`.
_USAGE: Final = re.compile(r"(?P<used>[\d.]{1,20})/(?P<total>[\d.]{1,20}) (?P<unit>[MG]B)")
_TABLES: Final = {
    "LINK TYPE TABLE:": "link", "WEIGHT TABLE:": "link_weight", "HOPS TABLE:": "link_hops",
    "ACCESS TABLE:": "link_access", "NUMA BW TABLE:": "link_bandwidth",
}  # fmt: skip
_HEADING: Final = "BDF GPU-Name Mem-Uti Temp UEC Power-Usage GPU HIP-ID OAM-ID Partition-Mode GFX-Uti Fan Mem-Usage"
_FIRST: Final = re.compile(
    r"(?P<mem>N/A|[\d.]+ %)\s+(?P<temp>N/A|[\d.]+ °?C)\s+(?P<uec>\S+)\s+(?P<power>\S+)/(?P<cap>\S+) W"
)
_SECOND: Final = re.compile(
    r"(?P<gfx>N/A|[\d.]+ %)\s+(?P<fan>N/A|[\d.]+ ?%?)\s+(?P<used>\S+)/(?P<total>\S+) (?P<unit>MB|GB)"
)
_DEEPEST: Final = 12

Leaf = tuple[str, str, int]


def read_amd_json(document: Json) -> list[Run]:
    """GPUs of a list, or of `gpu_data`."""
    builder = RunBuilder(_TOOL)
    say_duplicates(builder, document.duplicates)
    value = document.value.get("gpu_data") if isinstance(document.value, dict) else document.value
    gpus = value if isinstance(value, list) else [value]
    for gpu in gpus:
        if not isinstance(gpu, dict) or "gpu" not in gpu:
            builder.reject(0, str(gpu)[:120], "an object with the key gpu was expected")
            continue
        index = str(gpu["gpu"])[:20]
        links = gpu.get("links")
        if isinstance(links, list):
            _observe_links(builder, index, links)
        _observe_gpu(builder, index, list(_leaves(gpu)), "", 0)
    if builder.bare:
        raise Refused("no GPU in this JSON of amd-smi", 1)
    say_faults(builder)
    return [builder.build()]


def _leaves(value: dict[str, Any]) -> Iterator[Leaf]:
    """(path in lower case, text, 0) of every value; `{"value": 45, "unit": "W"}` is one value."""
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    while waiting:
        path, item, depth = waiting.pop()
        if isinstance(item, dict) and {"value", "unit"} >= set(item) and "value" in item:
            yield path, f"{item['value']} {item.get('unit') or ''}".strip()[:200], 0
        elif isinstance(item, dict) and depth < _DEEPEST:
            parts = [(f"{path}/{key[:60].lower()}".lstrip("/"), part, depth + 1) for key, part in item.items()]
            waiting.extend(reversed(parts))
        elif not isinstance(item, (dict, list)):
            yield path, "" if item is None else str(item)[:200], 0


def _observe_links(builder: RunBuilder, index: str, links: list[Any]) -> None:
    for link in links:
        if not isinstance(link, dict) or "gpu" not in link:
            builder.reject(0, str(link)[:120], "a link to a GPU was expected")
            continue
        other = f"GPU{str(link['gpu'])[:20]}"
        if other != f"GPU{index}":
            for key, name in (("link_type", "link"), ("num_hops", "link_hops"), ("weight", "link_weight")):
                if key in link:
                    text = str(link[key])[:60]
                    value: Value = as_text(text) if name == "link" else as_count(text)
                    observe_pair(builder, name, f"GPU{index}", other, value)


def _observe_gpu(builder: RunBuilder, index: str, leaves: Sequence[Leaf], node: str, line: int) -> None:
    known = {path.rsplit("/", 1)[-1]: text for path, text, _ in reversed(leaves)}
    subject = subject_of(index, known.get("bdf", ""), known.get("uuid", ""), node)
    builder.observe("gpu", product_of(known), subject, line)
    seen: set[tuple[str, Labels]] = set()
    for path, text, number in leaves:
        short = "/".join(path.split("/")[-2:])
        field = AMD.get(short)
        if field is not None and (field.name, field.labels) not in seen:
            seen.add((field.name, field.labels))
            builder.observe(field.name, field.read(text), (*subject, *field.labels), number)
        elif path.startswith("ecc_blocks/") and short.endswith("correctable_count"):
            name = "ecc_uncorrected" if short.endswith("uncorrectable_count") else "ecc_corrected"
            where = (("scope", "volatile"), ("location", path.split("/")[1]))
            builder.observe(name, as_count(text), (*subject, *where), number)
        elif short in ("driver/version", "driver/driver_version"):
            builder.condition("driver", as_text(text))


def read_amd_text(lines: Sequence[Line], node: str) -> list[Run]:
    """Indented sections of each GPU, link tables, the monitor's rows, or the table that amd-smi prints alone."""
    builder = RunBuilder(_TOOL)
    if node:
        builder.condition("node", node)
    for line in lines:
        if (version := _VERSION.search(line.text[:400])) is not None:
            builder.version = version[1] or version[2]
        if (driver := _DRIVER.search(line.text[:400])) is not None:
            builder.condition("driver", driver[1])
    boxes, outside = boxes_of(lines)
    for box in boxes:
        _read_box(builder, box, node)
    _read_sections(builder, outside if boxes else lines, node)
    if builder.bare and not builder.rejected:
        raise Refused("no value of a GPU", lines[0].number if lines else 0)
    say_faults(builder)
    return [builder.build()]


def _read_sections(builder: RunBuilder, lines: Sequence[Line], node: str) -> None:
    gpus: dict[str, tuple[int, list[Leaf]]] = {}
    stack: list[tuple[int, str]] = []
    current: list[Leaf] = []
    tables: list[tuple[str, Matrix]] = []
    columns: list[str] = []
    title = ""
    for line in lines:
        text = line.text.strip()
        head = _GPU.fullmatch(text)
        if not text or is_command(line.text):
            continue
        if head is not None:
            current = gpus.setdefault(head[1], (line.number, []))[1]
            stack, columns, title = [], [], ""
        elif text in _TABLES or text.endswith(" TABLE:"):
            title, columns = text, []
        elif title and (matrix := header_of(line)) is not None:
            tables.append((title, matrix))
        elif title and tables and add_row(tables[-1][1], line):
            continue
        elif is_elision(text):
            builder.missing("lines left out at an ellipsis")
        elif text.split()[0] in ("GPU", "TIMESTAMP") and len(text.split()) > 2 and text == text.upper():
            columns = text.lower().split()
        elif columns:
            _observe_monitor(builder, columns, line, node)
        elif gpus and ":" in text:
            depth = len(line.text) - len(line.text.lstrip())
            while stack and stack[-1][0] >= depth:
                stack.pop()
            label, _, value = text.partition(":")
            path = "/".join([*(name for _, name in stack[-_DEEPEST:]), label.strip()[:60].lower()])
            if value.strip():
                current.append((path, value.strip()[:200], line.number))
            else:
                stack.append((depth, label.strip()[:60].lower()))
    for index, (number, leaves) in gpus.items():
        _observe_gpu(builder, index, leaves, node, number)
    for name, matrix in tables:
        _observe_table(builder, name, matrix, node)


def _observe_table(builder: RunBuilder, title: str, matrix: Matrix, node: str) -> None:
    name = _TABLES.get(title, "")
    if not name:
        return
    for line in matrix.short:
        builder.reject(line.number, line.text, f"not one cell for each of {len(matrix.devices)} devices")
    for device in absent_rows(matrix):
        builder.missing(f"row of {device} under {title}")
    if name == "link":
        for device in matrix.devices:
            builder.observe("gpu", product_of({}), labels(pci=device, node=node), matrix.line)
        builder.observe("gpus_visible", float(len(matrix.devices)), labels(node=node), matrix.line)
    for (a, b), (text, number) in matrix.cells.items():
        if a != b:
            value: Value = as_count(text) if name in ("link_weight", "link_hops") else as_text(text)
            observe_pair(builder, name, a, b, value, node, number)


def _observe_monitor(builder: RunBuilder, columns: list[str], line: Line, node: str) -> None:
    cells: list[str] = []
    for word in line.text.split():
        if cells and word in _UNIT and (nothing(cells[-1]) is not None or _NUMBERS.fullmatch(cells[-1])):
            cells[-1] += f" {word}"
        else:
            cells.append(word)
    if len(cells) != len(columns):
        builder.reject(line.number, line.text, f"{len(cells)} fields under {len(columns)} column names")
        return
    _observe_columns(builder, dict(zip(columns, cells, strict=True)), node, line.number)


def _observe_columns(builder: RunBuilder, row: dict[str, str], node: str, line: int) -> None:
    subject = subject_of(
        row.get("gpu", ""),
        row.get("gpu_bdf") or row.get("bdf") or "",
        row.get("gpu_uuid") or row.get("uuid") or "",
        node,
    )
    builder.observe("gpu", product_of(row), subject, line)
    if (usage := _USAGE.fullmatch(row.get("vram_usage", "").strip())) is not None:
        for name in ("used", "total"):
            builder.observe(f"memory_{name}", in_amd_unit(usage["unit"])(usage[name]), subject, line)
    for column, text in row.items():
        field = MONITOR.get(column)
        if field is not None:
            builder.observe(field.name, field.read(text), (*subject, *field.labels), line)


def read_amd_csv(lines: Sequence[Line], node: str) -> list[Run]:
    """Rows under a header whose first column is `gpu` or `timestamp`."""
    builder = RunBuilder(_TOOL)
    header: list[str] = []
    for line in lines:
        if not line.text.strip() or is_command(line.text):
            continue
        try:
            cells = [cell.strip() for cell in next(csv.reader([line.text]), [])]
        except csv.Error as error:
            builder.reject(line.number, line.text, f"not CSV: {error}")
            continue
        if "gpu" in [cell.lower() for cell in cells[:2]]:
            header = [cell.lower() for cell in cells]
        elif not header or len(cells) != len(header):
            builder.reject(line.number, line.text, f"{len(cells)} fields under {len(header)} column names")
        else:
            _observe_columns(builder, dict(zip(header, cells, strict=True)), node, line.number)
    if builder.bare and not builder.rejected:
        raise Refused("a header without rows: nothing was measured", lines[0].number if lines else 0)
    say_faults(builder)
    return [builder.build()]


def _read_box(builder: RunBuilder, box: Box, node: str) -> None:
    heading = " ".join(" ".join(cell.split()) for cells in box.headings if len(cells) == 2 for cell in cells)
    if not heading:
        return
    if heading != _HEADING:
        raise Refused("unknown layout of the table of GPUs", box.title[0].number if box.title else 0, heading)
    for row in box.rows:
        flat = [cell for cells in row.cells for cell in cells]
        if len(row.cells) != 2 or len(flat) != 4:
            builder.reject(row.number, row.lines[0].text, "a GPU has 2 lines of 2 cells")
            continue
        bdf, _, name = flat[0].partition(" ")
        words = flat[2].split()
        first, second = _FIRST.fullmatch(flat[1][:200]), _SECOND.fullmatch(flat[3][:200])
        if first is None or second is None or not words or not words[0].isdigit():
            builder.reject(row.number, row.lines[0].text, "not the values that the headings name")
            continue
        subject = subject_of(words[0], bdf, "", node)
        observe = builder.observe
        observe("gpu", as_text(name), subject, row.number)
        observe("temperature", in_amd_unit("°C")(first["temp"]), subject, row.number)
        observe("ecc_uncorrected", as_count(first["uec"]), (*subject, ("scope", "volatile")), row.number)
        observe("power", in_amd_unit("W")(first["power"]), subject, row.number)
        observe("power_limit", in_amd_unit("W")(first["cap"]), subject, row.number)
        observe("utilization", in_amd_unit("%")(second["gfx"]), (*subject, ("part", "gpu")), row.number)
        observe("utilization", in_amd_unit("%")(first["mem"]), (*subject, ("part", "memory")), row.number)
        observe("memory_used", in_amd_unit(second["unit"])(second["used"]), subject, row.number)
        observe("memory_total", in_amd_unit(second["unit"])(second["total"]), subject, row.number)
    if not box.closed:
        builder.missing("end of the table of GPUs")
