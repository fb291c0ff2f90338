"""Accounting records → attempts of jobs: what belongs together, stands twice or contradicts itself, and the sums.

A month of accounting holds millions of records. Of each one only a fingerprint and a few words stay, some 300 bytes;
more is kept of jobs that several records name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.slurm.job_notices import FAILURES, LimitedNotices, listed
from clusterwright.readers.slurm.job_rows import JobRow
from clusterwright.readers.slurm.states import OVER
from clusterwright.readers.slurm.usage_sums import UsageSums
from clusterwright.readers.values import quantity

_MOST_RECORDS: Final = 2_000_000
_LOOP: Final = 3
_LISTED: Final = 5
#: A step may outlive its allocation by this without being remarkable: the clocks of two nodes, in seconds.
_STEP_SLACK_S: Final = 5.0


#: Fingerprint, submit and start time, state, elapsed seconds and user of a first record; a plain tuple, the smallest.
_First = tuple[int, str, str, float | None, str]


@dataclass(slots=True)
class _Several:
    """What the records of one allocation or step say, where there is more than one.

    Args:
        job: its id; "" for a step.
        numbers: submit and start time → which attempt.
    """

    job: str
    seen: set[int]
    numbers: dict[str, int]
    states: dict[str, str]
    elapsed: list[float | None]
    submits: dict[str, str] = field(default_factory=dict)
    requeued: int = 0


class Attempts:
    """The records of one output; every attempt of every job once.

    Attributes:
        records: how many count.
    """

    def __init__(self, run: RunBuilder) -> None:
        self.records = 0
        self._run = run
        self._sums = UsageSums()
        self._firsts: dict[int, _First] = {}
        self._several: dict[int, _Several] = {}
        self._conflicts: dict[int, dict[str, None]] = {}
        self._longer: dict[int, tuple[str, float]] = {}
        self._before_allocation: dict[int, str] = {}
        self._columns: set[str] = set()
        self._allocations = 0
        self._gpu_seconds: float | None = 0.0
        self._contested = 0
        self._repeats = 0
        self._running = 0
        self._endless: list[str] = []
        self._unaccounted: list[str] = []
        self._no_account: list[str] = []
        self._failed: dict[str, list[str]] = {}
        self._left_out = 0

    def keep(self, row: JobRow, same: int) -> JobRow | None:
        """The record with the number of its attempt; None when it repeats another one in every field.

        Args:
            same: equal for records that are equal in every field.
        """
        cells = row.cells
        job = hash((cells.get("Cluster", ""), row.job))
        key = hash((job, row.step)) if row.step else job
        first = self._firsts.get(key)
        if first is not None and (first[0] == same or (key in self._several and same in self._several[key].seen)):
            self._repeats += 1
            return None
        if self.records >= _MOST_RECORDS:
            self._left_out += 1
            return None
        self.records += 1
        number = 1
        contested = False
        if first is None:
            self._firsts[key] = (same, _begun(row), row.state or "", row.elapsed_s, cells.get("User", ""))
        else:
            several = self._several.get(key) or self._begin_several(key, first, row)
            number, contested = self._number(several, row, same, job)
        if row.step:
            self._follow_step(row, job)
        else:
            self._follow_allocation(row, contested)
        self._follow_end(row)
        return row if number == 1 else row._replace(attempt=number)

    def _begin_several(self, key: int, first: _First, row: JobRow) -> _Several:
        same, begun, state, elapsed, user = first
        several = _Several("" if row.step else row.job, {same}, {begun: 1}, {begun: state}, [elapsed])
        several.requeued = int(state == "REQUEUED")
        if submit := begun.partition("\0")[0]:
            several.submits[submit] = user
        self._several[key] = several
        return several

    def _number(self, several: _Several, row: JobRow, same: int, job: int) -> tuple[int, bool]:
        """Which attempt, and whether an earlier record says something else about the same one."""
        cells = row.cells
        several.seen.add(same)
        several.elapsed.append(row.elapsed_s)
        several.requeued += row.state == "REQUEUED"
        if submit := cells.get("Submit", ""):
            several.submits[submit] = cells.get("User", "")
        begun, state = _begun(row), row.state or ""
        dated = "Start" in cells or "Submit" in cells
        if dated and begun in several.numbers:
            before = several.states[begun]
            if before != state:
                self._conflicts.setdefault(job, {}).update({state or cells.get("State", ""): None, before: None})
            return several.numbers[begun], True
        number = len(several.numbers) + 1
        several.numbers[begun if dated else f"{number}"] = number
        several.states[begun] = state
        return number, False

    def _follow_step(self, row: JobRow, job: int) -> None:
        allocation = self._firsts.get(job)
        if allocation is None:
            self._before_allocation[job] = row.job
        elapsed = row.elapsed_s or 0.0
        known = self._longer[job][1] if job in self._longer else 0.0
        if elapsed > known and (allocation is None or elapsed > (allocation[3] or 0.0) + _STEP_SLACK_S):
            self._longer[job] = (row.job, elapsed)

    def _follow_allocation(self, row: JobRow, contested: bool) -> None:
        cells, spent = row.cells, row.gpu_seconds
        self._allocations += 1
        self._contested += contested
        if not contested:
            self._sums.add(row)
        if spent is None or contested:
            self._gpu_seconds = None
        elif self._gpu_seconds is not None:
            self._gpu_seconds += spent
        if len(self._columns) < len(cells):
            self._columns.update(cells)
        if row.state in FAILURES:
            self._failed.setdefault(row.state, []).append(row.job)
        if cells.get("Account", "-") in ("", "(null)"):
            self._no_account.append(row.job)
        if spent is None and row.elapsed_s and "AllocTRES" in cells:
            self._unaccounted.append(row.job)

    def _follow_end(self, row: JobRow) -> None:
        if row.end is None and row.cells.get("End", "").lower() == "unknown":
            if row.state in OVER:
                self._endless.append(row.job + (f".{row.step}" if row.step else ""))
            elif row.state in ("RUNNING", "COMPLETING", "SUSPENDED", "RESIZING"):
                self._running += 1

    def finish(self) -> None:
        """Write sums and notices into the run."""
        run = self._run
        run.condition("records", float(self.records))
        run.condition("allocations", float(self._allocations))
        bare = [name for job, name in self._before_allocation.items() if job not in self._firsts]
        if self._allocations and not bare and self._gpu_seconds is not None:
            run.condition("gpu_time", quantity(self._gpu_seconds / 3600, "GPU-h"))
        self._sums.conclude(run, states="State" in self._columns, accounts="Account" in self._columns)
        self._say_several()
        self._say_longer()
        self._say_ends()
        if bare:
            run.notice(
                "allocation-not-listed",
                f"{len(bare)} jobs ({listed(bare)}) are listed only by steps; a step shows its own share, not what "
                "the job held",
                Weight.INFO,
            )
        if self._repeats:
            run.notice(
                "record-listed-twice", f"{self._repeats} records repeat another one; each is counted once", Weight.INFO
            )
        if self._contested:
            run.notice(
                "attempt-listed-twice",
                f"{self._contested} records say something else about an attempt that an earlier one describes (same "
                "job and start): the sums hold the earlier ones, and no total is given",
            )
        if self._left_out:
            run.missing(f"{self._left_out:,} records beyond the first {_MOST_RECORDS:,}")

    def _say_several(self) -> None:
        """What jobs with several records say: attempts, ids used again, contradictions."""
        said = LimitedNotices(self._run)
        for key, several in self._several.items():
            if not several.job:
                continue
            if several.requeued >= _LOOP:
                said.notice(
                    "requeue-loop",
                    f"job {several.job} was requeued {several.requeued} times: the same failure is being repeated",
                )
                self._run.observe("requeues", float(several.requeued), (("job", several.job),))
            self._say_attempts(several, self._conflicts.get(key), said)
        said.finish()

    def _say_attempts(self, several: _Several, conflicting: dict[str, None] | None, said: LimitedNotices) -> None:
        run, name, subject = self._run, several.job, (("job", several.job),)
        if conflicting:
            said.notice(
                "states-conflict",
                f"job {name}: records with the same start give the states {', '.join(sorted(conflicting))}; they "
                "are not added up",
            )
            return
        users = {user for user in several.submits.values() if user}
        if len(several.submits) > 1 and (len(users) > 1 or not several.requeued):
            said.notice(
                "job-id-recycled",
                f"job id {name} was submitted at {', '.join(sorted(several.submits)[:_LISTED])}: ids are used again, "
                "the key is cluster, id and submit time",
            )
            return
        run.observe("attempts", float(len(several.elapsed)), subject)
        known = [elapsed for elapsed in several.elapsed if elapsed is not None]
        if len(known) == len(several.elapsed):
            run.observe("elapsed_total", quantity(sum(known), "s"), subject)
            said.notice(
                "requeued-attempts",
                f"job {name} has {len(known)} attempts, {sum(known):.0f} s in all; sacct without --duplicates shows "
                "only the last one",
                Weight.INFO,
            )

    def _say_longer(self) -> None:
        said = LimitedNotices(self._run)
        for job, (name, longest) in self._longer.items():
            first = self._firsts.get(job)
            held = self._several[job].elapsed if job in self._several else [first[3]] if first is not None else []
            allocated = max((elapsed or 0.0 for elapsed in held), default=0.0)
            if allocated and longest > allocated + _STEP_SLACK_S:
                said.notice(
                    "step-longer-than-allocation",
                    f"job {name}: a step ran {longest:.0f} s, its allocation {allocated:.0f} s; the allocation is "
                    "what was held",
                    Weight.INFO,
                )
        said.finish()

    def _say_ends(self) -> None:
        run = self._run
        for state, (means, weight) in FAILURES.items():
            if jobs := self._failed.get(state):
                run.notice(
                    f"ended-{state.lower().replace('_', '-')}",
                    f"{len(jobs)} allocations ended in {state} ({listed(jobs)}): {means}",
                    weight,
                )
        if self._running:
            run.notice(
                "still-running",
                f"{self._running} records have no end yet: charge the elapsed time up to the query, Unknown is not 0",
                Weight.INFO,
            )
        if self._endless:
            run.notice(
                "end-unknown",
                f"jobs that are over have no end time ({listed(self._endless)}): use the elapsed time",
            )
        if self._unaccounted:
            run.notice(
                "gpus-not-accounted",
                f"{len(self._unaccounted)} allocations ({listed(self._unaccounted)}) list no gres/gpu in AllocTRES: "
                "they held no GPU, or AccountingStorageTRES lacks gres/gpu; GPU use is unknown, not 0",
            )
        if self._no_account:
            run.notice(
                "no-account",
                f"{len(self._no_account)} allocations have no account ({listed(self._no_account)}): their cost cannot "
                "be attributed and must be listed, not dropped",
            )


def _begun(row: JobRow) -> str:
    return f"{row.cells.get('Submit', '')}\0{row.cells.get('Start', '')}"
