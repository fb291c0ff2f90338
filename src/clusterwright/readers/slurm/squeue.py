"""squeue: the queue. Observations as in `jobs`; rows without a job's id have the subject `row`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from clusterwright.model.observations import NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.amounts import read_count, seconds_of
from clusterwright.readers.slurm.columns import hold_rows, name_rows, name_squeue, split_bare
from clusterwright.readers.slurm.commands import DEFAULTS, Asked
from clusterwright.readers.slurm.jobs import Jobs, is_job_id
from clusterwright.readers.slurm.layouts import Layout, find_layout
from clusterwright.readers.slurm.reasons import classify_reason
from clusterwright.readers.slurm.sources import lines_of
from clusterwright.readers.slurm.states import read_job_state
from clusterwright.readers.slurm.tables import Row, read_rows

COLUMNS: Final = frozenset(
    {
        "ACCOUNT", "ACCRUE_TIME", "ALLOC_NODES", "ARRAY_JOB_ID", "ARRAY_TASK_ID", "BATCHHOST", "CLUSTER", "COMMAND",
        "COMMENT", "CONTIGUOUS", "CORES_PER_SOCKET", "CORE_SPEC", "CPUS", "DEPENDENCY", "ELIGIBLE_TIME", "END_TIME",
        "EXC_NODES", "EXEC_HOST", "FEATURES", "GROUP", "JOBID", "LICENSES", "MIN_CPUS", "MIN_MEMORY",
        "MIN_TMP_DISK", "NAME", "NICE", "NODELIST", "NODELIST(REASON)", "NODES", "OVER_SUBSCRIBE", "PARTITION",
        "PRIORITY", "QOS", "REASON", "REQ_NODES", "RESERVATION", "S:C:T", "SCHEDNODES", "SOCKETS_PER_NODE", "ST",
        "START_TIME", "STATE", "STEPID", "SUBMIT_TIME", "THREADS_PER_CORE", "TIME", "TIME_LEFT", "TIME_LIMI",
        "TIME_LIMIT", "TRES_ALLOC", "TRES_PER_NODE", "TRES_PER_JOB", "TRES_PER_TASK", "UID", "USER", "WCKEY",
        "WORK_DIR", "REQUEUE", "RESTARTCOUNT", "MAX_CPUS", "MAX_NODES",
    }
)  # fmt: skip
_OWN: Final = frozenset({"JOBID", "STEPID", "ST", "NODELIST(REASON)", "TIME_LEFT", "TRES_PER_NODE", "TRES_ALLOC",
                         "TIME_LIMI", "TIME_LIMIT", "MIN_MEMORY", "EXEC_HOST"})  # fmt: skip
_FACTS: Final = {
    "ST": "state", "STATE": "state", "NAME": "name", "USER": "user", "ACCOUNT": "account", "PARTITION": "partition",
    "QOS": "qos", "NODES": "nodes", "NODELIST": "node_list", "CPUS": "cpus", "TRES_ALLOC": "alloc_tres",
    "TRES_PER_NODE": "gres_per_node", "TIME": "elapsed", "TIME_LIMIT": "time_limit", "TIME_LIMI": "time_limit",
    "TIME_LEFT": "time_left", "SUBMIT_TIME": "submit", "START_TIME": "start", "END_TIME": "end", "REASON": "reason",
    "DEPENDENCY": "dependency", "PRIORITY": "priority", "CLUSTER": "cluster", "RESERVATION": "reservation",
}  # fmt: skip
_CHECKS: Final = {
    "JOBID": is_job_id,
    "STEPID": is_job_id,
    "ST": lambda cell: read_job_state(cell) is not None,
    "STATE": lambda cell: read_job_state(cell) is not None or cell.endswith("+"),
    "TIME": lambda cell: seconds_of(cell) is not None or cell in ("INVALID", "N/A"),
    "NODES": lambda cell: not isinstance(read_count(cell), NoValue),
    "START_TIME": lambda cell: len(cell) > 2,
}
#: A row of the columns that squeue prints where no option names them.
_BY_DEFAULT: Final = re.compile(
    r" *\d{1,12}(?:_(?:\d+|\[[\d,%.-]{1,400}\]))? +\S+ .{1,200} [A-Z]{1,2} +"
    r"(?:\d+-)?(?:\d+:){1,2}\d\d +\d+ +\S.{0,4000}"
)
_DATE: Final = re.compile(r"\s*[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\s*$")


def recognise(head: Head) -> int:
    """A header of squeue, or rows with a job's state and a reason or an array id."""
    lines = [line for line in head.text.replace("\x1e", "\n").split("\n")[:40] if line.strip()]
    for line in lines[:3]:
        layout = find_layout(line, "", COLUMNS)
        if layout is not None and len(layout.names) > 1 and not {"SITE", "FAIRSHARE", "AGE"} & set(layout.names):
            own = len(_OWN & set(layout.names))
            if own:
                return 90 if own > 1 else 55
    if lines and all(_BY_DEFAULT.fullmatch(line) for line in lines):
        return 60
    return 40 + 10 * ("squeue" in head.name) if _looks_bare(lines) else 0


def _looks_bare(lines: list[str]) -> bool:
    if not lines:
        return False
    hits = 0
    for line in lines:
        cells = [cell.strip() for cell in re.split(r"\|#?|\x1f" if "|" in line or "\x1f" in line else r"\s+", line)]
        if not any(cell.isupper() and len(cell) > 2 and read_job_state(cell) is not None for cell in cells):
            return False
        if any(re.fullmatch(r"[1-9]\d*\.(?:batch|extern|\d{1,3})", cell) for cell in cells):
            return False
        reason = any(len(cell) > 4 and classify_reason(cell) not in (None, "nothing") for cell in cells)
        hits += reason or any(cell.startswith(("gres/gpu:", "cpu=")) for cell in cells) or line.rstrip().endswith(")")
    return hits > 0


def read_lines(lines: Iterable[Line], asked: Asked | None = None) -> list[Run]:
    """The run that the lines of one squeue output hold."""
    asked = asked or Asked()
    run = RunBuilder("squeue")
    jobs = Jobs(run)
    kept = (line for line in lines if line.text.strip() and not _is_date(line, run))
    first = next(kept, None)
    if first is None:
        raise Refused("squeue printed nothing, not even a header")
    pairs: list[tuple[str, str]] | None = None
    for row in _find_rows(first, kept, asked, run):
        pairs = _pairs(row.cells) if pairs is None else pairs
        _add(row, jobs, asked, pairs)
    jobs.finish(listing=not run.rejected)
    return [run.build()]


def _find_rows(first: Line, kept: Iterator[Line], asked: Asked, run: RunBuilder) -> Iterator[Row]:
    layout = find_layout(first.text, "", COLUMNS)
    if layout is not None and (len(layout.names) > 1 or asked.tool):
        return read_rows(kept, layout, run, _CHECKS)
    whole = chain((first,), kept)
    if asked.columns:
        delimiter = next((d for d in ("|", ",", "\t") if d in first.text), "")
        return read_rows(whole, Layout(asked.columns, delimiter), run, _CHECKS)
    held = hold_rows(whole, run)
    if all(_BY_DEFAULT.fullmatch(line.text) for line in held):
        run.notice("no-header", "no header; the columns are those that squeue prints by default", Weight.INFO)
        run.missing("header")
        return read_rows(held, Layout(DEFAULTS["squeue"], ""), run, _CHECKS)
    return iter(name_rows(split_bare(held, run), name_squeue, run))


def _is_date(line: Line, run: RunBuilder) -> bool:
    if _DATE.match(line.text) is None:
        return False
    run.condition("printed", line.text.strip())
    return True


def _add(row: Row, jobs: Jobs, asked: Asked, pairs: Sequence[tuple[str, str]]) -> None:
    cells = row.cells
    facts = {key: cells[column] for column, key in pairs}
    both = cells.get("NODELIST(REASON)")
    if both is not None:
        facts["reason" if both.startswith("(") else "node_list"] = both
    job = cells.get("JOBID") or cells.get("STEPID") or asked.job
    if "ARRAY_JOB_ID" in cells and "_" not in job and (task := cells.get("ARRAY_TASK_ID", "")).isdigit():
        facts["array_job"] = cells["ARRAY_JOB_ID"]
        job = f"{cells['ARRAY_JOB_ID']}_{task}"
    jobs.add(job, facts, row.line)


def _pairs(cells: Mapping[str, str]) -> list[tuple[str, str]]:
    """Columns with the fact that they give; where two give the same one, the first."""
    columns: dict[str, str] = {}
    for column, key in _FACTS.items():
        if column in cells:
            columns.setdefault(key, column)
    return [(column, key) for key, column in columns.items()]


READER: Final = Reader("slurm-squeue", "squeue: the queue", recognise, lambda s: read_lines(lines_of(s)))
