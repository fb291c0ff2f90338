"""Usage and cost of jobs, by whatever they are grouped by; what was not recorded stays *not recorded*, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from clusterwright.ledger.attempts import ENTRIES, AttemptRecord, charge_attempt, charge_part
from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, Account, Entry, to_ms
from clusterwright.ledger.totals import Lines

_LONG_AGO: Final = -(2**63)


class Owner(NamedTuple):
    """Whom the usage of a job belongs to; "" where nobody wrote it down."""

    queue: str = ""
    team: str = ""
    user: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class NotRecorded:
    """A number that cannot be known from what was kept, with what to add so that it can from then on.

    Args:
        what: is missing, in words.
        add: the line to add and where.
        at_least_gpu_ms: what is known of it.
    """

    what: str
    add: str
    at_least_gpu_ms: int = 0


#: Slurm tracks no GPU unless it is told to. Source: Slurm, Trackable RESources (slurm.schedmd.com/tres.html): by
#: default Billing, CPU, Energy, Memory, Node, FS/Disk, Pages and VMem; a GRES only when AccountingStorageTRES names it.
SLURM_GPUS: Final = NotRecorded("GPUs of jobs", "AccountingStorageTRES=gres/gpu in slurm.conf")


@dataclass(frozen=True, slots=True)
class Usage:
    """What jobs used.

    Args:
        lines: by job; `Account.job` is set.
        owners: by job.
        unrecorded: attempts by job whose GPUs nobody wrote down.
        remedy: what to add so that they are.
        succeeded: jobs that ended well.
    """

    lines: Lines
    owners: Mapping[str, Owner] = field(default_factory=dict)
    unrecorded: Mapping[str, int] = field(default_factory=dict)
    remedy: NotRecorded = SLURM_GPUS
    succeeded: frozenset[str] = frozenset()

    def by(self, field_name: str) -> dict[str, Usage]:
        """One part for each "queue", "team", "user" or "model" that owns a job.

        Raises:
            ValueError: for another field.
        """
        if field_name not in Owner._fields:
            raise ValueError(f"'{field_name}' owns no jobs; fields: {', '.join(Owner._fields)}")
        place = Owner._fields.index(field_name)
        jobs: dict[str, set[str]] = {}
        for job, owner in self.owners.items():
            jobs.setdefault(owner[place], set()).add(job)
        return {name: self._part(jobs[name]) for name in sorted(jobs)}

    def gpu_ms(self) -> int | NotRecorded:
        """GPU-ms that the jobs held; not recorded as soon as one attempt is not."""
        known, missing = self.lines.total_gpu_ms, sum(self.unrecorded.values())
        if not missing:
            return known
        return NotRecorded(f"{self.remedy.what}, in {missing} attempts", self.remedy.add, known)

    def cost(self, prices: Mapping[str, float]) -> float | NotRecorded:
        """What the jobs cost: every line charged to them, whatever it was for, × the price of its flavor.

        Args:
            prices: of a GPU-hour by flavor, in one currency, which is that of the result.
        """
        used = self.gpu_ms()
        if isinstance(used, NotRecorded):
            return used
        by_flavor = {flavor: n for (flavor,), n in self.lines.by("flavor").items()}
        if missing := sorted(f for f, n in by_flavor.items() if n and f not in prices):
            return NotRecorded(f"price of {', '.join(missing)}", "the price of their pools in the architecture", used)
        return sum(prices[flavor] * n / GPU_MS_PER_GPU_H for flavor, n in by_flavor.items() if n)

    def cost_per_success(self, prices: Mapping[str, float]) -> float | NotRecorded | None:
        """What one successful result cost: lost attempts, preemptions, restarts, stalls and jobs that failed included.

        None when no job succeeded.
        """
        whole = self.cost(prices)
        if isinstance(whole, NotRecorded):
            return whole
        return whole / len(self.succeeded) if self.succeeded else None

    def _part(self, jobs: Set[str]) -> Usage:
        amounts = {key: n for key, n in self.lines.amounts.items() if key[0].job in jobs}
        return Usage(
            Lines(amounts, partial=self.lines.partial),
            {job: owner for job, owner in self.owners.items() if job in jobs},
            {job: n for job, n in self.unrecorded.items() if job in jobs},
            self.remedy,
            self.succeeded & jobs,
        )


def charge_jobs(
    attempts: Iterable[tuple[Account, AttemptRecord | None]],
    owners: Mapping[str, Owner],
    *,
    succeeded: Iterable[str] = (),
    since_s: float | None = None,
    until_s: float | None = None,
    remedy: NotRecorded = SLURM_GPUS,
) -> Usage:
    """What jobs used within an interval, from their attempts alone (an engine's accounting, a trace).

    Args:
        attempts: with the account, whose `job` is set; None where nobody wrote down how many GPUs it had.
        owners: of every job.
        remedy: what to add where such accounting is missing.

    Raises:
        ValueError: when an attempt's facts contradict each other, or its job has no owner.
    """
    sums: dict[Account, list[int]] = {}
    unrecorded: dict[str, int] = {}
    whole = since_s is None and until_s is None
    since_ms = _LONG_AGO if since_s is None else to_ms(since_s)
    until_ms = -_LONG_AGO if until_s is None else to_ms(until_s)
    for account, record in attempts:
        if account.job not in owners:
            raise ValueError(f"job '{account.job}' has no owner")
        if record is None:
            unrecorded[account.job] = unrecorded.get(account.job, 0) + 1
            continue
        own = sums.setdefault(account, [0] * len(ENTRIES))
        if whole:
            charge_attempt(own, record)
        else:
            charge_part(own, record, since_ms, until_ms)
    amounts: dict[tuple[Account, Entry], int] = {
        (account, entry): n for account, own in sums.items() for entry, n in zip(ENTRIES, own, strict=True) if n
    }
    return Usage(Lines(amounts), owners, unrecorded, remedy, frozenset(succeeded))
