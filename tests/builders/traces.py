"""Traces for tests: texts of every kind, and the trace that they become."""

from __future__ import annotations

from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

from clusterwright.app.trace_slurm import records_of_document, records_of_table
from clusterwright.readers.cleaning import Source
from clusterwright.traces.accounting import Accounting
from clusterwright.traces.building import TraceBuilder
from clusterwright.traces.counting import RowCounts, Tally
from clusterwright.traces.imports import Imported
from clusterwright.traces.tables import Trace

PACIFIC = ZoneInfo("America/Los_Angeles")
SACCT = (
    "JobID|Cluster|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|Timelimit|NNodes|NodeList|"
    "AllocTRES|ReqTRES|Priority|Restarts"
)
_USUAL = {
    "Cluster": "c1", "User": "ada", "Account": "lab", "Partition": "batch", "QOS": "normal", "State": "COMPLETED",
    "Submit": "2025-03-01T08:00:00", "Eligible": "2025-03-01T08:00:00", "Start": "2025-03-01T08:10:00",
    "End": "2025-03-01T09:10:00", "ElapsedRaw": "3600", "Timelimit": "02:00:00", "NNodes": "2", "NodeList": "g[1-2]",
    "AllocTRES": "cpu=64,gres/gpu=16,mem=128G,node=2", "ReqTRES": "cpu=64,gres/gpu=16,mem=128G,node=2",
    "Priority": "100", "Restarts": "0",
}  # fmt: skip


def numbered(text: str):
    return list(enumerate(text.split("\n"), 1))


def row(job: str, **cells: str) -> str:
    """A row of sacct: a job with 16 GPUs on 2 nodes that waited 10 min and ran 1 h, but for the given cells."""
    values = {"JobID": job, **_USUAL, **cells}
    return "|".join(values[name] for name in SACCT.split("|"))


def pending(job: str, **cells: str) -> str:
    values = {
        "State": "PENDING", "Start": "Unknown", "End": "Unknown", "ElapsedRaw": "0", "NodeList": "None assigned",
        "AllocTRES": "",
    }  # fmt: skip
    return row(job, **{**values, **cells})


def sacct(*rows: str, zone=UTC) -> Imported:
    """The trace of sacct's rows."""
    tally = Tally()
    accounting = Accounting(zone, tally)
    text = "\n".join((SACCT, *rows, "")).encode()
    for record in records_of_table(Source([text], "jobs.txt"), tally):
        accounting.add(record)
    return accounting.finish("slurm-sacct")


def sacct_json(text: str, piece: int = 64) -> Imported:
    """The trace of sacct's JSON, which comes in pieces."""
    data = text.encode()
    accounting = Accounting(UTC, Tally())
    for record in records_of_document(data[at : at + piece] for at in range(0, len(data), piece)):
        accounting.add(record)
    return accounting.finish("slurm-json")


def trace_of(*jobs: dict[str, Any]) -> Trace:
    """A trace of jobs as `TraceBuilder.add` takes them."""
    builder = TraceBuilder()
    for number, job in enumerate(jobs, 1):
        builder.add(**{"id": str(number), **job})
    return builder.build()


def codes(counts: RowCounts) -> dict[str, dict[str, int]]:
    """Every rule that was met, with its count."""
    groups = {"parts": counts.parts, "rejected": counts.rejected, "remarks": counts.remarks}
    return {name: {found.code: found.count for found in group} for name, group in groups.items() if group}


def adds_up(counts: RowCounts, rows: int) -> bool:
    """Whether each of so many rows is of a job, a part, or rejected."""
    return counts.rows == rows == counts.jobs + counts.part_rows + counts.rejected_rows
