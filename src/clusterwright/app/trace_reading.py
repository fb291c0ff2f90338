"""Files → one trace: find out what they are, read them row by row, and give an account of every row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from clusterwright.app.trace_slurm import records_of_document, records_of_table
from clusterwright.files.streams import find_outputs, stream_bytes
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.spelling import did_you_mean
from clusterwright.readers.cleaning import HEAD, Source
from clusterwright.readers.readers import Head
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm import documents, sacct
from clusterwright.traces import philly
from clusterwright.traces.accounting import Accounting
from clusterwright.traces.counting import Tally
from clusterwright.traces.events import read_events
from clusterwright.traces.fit_documents import is_fit
from clusterwright.traces.imports import Imported, Lines
from clusterwright.traces.mapped import parse_mapping, read_mapped
from clusterwright.traces.merging import merge
from clusterwright.traces.openb import read_nodes, read_pods
from clusterwright.traces.own import read_own
from clusterwright.traces.recognising import KINDS, recognise
from clusterwright.traces.rows import NotThisKind
from clusterwright.traces.swf import read_swf

#: Told how many bytes of how many (0: not known) were read, and of which file.
Progress = Callable[[int, int, str], None]

_SLURM: Final = frozenset({"slurm-sacct", "slurm-json"})
_OPENB: Final = frozenset({"openb", "openb-nodes"})
_READERS: Final[dict[str, Callable[[Lines], Imported]]] = {
    "events": read_events, "openb": read_pods, "openb-nodes": read_nodes, "cw-csv": read_own,
}  # fmt: skip
_UTC: Final = "UTC"


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """Which files, and how to read them.

    Args:
        paths: files or directories, `-` for standard input; all of one kind.
        kind: one of `KINDS`; "" finds out.
        mapping: of a CSV file of anybody's, see `traces.mapped`.
        zone: IANA name of the zone of local times; "" is US Pacific for Philly and UTC for everything else.
        processors_per_gpu: of SWF; 0: processors are no GPUs.
    """

    paths: Sequence[str]
    kind: str = ""
    mapping: str = ""
    zone: str = ""
    processors_per_gpu: int = 0


@dataclass(slots=True)
class _File:
    path: str
    kind: str
    chunks: Iterator[bytes] = field(repr=False)


def read_trace(request: TraceRequest, progress: Progress | None = None) -> Imported:
    """The trace that the files hold together.

    Raises:
        InvalidInput: when a file is not there, is no trace of a known kind, or is of another kind than the others.
    """
    if request.kind and request.kind not in KINDS:
        near = did_you_mean(request.kind, KINDS) or f"kinds: {', '.join(KINDS)}"
        raise InvalidInput(f"no kind '{request.kind}'; {near}")
    if request.kind == "csv" and not request.mapping:
        raise InvalidInput("a CSV file of anybody's needs --map, such as --map submit=created_at,run=duration:s")
    if request.processors_per_gpu < 0:
        raise InvalidInput(f"--processors-per-gpu is {request.processors_per_gpu}, must be 1 or more")
    paths = find_outputs(request.paths)
    total = sum(_size(path) for path in paths)
    done = 0
    files = []
    for path in paths:
        files.append(_open(path, request, _watch(path, total, done, progress)))
        done += _size(path)
    kinds = {file.kind for file in files}
    if not (len(kinds) == 1 or kinds <= _SLURM or kinds <= _OPENB):
        found = "; ".join(f"{file.path} is {file.kind}" for file in files)
        raise InvalidInput(f"these files are not of one kind: {found}")
    if kinds <= _SLURM:
        return _read_slurm(files, find_zone(request.zone or _UTC))
    return merge([_read(file, request) for file in files])


def find_zone(name: str) -> tzinfo:
    """The time zone of an IANA name.

    Raises:
        InvalidInput: when there is none of that name, with the nearest ones.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = available_timezones()
        if not known:
            raise InvalidInput("this system has no time zones; install tzdata (pip install tzdata)") from None
        near = did_you_mean(name, known) or "names are like Europe/Berlin"
        raise InvalidInput(f"no time zone '{name}'; {near}") from None


def _open(path: str, request: TraceRequest, chunks: Iterator[bytes]) -> _File:
    """The file with its kind; what was looked at is given again."""
    start = list[bytes]()
    for chunk in chunks:
        start.append(chunk)
        if sum(map(len, start)) >= HEAD:
            break
    whole = chain(start, chunks)
    kind = request.kind or _find_kind(path, b"".join(start)[:HEAD], mapped=bool(request.mapping))
    return _File(path, kind, whole)


def _find_kind(path: str, start: bytes, *, mapped: bool) -> str:
    try:
        head = Source([start], path).head
    except Refused as refused:
        raise _refusal(path, refused) from None
    if not head.strip():
        raise InvalidInput(Problem(Place(path), "", "is empty", "a trace has rows"))
    if is_fit(head):
        raise InvalidInput(Problem(Place(path), "", "is a fit, not a trace", "give the trace that it was fitted to"))
    kind = recognise(head, mapped=mapped)
    if kind:
        return kind
    looked = Head(head, Path(path).name.lower())
    if head.lstrip().startswith("{") and ('"jobs"' in head or documents.recognise(looked)):
        return "slurm-json"
    if sacct.recognise(looked):
        return "slurm-sacct"
    listed = "; ".join(f"{name} ({title})" for name, title in KINDS.items())
    raise InvalidInput(Problem(Place(path), "", "is no trace of a known kind", f"--kind takes: {listed}"))


def _read_slurm(files: Iterable[_File], zone: tzinfo) -> Imported:
    tally = Tally()
    accounting = Accounting(zone, tally)
    kind = ""
    for file in files:
        kind = kind or file.kind
        try:
            if file.kind == "slurm-json":
                records = records_of_document(file.chunks)
            else:
                records = records_of_table(Source(file.chunks, file.path), tally)
            for record in records:
                accounting.add(record)
        except Refused as refused:
            raise _refusal(file.path, refused) from None
    return accounting.finish(kind)


def _read(file: _File, request: TraceRequest) -> Imported:
    try:
        lines = ((line.number, line.text) for line in Source(file.chunks, file.path).lines(prefixes=False))
        if file.kind == "philly":
            return philly.read_philly(lines, find_zone(request.zone or philly.ZONE))
        if file.kind == "swf":
            return read_swf(lines, request.processors_per_gpu)
        if file.kind == "csv":
            return read_mapped(lines, parse_mapping(request.mapping), find_zone(request.zone or _UTC))
        return _READERS[file.kind](lines)
    except Refused as refused:
        raise _refusal(file.path, refused) from None
    except NotThisKind as error:
        raise InvalidInput(Problem(Place(file.path), "", f"is not {file.kind}", f"expected {error}")) from None


def _refusal(path: str, refused: Refused) -> InvalidInput:
    refusal = refused.refusal
    place = Place(path, refusal.line, 1) if refusal.line else Place(path)
    return InvalidInput(Problem(place, "", refusal.reason, f"found {refusal.found}" if refusal.found else ""))


def _watch(path: str, total: int, before: int, progress: Progress | None) -> Iterator[bytes]:
    done = before
    for chunk in stream_bytes(path):
        done += len(chunk)
        if progress is not None:
            progress(done, total, path)
        yield chunk


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
