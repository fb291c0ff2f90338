"""What a listing of the queue says about jobs (squeue, scontrol show job, JSON); accounting has its own module.

Observations (subject: job): `job_state`, `pending_reason`, `waits_for` (capacity, turn, limit, held, never, time,
dependency, failure, licence, nothing), `job_name`, `user`, `account`, `partition`, `qos`, `cluster`, `nodes`,
`node_list`, `cpus`, `gpus_allocated`, `gpus_requested`, `gpus_per_node`, `gpu_indices` (subject also node),
`memory_requested`, `elapsed`, `time_limit`, `time_left`, `submit`, `eligible`, `start`, `end`, `exit_code`,
`exit_signal`, `restarts`, `dependency`, `batch_host`, `priority`, `array_job`, `array_tasks`, `array_throttle`.
Conditions: `jobs_listed`, `jobs_pending`, `jobs_running`, `gpus_allocated`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

from clusterwright.model.observations import Labels, Lack, NoValue, Observation, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.memos import remembered
from clusterwright.readers.refusing import shorten
from clusterwright.readers.slurm.amounts import read_count, read_duration, read_memory, read_time
from clusterwright.readers.slurm.gres import count_gpus, gpus_of, read_gres, read_tres
from clusterwright.readers.slurm.job_notices import LimitedNotices
from clusterwright.readers.slurm.reasons import classify_reason
from clusterwright.readers.slurm.states import read_job_state
from clusterwright.readers.values import lacking, unreadable

_MOST_JOBS: Final = 500_000
#: Observations for which room is kept while jobs are listed one by one.
_ROOM: Final = 20_000
_new: Final = tuple.__new__
_ARRAY: Final = re.compile(r"(\d{1,12})_\[([^\]]{0,4000})\]")
_JOB: Final = re.compile(r"\d{1,12}(?:_(?:\d{1,9}|\[[^\]]{1,4000}\])|\+\d{1,6})?(?:\.[\w+]{1,20})?")
_PLAIN: Final = {
    "name": ("job_name", "text"), "user": ("user", "text"), "account": ("account", "text"),
    "partition": ("partition", "text"), "qos": ("qos", "text"), "cluster": ("cluster", "text"),
    "nodes": ("nodes", "count"), "node_list": ("node_list", "text"), "cpus": ("cpus", "count"),
    "memory": ("memory_requested", "memory"), "elapsed": ("elapsed", "duration"),
    "time_limit": ("time_limit", "duration"), "time_left": ("time_left", "duration"), "submit": ("submit", "time"),
    "eligible": ("eligible", "time"), "start": ("start", "time"), "end": ("end", "time"),
    "restarts": ("restarts", "count"), "dependency": ("dependency", "text"), "batch_host": ("batch_host", "text"),
    "priority": ("priority", "count"), "array_job": ("array_job", "text"), "comment": ("admin_comment", "text"),
    "reservation": ("reservation", "text"),
}  # fmt: skip


#: Facts that say nothing where they are blank.
_TEXTS: Final = frozenset(key for key, (_, how) in _PLAIN.items() if how == "text")


@remembered
def _read_text(text: str) -> Value:
    return lacking(text) or text


def _read_memory(text: str) -> Value:
    return read_memory(text, plain="MiB")


_HOW: Final[dict[str, Callable[[str], Value]]] = {
    "count": read_count, "time": read_time, "duration": read_duration, "memory": _read_memory, "text": _read_text,
}  # fmt: skip
#: Fact → observation and what reads its text.
_READERS: Final = {key: (name, _HOW[how]) for key, (name, how) in _PLAIN.items()}
#: What one job says: names with their values.
Found = list[tuple[str, Value]]


def is_job_id(text: str) -> bool:
    """Whether this is a job's id: `123`, `123_4`, `123_[5-9%2]`, `123+1`, `123.batch`."""
    return len(text) < 5000 and _JOB.fullmatch(text.strip()) is not None


def subject_of(job: str, line: int) -> Labels:
    """The job, or the row where the job is not named."""
    return (("job", job),) if job else (("row", str(line)),)


class Jobs:
    """The jobs of one output, each kept once."""

    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self._said = LimitedNotices(run)
        self._seen: dict[str, int] = {}
        self._repeats = 0
        self._left_out = 0
        self._more = 0
        self._states: Counter[str] = Counter()
        self._waits: Counter[str] = Counter()
        self._allocated: int | None = None

    @property
    def count(self) -> int:
        """How many jobs are kept."""
        return len(self._seen)

    def add(self, job: str, facts: dict[str, str], line: int) -> None:
        """Keep a job.

        Args:
            job: its id as printed; "" for a row without one.
            facts: key → text: state, reason, name, user, account, partition, qos, nodes, node_list, cpus, memory,
                alloc_tres, req_tres, gres_per_node, elapsed, time_limit, start, end, array_tasks, array_throttle …
        """
        key = job or f"row {line}"
        before = self._seen.get(key)
        if before is not None:
            self._repeats += 1
            if before != hash((*facts, *facts.values())):
                self._said.notice(
                    "job-differs", f"job {job} stands here twice with different values; the first one is kept"
                )
            return
        if len(self._seen) >= _MOST_JOBS:
            self._left_out += 1
            return
        self._seen[key] = hash((*facts, *facts.values()))
        found = self._observe(job, facts, line)
        if self._more or self._run.room < _ROOM:
            self._more += 1
        else:
            self._run.extend(found)

    def finish(self, *, listing: bool = False) -> None:
        """Write sums and notices into the run.

        Args:
            listing: whether a whole listing was read, so that no row means no job.
        """
        run = self._run
        self._said.finish()
        if self._left_out:
            run.missing(f"{self._left_out:,} jobs beyond the first {_MOST_JOBS:,}")
        if self._repeats:
            run.notice("job-listed-twice", f"{self._repeats} rows repeat a job; each is counted once", Weight.INFO)
        if self._seen or listing:
            run.condition("jobs_listed", float(len(self._seen)))
        if self._more:
            shown = len(self._seen) - self._more
            run.notice(
                "jobs-summarised",
                f"the first {shown:,} jobs are listed one by one; {self._more:,} more were read and count in the sums "
                "and in what is said here",
                Weight.INFO,
            )
        for state in ("PENDING", "RUNNING"):
            if self._states[state]:
                run.condition(f"jobs_{state.lower()}", float(self._states[state]))
        if self._allocated is not None:
            run.condition("gpus_allocated", float(self._allocated))
        if failed := self._states["NODE_FAIL"]:
            run.notice("node-fail", f"{failed} jobs ended in NODE_FAIL: caused by the infrastructure, not by the job")
        for kind, code, text in (
            ("never", "never-starts", "can never start as they are; they wait for a person, not for capacity"),
            ("held", "held", "are held; a person must release them, this is not a lack of capacity"),
            ("failure", "held-by-a-failure", "wait after a fault of a node or of the system, not for capacity"),
        ):
            if self._waits[kind]:
                weight = Weight.INFO if kind == "held" else Weight.WARNING
                run.notice(f"jobs-{code}", f"{self._waits[kind]} pending jobs or arrays {text}", weight)

    def _observe(self, job: str, facts: dict[str, str], line: int) -> list[Observation]:
        """What is said about a job."""
        found: Found = []
        state = _observe_state(found, facts)
        self._states[state or ""] += 1
        if "reason" in facts:
            self._observe_reason(job, facts, state, found, line)
        found += [
            (_READERS[key][0], _READERS[key][1](text))
            for key, text in facts.items()
            if key in _READERS and (text.strip() or key not in _TEXTS)
        ]
        if "exit" in facts:
            _observe_exit(found, facts["exit"])
        tasks = None
        if "_[" in job or "array_tasks" in facts:
            tasks = _observe_array(self._said, job, facts, found, line)
        self._observe_gpus(facts, state, tasks, found)
        subject = subject_of(job, line)
        return [_new(Observation, (name, value, subject, line)) for name, value in found]

    def _observe_reason(self, job: str, facts: dict[str, str], state: str | None, found: Found, line: int) -> None:
        reason = facts["reason"].strip().strip("()").strip()
        if state not in (None, "PENDING", "SUSPENDED") or not reason or lacking(reason) is not None:
            return
        found.append(("pending_reason", reason))
        kind = classify_reason(reason)
        if kind is not None:
            found.append(("waits_for", kind))
            self._waits[kind] += 1
        if kind == "never":
            self._said.notice("job-stuck", f"job {job} is stuck: {shorten(reason, 80)}", line=line)
        host = facts.get("batch_host", "")
        if kind == "failure" and lacking(host) is None:
            self._said.notice(
                "node-suspect", f"job {job} is held after a failure ({shorten(reason, 60)}); suspect node: {host}"
            )
            found.append(("suspect_node", host))

    def _observe_gpus(self, facts: dict[str, str], state: str | None, tasks: float | None, found: Found) -> None:
        allocated = _count_tres(facts, "alloc_tres", "gpus_allocated", found)
        _count_tres(facts, "req_tres", "gpus_requested", found)
        if "gres_per_node" in facts:
            self._observe_per_node(facts, found)
        running = state in (None, "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING")
        if isinstance(allocated, int) and running and not (tasks and tasks > 1):
            self._allocated = (self._allocated or 0) + allocated

    def _observe_per_node(self, facts: dict[str, str], found: Found) -> None:
        per_node = facts["gres_per_node"]
        read = read_gres(per_node)
        if not isinstance(read, NoValue):
            found.append(("gpus_per_node", float(count_gpus(read))))
        elif read.why:
            found.append(("gpus_per_node", read))
        elif per_node.strip().upper() == "N/A" and "alloc_tres" not in facts:
            why = "this field knows only --gres; GPUs asked otherwise are not shown: read tres-alloc"
            found.append(("gpus_per_node", NoValue(Lack.ABSENT, "N/A", why)))
            self._run.notice(
                "gpus-unknown",
                "the column of resources per node says N/A: GPUs asked with --gpus-per-node or --gpus are not "
                "shown there; N/A is unknown, not 0; read tres-alloc",
            )


def _count_tres(facts: dict[str, str], key: str, name: str, found: Found) -> int | NoValue | None:
    if key not in facts:
        return None
    tres = read_tres(facts[key])
    if isinstance(tres, NoValue):
        if tres.lack is Lack.UNREADABLE:
            found.append((name, tres))
        return tres
    count = gpus_of(facts[key])
    found.append((name, float(count) if isinstance(count, int) else count))
    for part in ("cpu", "node") if name == "gpus_allocated" else ():
        if part in tres and part + "s" not in facts:
            found.append((f"{part}s", read_count(tres[part])))
    return count


def _observe_state(found: Found, facts: dict[str, str]) -> str | None:
    text = facts.get("state")
    if text is None:
        return None
    state = read_job_state(text)
    found.append(("job_state", state or unreadable(text, "cut, or no state that Slurm documents")))
    return state


def _observe_exit(found: Found, text: str) -> None:
    """`0:15`: exit code and signal."""
    match = re.fullmatch(r"(\d{1,10}):(\d{1,4})", text.strip())
    if match is not None:
        found.append(("exit_code", float(match[1])))
        found.append(("exit_signal", float(match[2])))


def _observe_array(said: LimitedNotices, job: str, facts: dict[str, str], found: Found, line: int) -> float | None:
    """Tasks behind an id such as `42_[7-8%1]`; None when the job is a single one."""
    inside = _ARRAY.fullmatch(job)
    text = facts.get("array_tasks", inside[2] if inside else "")
    if not text or text.strip().isdigit():
        return None
    listed, percent, throttle = text.partition("%")
    tasks = count_tasks(listed)
    found.append(("array_tasks", tasks))
    limit = throttle if percent else facts.get("array_throttle", "")
    if limit.isascii() and limit.isdigit() and len(limit) < 10:
        found.append(("array_throttle", float(limit)))
    if not isinstance(tasks, NoValue):
        cap = f", at most {limit} at once" if limit else ""
        said.notice("array", f"job {job} stands for {tasks:.0f} tasks{cap}", Weight.INFO, line)
        return tasks
    return None


def count_tasks(text: str) -> float | NoValue:
    """How many array tasks `1,3,5-9:2` names; UNREADABLE when the list is cut with `...`."""
    if "..." in text:
        return unreadable(text, "the list is cut; set SLURM_BITSTR_LEN=0")
    total = 0
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?", part.strip())
        if match is None:
            return unreadable(text, "not a list of array tasks")
        low, high, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        total += (high - low) // max(step, 1) + 1 if high >= low else 0
    return float(total)
