"""elbencho: the text table, the CSV of --csvfile and the JSON of --jsonfile."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.sizes import read_size
from clusterwright.readers.storage import elbencho_json
from clusterwright.readers.storage.elbencho_live import LiveRows
from clusterwright.readers.storage.elbencho_live import is_header as is_live
from clusterwright.readers.storage.elbencho_phases import observe_latency, observe_result, say_small_files

_HEADER: Final = re.compile(r"OPERATION {1,40}RESULT TYPE {1,40}FIRST DONE {1,40}LAST DONE")
_RULE: Final = re.compile(r"\s*=+\s+=+\s+=+")
_ROW: Final = re.compile(r"(?P<phase>[A-Z][A-Z0-9_]*)?\s+(?P<label>[A-Za-z][\w /%]{0,40}?)\s*:\s*(?P<rest>.*)")
_COMMAND: Final = re.compile(r"(?:^|[\s/\"])elbencho\"? (.*)")
_FAILURE: Final = re.compile(r"(?:ERROR|WARNING: .*(?:fail|error)).*", re.IGNORECASE)
_FLAGS: Final = {
    "b": "block_size", "block": "block_size", "s": "file_size", "size": "file_size", "t": "jobs", "threads": "jobs",
    "iodepth": "queue_depth", "hosts": "nodes", "timelimit": "asked_runtime",
}  # fmt: skip
#: Lists with one value for each worker or service.
_EACH: Final = ("time ms each", "svc compl")
_ASKED: Final = {"-w": "WRITE", "--write": "WRITE", "-r": "READ", "--read": "READ"}
_COLUMNS: Final = {
    "block size": "block_size", "file size": "file_size", "threads": "jobs", "io depth": "queue_depth",
    "direct io": "direct", "hosts": "clients", "version": "version", "iso date": "started", "random": "random",
    "command": "command", "label": "label",
}  # fmt: skip


def recognise(head: Head) -> int:
    """Sure by the table's header or the columns of its CSV."""
    if _HEADER.search(head.text):
        return 100
    if is_live(head.text.lstrip()):
        return 98
    return 98 if _is_csv(head.text) or elbencho_json.is_json(head.text) else 0


def _is_csv(text: str) -> bool:
    first = text.lstrip().partition("\n")[0].lower()
    return "operation" in first and "time ms [last]" in first and "," in first


def read(source: Source) -> Sequence[Run]:
    """The runs of the file."""
    if elbencho_json.is_json(source.head):
        return elbencho_json.read_documents(source.text())
    if _is_csv(source.head):
        return _read_csv(source.lines(prefixes=False))
    reader = _Reader()
    for line in source.lines():
        reader.take(line)
    reader.finish()
    if not reader.runs:
        raise Refused("no result table of elbencho")
    return reader.runs


class _Reader:
    """The text table; each header begins a run."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._conditions: dict[str, str] = {}
        self._builder: RunBuilder | None = None
        self._phase = ""
        self._results: dict[str, str] = {}
        self._rows = 0
        self._live = LiveRows()
        self._asked: tuple[str, ...] = ()
        self._seen: set[str] = set()

    def take(self, line: Line) -> None:
        """One more line."""
        text = line.text
        if _HEADER.search(text):
            self.finish()
            self._builder = RunBuilder("elbencho")
            self._rows = 0
        elif is_live(text) and self._builder is None:
            self._builder = RunBuilder("elbencho")
            self._live.take(text, line.number, self._builder)
        elif self._builder is not None and self._live.take(text, line.number, self._builder):
            return
        elif text.startswith("Working on "):
            self.finish()
            self._conditions["directory"] = text.removeprefix("Working on ").split(" ")[0]
        elif self._builder is None or "elbencho" in text:
            if found := _COMMAND.search(text):
                self._conditions = _flags(found[1])
                self._asked = _phases(found[1])
        elif text.strip() in ("...", "[...]"):
            self._builder.missing("rows that were cut out of the middle")
        elif _FAILURE.match(text):
            self._builder.notice("tool-error", text.strip()[:200], Weight.ERROR, line.number)
        elif not _RULE.match(text):
            self._row(self._builder, text, line.number)

    def _row(self, builder: RunBuilder, text: str, number: int) -> None:
        found = _ROW.match(text)
        if found is None:
            return
        if found["phase"]:
            self._close_phase(builder, number)
            self._phase = found["phase"]
            self._seen.add(self._phase)
        if not self._phase:
            return
        label, rest = found["label"], found["rest"].strip()
        if rest.startswith("["):
            listed = "hist" in label or label.lower().startswith(_EACH)
            if not observe_latency(builder, self._phase, label, rest, number) and not listed:
                builder.reject(number, text, "a result of an unknown name")
            return
        cells = rest.split()
        if len(cells) != 2:
            if cells:
                builder.reject(number, text, f"{len(cells)} values, FIRST DONE and LAST DONE expected")
            return
        if observe_result(builder, self._phase, label, cells[0], cells[1], number, {}):
            self._rows += 1
            self._results[label.strip().lower()] = cells[1]
        elif not label.lower().startswith(("cpu util", "cores")):
            builder.reject(number, text, "a result of an unknown name")

    def _close_phase(self, builder: RunBuilder, number: int) -> None:
        if self._results.keys() & {"files/s", "entries/s", "objects/s"}:
            normal = {k.replace("throughput ", "").replace("objects", "files"): v for k, v in self._results.items()}
            say_small_files(builder, self._phase, normal, number)
        self._results = {}

    def finish(self) -> None:
        """End the run that is being read."""
        if self._builder is None:
            return
        self._close_phase(self._builder, 0)
        for name, value in self._conditions.items():
            _condition(self._builder, name, value)
        self._live.finish(self._builder)
        self._live = LiveRows()
        if not self._rows:
            self._builder.missing("results: no row was read")
        for phase in self._asked:
            if self._rows and phase not in self._seen:
                self._builder.missing(f"the phase {phase}, which the command line asks for")
        self._seen = set()
        self.runs.append(self._builder.build())
        self._builder, self._phase = None, ""


def _flags(command: str) -> dict[str, str]:
    """Conditions of a command line."""
    words = [word.strip("\"'") for word in command.split()[:200]]
    found = {"direct": "1"} if "--direct" in words else {}
    for word, value in zip(words, [*words[1:], ""], strict=True):
        key, equals, same = word.lstrip("-").partition("=")
        if word.startswith("-") and key in _FLAGS and (same or value):
            found[_FLAGS[key]] = same if equals else value
    return found


def _phases(command: str) -> tuple[str, ...]:
    """Phases of reading and writing that a command line asks for, unless other options divide or mix them."""
    words = [word.strip("\"'") for word in command.split()[:200]]
    if any(word.startswith(("--rwmix", "--dryrun", "--netbench")) for word in words):
        return ()
    return tuple(dict.fromkeys(phase for word in words if (phase := _ASKED.get(word))))


def _condition(builder: RunBuilder, name: str, value: str) -> None:
    if name == "version":
        builder.version = value
    elif name == "direct":
        builder.condition(name, value.lower() in ("1", "true", "yes"))
    else:
        size = read_size(value) if name in ("block_size", "file_size") else None
        builder.condition(name, size if isinstance(size, Quantity) else value[:300])


def _read_csv(lines: Iterable[Line]) -> list[Run]:
    runs = []
    header: list[str] = []
    rejected = 0
    for line in lines:
        cells = next(csv.reader([line.text], strict=False), [])
        if "operation" in [c.strip().lower() for c in cells]:
            header = [c.strip().lower() for c in cells]
        elif cells and header:
            if len(cells) != len(header):
                rejected += 1
                continue
            runs.append(_phase_run(dict(zip(header, cells, strict=True)), line.number))
    if not runs:
        raise Refused("the CSV of elbencho holds no row" if not rejected else "every row of the CSV is torn")
    if rejected:
        builder = RunBuilder("elbencho")
        builder.missing(f"{rejected} rows with more or fewer cells than the header")
        runs.append(builder.build())
    return runs


def _phase_run(cells: dict[str, str], number: int) -> Run:
    """One row of CSV: one phase."""
    builder = RunBuilder("elbencho")
    phase = cells.get("operation", "").strip()
    for column, name in _COLUMNS.items():
        if value := cells.get(column, "").strip():
            _condition(builder, name, value)
    kept = 0
    for column, value in cells.items():
        if column.endswith(" [last]") and value.strip():
            label = column.removesuffix(" [last]")
            kept += observe_result(builder, phase, label, cells.get(f"{label} [first]", ""), value, number, {})
        elif (found := re.fullmatch(r"(io|ent) lat us \[(min|avg|max)\]", column)) and value.strip():
            text = f"[ {found[2]}={value} ]"
            observe_latency(builder, phase, {"io": "IO lat us", "ent": "Ent lat us"}[found[1]], text, number)
    if not phase or not kept:
        builder.missing("results: the row holds none")
    return builder.build()


ELBENCHO: Final = Reader("elbencho", "elbencho: text table, CSV and JSON", recognise, read)
