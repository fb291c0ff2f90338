"""sinfo: partitions and nodes. Every node is counted once, however many partitions list it.

Observations of nodes as in `nodes`; of partitions (subject: partition): `partition_state` (up, down, drain, inact),
`time_limit`, `partition_default`, `partition_nodes` (subject also state: allocated, idle, other, total; or the state
of a row). Rows without node names give `nodes` (subject: row) and, where they hold resources, GPU sums.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from clusterwright.lib.hostlists import HostlistError
from clusterwright.model.observations import NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.amounts import is_time, read_count, read_duration
from clusterwright.readers.slurm.columns import hold_rows, name_rows, name_sinfo, split_bare
from clusterwright.readers.slurm.commands import Asked
from clusterwright.readers.slurm.gres import count_gpus, read_gres
from clusterwright.readers.slurm.hosts import Hosts
from clusterwright.readers.slurm.layouts import Layout, find_layout
from clusterwright.readers.slurm.nodes import Nodes
from clusterwright.readers.slurm.sources import lines_of
from clusterwright.readers.slurm.states import read_node_state
from clusterwright.readers.slurm.tables import Row, read_rows
from clusterwright.readers.values import unreadable

COLUMNS: Final = frozenset(
    {
        "ALLOCMEM", "ALLOCNODES", "ACTIVE_FEATURES", "AVAIL", "AVAIL_FE", "AVAIL_FEATURES", "CLUSTER", "COMMENT",
        "CORES", "CPUS", "CPUS(A/I/O/T)", "CPU_LOAD", "DEFAULTTIME", "DISK", "EXTRA", "FEATURES", "FREE_MEM", "GRES",
        "GRES_USED", "GROUPS", "HOSTNAMES", "JOB_SIZE", "MAX_CPUS_PER_NODE", "MEMORY", "NODEAIOT", "NODELIST",
        "NODES", "NODES(A/I)", "NODES(A/I/O/T)", "NODE_ADDR", "OVERSUBSCRIBE", "PARTITION", "PORT", "PREEMPT_MODE",
        "PRIO_JOB_FACTOR", "PRIO_TIER", "PRIORITY", "REASON", "RESERVATION", "ROOT", "S:C:T", "SHARE", "SOCKETS",
        "STATE", "STATECOMPLETE", "THREADS", "TIMELIMIT", "TIMESTAMP", "TMP_DISK", "USER", "VERSION", "WEIGHT",
    }
)  # fmt: skip
_OWN: Final = frozenset({"AVAIL", "CPUS(A/I/O/T)", "GRES", "GRES_USED", "HOSTNAMES", "NODES(A/I/O/T)", "S:C:T",
                         "FREE_MEM", "TIMESTAMP", "AVAIL_FEATURES", "AVAIL_FE", "CPU_LOAD", "TMP_DISK"})  # fmt: skip
_FACTS: Final = {
    "STATE": "state", "GRES": "gres", "GRES_USED": "gres_used", "MEMORY": "memory", "FREE_MEM": "memory_free",
    "ALLOCMEM": "memory_allocated", "CPU_LOAD": "load", "REASON": "reason", "TIMESTAMP": "reason_since",
    "USER": "reason_user", "VERSION": "version", "AVAIL_FEATURES": "features", "RESERVATION": "reservation",
}  # fmt: skip
_CHECKS: Final = {
    "STATE": lambda cell: read_node_state(cell) is not None or cell.endswith("+") or cell == "n/a",
    "NODES": lambda cell: not isinstance(read_count(cell), NoValue) or cell.endswith("+"),
    "TIMESTAMP": lambda cell: is_time(cell) or cell == "Unknown",
    "CPUS(A/I/O/T)": lambda cell: cell.count("/") == 3,
}
_DATE: Final = re.compile(r"\s*[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\s*$")


def recognise(head: Head) -> int:
    """A header of sinfo, or rows that end in its words."""
    lines = [line for line in head.text.split("\n")[:40] if line.strip()]
    for line in lines[:3]:
        layout = find_layout(line, "", COLUMNS)
        if layout is not None and len(layout.names) > 1 and "JOBID" not in layout.names:
            own = len(_OWN & set(layout.names))
            return 90 if own > 1 or {"PARTITION", "STATE", "NODELIST"} <= set(layout.names) else 60 if own else 30
    return 35 + 10 * ("sinfo" in head.name) if _looks_bare(lines) else 0


def _looks_bare(lines: list[str]) -> bool:
    """Whether rows without a header hold a node's state or resources in every line."""
    if not lines:
        return False
    hits = 0
    for line in lines:
        words = re.split(r"[\s|]+|,(?=[a-z]+.?$)", line.strip())
        state = any(read_node_state(word) is not None for word in words[1:])
        gres = any(word.startswith("gpu:") and not isinstance(read_gres(word), NoValue) for word in words)
        if not (state or gres) and "(null)" not in words:
            return False
        hits += gres or (state and len(words) == 2 and words[0][-1:].isdigit())
    return hits > 0


def read_lines(lines: Iterable[Line], asked: Asked | None = None) -> list[Run]:
    """The run that the lines of one sinfo output hold."""
    run = RunBuilder("sinfo")
    rows = find_rows(lines, asked or Asked(), run)
    nodes, sums, partitions, hosts = Nodes(run), _GroupSums(), _Partitions(), Hosts()
    pairs: list[tuple[str, str]] | None = None
    for row in rows:
        if pairs is None:
            pairs = [(column, key) for column, key in _FACTS.items() if column in row.cells]
        partitions.add(row, row.cells.get("PARTITION", "").rstrip("*"))
        _add(row, pairs, run, nodes, sums, hosts)
    if pairs is None and not run.rejected:
        raise Refused("sinfo printed no row: nothing was listed")
    partitions.finish(run)
    nodes.finish()
    sums.conclude(run, len(nodes))
    return [run.build()]


def find_rows(lines: Iterable[Line], asked: Asked, run: RunBuilder) -> Iterator[Row]:
    """Rows under a header, or named by the command line, or by their contents."""
    kept = (line for line in lines if line.text.strip() and not _is_date(line, run))
    first = next(kept, None)
    if first is None:
        return iter(())
    layout = find_layout(first.text, "", COLUMNS)
    if layout is not None and (len(layout.names) > 1 or asked.tool):
        return read_rows(kept, layout, run, _CHECKS)
    whole = chain((first,), kept)
    if asked.columns:
        delimiter = next((d for d in ("|", ",", "\t") if d in first.text), "")
        return read_rows(whole, Layout(asked.columns, delimiter), run, _CHECKS)
    held = hold_rows(whole, run)
    return iter(name_rows(split_bare(held, run), name_sinfo, run))


def _is_date(line: Line, run: RunBuilder) -> bool:
    if _DATE.match(line.text) is None:
        return False
    run.condition("printed", line.text.strip())
    return True


class _GroupSums:
    """GPUs of rows that say how many nodes they stand for, without naming them."""

    def __init__(self) -> None:
        self.nodes = 0
        self.gpus = 0
        self.slices = 0
        self.partitions: dict[str, None] = {}
        self.unread = 0

    def conclude(self, run: RunBuilder, named: int) -> None:
        if not self.nodes or named:
            return
        if self.unread:
            run.notice("gres-unreadable", f"resources of {self.unread} rows cannot be read: no sum is given")
            return
        if len(self.partitions) > 1:
            run.notice(
                "nodes-not-named",
                f"rows of {len(self.partitions)} partitions without node names: a node in several partitions cannot be "
                "counted once, so no sum is given; run sinfo -N -o '%N %G %T'",
            )
            run.missing("node names")
            return
        run.condition("nodes_listed", float(self.nodes))
        run.condition("gpus_configured", float(self.gpus))
        if self.slices:
            run.condition("mig_slices_configured", float(self.slices))
            run.notice(
                "mig-slices",
                f"{self.slices} MIG slices are listed as gpu beside {self.gpus} whole GPUs; slices are parts of GPUs: "
                f"never add them to {self.gpus + self.slices}",
            )


def _add(
    row: Row, pairs: Sequence[tuple[str, str]], run: RunBuilder, nodes: Nodes, sums: _GroupSums, hosts: Hosts
) -> None:
    cells = row.cells
    partition = cells.get("PARTITION", "").rstrip("*")
    names = _names(row, run, hosts)
    if names is None:
        return
    facts = {key: cells[column] for column, key in pairs}
    if facts.get("reason_user", "") in ("", "Unknown") or "reason" not in facts:
        facts.pop("reason_user", None)
    for key in ("memory", "memory_free", "load"):
        text = facts.get(key, "")
        if text.endswith("+") or "-" in text:
            del facts[key]  # the smallest of several different nodes, or a range over them
    said = cells.get("NODES", "")
    if names and said.isascii() and said.isdigit() and len(said) < 10 and int(said) != len(names):
        text = f"line {row.line}: the row stands for {said} nodes and names {len(names)}; the names are counted"
        run.notice("node-count-conflict", text, line=row.line)
    if len(names) == 1:
        _add_processors(cells, facts)
    for name in names:
        nodes.add(name, facts, (partition,) if partition else (), row.line)
    if not names:
        _observe_group(row, partition, run, sums)


def _names(row: Row, run: RunBuilder, hosts: Hosts) -> Sequence[str] | None:
    text = row.cells.get("NODELIST") or row.cells.get("HOSTNAMES") or ""
    if text in ("", "n/a", "(null)"):
        return ()
    try:
        return hosts.expand(text)
    except HostlistError as error:
        run.reject(row.line, row.text, f"node list: {error}")
        return None


def _add_processors(cells: Mapping[str, str], facts: dict[str, str]) -> None:
    parts = cells.get("CPUS(A/I/O/T)", "").split("/")
    if len(parts) == 4:
        facts["cpus_allocated"], facts["cpus"] = parts[0], parts[3]
    elif cells.get("CPUS", "").isdigit():
        facts["cpus"] = cells["CPUS"]


class _Partitions:
    """What the rows say about each partition, once."""

    def __init__(self) -> None:
        self._limits: dict[str, tuple[str, int]] = {}
        self._states: dict[str, tuple[str, int]] = {}
        self._default: dict[str, int] = {}
        self._counts: dict[str, list[float]] = {}

    def add(self, row: Row, partition: str) -> None:
        cells = row.cells
        if not partition:
            return
        if "TIMELIMIT" in cells:
            self._limits.setdefault(partition, (cells["TIMELIMIT"], row.line))
        if "AVAIL" in cells:
            self._states.setdefault(partition, (cells["AVAIL"], row.line))
        if cells["PARTITION"].endswith("*"):
            self._default.setdefault(partition, row.line)
        if "NODES(A/I/O/T)" not in cells:
            return
        parts = [read_count(part) for part in cells["NODES(A/I/O/T)"].split("/")]
        if len(parts) == 4:
            counts = [part for part in parts if isinstance(part, float)]
            before = self._counts.get(partition, [0.0] * 4)
            if len(counts) == 4:
                self._counts[partition] = [a + b for a, b in zip(before, counts, strict=True)]

    def finish(self, run: RunBuilder) -> None:
        for partition, (text, line) in self._limits.items():
            run.observe("time_limit", read_duration(text), (("partition", partition),), line)
        for partition, (text, line) in self._states.items():
            run.observe("partition_state", text, (("partition", partition),), line)
            if text != "up":
                run.notice("partition-not-up", f"partition {partition} is {text}: its jobs do not start")
        for partition, line in self._default.items():
            run.observe("partition_default", True, (("partition", partition),), line)
        for partition, counts in self._counts.items():
            for state, count in zip(("allocated", "idle", "other", "total"), counts, strict=True):
                run.observe("partition_nodes", count, (("partition", partition), ("state", state)))


def _observe_group(row: Row, partition: str, run: RunBuilder, sums: _GroupSums) -> None:
    if "NODES" not in row.cells:
        _observe_alone(row, run)
        return
    count = read_count(row.cells["NODES"])
    subject = (("row", str(row.line)),)
    run.observe("nodes", count, subject, row.line)
    if isinstance(count, NoValue):
        sums.unread += 1
        return
    sums.nodes += int(count)
    sums.partitions[partition] = None
    resources = read_gres(row.cells.get("GRES", ""))
    if isinstance(resources, NoValue):
        sums.unread += bool(resources.why)
        return
    for gres in resources:
        kind = "mig_slices" if gres.is_slice else "gpus" if gres.is_gpu else ""
        if kind:
            per = f"{kind}_per_node"
            run.observe(per, float(gres.count or 0), (*subject, ("type", gres.type)), row.line)
    sums.gpus += int(count) * count_gpus(resources)
    sums.slices += int(count) * sum(gres.count or 0 for gres in resources if gres.is_slice)


def _observe_alone(row: Row, run: RunBuilder) -> None:
    """A row with neither a node's name nor a count: some nodes that are not named."""
    subject = (("row", str(row.line)),)
    if "NODES(A/I/O/T)" in row.cells:
        run.notice(
            "nodes-not-named", "counts of nodes by partition only; a node in several is in each count", Weight.INFO
        )
    else:
        run.missing("names and number of the nodes; run sinfo -N -o '%N %G %T'")
    if "STATE" in row.cells:
        state = read_node_state(row.cells["STATE"])
        value = str(state) if state is not None else unreadable(row.cells["STATE"], "no state that Slurm documents")
        run.observe("node_state", value, subject, row.line)
    resources = read_gres(row.cells.get("GRES", ""))
    if isinstance(resources, NoValue):
        if resources.why:
            run.observe("gpus_per_node", resources, subject, row.line)
        return
    for gres in resources:
        if gres.is_gpu:
            run.observe("gpus_per_node", float(gres.count or 0), (*subject, ("type", gres.type)), row.line)


READER: Final = Reader("slurm-sinfo", "sinfo: partitions and nodes", recognise, lambda s: read_lines(lines_of(s)))
