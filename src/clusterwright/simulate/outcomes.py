"""What an outcome says about a cluster: waits, slowdowns, utilisation, ETTR, fairness, cost of what succeeded.

Jobs that never started have no wait and no slowdown; they are counted beside the spreads, and a spread without them is
too good. Where a number has no meaning (nothing ran, no price) it is None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, Line
from clusterwright.ledger.ratios import SLOWDOWN_BOUND_S, allocated_share, fairness, goodput_share, useful_of_allocated
from clusterwright.simulate.distributions import Floats, Spread, spread_by, spread_of
from clusterwright.simulate.jobs import NONE_MS, Kind
from clusterwright.simulate.loop import Outcome
from clusterwright.simulate.tallies import Fared

_BY: Final[dict[str, Callable[[Kind], str]]] = {
    "size": lambda k: k.size,
    "queue": lambda k: k.queue,
    "team": lambda k: k.team,
    "user": lambda k: k.user,
}


@dataclass(frozen=True, slots=True)
class Counts:
    """Where the submitted jobs are; the six parts add up to `submitted`.

    Args:
        waiting: at the end, `never_started` of them without any attempt.
    """

    submitted: int
    succeeded: int
    failed: int
    timed_out: int
    cancelled: int
    running: int
    waiting: int
    never_started: int

    @property
    def unfinished(self) -> int:
        """Jobs that had not ended."""
        return self.running + self.waiting


def count_jobs(outcome: Outcome) -> Counts:
    """How many jobs came how far."""
    results = outcome.results
    found = np.bincount(results.fared, minlength=len(Fared))
    never = (results.fared == Fared.WAITING) & (results.start_ms == NONE_MS)
    return Counts(
        submitted=int(found.sum() - found[Fared.NOT_SUBMITTED]),
        succeeded=int(found[Fared.SUCCEEDED]),
        failed=int(found[Fared.FAILED]),
        timed_out=int(found[Fared.TIMED_OUT]),
        cancelled=int(found[Fared.CANCELLED]),
        running=int(found[Fared.RUNNING]),
        waiting=int(found[Fared.WAITING]),
        never_started=int(never.sum()),
    )


def queue_times(outcome: Outcome) -> Floats:
    """From submission to first start, s; NaN for jobs that never started, (jobs,) float64."""
    start_ms, submit_ms = outcome.results.start_ms, outcome.scenario.jobs.submit_ms
    return np.where(start_ms == NONE_MS, np.nan, (start_ms - submit_ms) / 1000.0)


def slowdowns(outcome: Outcome) -> Floats:
    """Bounded slowdown of jobs that ended: (end − submission) ÷ its work, at least 1; NaN for others.

    What the cluster adds to a job counts as its wait: the queue, starts, stalls, lost work, repeated attempts. The
    divisor is the job's own work, at least 10 s (`ledger.ratios.SLOWDOWN_BOUND_S`).
    """
    results, jobs = outcome.results, outcome.scenario.jobs
    took_s = (results.end_ms - jobs.submit_ms) / 1000.0
    found = np.maximum(1.0, took_s / np.maximum(jobs.work_ms / 1000.0, SLOWDOWN_BOUND_S))
    return np.where(results.end_ms == NONE_MS, np.nan, found)


def spread(outcome: Outcome, values: Floats) -> Spread:
    """The spread over all jobs that have a value."""
    return spread_of(values[~np.isnan(values)])


def spread_of_jobs(outcome: Outcome, values: Floats, by: str) -> dict[str, Spread]:
    """The spread by "size", "queue", "team" or "user", over jobs that have a value.

    Raises:
        ValueError: for another word.
    """
    if by not in _BY:
        raise ValueError(f"jobs are not grouped by '{by}'; possible are {', '.join(_BY)}")
    jobs, numbers = outcome.scenario.jobs, dict[str, int]()
    kinds = sorted(jobs.kinds, key=lambda k: k.demand.most_gpus) if by == "size" else jobs.kinds
    for kind in kinds:
        numbers.setdefault(_BY[by](kind), len(numbers))
    of_kind = np.array([numbers[_BY[by](k)] for k in jobs.kinds], dtype=np.int64)
    known = ~np.isnan(values)
    return spread_by(values[known], of_kind[jobs.kind[known]], tuple(numbers))


@dataclass(frozen=True, slots=True)
class Efficiency:
    """How well the installed GPUs were used, shares of 0 to 1.

    Args:
        useful: productive part of all installed GPU time (goodput).
        allocated: part that attempts held, which most sites call utilisation.
        useful_of_allocated: productive part of what attempts held.
        ettr: productive ÷ (held + waited for), over all jobs that ran, weighted by GPUs.
        fairness: Jain's index over queues of what each got ÷ what it asked for or was entitled to.
    """

    useful: float | None
    allocated: float | None
    useful_of_allocated: float | None
    ettr: float | None
    fairness: float | None


def efficiency(outcome: Outcome) -> Efficiency:
    """How well the installed GPUs were used."""
    lines = outcome.lines
    return Efficiency(
        useful=goodput_share(lines),
        allocated=allocated_share(lines),
        useful_of_allocated=useful_of_allocated(lines),
        ettr=ettr(outcome),
        fairness=fairness(*deliveries(outcome)),
    )


def ettr(outcome: Outcome, least_gpus: int = 1) -> float | None:
    """Effective training time ratio of all jobs of at least so many GPUs that started, weighted by GPUs.

    Source: as `ledger.ratios.effective_training_time_ratio`.
    """
    results, gpus = outcome.results, outcome.scenario.jobs.gpus
    chosen = (results.start_ms != NONE_MS) & (gpus >= least_gpus)
    waited = int((results.waited_ms[chosen] * gpus[chosen].astype(np.int64)).sum())
    available = int(results.held_gpu_ms[chosen].sum()) + waited
    return int(results.productive_gpu_ms[chosen].sum()) / available if available else None


def deliveries(outcome: Outcome) -> tuple[dict[str, float], dict[str, float]]:
    """GPU-h by queue: what its attempts held, and what it is entitled to.

    A queue is entitled to its guarantee for the whole time, but to no more than its submitted jobs ask for; without
    quotas every queue that asks is entitled to an equal part.
    """
    lines, scenario, jobs = outcome.lines, outcome.scenario, outcome.scenario.jobs
    held = {q: n / GPU_MS_PER_GPU_H for (q,), n in lines.by("queue").items() if q}
    asked: dict[str, float] = {}
    submitted = outcome.results.fared != Fared.NOT_SUBMITTED
    work = jobs.work_ms * jobs.gpus.astype(np.int64)
    sums = np.bincount(jobs.kind[submitted], weights=work[submitted], minlength=len(jobs.kinds))
    for kind, gpu_ms in zip(jobs.kinds, sums.tolist(), strict=True):
        asked[kind.queue] = asked.get(kind.queue, 0.0) + gpu_ms / GPU_MS_PER_GPU_H
    hours = outcome.ended_s / 3600.0
    installed = lines.total_gpu_ms / GPU_MS_PER_GPU_H
    entitled = {}
    for queue, wanted in asked.items():
        declared = scenario.tree.by_name.get(queue)
        if declared is None:
            share = installed / len(asked)
        else:
            share = sum(q.guarantee for q in declared.quotas.values()) * hours
        entitled[queue] = min(wanted, share)
    return held, entitled


@dataclass(frozen=True, slots=True)
class Cost:
    """What the cluster cost while it was simulated, in the scenario's currency.

    Args:
        total: installed GPU time × price, whatever it was used for.
        per_success: ÷ jobs that succeeded.
        per_useful_gpu_h: ÷ GPU-h of work of jobs that succeeded.
        by_line: the part of each line; they add up to `total`.
    """

    total: float
    per_success: float | None
    per_useful_gpu_h: float | None
    by_line: dict[Line, float]
    currency: str


def cost(outcome: Outcome) -> Cost | None:
    """What it cost; None unless every flavor has a price."""
    prices, lines, results = outcome.scenario.prices, outcome.lines, outcome.results
    if any(flavor not in prices for flavor, n in lines.installed_gpu_ms.items() if n):
        return None
    by_line = dict.fromkeys(Line, 0.0)
    for (flavor, line), n in lines.by("flavor", "line").items():
        by_line[Line(line)] += prices[flavor] * n / GPU_MS_PER_GPU_H
    total = sum(prices[flavor] * n / GPU_MS_PER_GPU_H for flavor, n in lines.installed_gpu_ms.items() if n)
    won = results.fared == Fared.SUCCEEDED
    useful_gpu_h = int(results.productive_gpu_ms[won].sum()) / GPU_MS_PER_GPU_H
    return Cost(
        total=total,
        per_success=total / int(won.sum()) if won.any() else None,
        per_useful_gpu_h=total / useful_gpu_h if useful_gpu_h else None,
        by_line=by_line,
        currency=outcome.scenario.currency,
    )
