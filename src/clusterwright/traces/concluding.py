"""When every record of an accounting was seen: which jobs have no GPUs and which have unknown ones, and what is open.

A job whose trackable resources name no GPU held none if the cluster records GPUs, which earlier jobs with GPUs show;
else nobody knows. Source: man slurm.conf (AccountingStorageTRES: gres/gpu is recorded only where it is named there).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import tzinfo
from typing import Final

import numpy as np

from clusterwright.traces.building import TraceBuilder
from clusterwright.traces.counting import Sample, Tally
from clusterwright.traces.imports import Gap, Imported
from clusterwright.traces.records import UNNAMED
from clusterwright.traces.tables import OPEN_STATES, UNKNOWN, Counts, Mask, Trace

#: Marks GPUs per node that differ between the components of a job, while records are read.
MIXED: Final = -2
_GPU_GAP: Final = Gap(
    "GPUs",
    "no job names a GPU in its trackable resources; unknown is not 0",
    "slurm.conf: AccountingStorageTRES=gres/gpu (only jobs that start after that have them)",
)


def conclude(kind: str, builder: TraceBuilder, tally: Tally, zone: tzinfo) -> Imported:
    """The trace of what was added."""
    trace = builder.build()
    trace = replace(trace, gpus=_settle_gpus(trace, tally))
    trace = replace(trace, gpus_per_task=_per_node(trace, tally))
    never = ~trace.ran & ~trace.state.are(*OPEN_STATES) & trace.state.known
    _remark(tally, "never-ran", trace, never)
    _remark(tally, "still-running", trace, trace.censored)
    _remark(tally, "still-pending", trace, ~trace.ran & trace.state.are("PENDING"))
    _remark(tally, "no-limit", trace, np.isinf(trace.limit_s))
    _remark(tally, "over-limit", trace, trace.run_s > trace.limit_s * 1.1 + 300.0)
    return Imported(kind, trace, tally.build(), tuple(_gaps(trace, tally)), str(zone))


def _settle_gpus(trace: Trace, tally: Tally) -> Counts:
    gpus = trace.gpus.copy()
    unnamed = gpus == UNNAMED
    named = np.flatnonzero(gpus > 0)
    first = int(named[0]) if len(named) else len(trace)
    before = unnamed & (np.arange(len(trace)) < first)
    _remark(tally, "gpus-not-recorded", trace, before)
    _remark(tally, "gpus-not-named", trace, unnamed & ~before)
    gpus[before] = UNKNOWN
    gpus[unnamed & ~before] = 0
    return gpus


def _per_node(trace: Trace, tally: Tally) -> Counts:
    nodes = np.maximum(trace.tasks, 1)
    known = (trace.gpus >= 0) & (trace.tasks > 0) & (trace.gpus_per_task != MIXED)
    uneven = known & (trace.gpus % nodes != 0)
    _remark(tally, "gpus-not-per-node", trace, uneven)
    return np.where(known & ~uneven, trace.gpus // nodes, UNKNOWN).astype(np.int32)


def _remark(tally: Tally, code: str, trace: Trace, mask: Mask) -> None:
    def samples() -> Iterator[Sample]:
        for place in np.flatnonzero(mask).tolist():
            yield Sample(int(trace.line[place]), f"job {trace.ids[place]}", trace.state[place])

    tally.remark_all(code, samples(), int(np.count_nonzero(mask)))


def _gaps(trace: Trace, tally: Tally) -> Iterator[Gap]:
    if not len(trace):
        if tally.count("no-submit"):
            yield Gap("submit times", "no record is a job without one", "sacct --format=…,Submit")
        return
    if not np.any(trace.gpus >= 0):
        yield _GPU_GAP
    if np.all(np.isnan(trace.start_s)):
        yield Gap("start and wait", "replayed waits cannot be compared with real ones", "sacct --format=…,Start")
    if np.all(np.isnan(trace.run_s)):
        yield Gap("run time", "nothing can be replayed", "sacct --format=…,ElapsedRaw")
    if np.all(np.isnan(trace.limit_s)):
        yield Gap("time limits", "backfill cannot be replayed", "sacct --format=…,Timelimit")
    if np.all(np.isnan(trace.eligible_s)):
        yield Gap(
            "when jobs became eligible", "waits count from submission, also for jobs that depend on others",
            "sacct --format=…,Eligible",
        )  # fmt: skip
    if not np.any(trace.tasks > 0):
        yield Gap("nodes of a job", "how its GPUs were spread is unknown", "sacct --format=…,NNodes")
    if not np.any(trace.attempts > 1):
        yield Gap(
            "earlier attempts", "of requeued jobs only the last one shows, with the submit time of the requeue",
            "sacct --duplicates",
        )  # fmt: skip
    for name, column in (("user", trace.user), ("account", trace.account), ("partition", trace.queue)):
        if not np.any(column.known):
            yield Gap(name, f"nothing can be said by {name}", f"sacct --format=…,{name.capitalize()}")
