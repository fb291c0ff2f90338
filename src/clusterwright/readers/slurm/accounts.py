"""Accounting records → attempts of jobs: what belongs together, stands twice or contradicts itself, and the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from clusterwright.model.observations import Labels, Lack, NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.refusing import shorten
from clusterwright.readers.slurm.amounts import is_time, read_count, read_memory, seconds_of
from clusterwright.readers.slurm.gres import gpus_in_tres, read_tres
from clusterwright.readers.slurm.states import OVER, read_job_state
from clusterwright.readers.values import quantity

_MOST_RECORDS: Final = 2_000_000
_LOOP: Final = 3
_AMOUNTS: Final = ("MaxRSS", "AveRSS", "MaxVMSize", "AveVMSize")
_SECONDS: Final = ("ElapsedRaw", "CPUTimeRAW")
_LISTED: Final = 5
#: A step may outlive its allocation by this without being remarkable: the clocks of two nodes, in seconds.
_STEP_SLACK_S: Final = 5.0


#: Ends that say something about cluster or job → what.
_FAILURES: Final = {
    "NODE_FAIL": ("a node failed under them: caused by the infrastructure, not by the job", Weight.ERROR),
    "BOOT_FAIL": ("their nodes did not boot: caused by the infrastructure, not by the job", Weight.ERROR),
    "LAUNCH_FAILED": ("they could not be started on their nodes", Weight.ERROR),
    "OUT_OF_MEMORY": ("they exceeded the memory that they had asked for", Weight.WARNING),
    "TIMEOUT": ("they reached their time limit and did not finish", Weight.WARNING),
    "FAILED": ("the program ended with an error; exit code and the job's own log say why", Weight.WARNING),
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One record that counts.

    Args:
        gpu_seconds: GPUs × elapsed seconds; None where either is not known.
    """

    job: str
    step: str
    number: int
    elapsed: float | None
    gpu_seconds: float | None
    state: str | None

    @property
    def subject(self) -> Labels:
        """The job, its step and the attempt, as far as they differ from the first allocation."""
        step = (("step", self.step),) if self.step else ()
        return (("job", self.job), *step, *((("attempt", str(self.number)),) if self.number > 1 else ()))


@dataclass
class _Job:
    attempts: list[Attempt] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    submits: dict[str, str] = field(default_factory=dict)
    longest_step: float = 0.0
    steps: int = 0
    conflicting: dict[str, None] = field(default_factory=dict)
    requeued: int = 0


def contradiction(cells: Mapping[str, str]) -> str:
    """What makes a record unfit: an end before its start, negative times, unknown units; "" if nothing."""
    between = time_between(cells.get("Start", ""), cells.get("End", ""))
    if between is not None and between < 0:
        return f"ends {-between:.0f} s before it starts"
    for column in _SECONDS:
        number = read_count(cells.get(column, ""))
        if isinstance(number, float) and number < 0:
            return f"{column} is {cells[column]}: negative"
    for column in _AMOUNTS:
        amount = read_memory(cells.get(column, ""))
        if isinstance(amount, NoValue) and amount.lack is Lack.UNREADABLE and not cells[column].endswith("+"):
            return f"{column} {cells[column][:40]!r} has no unit that Slurm prints"
    elapsed = cells.get("Elapsed", "")
    if elapsed.startswith("-") or elapsed.upper() == "INVALID":
        return f"Elapsed is {elapsed[:40]}"
    return ""


def time_between(start: str, end: str) -> float | None:
    """Seconds between two printed times, None when one is not there."""
    if not (is_time(start) and is_time(end)):
        return None
    try:
        return (datetime.fromisoformat(end.strip()) - datetime.fromisoformat(start.strip())).total_seconds()
    except (ValueError, TypeError):  # 30 February, or one of them with a zone
        return None


def gpus_of(text: str) -> int | NoValue:
    """GPUs in a list of trackable resources; empty is absent, not 0."""
    tres = read_tres(text)
    return tres if isinstance(tres, NoValue) else gpus_in_tres(tres)


def split_id(text: str) -> tuple[str, str]:
    """Job and step: `12_3.batch` is step `batch` of job `12_3`."""
    job, _, step = text.strip().partition(".")
    return job, step


class Attempts:
    """The records of one output; every attempt of every job once."""

    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self._jobs: dict[tuple[str, str], _Job] = {}
        self._seen: set[int] = set()
        self._repeats = 0
        self._running = 0
        self._endless: list[str] = []
        self._unaccounted: list[str] = []
        self._no_account: list[str] = []
        self._failed: dict[str, list[str]] = {}
        self._left_out = 0

    def keep(self, text: str, cells: Mapping[str, str]) -> Attempt | None:
        """Keep a record; None when it repeats another one in every field.

        Args:
            text: the job's id with its step.
            cells: by sacct's column names.
        """
        same = hash(tuple(sorted(cells.items())))
        if same in self._seen:
            self._repeats += 1
            return None
        if len(self._seen) >= _MOST_RECORDS:
            self._left_out += 1
            return None
        self._seen.add(same)
        name, step = split_id(text)
        job = self._jobs.setdefault((cells.get("Cluster", ""), name), _Job())
        attempt = self._number(job, name, step, cells)
        self._follow(job, attempt, cells)
        return attempt

    def _number(self, job: _Job, name: str, step: str, cells: Mapping[str, str]) -> Attempt:
        begun = "|".join((step, cells.get("Submit", ""), cells.get("Start", "")))
        state = read_job_state(cells.get("State", ""))
        dated = "Start" in cells or "Submit" in cells
        same_step = [key for key in job.keys if key.split("|", 1)[0] == step]
        if dated and begun in job.keys:
            if job.keys[begun] != (state or ""):
                job.conflicting[state or cells.get("State", "")] = None
                job.conflicting[job.keys[begun]] = None
            number = same_step.index(begun) + 1
        else:
            key = begun if dated else f"{step}|{len(same_step)}"
            job.keys[key] = state or ""
            number = len(same_step) + 1
        elapsed = seconds_of(cells.get("Elapsed", ""))
        if elapsed is None:
            raw = read_count(cells.get("ElapsedRaw", ""))
            elapsed = raw if isinstance(raw, float) else None
        gpus = gpus_of(cells.get("AllocTRES", ""))
        spent = elapsed * gpus if elapsed is not None and isinstance(gpus, int) else None
        return Attempt(name, step, number, elapsed, spent, state)

    def _follow(self, job: _Job, attempt: Attempt, cells: Mapping[str, str]) -> None:
        if attempt.step:
            job.steps += 1
            job.longest_step = max(job.longest_step, attempt.elapsed or 0.0)
        else:
            job.attempts.append(attempt)
            job.requeued += attempt.state == "REQUEUED"
            if attempt.state in _FAILURES:
                self._failed.setdefault(attempt.state, []).append(attempt.job)
            if cells.get("Submit"):
                job.submits[cells["Submit"]] = cells.get("User", "")
            if "Account" in cells and cells["Account"] in ("", "(null)"):
                self._no_account.append(attempt.job)
            if "AllocTRES" in cells and attempt.gpu_seconds is None and attempt.elapsed:
                self._unaccounted.append(attempt.job)
        end = cells.get("End", "")
        if end.lower() == "unknown":
            if attempt.state in OVER:
                self._endless.append(attempt.job + (f".{attempt.step}" if attempt.step else ""))
            elif attempt.state in ("RUNNING", "COMPLETING", "SUSPENDED", "RESIZING"):
                self._running += 1

    def finish(self) -> None:
        """Write sums and notices into the run."""
        run = self._run
        run.condition("records", float(len(self._seen)))
        allocations = [attempt for job in self._jobs.values() for attempt in job.attempts]
        run.condition("allocations", float(len(allocations)))
        bare = [name for (_, name), job in self._jobs.items() if job.steps and not job.attempts]
        if allocations and not bare and all(a.gpu_seconds is not None for a in allocations):
            run.condition("gpu_time", quantity(sum(a.gpu_seconds or 0 for a in allocations) / 3600, "GPU-h"))
        for (_, name), job in self._jobs.items():
            self._conclude(name, job)
        self._say_ends()
        if bare:
            run.notice(
                "allocation-not-listed",
                f"{len(bare)} jobs ({_listed(bare)}) are listed only by steps; a step shows its own share, not what "
                "the job held",
                Weight.INFO,
            )
        if self._repeats:
            run.notice(
                "record-listed-twice", f"{self._repeats} records repeat another one; each is counted once", Weight.INFO
            )
        if self._left_out:
            run.missing(f"{self._left_out:,} records beyond the first {_MOST_RECORDS:,}")

    def _conclude(self, name: str, job: _Job) -> None:
        run, subject = self._run, (("job", name),)
        if len(job.attempts) > 1:
            self._conclude_attempts(name, job)
        longest = max((a.elapsed or 0.0 for a in job.attempts), default=0.0)
        if job.attempts and job.longest_step > longest + _STEP_SLACK_S and longest:
            run.notice(
                "step-longer-than-allocation",
                f"job {name}: a step ran {job.longest_step:.0f} s, its allocation {longest:.0f} s; the allocation is "
                "what was held",
                Weight.INFO,
            )
        if job.requeued >= _LOOP:
            run.notice(
                "requeue-loop", f"job {name} was requeued {job.requeued} times: the same failure is being repeated"
            )
            run.observe("requeues", float(job.requeued), subject)

    def _conclude_attempts(self, name: str, job: _Job) -> None:
        run, subject = self._run, (("job", name),)
        if job.conflicting:
            run.notice(
                "states-conflict",
                f"job {name}: records with the same start give the states {', '.join(sorted(job.conflicting))}; they "
                "are not added up",
            )
            return
        users = {user for user in job.submits.values() if user}
        if len(job.submits) > 1 and (len(users) > 1 or not job.requeued):
            run.notice(
                "job-id-recycled",
                f"job id {name} was submitted at {', '.join(sorted(job.submits)[:_LISTED])}: ids are used again, the "
                "key is cluster, id and submit time",
            )
            return
        run.observe("attempts", float(len(job.attempts)), subject)
        if all(attempt.elapsed is not None for attempt in job.attempts):
            total = sum(attempt.elapsed or 0.0 for attempt in job.attempts)
            run.observe("elapsed_total", quantity(total, "s"), subject)
            run.notice(
                "requeued-attempts",
                f"job {name} has {len(job.attempts)} attempts, {total:.0f} s in all; sacct without --duplicates shows "
                "only the last one",
                Weight.INFO,
            )

    def _say_ends(self) -> None:
        run = self._run
        for state, (means, weight) in _FAILURES.items():
            if jobs := self._failed.get(state):
                run.notice(
                    f"ended-{state.lower().replace('_', '-')}",
                    f"{len(jobs)} allocations ended in {state} ({_listed(jobs)}): {means}",
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
                f"jobs that are over have no end time ({_listed(self._endless)}): use the elapsed time",
            )
        if self._unaccounted:
            run.notice(
                "gpus-not-accounted",
                f"{len(self._unaccounted)} allocations ({_listed(self._unaccounted)}) list no gres/gpu in AllocTRES: "
                "they held no GPU, or AccountingStorageTRES lacks gres/gpu; GPU use is unknown, not 0",
            )
        if self._no_account:
            run.notice(
                "no-account",
                f"{len(self._no_account)} allocations have no account ({_listed(self._no_account)}): their cost cannot "
                "be attributed and must be listed, not dropped",
            )


def _listed(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - _LISTED} more" if len(unique) > _LISTED else ""
    return shorten(", ".join(unique[:_LISTED])) + more
