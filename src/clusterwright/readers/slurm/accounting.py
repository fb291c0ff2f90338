"""Accounting records one by one, in constant memory a record: for sums, for traces, for bills, and for `sacct`.

A million records stream through here without becoming observations. Each counts once: a record that repeats another
one is passed over, one that contradicts itself is rejected and counted in the run, with samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.accounts import Attempts
from clusterwright.readers.slurm.columns import hold_rows, name_rows, name_sacct, split_bare
from clusterwright.readers.slurm.commands import Asked
from clusterwright.readers.slurm.job_rows import Describing, JobRow
from clusterwright.readers.slurm.jobs import is_job_id
from clusterwright.readers.slurm.layouts import Layout, find_layout
from clusterwright.readers.slurm.sources import lines_of
from clusterwright.readers.slurm.tables import Row, read_rows

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


def iterate_jobs(source: Source, run: RunBuilder) -> Iterator[JobRow]:
    """Every allocation and step of an output of sacct, in its order, each once.

    When the last one was given, `run` holds how many records were rejected and why, what is missing, sums over all
    records (by state and account) and what a careful person says about them; `run.build()` gives that.

    Raises:
        Refused: when it holds no record.
    """
    return iterate_records(lines_of(source), run)


def iterate_records(lines: Iterable[Line], run: RunBuilder, asked: Asked | None = None) -> Iterator[JobRow]:
    """The same for lines, of which a command line may name the columns or the job."""
    attempts = Attempts(run)
    seen = False
    for job, wrong, text in describe_records(lines, run, asked):
        seen = True
        if wrong:
            run.reject(job.line, text, wrong)
            continue
        kept = attempts.keep(job, hash(tuple(job.cells.values())))
        if kept is not None:
            yield kept
    if not seen and not run.rejected:
        raise Refused("sacct printed no record: nothing was accounted, or nothing was asked for")
    attempts.finish()


def describe_records(
    lines: Iterable[Line], run: RunBuilder, asked: Asked | None = None
) -> Iterator[tuple[JobRow, str, str]]:
    """Every record as it stands there, also one that repeats another: (record, what makes it unfit or "", its text).

    Nothing of a record stays, so there is no bound on their number; rows that are no record are rejected in the run.
    """
    asked = asked or Asked()
    describing = Describing()
    for row in _find_rows(lines, asked, run):
        cells = row.cells
        name = cells.get("JobID") or cells.get("JobIDRaw") or asked.job
        if not name:
            run.reject(row.line, row.text, "no job id")
            continue
        job = describing.describe(name, cells, row.line, row.cut)
        yield job, describing.contradiction(job), row.text


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
    held = hold_rows(whole, run)
    return iter(name_rows(split_bare(held, run), name_sacct, run))
