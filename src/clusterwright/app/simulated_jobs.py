"""A trace, or the declared workloads, as the jobs of a simulation; every job that cannot be one is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.app.simulated_capacity import CPU, MEMORY, Host, needs_of, slices_in
from clusterwright.app.simulated_sites import Site
from clusterwright.app.simulated_speeds import Paces
from clusterwright.ledger.lines import to_ms
from clusterwright.ledger.usage import SLURM_GPUS
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.figures import Figure
from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.jobs import DEFAULT_QUEUE
from clusterwright.queueing.requests import Demand, Shape
from clusterwright.simulate.attempts import NEVER, Checkpoints
from clusterwright.simulate.jobs import NONE_MS, Fate, Jobs, Kind
from clusterwright.simulate.speeds import stretch_limits
from clusterwright.traces.shaping import shape_jobs
from clusterwright.traces.tables import Trace, Words

#: The word that stands for every queue that is not named otherwise.
ANY_QUEUE: Final = "*"
_FATES: Final = {
    "FAILED": Fate.FAIL, "OUT_OF_MEMORY": Fate.FAIL, "CANCELLED": Fate.CANCEL, "TIMEOUT": Fate.TIME_OUT,
    "DEADLINE": Fate.TIME_OUT,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Habits:
    """What a trace does not tell of its jobs.

    Args:
        queues: queue, account or QOS of the trace → declared queue; `*` for all others.
        checkpoints: of every job; a choice, because no batch system records it.
        host: how CPU and memory of jobs are read; None does not look at them.
    """

    queues: Mapping[str, str] = field(default_factory=dict)
    checkpoints: Checkpoints = NEVER
    host: Host | None = None


@dataclass(frozen=True, eq=False)
class Stream:
    """What arrives.

    Args:
        real_wait_ms: (jobs,) int64 wait that the trace records, `NONE_MS` where it records none.
        left_out: reason → rows of the trace that are no jobs of the simulation.
        remarks: what was taken differently from what the trace says.
        figures: what the speeds of the jobs rest on.
    """

    jobs: Jobs
    real_wait_ms: NDArray[np.int64]
    left_out: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()


def jobs_of_trace(
    trace: Trace, site: Site, habits: Habits, paces: Paces, origin_s: float | None = None, until_s: float | None = None
) -> Stream:
    """The jobs of a trace on a site, as they came, each ready when its own conditions let it start.

    Args:
        origin_s: instant 0 in the trace's times; None is the first submission.
        until_s: only what was submitted before, since then.

    Raises:
        InvalidInput: when no job is left, or a queue of it is not declared.
    """
    usable, left_out = _usable(trace)
    if origin_s is None:
        origin_s = float(trace.submit_s[0]) if len(trace) else 0.0
    if until_s is not None:
        usable &= trace.submit_s < origin_s + until_s
    if not usable.any():
        raise InvalidInput(_why_empty(trace, left_out))
    kept = trace.take(usable)
    ready_s = np.where(np.isnan(kept.eligible_s), kept.submit_s, np.maximum(kept.eligible_s, kept.submit_s))
    order = np.argsort(ready_s, kind="stable")
    kept, ready_s = kept.take(order), ready_s[order]
    kinds, kind, remarks = _kinds(kept, site, habits, paces)
    work_ms = np.maximum(1, np.rint(kept.run_s * 1000)).astype(np.int64)
    limited = np.isfinite(kept.limit_s) & (kept.limit_s > 0)
    limit_ms = np.where(limited, np.rint(np.where(limited, kept.limit_s, 0.0) * 1000), NONE_MS).astype(np.int64)
    over = limited & (limit_ms < work_ms)
    limit_ms = np.where(over, work_ms, limit_ms)
    if over.any():
        remarks.append(f"{int(over.sum()):,} jobs ran beyond their time limit; they may here, too")
    if kept.censored.any():
        many = int(kept.censored.sum())
        remarks.append(f"{many:,} jobs still ran when the trace was written; they run as long as they had run by then")
    words = np.array([_FATES.get(word, Fate.SUCCEED) for word in kept.state.words], dtype=np.uint8)
    wait = np.where(np.isnan(kept.wait_s), NONE_MS, np.rint(np.nan_to_num(kept.wait_s) * 1000)).astype(np.int64)
    jobs = Jobs(
        submit_ms=np.rint((ready_s - origin_s) * 1000).astype(np.int64), work_ms=work_ms, limit_ms=limit_ms,
        kind=kind, fate=words[kept.state.codes], kinds=kinds, names=kept.ids, origin_s=origin_s,
    )  # fmt: skip
    return Stream(_stretched(jobs, site, remarks), wait, left_out, tuple(remarks), paces.figures)


def _stretched(jobs: Jobs, site: Site, remarks: list[str]) -> Jobs:
    """The jobs with limits that allow what is slower here."""
    stretched = stretch_limits(jobs, tuple(dict.fromkeys(n.flavor for n in site.nodes)))
    longer = int((stretched.limit_ms != jobs.limit_ms).sum())
    if longer:
        remarks.append(f"{longer:,} jobs may get a slower GPU; their time limits are stretched as much as their work")
    return stretched


def _usable(trace: Trace) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Jobs that can be simulated, and why the others cannot."""
    usable = np.ones(len(trace), dtype=np.bool_)
    left_out: dict[str, int] = {}
    for reason, mask in (
        (f"GPUs not recorded ({SLURM_GPUS.add})", trace.gpus < 0),
        ("asked for no GPU", trace.gpus == 0),
        ("never ran, or its run time is not recorded", ~trace.ran),
    ):
        found = usable & mask
        if found.any():
            left_out[reason] = int(found.sum())
            usable &= ~mask
    return usable, left_out


def _why_empty(trace: Trace, left_out: Mapping[str, int]) -> str:
    if not len(trace):
        return "the trace holds no job"
    if len(trace) and bool((trace.gpus < 0).all()):
        return f"GPUs are not recorded in this trace; add {SLURM_GPUS.add}, and jobs from then on have them"
    reasons = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
    return f"no job of the trace can be simulated: {reasons or 'none was submitted in that time'}"


def _kinds(
    trace: Trace, site: Site, habits: Habits, paces: Paces
) -> tuple[tuple[Kind, ...], NDArray[np.int32], list[str]]:
    """Kinds of jobs, the kind of each, remarks."""
    tasks, each = shape_jobs(trace, max(pool.gpus_per_node for pool in site.pools))
    needs = None if habits.host is None else needs_of(trace, tasks, site.resources, habits.host)
    zero = np.zeros(len(trace))
    cores, memory = (zero, zero) if needs is None else (needs.cores, needs.memory_gib)
    remarks = [] if needs is None else list(needs.remarks)
    parts = trace.gpu_milli < 1000
    if parts.any() and not site.slices:
        remarks.append(f"{int(parts.sum()):,} jobs use a part of a GPU; each takes a whole one here")
    queue_of = _Queues(site, habits.queues)
    flavors_of = _Flavors(site, paces)
    scheduling = site.document.architecture.scheduling
    priorities = scheduling.priorities if scheduling else {}
    columns = (
        trace.queue.codes, trace.account.codes, trace.user.codes, trace.qos.codes, trace.flavor.codes, tasks, each,
        trace.gpu_milli, np.rint(cores * 1000), np.rint(memory * 1000),
    )  # fmt: skip
    unique, inverse = distinct(columns)
    kinds = []
    speeds_of = cache(paces.of)
    for queue, account, user, qos, flavor, count, gpus, milli, core, gib in unique:
        resources = ((CPU, core / 1000), (MEMORY, gib / 1000))
        flavors, units = flavors_of(trace.flavor.words[flavor], gpus, milli)
        names = (trace.account.words[account], trace.queue.words[queue], trace.qos.words[qos])
        kinds.append(
            Kind(
                Demand((Shape(count, units, resources=tuple(r for r in resources if r[1])),), flavors),
                queue_of(names),
                team=names[0],
                user=trace.user.words[user],
                priority=priorities.get(names[2], 0),
                checkpoints=habits.checkpoints,
                speeds=speeds_of(trace.flavor.words[flavor], flavors),
            )
        )
    queue_of.check(inverse, [kind.queue for kind in kinds])
    return tuple(kinds), inverse.astype(np.int32), [*remarks, *flavors_of.remarks]


def distinct(columns: Sequence[NDArray[Any]]) -> tuple[list[tuple[int, ...]], NDArray[np.intp]]:
    """The different rows of columns of whole numbers of 0 or more, in order, and which of them each row is.

    What `numpy.unique` says of rows, many times as fast: a row is one number as long as that fits into 63 bits.
    """
    code = np.zeros(len(columns[0]), dtype=np.int64)
    room = 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if room * size >= 2**62:
            _, code = np.unique(code, return_inverse=True)
            room = int(code.max(initial=0)) + 1
        code = code * size + column.astype(np.int64)
        room *= size
    _, first, which = np.unique(code, return_index=True, return_inverse=True)
    rows = zip(*(column[first].astype(np.int64).tolist() for column in columns), strict=True)
    return list(rows), which


def with_declared_queues(trace: Trace, site: Site, habits: Habits) -> Trace:
    """The trace with the queues that its jobs go to here, so that jobs drawn like them go there, too.

    Raises:
        InvalidInput: when a queue of it is not declared.
    """
    queue_of = _Queues(site, habits.queues)
    unique, of = distinct((trace.account.codes, trace.queue.codes, trace.qos.codes))
    names = [queue_of((trace.account.words[a], trace.queue.words[q], trace.qos.words[o])) for a, q, o in unique]
    queue_of.check(of, names)
    words = ("", *dict.fromkeys(name for name in names if name))
    codes = np.array([words.index(name) for name in names], dtype=np.int32)
    return replace(trace, queue=Words(codes[of], words))


class _Queues:
    """Words of a trace → declared queues."""

    def __init__(self, site: Site, queues: Mapping[str, str]) -> None:
        self._leaves, self._queues = site.tree.leaves, queues
        self._unknown = Counter[str]()
        wrong = [name for name in queues.values() if self._leaves and name not in self._leaves]
        if wrong:
            near = did_you_mean(wrong[0], self._leaves) or f"queues that take jobs: {', '.join(sorted(self._leaves))}"
            raise InvalidInput(f"no queue '{wrong[0]}' takes jobs; {near}")

    def __call__(self, names: tuple[str, str, str]) -> str:
        for name in names:
            if name in self._queues:
                return self._queues[name]
        if not self._leaves:
            return names[1] or DEFAULT_QUEUE
        for name in names:
            if name in self._leaves:
                return name
        if ANY_QUEUE in self._queues:
            return self._queues[ANY_QUEUE]
        if len(self._leaves) == 1:
            return next(iter(self._leaves))
        self._unknown[names[1] or names[0]] += 1
        return ""

    def check(self, kind: NDArray[np.intp], queues: Iterable[str]) -> None:
        """Raises: InvalidInput when jobs are of queues that are not declared."""
        if not self._unknown:
            return
        counts = np.bincount(kind)
        jobs = sum(int(counts[place]) for place, queue in enumerate(queues) if not queue)
        listed = ", ".join(f"'{name}'" for name in list(self._unknown)[:8])
        leaves = ", ".join(sorted(self._leaves))
        raise InvalidInput(
            f"{jobs:,} jobs of the trace are of queues, accounts or QOS that the file does not declare ({listed}); "
            f"say where they go, such as --queue '{next(iter(self._unknown)) or ANY_QUEUE}="
            f"{sorted(self._leaves)[0]}' or --queue '{ANY_QUEUE}={sorted(self._leaves)[0]}' for all others; queues "
            f"that take jobs: {leaves}"
        )


class _Flavors:
    """GPU types of a trace → pools."""

    def __init__(self, site: Site, paces: Paces) -> None:
        self._paces, self._slices = paces, site.slices
        self._whole = tuple(p.name for p in site.pools if p.name not in site.slices)
        self._missing: set[str] = set()

    def __call__(self, words: str, gpus: int, milli: int) -> tuple[tuple[str, ...], int]:
        """Pools that a task may use, and how many GPUs, or slices, of one node it takes there."""
        profile = slices_in(words)
        if self._slices and (profile or milli < 1000):
            fewest = min(self._slices.values())
            return tuple(self._slices), gpus * (profile or -(-milli * fewest // 1000))
        if not words:
            return (self._whole if self._slices else ()), gpus
        found = [pool.name for word in words.split("|") if (pool := self._paces.pool_of(word))]
        if not found:
            self._missing.add(words)
            return (self._whole if self._slices else ()), gpus
        return tuple(dict.fromkeys(found)), gpus

    @property
    def remarks(self) -> list[str]:
        """Types that no pool has."""
        if not self._missing:
            return []
        return [f"no pool has GPUs of the type {', '.join(sorted(self._missing)[:5])}; such jobs take any pool here"]


def parse_queues(entries: Iterable[str]) -> dict[str, str]:
    """`OLD=NEW` each.

    Raises:
        InvalidInput: for one that is not so.
    """
    found = {}
    for entry in entries:
        old, equals, new = entry.partition("=")
        if not (old and equals and new):
            raise InvalidInput(f"'{entry}' is no mapping of queues; write --queue OLD=NEW, or '*=NEW' for all others")
        found[old] = new
    return found


def interval(seconds: float) -> Checkpoints:
    """Checkpoints every so often that stop nothing and are durable at once."""
    return Checkpoints(max(1, to_ms(seconds)))
