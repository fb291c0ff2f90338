"""Traces: inspect one, fit distributions to it, write it in another form."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

from clusterwright.app.interrupting import Stop
from clusterwright.app.trace_reading import Progress, TraceRequest, find_zone, read_trace
from clusterwright.files.outputs import write_text
from clusterwright.files.streams import stream_bytes
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.report.trace_fits import render_fit
from clusterwright.report.traces import render_trace, trace_json, trace_values
from clusterwright.traces.exporting import swf_lines
from clusterwright.traces.fit_documents import fit_text, parse_fit
from clusterwright.traces.fits import Fit
from clusterwright.traces.fitting import fit_trace
from clusterwright.traces.imports import Imported
from clusterwright.traces.own import columns, own_rows
from clusterwright.traces.summaries import Summary, summarise


@dataclass(frozen=True, slots=True)
class Inspected:
    """A trace with what it holds."""

    name: str
    found: Imported
    summary: Summary
    zone: tzinfo
    asked_zone: str

    @property
    def zone_assumed(self) -> bool:
        """Whether local times were read without anybody having said in which zone they are."""
        return not self.asked_zone and self.found.zone == "UTC" and self.found.kind in ("slurm-sacct", "csv")

    @property
    def whole(self) -> bool:
        """Whether every row is in a job or is a part, and there is something at all."""
        return not self.found.counts.rejected_rows and self.found.counts.rows > 0


def inspect_trace(request: TraceRequest, progress: Progress | None = None) -> Inspected:
    """Read a trace and sum it up.

    Raises:
        InvalidInput: as `read_trace`.
    """
    found = read_trace(request, progress)
    zone = find_zone(request.zone or found.zone) if request.zone or found.zone else UTC
    return Inspected(_name(request), found, summarise(found.trace, zone, dated=found.dated), zone, request.zone)


def describe_trace(inspected: Inspected, width: int = 120) -> str:
    """The trace as text, for a terminal of `width` columns."""
    zone, assumed = inspected.zone, inspected.zone_assumed
    return render_trace(inspected.name, inspected.found, inspected.summary, zone, width, zone_assumed=assumed)


def values_of_trace(inspected: Inspected) -> dict[str, Any]:
    """The trace as plain values."""
    return {**trace_values(inspected.name, inspected.found, inspected.summary), "zone_assumed": inspected.zone_assumed}


def fit_inspected(inspected: Inspected) -> Fit:
    """Distributions fitted to a trace.

    Raises:
        InvalidInput: when it holds too few jobs with a run time and a number of GPUs.
    """
    found = inspected.found
    return fit_trace(found.trace, inspected.zone, source=inspected.name, dated=found.dated)


def load_fit(path: str) -> Fit:
    """The fit that a file holds.

    Raises:
        InvalidInput: when it cannot be read or is no fit.
    """
    return parse_fit(b"".join(stream_bytes(path)).decode("utf-8", "replace"))


def export_trace(inspected: Inspected, form: str) -> Iterator[str]:
    """The lines of a trace in another form, without their ends.

    Args:
        form: `csv`, `swf` or `json`.
    """
    found = inspected.found
    if form == "csv":
        return _csv_lines(columns(dated=found.dated), own_rows(found.trace))
    if form == "swf":
        return swf_lines(found.trace, dated=found.dated, title=Path(inspected.name).name)
    if form == "json":
        return trace_json(inspected.name, found)
    raise InvalidInput(f"no form '{form}'; forms: csv, swf, json")


def describe_fit(fit: Fit) -> str:
    """The fit as text."""
    return render_fit(fit)


def document_of_fit(fit: Fit) -> str:
    """The fit as a document that `load_fit` reads."""
    return fit_text(fit)


def write_lines(path: Path, lines: Iterable[str], *, force: bool = False) -> None:
    """Write lines to a file, whole or not at all, also when a person or a signal stops it.

    Raises:
        InvalidInput: when the file exists and `force` is not given.
        Interrupted: when it was stopped; the file is as it was.
    """
    if path.exists() and not path.is_dir() and not force:
        raise InvalidInput(Problem(Place(str(path)), "", "this file exists", "use --force to replace it"))
    with Stop():
        write_text(path, "".join(f"{line}\n" for line in lines), replace=True)


def _csv_lines(header: Iterable[str], rows: Iterable[list[str]]) -> Iterator[str]:
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="")
    for row in chain([list(header)], rows):
        writer.writerow(row)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _name(request: TraceRequest) -> str:
    first = "standard input" if request.paths[0] == "-" else request.paths[0]
    return first if len(request.paths) == 1 else f"{first} and {len(request.paths) - 1} more"
