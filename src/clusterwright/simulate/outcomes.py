"""What an outcome says about a cluster: waits, slowdowns, utilisation, ETTR, fairness, cost of what succeeded.

Jobs that never started have no wait and no slowdown; they are counted beside the spreads, and a spread without them is
too good. Where a number has no meaning (nothing ran, no price) it is None.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, to_ms
from clusterwright.simulate.jobs import NONE_MS
from clusterwright.simulate.loop import Outcome
from clusterwright.simulate.speeds import slowest_of
from clusterwright.simulate.tallies import Fared

#: Shortest work that bounded slowdown divides by, s. Source: Feitelson, Rudolph, Schwiegelshohn, Sevcik, Wong,
#: "Theory and Practice in Parallel Job Scheduling", JSSPP 1997: 10 seconds, so that tiny jobs do not dominate the mean.
SLOWDOWN_BOUND_S: Final = 10.0


def slowdowns(outcome: Outcome) -> NDArray[np.float64]:
    """Bounded slowdown of jobs that ended: (end − submission) ÷ its work, at least 1; NaN for others.

    What the cluster adds to a job counts as its wait: the queue, starts, stalls, lost work, repeated attempts. The
    divisor is the job's own work at the measured speed, at least `SLOWDOWN_BOUND_S`.

    Source: Feitelson et al. 1997; the maximum with 1 as in Mu'alem and Feitelson, "Utilization, Predictability,
    Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling", IEEE TPDS 12(6), 2001.
    """
    results, jobs = outcome.results, outcome.scenario.jobs
    took_s = (results.end_ms - jobs.submit_ms) / 1000.0
    found = np.maximum(1.0, took_s / np.maximum(jobs.work_ms / 1000.0, SLOWDOWN_BOUND_S))
    return np.where(results.end_ms == NONE_MS, np.nan, found)


def ettr(outcome: Outcome, least_gpus: int = 1, *, saved_only: bool = False) -> float | None:
    """Effective training time ratio of all counted jobs of at least so many GPUs that started, weighted by GPUs.

    Time at work whose progress was kept ÷ time that a job held its GPUs, or was in the queue and eligible, over all of
    its attempts. Restarts, stalls for checkpoints and work that was lost or done again are not productive.

    Args:
        saved_only: work of attempts that still run at the end, since their last checkpoint, counts as lost. Else it is
            productive, as in the ledger: nothing has taken it away yet. The truth is between both.

    Source: Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
    arXiv:2410.21680, definition of ETTR: productive runtime ÷ available wallclock time of a job run.
    """
    results, gpus = outcome.results, outcome.scenario.jobs.gpus
    chosen = (results.start_ms != NONE_MS) & (gpus >= least_gpus) & outcome.scenario.counted
    waited = int((results.waited_ms[chosen] * gpus[chosen].astype(np.int64)).sum())
    available = int(results.held_gpu_ms[chosen].sum()) + waited
    productive = int(results.productive_gpu_ms[chosen].sum())
    if not saved_only:
        productive += int(results.unsaved_gpu_ms[chosen].sum())
    return productive / available if available else None


def deliveries(outcome: Outcome) -> tuple[dict[str, float], dict[str, float]]:
    """GPU-h by queue from `counted_from_s` on: what its attempts held, and what it is entitled to.

    A queue is entitled to its guarantee for the whole time, but to no more than its submitted jobs ask for; without
    quotas every queue that asks is entitled to an equal part. A job from before asks for no more than the time to its
    end, and one that may run on a slower flavor for what it takes there.
    """
    lines, scenario, jobs = outcome.lines, outcome.scenario, outcome.scenario.jobs
    held = {q: n / GPU_MS_PER_GPU_H for (q,), n in lines.by("queue").items() if q}
    wanted_ms = _wanted_ms(outcome) * jobs.gpus.astype(np.int64)
    sums = np.bincount(jobs.kind, weights=wanted_ms, minlength=len(jobs.kinds))
    flavors = tuple(dict.fromkeys(n.flavor for n in scenario.nodes))
    asked: dict[str, float] = {}
    for kind, gpu_ms in zip(jobs.kinds, sums.tolist(), strict=True):
        if gpu_ms:
            gpu_h = gpu_ms / GPU_MS_PER_GPU_H / (slowest_of(kind, flavors) if kind.speeds else 1.0)
            asked[kind.queue] = asked.get(kind.queue, 0.0) + gpu_h
    hours = (outcome.ended_s - scenario.counted_from_s) / 3600.0
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


def _wanted_ms(outcome: Outcome) -> NDArray[np.int64]:
    """Work of each job that was still wanted when counting began."""
    results, scenario = outcome.results, outcome.scenario
    wanted = np.where(results.fared == Fared.NOT_SUBMITTED, 0, scenario.jobs.work_ms)
    begin_ms = to_ms(scenario.counted_from_s)
    if not begin_ms:
        return wanted
    left = np.where(results.end_ms == NONE_MS, wanted, np.maximum(0, results.end_ms - begin_ms))
    return np.where(scenario.counted, wanted, np.minimum(wanted, left))


def cost(outcome: Outcome) -> float | None:
    """Installed GPU time × price, whatever it was used for; None unless every flavor has a price."""
    prices, lines = outcome.scenario.prices, outcome.lines
    if any(flavor not in prices for flavor, n in lines.installed_gpu_ms.items() if n):
        return None
    return sum(prices[flavor] * n / GPU_MS_PER_GPU_H for flavor, n in lines.installed_gpu_ms.items() if n)
