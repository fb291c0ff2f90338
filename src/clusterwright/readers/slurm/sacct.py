"""sacct: jobs and steps of the past, for cost and for failures.

A record is an allocation, a step of it (`.batch`, `.extern`, `.0`) or, with `--duplicates`, an earlier attempt of a
requeued job. Steps lie inside their allocation and are never added to it; attempts are added up; a record that stands
several times is counted once. A record that contradicts itself is rejected, not repaired.

Observations (subject: job, step where it is one, attempt from the second on): `job_state`, `cancelled_by`, `elapsed`,
`start_to_end` (where no elapsed time is printed), `waited`, `time_limit`, `cpu_time`, `total_cpu`, `submit`,
`eligible`, `start`, `end`, `exit_code`, `exit_signal`, `nodes`, `cpus`, `node_list`, `gpus_allocated`,
`gpus_requested`, `gpu_time` (allocations only), `memory_requested` with `memory_scope`, `max_rss`, `average_rss`,
`max_vmsize`, `consumed_energy`, `job_name`, `user`, `account`, `partition`, `qos`, `cluster`, `pending_reason`,
`attempts`, `elapsed_total` (over attempts).
Conditions: `records`, `allocations`, `gpu_time` (of all allocations, where each has it).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from clusterwright.model.observations import Labels, Lack, NoValue, Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.accounts import Attempt, Attempts, contradiction, gpus_of, time_between
from clusterwright.readers.slurm.amounts import (
    memory_scope,
    read_count,
    read_duration,
    read_memory,
    read_time,
)
from clusterwright.readers.slurm.columns import MOST_ROWS, name_rows, name_sacct, split_bare
from clusterwright.readers.slurm.commands import Asked
from clusterwright.readers.slurm.jobs import is_job_id
from clusterwright.readers.slurm.sources import lines_of
from clusterwright.readers.slurm.states import read_job_state
from clusterwright.readers.slurm.tables import Layout, Row, find_layout, read_rows
from clusterwright.readers.values import lacking, quantity, unreadable

COLUMNS: Final = frozenset(
    {
        "Account", "AdminComment", "AllocCPUS", "AllocGRES", "AllocNodes", "AllocTRES", "AssocID", "AveCPU",
        "AveCPUFreq", "AveDiskRead", "AveDiskWrite", "AvePages", "AveRSS", "AveVMSize", "BlockID", "CPUTime",
        "CPUTimeRAW", "Cluster", "Comment", "Constraints", "ConsumedEnergy", "ConsumedEnergyRaw", "Container",
        "DBIndex", "DerivedExitCode", "Elapsed", "ElapsedRaw", "Eligible", "End", "ExitCode", "Extra", "FailedNode",
        "Flags", "GID", "Group", "JobID", "JobIDRaw", "JobName", "Layout", "Licenses", "MaxDiskRead",
        "MaxDiskReadNode", "MaxDiskReadTask", "MaxDiskWrite", "MaxDiskWriteNode", "MaxDiskWriteTask", "MaxPages",
        "MaxPagesNode", "MaxPagesTask", "MaxRSS", "MaxRSSNode", "MaxRSSTask", "MaxVMSize", "MaxVMSizeNode",
        "MaxVMSizeTask", "McsLabel", "MinCPU", "MinCPUNode", "MinCPUTask", "NCPUS", "NNodes", "NTasks", "NodeList",
        "Partition", "Planned", "PlannedCPU", "PlannedCPURAW", "Priority", "QOS", "QOSRAW", "QOSREQ", "Reason",
        "ReqCPUFreq", "ReqCPUFreqGov", "ReqCPUFreqMax", "ReqCPUFreqMin", "ReqCPUS", "ReqGRES", "ReqMem", "ReqNodes",
        "ReqTRES", "Reservation", "ReservationId", "Reserved", "ResvCPU", "ResvCPURAW", "Restarts", "SLUID", "Start",
        "State", "StdErr", "StdIn", "StdOut", "Submit", "SubmitLine", "Suspended", "SystemCPU", "SystemComment",
        "TRESUsageInAve", "TRESUsageInMax", "TRESUsageInMaxNode", "TRESUsageInMaxTask", "TRESUsageInMin",
        "TRESUsageInMinNode", "TRESUsageInMinTask", "TRESUsageInTot", "TRESUsageOutAve", "TRESUsageOutMax",
        "TRESUsageOutMaxNode", "TRESUsageOutMaxTask", "TRESUsageOutMin", "TRESUsageOutMinNode", "TRESUsageOutMinTask",
        "TRESUsageOutTot", "Timelimit", "TimelimitRaw", "TotalCPU", "UID", "User", "UserCPU", "WCKey", "WCKeyID",
        "WorkDir",
    }
)  # fmt: skip
_SPELLED: Final = {name.lower(): name for name in COLUMNS}
_TEXTS: Final = {
    "JobName": "job_name", "User": "user", "Account": "account", "Partition": "partition", "QOS": "qos",
    "Cluster": "cluster", "NodeList": "node_list", "Reason": "pending_reason",
}  # fmt: skip
_TIMES: Final = {"Submit": "submit", "Eligible": "eligible", "Start": "start", "End": "end"}
_DURATIONS: Final = {"Elapsed": "elapsed", "Timelimit": "time_limit", "TotalCPU": "total_cpu", "CPUTime": "cpu_time"}
_MEMORIES: Final = {"MaxRSS": "max_rss", "AveRSS": "average_rss", "MaxVMSize": "max_vmsize"}
_COUNTS: Final = {"NNodes": "nodes", "AllocNodes": "nodes", "AllocCPUS": "cpus", "NCPUS": "cpus"}
_CUT: Final = "cut by the column's width: not guessed"
_RAW_SECONDS: Final = {"ElapsedRaw": "elapsed", "CPUTimeRAW": "cpu_time"}


def recognise(head: Head) -> int:
    """A header of sacct, or rows of job ids with steps and states."""
    lines = [line for line in head.text.split("\n")[:60] if line.strip()]
    for line, below in zip(lines[:3], [*lines[1:4], ""], strict=False):
        layout = find_layout(line, below, COLUMNS)
        if layout is not None and "JobID" in layout.names and len(layout.names) > 2:
            return 95
        if layout is not None and len(layout.names) > 1 and {"JobID", "JobIDRaw", "State"} & set(layout.names):
            return 80
    steps = sum(bool(re.search(r"(?:^|[\s|])\d+(?:_\d+)?\.(?:batch|extern|\d+)(?=[\s|])", line)) for line in lines)
    states = sum(any(read_job_state(w) for w in re.split(r"[\s|]+", line) if len(w) > 5) for line in lines)
    bare = steps and states * 10 >= len(lines) * 5 and (steps + 1) * 10 >= len(lines) * 3
    return 55 + 10 * ("sacct" in head.name) if bare else 0


def read_lines(lines: Iterable[Line], asked: Asked | None = None) -> list[Run]:
    """The run that the lines of one sacct output hold."""
    asked = asked or Asked()
    run = RunBuilder("sacct")
    attempts = Attempts(run)
    seen = 0
    for row in _find_rows(lines, asked, run):
        seen += 1
        _add(row, run, attempts, asked)
    if not seen and not run.rejected:
        raise Refused("sacct printed no record: nothing was accounted, or nothing was asked for")
    attempts.finish()
    return [run.build()]


def _find_rows(lines: Iterable[Line], asked: Asked, run: RunBuilder) -> Iterator[Row]:
    kept = (line for line in lines if line.text.strip())
    first = next(kept, None)
    if first is None:
        return iter(())
    second = next(kept, None)
    below = second.text if second is not None else ""
    whole = kept if second is None else chain((second,), kept)
    layout = find_layout(first.text, below, COLUMNS)
    if layout is not None and (len(layout.names) > 1 or asked.tool):
        return read_rows(kept if layout.spans else whole, layout, run, {"JobID": is_job_id})
    whole = chain((first,), whole)
    if asked.columns:
        names = tuple(_SPELLED.get(name.lower(), name) for name in asked.columns)
        delimiter = next((d for d in ("|", ",", "\t") if d in first.text), "|" if len(names) == 1 else "")
        return read_rows(whole, Layout(names, delimiter), run, {"JobID": is_job_id})
    held = [line for line, _ in zip(whole, range(MOST_ROWS), strict=False)]
    return iter(name_rows(split_bare(held, run), name_sacct, run))


def _add(row: Row, run: RunBuilder, attempts: Attempts, asked: Asked) -> None:
    cells = row.cells
    job = cells.get("JobID") or cells.get("JobIDRaw") or asked.job
    if not job:
        run.reject(row.line, row.text, "no job id")
        return
    wrong = contradiction(cells)
    if wrong:
        run.reject(row.line, row.text, wrong)
        return
    attempt = attempts.keep(job, cells)
    if attempt is not None:
        _observe(row, run, attempt)


def _observe(row: Row, run: RunBuilder, attempt: Attempt) -> None:
    subject, line, listed = attempt.subject, row.line, row.cells
    _observe_state(listed, run, subject, line)
    for column, name in _TEXTS.items():
        text = listed.get(column, "")
        if text and lacking(text) is None:
            run.observe(name, unreadable(text, _CUT) if column in row.cut else text, subject, line)
    for column, name in _TIMES.items():
        if column in listed:
            run.observe(name, read_time(listed[column]), subject, line)
    for column, name in _DURATIONS.items():
        if listed.get(column):
            run.observe(name, read_duration(listed[column]), subject, line)
    for column, name in _RAW_SECONDS.items():
        if listed.get(column) and not listed.get(column.removesuffix("Raw").removesuffix("RAW")):
            seconds = read_count(listed[column])
            run.observe(name, seconds if isinstance(seconds, NoValue) else quantity(seconds, "s"), subject, line)
    for column, name in _MEMORIES.items():
        if listed.get(column):
            run.observe(name, read_memory(listed[column]), subject, line)
    named = set[str]()
    for column, name in _COUNTS.items():
        if listed.get(column) and name not in named:
            named.add(name)
            run.observe(name, read_count(listed[column]), subject, line)
    _observe_request(listed, run, subject, line)
    _observe_derived(listed, run, attempt, line)


def _observe_state(cells: Mapping[str, str], run: RunBuilder, subject: Labels, line: int) -> None:
    text = cells.get("State")
    if text is not None:
        state = read_job_state(text)
        run.observe("job_state", state or unreadable(text, "cut, or no state that Slurm documents"), subject, line)
        by = re.fullmatch(r"CANCELLED by (\S{1,64})", text.strip())
        if by is not None:
            run.observe("cancelled_by", by[1], subject, line)
    code = re.fullmatch(r"(\d{1,10}):(\d{1,4})", cells.get("ExitCode", ""))
    if code is not None:
        run.observe("exit_code", float(code[1]), subject, line)
        run.observe("exit_signal", float(code[2]), subject, line)


def _observe_request(cells: Mapping[str, str], run: RunBuilder, subject: Labels, line: int) -> None:
    text = cells.get("ReqMem", "")
    if text:
        whole = text.strip("cn0.KMG") == ""
        asked = (
            NoValue(Lack.ABSENT, text, "0 asks for all memory of the node") if whole else read_memory(text, plain="MiB")
        )
        run.observe("memory_requested", asked, subject, line)
        if scope := memory_scope(text):
            run.observe("memory_scope", scope, subject, line)
    energy = cells.get("ConsumedEnergy") or cells.get("ConsumedEnergyRaw", "")
    if energy and energy not in ("0", "N/A"):
        joules = read_count(energy)
        run.observe("consumed_energy", joules if isinstance(joules, NoValue) else quantity(joules, "J"), subject, line)
    for column, name in (("AllocTRES", "gpus_allocated"), ("ReqTRES", "gpus_requested")):
        if column in cells:
            count = gpus_of(cells[column])
            run.observe(name, float(count) if isinstance(count, int) else count, subject, line)


def _observe_derived(cells: Mapping[str, str], run: RunBuilder, attempt: Attempt, line: int) -> None:
    subject = attempt.subject
    start, end = cells.get("Start", ""), cells.get("End", "")
    if not cells.get("Elapsed") and not cells.get("ElapsedRaw"):
        between = time_between(start, end)
        if between is not None:
            run.observe("start_to_end", quantity(between, "s"), subject, line)
    waited = time_between(cells.get("Eligible") or cells.get("Submit", ""), start)
    if waited is not None and waited >= 0 and not attempt.step:
        run.observe("waited", quantity(waited, "s"), subject, line)
    if attempt.gpu_seconds is not None and not attempt.step:
        run.observe("gpu_time", quantity(attempt.gpu_seconds / 3600, "GPU-h"), subject, line)


READER: Final = Reader("slurm-sacct", "sacct: jobs and steps of the past", recognise, lambda s: read_lines(lines_of(s)))
