"""What lines and times say about a cluster: ETTR, goodput, utilisation, fairness, slowdown.

Each is None where it has no meaning (nothing was installed, nobody asked), never 0 or 1 instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from clusterwright.ledger.lines import Line
from clusterwright.ledger.totals import Lines

#: Shortest run time that bounded slowdown divides by, s. Source: Feitelson, Rudolph, Schwiegelshohn, Sevcik, Wong,
#: "Theory and Practice in Parallel Job Scheduling", JSSPP 1997: 10 seconds, so that tiny jobs do not dominate the mean.
SLOWDOWN_BOUND_S: Final = 10.0


def effective_training_time_ratio(productive_s: float, scheduled_s: float, waited_s: float) -> float | None:
    """ETTR of a job: productive run time ÷ wall time in which it ran or could have, 0 to 1; None without such time.

    Args:
        productive_s: it ran and made progress that was kept: neither restart, nor a checkpoint's stall, nor work that
            was done again or lost.
        scheduled_s: it held its GPUs, over all attempts.
        waited_s: it was in the queue and eligible, before its first attempt and between attempts; a hold by its owner
            or a dependency is not.

    Sums over several jobs, each times its GPUs, give the ratio weighted by GPUs.

    Source: Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
    arXiv:2410.21680, definition of ETTR: productive runtime ÷ available wallclock time of a job run (a run is all jobs
    of one training task; available is scheduled, or eligible and queued).

    Raises:
        ValueError: when more is productive than was scheduled.
    """
    if not 0 <= productive_s <= scheduled_s or waited_s < 0:
        raise ValueError(f"{productive_s} s productive of {scheduled_s} s scheduled after {waited_s} s in the queue")
    available_s = scheduled_s + waited_s
    return productive_s / available_s if available_s else None


def goodput_share(lines: Lines) -> float | None:
    """Productive part of all installed GPU time, 0 to 1: useful utilisation."""
    return lines.share(Line.PRODUCTIVE)


def allocated_share(lines: Lines) -> float | None:
    """Part of all installed GPU time that attempts held, 0 to 1: what most sites call utilisation."""
    total = lines.total_gpu_ms
    return lines.held_gpu_ms / total if total else None


def useful_of_allocated(lines: Lines) -> float | None:
    """Productive part of the time that attempts held, 0 to 1."""
    held = lines.held_gpu_ms
    return lines.of(Line.PRODUCTIVE) / held if held else None


def jain_index(amounts: Sequence[float]) -> float | None:
    """(Σx)² ÷ (n·Σx²): 1 when all are equal, 1/n when one has everything; None when nobody has anything.

    Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
    Computer Systems", DEC-TR-301, 1984.

    Raises:
        ValueError: for a negative amount.
    """
    if any(x < 0 for x in amounts):
        raise ValueError("amounts must not be negative")
    largest = max(amounts, default=0.0)
    if not largest:
        return None
    scaled = [x / largest for x in amounts]
    return sum(scaled) ** 2 / (len(scaled) * sum(x * x for x in scaled))


def fairness(delivered: Mapping[str, float], entitled: Mapping[str, float]) -> float | None:
    """Jain's index over queues of delivered ÷ entitled; queues that are entitled to nothing are left out.

    Args:
        delivered: by queue, in any unit of GPU time.
        entitled: by queue, in the same unit: its share of what was installed, at most what it asked for. A queue that
            is not in `delivered` got nothing.
    """
    return jain_index([delivered.get(queue, 0.0) / share for queue, share in entitled.items() if share > 0])


def slowdowns(waits_s: Iterable[float], runs_s: Iterable[float]) -> list[float]:
    """(wait + run) ÷ run by job, 1 or more; infinite for a job that ran no time."""
    return [
        (wait + run) / run if run > 0 else (float("inf") if wait > 0 else 1.0)
        for wait, run in zip(waits_s, runs_s, strict=True)
    ]


def bounded_slowdowns(
    waits_s: Iterable[float], runs_s: Iterable[float], bound_s: float = SLOWDOWN_BOUND_S
) -> list[float]:
    """max(1, (wait + run) ÷ max(run, bound)) by job.

    Source: Feitelson et al. 1997 (`SLOWDOWN_BOUND_S`); the maximum with 1 as in Mu'alem and Feitelson, "Utilization,
    Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling", IEEE TPDS 12(6),
    2001.
    """
    return [max(1.0, (wait + run) / max(run, bound_s)) for wait, run in zip(waits_s, runs_s, strict=True)]


def slowdown_spread(by_queue: Mapping[str, Sequence[float]]) -> float | None:
    """Largest ÷ smallest mean slowdown of a queue, 1 when all wait alike; None unless two queues had jobs."""
    means = [sum(values) / len(values) for values in by_queue.values() if values]
    return max(means) / min(means) if len(means) > 1 else None
