"""A trace as the jobs of a simulation: what was asked for and how long the work took, not when it started there.

The run time of the last attempt is the work of a job; earlier attempts are not repeated, because what ended them is
for the simulation to say. A job that still ran at the end of the trace has run at least so long, and counts as so long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from clusterwright.model.jobs import DEFAULT_QUEUE
from clusterwright.queueing.requests import Demand, Shape
from clusterwright.simulate.attempts import NEVER, Checkpoints
from clusterwright.simulate.jobs import NONE_MS, Fate, Jobs, Kind
from clusterwright.traces.tables import Trace

#: How a job ends by itself, by the state of its record (Slurm's words); what is not here succeeds. NODE_FAIL, BOOT_FAIL
#: and PREEMPTED were done to the job by the cluster, which is simulated.
_FATES: Final = {
    "FAILED": Fate.FAIL,
    "OUT_OF_MEMORY": Fate.FAIL,
    "CANCELLED": Fate.CANCEL,
    "TIMEOUT": Fate.TIME_OUT,
    "DEADLINE": Fate.TIME_OUT,
}


@dataclass(frozen=True)
class Reading:
    """How a trace becomes jobs.

    Args:
        gpus_per_node: of the nodes that will run them; a job whose tasks are not recorded is cut into full nodes.
        queues: queue by the trace's queue; one that is not here keeps its name.
        only_queue: queue of every job; "" takes the trace's.
        flavors: flavors to try by the trace's GPU type; one that is not here may run anywhere.
        checkpoints, starting_ms, restart_ms: of every job.
        retries: of every job: a trace tells how a job ended for good.
        by_user: whether users are told apart.
    """

    gpus_per_node: int
    queues: Mapping[str, str] = field(default_factory=dict)
    only_queue: str = ""
    flavors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    checkpoints: Checkpoints = NEVER
    starting_ms: int = 0
    restart_ms: int = 0
    retries: int | None = 0
    by_user: bool = True


@dataclass(frozen=True, eq=False)
class Replay:
    """Jobs of a trace, and what of it they are.

    Args:
        rows: (jobs,) int64, the job's place in the trace.
        left_out: how many jobs of the trace are not here, by reason.
    """

    jobs: Jobs
    rows: np.ndarray[tuple[int], np.dtype[np.int64]]
    left_out: Mapping[str, int]


def replay_trace(trace: Trace, reading: Reading) -> Replay:
    """The jobs of a trace that used GPUs and whose run time is known, from instant 0 at the first submission."""
    unknown, never = trace.gpus < 0, np.isnan(trace.run_s)
    left_out = {
        "GPUs not recorded": int(unknown.sum()),
        "no GPUs": int((trace.gpus == 0).sum()),
        "never ran, or run time not recorded": int((never & (trace.gpus > 0)).sum()),
    }
    rows = np.flatnonzero((trace.gpus > 0) & ~never)
    ready_s = np.where(np.isnan(trace.eligible_s), trace.submit_s, np.maximum(trace.eligible_s, trace.submit_s))
    rows = rows[np.argsort(ready_s[rows], kind="stable")]
    origin_s = float(ready_s[rows[0]]) if len(rows) else 0.0
    limit_s = trace.limit_s[rows]
    limited = np.isfinite(limit_s)
    fate = np.zeros(len(trace), dtype=np.uint8)
    for word, how in _FATES.items():
        fate[trace.state.are(word)] = how
    kind, kinds = _kinds(trace, rows, reading)
    jobs = Jobs(
        submit_ms=np.rint((ready_s[rows] - origin_s) * 1000).astype(np.int64),
        work_ms=np.maximum(1, np.rint(trace.run_s[rows] * 1000)).astype(np.int64),
        limit_ms=np.where(limited, np.rint(np.where(limited, limit_s, 0) * 1000), NONE_MS).astype(np.int64),
        kind=kind,
        fate=fate[rows],
        kinds=kinds,
        names=tuple(trace.ids[r] for r in rows.tolist()),
        origin_s=origin_s,
    )
    return Replay(jobs, rows, {reason: n for reason, n in left_out.items() if n})


def _kinds(
    trace: Trace, rows: np.ndarray[tuple[int], np.dtype[np.int64]], reading: Reading
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int32]], tuple[Kind, ...]]:
    """(jobs,) index of each job's kind, and the kinds."""
    users = trace.user.codes if reading.by_user else np.zeros(len(trace), dtype=np.int32)
    priority = np.rint(np.where(np.isnan(trace.priority), 0, trace.priority)).astype(np.int64)
    columns: tuple[np.ndarray[Any, np.dtype[Any]], ...] = (
        trace.gpus, trace.tasks, trace.gpus_per_task, trace.queue.codes, trace.account.codes, trace.flavor.codes,
        users, priority,
    )  # fmt: skip
    table = np.stack([c[rows].astype(np.int64) for c in columns], axis=1)
    different, kind = np.unique(table, axis=0, return_inverse=True)
    demands: dict[Demand, Demand] = {}
    kinds = []
    for gpus, tasks, each, queue, account, flavor, user, rank in different.tolist():
        named = trace.queue.words[queue]
        asked = _demand(gpus, tasks, each, reading.gpus_per_node)
        asked = replace(asked, flavors=_flavors(trace.flavor.words[flavor], reading.flavors))
        kinds.append(
            Kind(
                demand=demands.setdefault(asked, asked),
                queue=reading.only_queue or reading.queues.get(named, named) or DEFAULT_QUEUE,
                team=trace.account.words[account],
                user=trace.user.words[user],
                priority=rank,
                checkpoints=reading.checkpoints,
                starting_ms=reading.starting_ms,
                restart_ms=reading.restart_ms,
                retries=reading.retries,
            )
        )
    return kind.reshape(-1).astype(np.int32), tuple(kinds)


def _demand(gpus: int, tasks: int, each: int, per_node: int) -> Demand:
    """Tasks as recorded; else one on one node if it fits, else full nodes and a rest."""
    if tasks > 0 and each > 0 and tasks * each == gpus:
        return Demand((Shape(tasks, each),))
    if gpus <= per_node:
        return Demand((Shape(1, gpus),))
    full, rest = divmod(gpus, per_node)
    groups = (Shape(full, per_node),)
    return Demand((*groups, Shape(1, rest, name="rest")) if rest else groups)


def _flavors(word: str, flavors: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Flavors that any of the GPU types of a job may run on, in the order of the types."""
    found = [f for one in word.split("|") for f in flavors.get(one, ())]
    return tuple(dict.fromkeys(found))
