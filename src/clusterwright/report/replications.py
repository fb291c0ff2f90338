"""What replications of a simulation found, as values, and what they say together: means with 95 % intervals.

One replication is one possible future. What several of them say about a quantile is the mean of theirs, with Student's
interval over the replications: they are independent, because each has its own seed. One alone has no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.ledger.totals import Lines
from clusterwright.lib.figures import Figure
from clusterwright.simulate.calibrating import Tolerance
from clusterwright.simulate.statistics import mean_of

_ROUNDING: Final = 1e-12
#: Quantiles that are shown of waits and slowdowns; 1 is the maximum.
LEVELS: Final = {"median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
#: Shares of the jobs at which the curve of their waits is drawn.
CURVE: Final = tuple(n / 40 for n in range(41))
#: What jobs are grouped by, in the order of the report; "all" has one group.
FIELDS: Final = ("all", "size", "queue", "team")


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs of one size, queue or team in one replication.

    Args:
        field: one of `FIELDS`.
        waiting: of the jobs, that had not started at the end; they count with what they had waited, so that a quantile
            they can move is a lower bound.
        wait_s, slowdown: at `LEVELS`; empty where there is no job.
        curve_s: wait at `CURVE`.
    """

    field: str
    name: str
    jobs: int
    gpus: int
    succeeded: int
    unfinished: int
    waiting: int
    wait_s: tuple[float, ...]
    slowdown: tuple[float, ...]
    curve_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """Real and simulated waits of the same jobs, by size or account.

    Args:
        real_s, simulated_s: (median, 90th percentile).
    """

    field: str
    name: str
    jobs: int
    real_s: tuple[float, float]
    simulated_s: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Replication:
    """One replication, in figures.

    Args:
        lines: of the ledger; they sum to installed GPU-ms.
        fared: how jobs ended, by word.
        failures: of nodes by cause, that struck something.
        ettr: weighted by GPUs; None where nobody asked for a GPU. Work of jobs that still run at the end counts.
        ettr_saved: the same where of such jobs only what is saved counts.
        fairness: Jain's index; None where no queue is entitled to anything.
        spread: largest ÷ smallest mean slowdown of a queue.
        succeeded: jobs that ended with success while it counted, whenever they came.
        succeeded_gpu_h: GPU-hours of their work, at the speed at which it was measured.
        cost: of the installed GPUs; None without a price.
    """

    seed: int
    simulated_s: float
    partial: bool
    groups: tuple[Group, ...]
    lines: Lines
    fared: Mapping[str, int]
    failures: Mapping[str, int]
    preemptions: int
    requeued: int
    ettr: float | None
    ettr_saved: float | None
    fairness: float | None
    spread: float | None
    succeeded: int
    succeeded_gpu_h: float
    cost: float | None
    compared: tuple[Compared, ...] = ()

    def group(self, field_: str, name: str = "") -> Group | None:
        """The group of that name."""
        return next((g for g in self.groups if (g.field, g.name) == (field_, name)), None)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure over replications.

    Args:
        half: of the 95 % interval; None with one replication.
        bound: whether it is a lower bound, because jobs were still waiting.
    """

    value: float
    half: float | None = None
    bound: bool = False

    @property
    def interval(self) -> tuple[float, float] | None:
        """From and to, 95 %."""
        return None if self.half is None else (self.value - self.half, self.value + self.half)


def estimate(values: Iterable[float | None], *, bound: bool = False) -> Estimate | None:
    """The mean of what is known, with its interval; None when nothing is."""
    known = [v for v in values if v is not None]
    if not known:
        return None
    found = mean_of(known)
    assert found is not None
    half = found.half_width
    # What the rounding of a mean of equal numbers leaves is no spread.
    return Estimate(found.mean, 0.0 if half is not None and half < _ROUNDING * abs(found.mean) else half, bound)


def estimate_of(replications: Sequence[Replication], read: Callable[[Replication], float | None]) -> Estimate | None:
    """A figure of every replication as one."""
    return estimate(read(r) for r in replications)


def estimate_level(
    replications: Sequence[Replication], field_: str, name: str, what: str, level: str
) -> Estimate | None:
    """A quantile of a group's `wait_s` or `slowdown` over replications.

    Args:
        level: a key of `LEVELS`.
    """
    place = list(LEVELS).index(level)
    groups = [g for r in replications if (g := r.group(field_, name)) is not None and getattr(g, what)]
    bound = any(g.waiting > (1 - LEVELS[level]) * g.jobs for g in groups)
    return estimate((getattr(g, what)[place] for g in groups), bound=bound)


def group_names(replications: Sequence[Replication], field_: str) -> list[str]:
    """Names of the groups of a field, in the order of the first replication that has them."""
    return list(dict.fromkeys(g.name for r in replications for g in r.groups if g.field == field_))


@dataclass(frozen=True, slots=True)
class Paired:
    """A figure in two futures that share their seeds, and its difference with the interval of the pairs."""

    first: Estimate
    second: Estimate
    difference: Estimate

    @property
    def clear(self) -> bool:
        """Whether the interval of the difference leaves out 0."""
        interval = self.difference.interval
        return interval is not None and (interval[0] > 0 or interval[1] < 0)


def pair(
    first: Sequence[Replication], second: Sequence[Replication], read: Callable[[Replication], float | None]
) -> Paired | None:
    """A figure of both futures by seed; None unless both know it for the same seeds."""
    others = {r.seed: read(r) for r in second}
    pairs = [(a, b) for r in first if (a := read(r)) is not None and (b := others.get(r.seed)) is not None]
    one, two = estimate(a for a, _ in pairs), estimate(b for _, b in pairs)
    difference = estimate(b - a for a, b in pairs)
    return Paired(one, two, difference) if one and two and difference else None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far a replay is from what really happened."""

    compared: tuple[Compared, ...]
    tolerance: Tolerance

    def within(self, row: Compared) -> bool | None:
        """Whether a group is within the tolerance at both quantiles; None when it has too few jobs."""
        if row.jobs < self.tolerance.fewest_jobs:
            return None
        pairs = zip(row.real_s, row.simulated_s, strict=True)
        return all(self.tolerance.admits(real, simulated) for real, simulated in pairs)

    @property
    def judged(self) -> tuple[Compared, ...]:
        """Groups with enough jobs."""
        return tuple(row for row in self.compared if row.jobs >= self.tolerance.fewest_jobs)

    @property
    def holds(self) -> bool | None:
        """Whether all judged groups are within; None when none can be judged."""
        found = [self.within(row) for row in self.judged]
        return all(found) if found else None


def calibrate(replications: Sequence[Replication], tolerance: Tolerance) -> Calibration | None:
    """Real against simulated waits, the simulated ones as the mean over replications; None without real ones."""
    rows = []
    keys = list(dict.fromkeys((c.field, c.name) for r in replications for c in r.compared))
    for key in keys:
        found = [c for r in replications for c in r.compared if (c.field, c.name) == key]
        middle, high = (math.fsum(c.simulated_s[i] for c in found) / len(found) for i in (0, 1))
        rows.append(Compared(*key, found[0].jobs, found[0].real_s, (middle, high)))
    return Calibration(tuple(rows), tolerance) if rows else None


@dataclass(frozen=True)
class Picture:
    """What nodes did over time.

    Args:
        rows: (domain, name of the node or of the first and last of several, nodes in it).
        cells: by row, then by column: GPU-seconds by ledger line, largest first; empty where nothing was installed.
        column_s: length of one column.
    """

    rows: tuple[tuple[str, str, int], ...]
    cells: tuple[tuple[tuple[tuple[str, float], ...], ...], ...]
    column_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class NeverFits:
    """Jobs that no node, or no quota, will ever hold.

    Args:
        example: name of one of them.
        why: what is too large for what.
    """

    jobs: int
    gpus: int
    queue: str
    example: str
    why: str


@dataclass(frozen=True)
class Simulated:
    """One architecture's futures: what was simulated, and what was found.

    Args:
        label: what sets it apart from the other futures beside it; "" alone.
        pools: (name, nodes, GPUs of a node).
        source: where the jobs come from.
        jobs: of one replication; of several with different numbers the first.
        days: that count, after the warm-up.
        warm_up_s: from the beginning until statistics and ledger begin.
        left_out: reason → rows of the trace that are no jobs here.
        figures: what the result rests on, the weakest first.
        limits: what is not modelled, where it matters here.
        replayed: whether the jobs are a trace's own.
        picture: of the first replication.
    """

    name: str
    label: str
    pools: tuple[tuple[str, int, int], ...]
    source: str
    jobs: int
    days: float
    warm_up_s: float
    seed: int
    seeds: int
    replayed: bool
    replications: tuple[Replication, ...]
    left_out: Mapping[str, int]
    never_fit: tuple[NeverFits, ...]
    remarks: tuple[str, ...]
    figures: tuple[Figure, ...]
    limits: tuple[str, ...]
    currency: str
    calibration: Calibration | None = None
    picture: Picture | None = None

    @property
    def gpus(self) -> int:
        """Installed at the end of all deliveries."""
        return sum(nodes * each for _, nodes, each in self.pools)

    @property
    def partial(self) -> bool:
        """Whether it was stopped before everything was simulated."""
        return len(self.replications) < self.seeds or any(r.partial for r in self.replications)

    @property
    def trusted(self) -> bool:
        """Whether real waits, where there are some, are enough and speak for it."""
        return self.calibration is None or self.calibration.holds is True
