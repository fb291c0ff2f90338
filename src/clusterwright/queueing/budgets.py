"""GPU-hour budgets: a gate before admission, and nothing else. A budget never ends a job that runs.

What counts against a period is *planned* GPU time: of jobs that ended, what they held; of jobs that run, what they hold
until their time limit. A job is admitted if planned + its GPUs × its time limit stays within the budget, in each period
that it may reach, for its queue, every group above it and its user. When a job ends early, the rest is free again; what
it ran beyond its limit (grace) is added when it ends. GPU time counts whatever came of it: restarts, failures,
preempted attempts. A job without a time limit is planned to the end of the period, and again in each later one as that
begins; a budget that has no end does not admit it.

Compared with Slurm: GrpTRESMins=gres/gpu=N of an association or QOS, with AccountingStorageEnforce=safe (a job starts
only if it can run to its limit), is nearest. Slurm's usage decays with PriorityDecayHalfLife unless the QOS has
NoDecay, starts anew only for the whole cluster at once (PriorityUsageResetPeriod), and without `safe` jobs start while
anything is left and are killed when the limit is reached. Kueue 0.19 has no budgets.

Source: Slurm resource_limits (GrpTRESMins, GrpTRESRunMins), slurm.conf (AccountingStorageEnforce), sacctmgr (NoDecay).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.jobs import JobId
from clusterwright.queueing.quotas import QueueTree

_HOUR_S: Final = 3600.0

#: GPU-seconds that sums of times may be off by.
_TOLERANCE: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Budget:
    """GPU-hours that may be planned in a period.

    Args:
        every_s: length of a period, at least an hour; None is one period without renewal.
        from_s: a time at which a period begins.
        until_s: nothing is admitted from then on; what runs beyond it counts in the last period.
    """

    gpu_hours: float
    every_s: float | None = None
    from_s: float = 0.0
    until_s: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.gpu_hours < math.inf:
            raise InvalidInput(f"budget is {self.gpu_hours} GPU-hours, must be a finite number, 0 or more")
        if self.every_s is not None and not _HOUR_S <= self.every_s < math.inf:
            raise InvalidInput(f"a budget is renewed every {self.every_s} s, must be at least {_HOUR_S:g} s")

    @property
    def last(self) -> float:
        """Number of the last period, infinite if there is none."""
        if self.every_s is None:
            return 0
        return math.inf if self.until_s is None else math.ceil((self.until_s - self.from_s) / self.every_s) - 1

    def period(self, at_s: float) -> int:
        """Number of the period of a time; the last one holds all later times."""
        return 0 if self.every_s is None else int(min((at_s - self.from_s) // self.every_s, self.last))

    def end_s(self, period: int) -> float:
        """When a period ends, infinite if it does not."""
        until = math.inf if self.until_s is None else self.until_s
        return until if self.every_s is None else min(until, self.from_s + (period + 1) * self.every_s)


@dataclass(frozen=True, slots=True)
class Overdrawn:
    """Why a budget does not admit a job; GPU-hours of one period.

    Args:
        account: whose budget, such as "queue research" or "user ada".
        used: held so far, by jobs that ended and by those that run.
        committed: what running jobs may still use until their time limits.
        needed: of the job, infinite if it has no time limit and the budget no end.
        ends_s: of the period, infinite if it has none.
        over: whether the budget's last day is past.
    """

    account: str
    budget: float
    used: float
    committed: float
    needed: float
    ends_s: float
    over: bool = False

    def __str__(self) -> str:
        if self.over:
            return f"the budget of {self.account} has ended"
        if self.needed == math.inf:
            return f"the budget of {self.account} has no end, and the job no time limit"
        return (
            f"{self.account}: {self.used:.1f} GPU-hours used, {self.committed:.1f} committed to running jobs, "
            f"{self.needed:.1f} needed, of {self.budget:.1f}"
        )


@dataclass(frozen=True, slots=True)
class _Run:
    """A job that holds GPUs; `limit_at_s` is infinite without a limit."""

    accounts: tuple[str, ...]
    gpus: float
    from_s: float
    limit_at_s: float


class _Account:
    """One budget: planned GPU-seconds by period, and those that were held up to a time of the present period."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.planned: dict[int, float] = {}
        self.period: int | None = None
        self._endless = self._rate = self._base = 0.0

    def fork(self) -> _Account:
        twin = object.__new__(_Account)
        twin.__dict__.update(self.__dict__)
        twin.planned = self.planned.copy()
        return twin

    def used_s(self, now_s: float) -> float:
        """GPU-seconds held in the present period."""
        return self._base + self._rate * now_s

    def move_to(self, now_s: float) -> None:
        """Begins a new period if it is time; jobs without a limit are planned in it."""
        period = self.budget.period(now_s)
        if self.period is None or period > self.period:
            begins = now_s if self.period is None else self.budget.end_s(period - 1)
            self.planned = {p: s for p, s in self.planned.items() if p >= period}
            self._base, self.period = -self._rate * begins, period
            self.plan(self._endless, begins, math.inf)

    def planned_s(self, period: int, now_s: float) -> float:
        """GPU-seconds of a period that are used or committed."""
        planned = self.planned.get(period, 0.0)
        return max(planned, self.used_s(now_s)) if period == self.period else planned

    def plan(self, gpus: float, from_s: float, to_s: float) -> None:
        """Plans GPUs over an interval, or gives them back if negative; an interval without end is not planned."""
        for period, seconds in self.parts(from_s, to_s):
            if seconds < math.inf:
                self.planned[period] = self.planned.get(period, 0.0) + gpus * seconds

    def add(self, seconds: float) -> None:
        """Counts GPU-seconds that were held in the present period."""
        self._base += seconds
        self.planned[self.period or 0] = self.planned.get(self.period or 0, 0.0) + seconds

    def hold(self, gpus: float, at_s: float, *, endless: bool) -> None:
        """GPUs are held from now on (no longer if negative)."""
        self._rate += gpus
        self._base -= gpus * at_s
        if endless:
            self._endless += gpus

    def parts(self, from_s: float, to_s: float) -> Iterator[tuple[int, float]]:
        """(period, seconds in it) of an interval; one without end is taken to the end of its first period."""
        period = self.budget.period(from_s)
        if to_s == math.inf:
            yield period, max(0.0, self.budget.end_s(period) - from_s)
            return
        while from_s < to_s:
            ends = to_s if period == self.budget.last else min(to_s, self.budget.end_s(period))
            yield period, ends - from_s
            from_s, period = ends, period + 1


class Budgets:
    """All budgets of a cluster and what is planned on them.

    Args:
        tree: a queue's job counts for the queue and all groups above it.
        queues: budgets by queue or group.
        users: budgets by user.
    """

    def __init__(
        self, tree: QueueTree, queues: Mapping[str, Budget] | None = None, users: Mapping[str, Budget] | None = None
    ) -> None:
        self._tree = tree
        self._accounts = {f"queue {name}": _Account(b) for name, b in (queues or {}).items()}
        self._accounts |= {f"user {name}": _Account(b) for name, b in (users or {}).items()}
        self._runs: dict[JobId, _Run] = {}

    def fork(self) -> Budgets:
        """A copy whose changes leave this one as it is."""
        twin = object.__new__(Budgets)
        twin._tree, twin._runs = self._tree, self._runs.copy()
        twin._accounts = {name: account.fork() for name, account in self._accounts.items()}
        return twin

    def admits(self, queue: str, user: str, gpus: float, limit_s: float | None, now_s: float) -> Overdrawn | None:
        """None if every budget has room for the job, else the first that has not: queue, groups upwards, user."""
        until = math.inf if limit_s is None else now_s + limit_s
        for name in self._names(queue, user):
            found = self._overdrawn(name, gpus, until, now_s)
            if found is not None:
                return found
        return None

    def start(self, job: JobId, queue: str, user: str, gpus: float, limit_s: float | None, now_s: float) -> None:
        """A job holds GPUs from now on; this is not refused, whatever is left."""
        until = math.inf if limit_s is None else now_s + limit_s
        run = self._runs[job] = _Run(self._names(queue, user) if gpus else (), gpus, now_s, until)
        for name in run.accounts:
            account = self._accounts[name]
            account.move_to(now_s)
            account.plan(gpus, now_s, until)
            account.hold(gpus, now_s, endless=until == math.inf)

    def end(self, job: JobId, now_s: float) -> None:
        """A job gave its GPUs back.

        Raises:
            KeyError: if it was not started.
        """
        run = self._runs.pop(job)
        endless = run.limit_at_s == math.inf
        for name in run.accounts:
            account = self._accounts[name]
            account.move_to(now_s)
            if endless and account.budget.end_s(account.budget.period(now_s)) == math.inf:
                account.plan(run.gpus, run.from_s, now_s)
            elif now_s <= run.limit_at_s:
                account.plan(-run.gpus, now_s, run.limit_at_s)
            else:
                account.plan(run.gpus, run.limit_at_s, now_s)
            account.hold(-run.gpus, now_s, endless=endless)

    def charge(self, account: str, gpu_hours: float, now_s: float) -> None:
        """Counts what was held in the present period before jobs were told here, such as from a ledger.

        Args:
            account: "queue NAME" or "user NAME"; without a budget nothing is counted.
        """
        found = self._accounts.get(account)
        if found is not None:
            found.move_to(now_s)
            found.add(gpu_hours * _HOUR_S)

    def next_period_s(self, now_s: float) -> float | None:
        """When the next budget is renewed, which may admit what was refused; None if none is."""
        ends = (a.budget.end_s(a.budget.period(now_s)) for a in self._accounts.values() if a.budget.every_s is not None)
        return min((end for end in ends if now_s < end), default=None)

    def _names(self, queue: str, user: str) -> tuple[str, ...]:
        names = []
        at = self._tree.by_name.get(queue)
        while at is not None:
            names.append(f"queue {at.name}")
            at = None if at.parent is None else self._tree.by_name[at.parent]
        return tuple(n for n in (*(names or [f"queue {queue}"]), f"user {user}") if n in self._accounts)

    def _overdrawn(self, name: str, gpus: float, until_s: float, now_s: float) -> Overdrawn | None:
        account = self._accounts[name]
        account.move_to(now_s)
        budget = account.budget
        over = budget.until_s is not None and now_s >= budget.until_s
        for period, seconds in account.parts(now_s, until_s) if gpus else ():
            planned, needed = account.planned_s(period, now_s), gpus * seconds
            if over or planned + needed > budget.gpu_hours * _HOUR_S + _TOLERANCE:
                used = account.used_s(now_s) if period == account.period else 0.0
                return Overdrawn(
                    name,
                    budget.gpu_hours,
                    used / _HOUR_S,
                    (planned - used) / _HOUR_S,
                    needed / _HOUR_S,
                    budget.end_s(period),
                    over,
                )
        return None
