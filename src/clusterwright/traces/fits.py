"""What is fitted to a trace, as values: enough to generate jobs like its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from clusterwright.traces.distributions import Fitted


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Submissions: a renewal process whose clock runs faster in busy hours of the week.

    Args:
        hourly: jobs per hour by hour of the week from Monday 0 h local time, 168 numbers; one number where the trace
            has no date.
        cv: standard deviation ÷ mean of the times between submissions once the hours are taken out; 1 is Poisson.
        zero_share: of these times that are 0: jobs submitted at once, 0 to 1.
        chosen: distribution of the others; an exponential one without zeros is a Poisson process.
        others: the other families with their distances.
    """

    hourly: tuple[float, ...]
    cv: float
    zero_share: float
    chosen: Fitted
    others: tuple[Fitted, ...]


class Kind(NamedTuple):
    """Jobs that are alike but for their times.

    Args:
        share: of all jobs, 0 to 1.
    """

    share: float
    queue: str
    flavor: str
    gpus: int
    gpu_milli: int
    tasks: int
    gpus_per_task: int


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Run times of the jobs of one class of sizes.

    Args:
        gpus: the class, lowest and highest number; highest is -1 for none.
        jobs: it was fitted to, of which `censored` still ran.
        zero_share: jobs that ran for 0 s, 0 to 1; the distributions are of the others.
        chosen: what generates.
        others: the other families with their distances.
    """

    gpus: tuple[int, int]
    jobs: int
    censored: int
    zero_share: float
    chosen: Fitted
    others: tuple[Fitted, ...]

    def holds(self, gpus: int) -> bool:
        """Whether jobs with so many GPUs are of this class."""
        return self.gpus[0] <= gpus and (self.gpus[1] < 0 or gpus <= self.gpus[1])


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits by how much of them is used.

    Args:
        unlimited_share, unknown_share: of all jobs, 0 to 1.
        ratio: run time ÷ limit at `PROBABILITIES` of the jobs that have a finite one; empty without any.
    """

    unlimited_share: float
    unknown_share: float
    ratio: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Fit:
    """Distributions fitted to a trace.

    Args:
        source: what it was fitted to.
        zone: of the hours of the week; "" for UTC and for traces without a date.
        jobs: that ran, to which everything is fitted; `left_out` never ran, or their GPUs or run time are not recorded.
        days: from the first submission to the last.
    """

    source: str
    zone: str
    jobs: int
    left_out: int
    days: float
    arrivals: Arrivals
    kinds: tuple[Kind, ...]
    run_times: tuple[RunTimes, ...]
    limits: Limits
