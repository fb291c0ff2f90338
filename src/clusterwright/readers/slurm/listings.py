"""sshare, sprio and sacctmgr show: shares, priorities and limits, row by row.

Observations: one per cell that holds something, named by its column in small letters (`fairshare`, `raw_usage`,
`grptres` …); subject: account, user, cluster, partition, job or qos as the row names them.
Condition: `rows`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from clusterwright.lib.hostlists import fold
from clusterwright.model.observations import Labels, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused, shorten
from clusterwright.readers.slurm.amounts import read_count
from clusterwright.readers.slurm.commands import Asked
from clusterwright.readers.slurm.layouts import Layout, find_layout
from clusterwright.readers.slurm.sources import lines_of
from clusterwright.readers.slurm.tables import Row, read_rows
from clusterwright.readers.values import lacking, unreadable

_TOOLS: Final = {
    "sshare": frozenset(
        {
            "Account", "User", "RawShares", "NormShares", "RawUsage", "NormUsage", "EffectvUsage", "FairShare",
            "LevelFS", "GrpTRESMins", "TRESRunMins", "Partition",
        }
    ),
    "sprio": frozenset(
        {
            "JOBID", "PARTITION", "USER", "ACCOUNT", "PRIORITY", "SITE", "AGE", "ASSOC", "FAIRSHARE", "JOBSIZE",
            "PARTITIONNAME", "QOS", "QOSNAME", "NICE", "TRES",
        }
    ),
    "sacctmgr": frozenset(
        {
            "Account", "User", "Cluster", "Partition", "Share", "Fairshare", "Priority", "GrpJobs", "GrpTRES",
            "GrpSubmit", "GrpWall", "GrpTRESMins", "MaxJobs", "MaxTRES", "MaxTRESPerNode", "MaxSubmit", "MaxWall",
            "MaxTRESMins", "QOS", "Def QOS", "GrpTRESRunMin", "GrpTRESRunMins", "Name", "GraceTime", "Preempt",
            "PreemptMode", "PreemptExemptTime", "Flags", "UsageThres", "UsageFactor", "MaxTRESPU", "MaxJobsPU",
            "MaxSubmitPU", "MaxTRESPA", "MaxJobsPA", "MaxSubmitPA", "MinTRES", "Descr", "Org", "Def Acct", "Admin",
            "ControlHost", "ControlPort", "RPC", "Type", "ID", "LimitFactor", "MaxTRESPerUser", "MaxJobsPerUser",
            "Node", "TRES", "Event", "TimeStart", "TimeEnd", "State", "Reason", "Cluster Nodes", "NodeName",
        }
    ),
}  # fmt: skip
#: Columns of which a header of the tool has at least one.
_MARKS: Final = {
    "sshare": {"RawShares", "RawUsage", "FairShare"},
    "sprio": {"AGE", "FAIRSHARE", "SITE", "JOBSIZE"},
    "sacctmgr": {"GrpTRES", "Share", "UsageFactor", "Descr", "ControlHost", "TimeStart", "GrpJobs"},
}
_SUBJECTS: Final = {
    "account": "account", "user": "user", "cluster": "cluster", "partition": "partition", "jobid": "job",
    "name": "name", "node": "node", "nodename": "node",
}  # fmt: skip
_MOST_EVENTS: Final = 50
_MOST_ROWS: Final = 10_000
_NUMBERS: Final = frozenset(
    {
        "rawshares", "normshares", "rawusage", "normusage", "effectvusage", "fairshare", "levelfs", "priority",
        "site", "age", "assoc", "jobsize", "qos", "nice", "share", "grpjobs", "grpsubmit", "maxjobs", "maxsubmit",
        "usagefactor",
    }
)  # fmt: skip


def recognise(head: Head) -> int:
    """A header of one of the tools."""
    lines = [line for line in head.text.split("\n")[:20] if line.strip()]
    return 88 if any(_find(a, b) for a, b in zip(lines[:2], [*lines[1:3], ""], strict=False)) else 0


def _find(header: str, below: str) -> tuple[str, Layout] | None:
    for tool, names in _TOOLS.items():
        layout = find_layout(header, below, names)
        if layout is not None and len(layout.names) > 2 and _MARKS[tool] & set(layout.names):
            return tool, layout
    return None


def read(source: Source) -> Sequence[Run]:
    """The run that one listing holds."""
    return read_lines(lines_of(source))


def read_lines(lines: Iterable[Line], _asked: Asked | None = None) -> list[Run]:
    """The run that the lines of one listing hold."""
    kept = (line for line in lines if line.text.strip())
    first, second = next(kept, None), next(kept, None)
    found = _find(first.text, second.text if second else "") if first is not None else None
    if found is None or first is None:
        raise Refused("no header of sshare, sprio or sacctmgr", found=first.text if first else "")
    tool, layout = found
    run = RunBuilder(tool)
    rest = kept if layout.spans or second is None else chain((second,), kept)
    rows = 0
    open_events: dict[str, list[str]] = {}
    columns: dict[str, tuple[str, str]] = {}
    for row in read_rows(rest, layout, run):
        rows += 1
        columns = columns or _named(row.cells)
        _observe(row, run, columns, tool == "sprio")
        _keep_open_event(row.cells, open_events)
    for said, names in list(open_events.items())[:_MOST_EVENTS]:
        where = shorten(fold(names), 200)
        run.notice("event-not-ended", f"{where} ({len(names)} nodes): {said}; the event has no end yet")
    run.condition("rows", float(rows))
    if not rows and not run.rejected:
        run.notice("no-rows", f"{tool} printed a header and no row: nothing is defined or asked for", Weight.INFO)
    return [run.build()]


def _keep_open_event(cells: Mapping[str, str], events: dict[str, list[str]]) -> None:
    """A node's event of `sacctmgr show event` that lasts: the node is out since then."""
    node = cells.get("NodeName") or cells.get("Node", "")
    if node and cells.get("TimeEnd") == "Unknown" and cells.get("State") and len(events) < _MOST_ROWS:
        events.setdefault(f"{cells['State']}, {shorten(cells.get('Reason', '') or 'no reason given', 120)}", []).append(
            node
        )


def _observe(row: Row, run: RunBuilder, columns: Mapping[str, tuple[str, str]], weighs: bool) -> None:
    cells = row.cells
    subject: Labels = tuple((about, cells[column]) for column, (_, about) in columns.items() if about and cells[column])
    if weighs and "Weights" in cells.values():
        subject = (("row", "weights"),)
    for column, (name, about) in columns.items():
        cell = cells[column]
        if cell and (not about or (weighs and name == "partition")):
            run.observe(name, _read(name, cell, column in row.cut), subject, row.line)


def _named(cells: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Column → the observation that its cells give, and what they say about the row, "" if nothing."""
    return {column: (column.lower().replace(" ", "_"), _SUBJECTS.get(column.lower(), "")) for column in cells}


def _read(column: str, cell: str, cut: bool) -> Value:
    if cut or cell.endswith("+"):
        return unreadable(cell, "cut by the column's width: not guessed")
    if column in _NUMBERS and re.match(r"[\d.-]", cell):
        number = read_count(cell)
        return number if not isinstance(number, NoValue) else cell
    return lacking(cell) or cell


READER: Final = Reader("slurm-listing", "sshare, sprio, sacctmgr: shares, priorities, limits", recognise, read)
