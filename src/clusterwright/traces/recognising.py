"""Which kind of trace a text is, by its contents."""

from __future__ import annotations

import csv
from typing import Final

from clusterwright.traces.events import is_event
from clusterwright.traces.numbers import read_number
from clusterwright.traces.openb import is_nodes, is_pods
from clusterwright.traces.own import is_own
from clusterwright.traces.philly import is_philly
from clusterwright.traces.swf import FIELDS as SWF_FIELDS

#: Kind → what it is, for people.
KINDS: Final[dict[str, str]] = {
    "slurm-sacct": "Slurm accounting, printed by sacct with -P (or as its table)",
    "slurm-json": "Slurm accounting, printed by sacct --json",
    "events": "events of the embedded engine, one JSON object a line",
    "philly": "Microsoft Philly, flattened CSV",
    "openb": "Alibaba openb (cluster-trace-gpu-v2023), pods as CSV",
    "openb-nodes": "Alibaba openb (cluster-trace-gpu-v2023), nodes as CSV",
    "swf": "Standard Workload Format of the Parallel Workloads Archive",
    "cw-csv": "CSV as `cw trace export --to csv` writes it",
    "csv": "any other CSV file, with --map",
}


def recognise(head: str, *, mapped: bool = False) -> str:
    """The kind; "" where none is recognised, or it is Slurm's, whose reader knows its own.

    Args:
        head: beginning of the text.
        mapped: whether a mapping of columns is given.
    """
    lines = [line.strip("\ufeff") for line in head.split("\n")[:200] if line.strip()]
    if not lines:
        return ""
    if mapped:
        return "csv"
    first = lines[0].strip()
    if first.startswith("{"):
        return "events" if is_event(first) else ""
    header = [cell.strip() for cell in next(csv.reader([first]), [])]
    checks = (("cw-csv", is_own), ("philly", is_philly), ("openb", is_pods), ("openb-nodes", is_nodes))
    kind = next((kind for kind, fits in checks if fits(header)), "")
    return kind or ("swf" if _is_swf(lines) else "")


def _is_swf(lines: list[str]) -> bool:
    """Comments with `;` or none, then rows of 18 numbers."""
    rows = [line.split() for line in lines[:-1] or lines if not line.lstrip().startswith(";")][:20]
    fitting = sum(len(row) == SWF_FIELDS and None not in map(read_number, row) for row in rows)
    return fitting > len(rows) / 2 if rows else lines[0].lstrip().startswith(";")
