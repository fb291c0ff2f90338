"""rocm-smi: JSON, CSV, and text (the concise table, `GPU[0] : key: value` lines, link matrices, RAS tables)."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Any, Final

from clusterwright.model.observations import Labels, Run, Value, Weight
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
from clusterwright.readers.nvidia.amd_fields import as_clock, key_of, rocm_field
from clusterwright.readers.nvidia.cells import as_amount, as_count, as_text, in_unit
from clusterwright.readers.nvidia.devices import is_command, is_elision, labels
from clusterwright.readers.nvidia.matrices import Matrix, absent_rows, add_row, header_of
from clusterwright.readers.refusing import Refused

_CARD: Final = re.compile(r"card(\d{1,4})", re.I)
_PAIR: Final = re.compile(
    r"\(topology\) (weight|hops|link type|link accessibility) between drm devices (\d+) and (\d+)"
)
_PAIR_NAMES: Final = {
    "weight": "link_weight",
    "hops": "link_hops",
    "link type": "link",
    "link accessibility": "link_access",
}
_TITLE: Final = re.compile(r"={3,} ?(?P<title>[^=]{1,80}?) ?={3,}")
_KEY: Final = re.compile(r"GPU\[(?P<gpu>\d{1,4})\]\s*:\s*(?P<rest>\S.*)")
_DRIVER: Final = re.compile(r"Driver version:\s*(?P<version>\d[\w.-]{0,40})\s*")
_TOOL: Final = "rocm-smi"


def read_rocm_json(document: Json) -> list[Run]:
    """The cards and the system of a JSON object."""
    builder = RunBuilder(_TOOL)
    say_duplicates(builder, document.duplicates)
    cards = 0
    for key, value in document.value.items():
        card = _CARD.fullmatch(key)
        if not isinstance(value, dict):
            builder.reject(0, f"{key}: {value}", "an object was expected")
        elif card is not None:
            cards += 1
            _observe_card(builder, card[1], {k: _plain(v) for k, v in value.items()})
        elif key.lower() == "system":
            _observe_system(builder, {k: _plain(v) for k, v in value.items()})
        else:
            builder.reject(0, key, "neither a card nor the system")
    if not cards:
        builder.missing("cards")
    if builder.bare:
        raise Refused("no card and no topology in this JSON", 1)
    say_faults(builder)
    return [builder.build()]


def _plain(value: Any) -> str:
    """A JSON value as the tool meant it: text; null is nothing."""
    return "" if value is None else value if isinstance(value, str) else str(value)[:400]


def _observe_card(builder: RunBuilder, index: str, values: dict[str, str], node: str = "", line: int = 0) -> None:
    known = {key_of(key): value for key, value in values.items()}
    subject = subject_of(index, known.get("pci bus", ""), known.get("unique id", ""), node)
    builder.observe("gpu", product_of(known), subject, line)
    seen: set[tuple[str, Labels]] = set()
    for key, text in values.items():
        field = rocm_field(key)
        if field is not None and (field.name, field.labels) not in seen:
            seen.add((field.name, field.labels))
            builder.observe(field.name, field.read(text), (*subject, *field.labels), line)


def _observe_system(builder: RunBuilder, values: dict[str, str]) -> None:
    for key, text in values.items():
        pair = _PAIR.fullmatch(key_of(key))
        if pair is not None:
            name = _PAIR_NAMES[pair[1]]
            value: Value = as_text(text) if name in ("link", "link_access") else as_count(text)
            observe_pair(builder, name, f"GPU{pair[2]}", f"GPU{pair[3]}", value)
        elif key_of(key) == "driver version":
            builder.condition("driver", as_text(text))


def read_rocm_csv(lines: Sequence[Line], node: str) -> list[Run]:
    """Tables of `device,…` with a row for each card; parted by empty lines."""
    builder = RunBuilder(_TOOL)
    header: list[str] = []
    for line in lines:
        if not line.text.strip():
            continue
        try:
            cells = next(csv.reader([line.text]), [])
        except csv.Error as error:
            builder.reject(line.number, line.text, f"not CSV: {error}")
            continue
        card = _CARD.fullmatch(cells[0].strip()) if cells else None
        if cells and cells[0].strip().lower() == "device":
            header = [cell.strip() for cell in cells]
        elif card is not None and header and len(cells) == len(header):
            _observe_card(builder, card[1], dict(zip(header[1:], cells[1:], strict=True)), node, line.number)
        elif card is not None or (header and cells[0].strip().lower() == "system"):
            builder.reject(line.number, line.text, f"{len(cells)} fields under {len(header)} column names")
    if builder.bare and not builder.rejected:
        raise Refused("no row of a card", lines[0].number if lines else 0)
    say_faults(builder)
    return [builder.build()]


def read_rocm_text(lines: Sequence[Line], node: str) -> list[Run]:
    """One run for each banner."""
    parts: list[list[Line]] = [[]]
    for line in lines:
        if "ROCm System Management Interface" in line.text[:400] and any(x.text.strip() for x in parts[-1]):
            parts.append([])
        parts[-1].append(line)
    runs = [_Text(node).read(part) for part in parts]
    kept = [run for run in runs if run.observations or run.rejected]
    if not kept:
        raise Refused("no value of a GPU", lines[0].number if lines else 0)
    return kept


class _Text:
    """One log of rocm-smi as text."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._builder = RunBuilder(_TOOL)
        self._title = ""
        self._matrix: Matrix | None = None
        self._matrices: list[tuple[str, Matrix]] = []
        self._columns: list[str] = []
        self._cards: dict[str, dict[str, tuple[str, int]]] = {}
        self._second = ""
        self._ras = ""
        self._ends = [False, False]

    def read(self, lines: Sequence[Line]) -> Run:
        """Every line, then cards and matrices as wholes."""
        builder = self._builder
        if self._node:
            builder.condition("node", self._node)
        for line in lines:
            if line.text.strip() and not is_command(line.text):
                self._take(line)
        self._observe_cards()
        for title, matrix in self._matrices:
            self._observe_matrix(title, matrix)
        if self._ends[0] and not self._ends[1]:
            builder.missing("end of the log")
        elif not self._ends[0]:
            builder.missing("beginning of the log")
        say_faults(builder)
        return builder.build()

    def _take(self, line: Line) -> None:
        text = line.text.strip()[:4000]
        title = _TITLE.fullmatch(text)
        if title is not None or text.startswith("====="):
            self._begin(title["title"].strip() if title else "")
        elif (keyed := _KEY.fullmatch(text)) is not None:
            self._take_keyed(keyed, line)
        elif (driver := _DRIVER.fullmatch(text)) is not None:
            self._builder.condition("driver", driver["version"])
        elif (matrix := header_of(line)) is not None and "CPU Affinity" not in text:
            self._matrix = matrix
            self._matrices.append((self._title, matrix))
        elif self._matrix is not None and add_row(self._matrix, line):
            pass
        elif self._take_table(text, line) or is_elision(text):
            if is_elision(text):
                self._builder.missing("lines left out at an ellipsis")
        elif text.upper().startswith(("WARNING", "ERROR", "EXCEPTION CAUGHT")):
            self._builder.notice("rocm-smi-warning", text[:200], Weight.WARNING, line.number)

    def _begin(self, title: str) -> None:
        if "ROCm System Management Interface" in title:
            self._ends[0] = True
        elif title.startswith("End of ROCm"):
            self._ends[1] = True
        if title:
            self._title, self._columns, self._ras = title, [], ""
        self._matrix = None

    def _take_keyed(self, keyed: re.Match[str], line: Line) -> None:
        label, mark, value = keyed["rest"].partition(":")
        card = self._cards.setdefault(keyed["gpu"], {})
        if key_of(keyed["rest"]) == "ras info":
            self._ras = keyed["gpu"]
        elif mark and value.strip():
            card.setdefault(label.strip(), (value.strip(), line.number))
        elif "not supported" in keyed["rest"].lower():
            said = f"GPU {keyed['gpu']}: {keyed['rest'].strip()[:120]}"
            self._builder.notice("not-supported", said, Weight.INFO, line.number)

    def _take_table(self, text: str, line: Line) -> bool:
        """The concise table and the RAS tables, by their headings."""
        words = re.split(r"\s{2,}", text)
        if words[0] in ("GPU", "Device") and len(words) > 4 and any(w.startswith("Temp") for w in words):
            self._columns, self._second = words, ""
            return True
        if words[:2] == ["Block", "Status"]:
            self._columns = words
            return True
        if self._columns and text.startswith("("):
            self._second = text.lower()
            return True
        if not self._columns:
            return False
        if self._columns[0] == "Block":
            self._take_ras(text.split(), line)
            return True
        cells = re.sub(r",\s+", ",", text).split()
        if not cells[0].isdigit():
            return False
        if len(cells) != len(self._columns):
            why = f"{len(cells)} fields under {len(self._columns)} column names"
            self._builder.reject(line.number, line.text, why)
            return True
        self._observe_concise(dict(zip(self._columns, cells, strict=True)), line.number)
        return True

    def _observe_concise(self, row: dict[str, str], line: int) -> None:
        index = row.get("GPU") if self._columns[0] == "GPU" else row.get("Device", "")
        subject = labels(gpu=index or "", node=self._node)
        observe = self._builder.observe
        if (index or "") not in self._cards:
            observe("gpu", product_of({}), subject, line)
        for column, text in row.items():
            name, _, inner = column.partition(" (")
            if name == "Temp":
                spaced = re.sub(r"(?<=\d)\s*(?:°?[cC])$", " C", text)
                said = inner.rstrip(")").lower()
                sensor = said or next((word for word in ("junction", "edge") if f"({word})" in self._second), "")
                observe("temperature", as_amount(spaced), (*subject, *((("sensor", sensor),) if sensor else ())), line)
            elif name in ("AvgPwr", "Power"):
                observe("power", in_unit("W")(text.removesuffix("W")), subject, line)
            elif name == "PwrCap":
                observe("power_limit", in_unit("W")(text.removesuffix("W")), subject, line)
            elif name in ("SCLK", "MCLK"):
                observe("clock", as_clock(text), (*subject, ("domain", name.lower())), line)
            elif name in ("VRAM%", "GPU%"):
                value = in_unit("%")(text.removesuffix("%"))
                whom = ("measure", "allocated") if name == "VRAM%" else ("part", "gpu")
                observe("memory_use" if name == "VRAM%" else "utilization", value, (*subject, whom), line)
            elif name == "Perf":
                observe("performance_state", as_text(text), subject, line)
            elif name == "Partitions":
                parts = text.split(",")
                observe("compute_partition", as_text(parts[1] if len(parts) > 1 else text), subject, line)
                if len(parts) > 1:
                    observe("memory_partition", as_text(parts[0]), subject, line)

    def _take_ras(self, words: list[str], line: Line) -> None:
        if len(words) != 4:
            if len(words) > 1 and words[1].upper() == "DISABLED":
                return
            self._builder.reject(line.number, line.text, "a RAS block has a status and two counts")
            return
        subject = (*labels(gpu=self._ras, node=self._node), ("scope", "volatile"), ("location", words[0].lower()))
        self._builder.observe("ecc_corrected", as_count(words[2]), subject, line.number)
        self._builder.observe("ecc_uncorrected", as_count(words[3]), subject, line.number)

    def _observe_cards(self) -> None:
        for index, values in self._cards.items():
            known = {key_of(key): text for key, (text, _) in values.items()}
            subject = subject_of(index, known.get("pci bus", ""), known.get("unique id", ""), self._node)
            line = min((number for _, number in values.values()), default=0)
            self._builder.observe("gpu", product_of(known), subject, line)
            for key, (text, number) in values.items():
                field = rocm_field(key)
                if field is None and key_of(key).endswith(" clock level") and not key_of(key).startswith("pcie"):
                    field = rocm_field(key_of(key).replace("level", "speed"))
                if field is not None:
                    self._builder.observe(field.name, field.read(text), (*subject, *field.labels), number)

    def _observe_matrix(self, title: str, matrix: Matrix) -> None:
        builder = self._builder
        lower = title.lower()
        name = next(
            (n for word, n in _PAIR_NAMES.items() if lower.startswith(word)),
            "link_bandwidth" if "bandwidth" in lower else "",
        )
        if not name:
            builder.reject(matrix.line, title or "matrix", "a matrix whose title is not known")
            return
        for line in matrix.short:
            builder.reject(line.number, line.text, f"not one cell for each of {len(matrix.devices)} devices")
        for device in absent_rows(matrix):
            builder.missing(f"row of {device} under {title}")
        if not any(o.name == "gpus_visible" for o in builder.observations[:1]) and name == "link":
            builder.observe("gpus_visible", float(len(matrix.devices)), labels(node=self._node), matrix.line)
            for device in matrix.devices:
                if device[3:] not in self._cards:
                    builder.observe("gpu", product_of({}), labels(gpu=device[3:], node=self._node), matrix.line)
        for (a, b), (text, line_number) in matrix.cells.items():
            if a != b:
                value: Value = as_text(text) if name in ("link", "link_access", "link_bandwidth") else as_count(text)
                observe_pair(builder, name, a, b, value, self._node, line_number)
