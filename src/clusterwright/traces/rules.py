"""What may be odd about a row of a trace, and what is done about it: every rule has a name and is counted.

A *rejected* row is in no job. A *part* is a row that belongs to a job that another row begins. A *remark* is said of a
job that is kept.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: A start before the submission by at most this is a difference of clocks, in seconds. Hosts of a cluster whose clocks
#: are further apart cannot talk to each other at all: a MUNGE credential is valid for 300 s (munged(8), --max-ttl and
#: the default time-to-live; MUNGE_DEFAULT_TTL in munge's src/libcommon/munge_defs.h).
MOST_SKEW_S: Final = 300.0
#: Guards against a wrong unit: the year 2100, ten years of run time, a million GPUs or processors.
LATEST_S: Final = 4_102_444_800.0
LONGEST_S: Final = 315_360_000.0
MOST_GPUS: Final = 1_000_000


class Rule(NamedTuple):
    """What a rule finds and what happens then."""

    what: str
    done: str


REJECTED: Final[dict[str, Rule]] = {
    "fields": Rule("the row has more or fewer fields than the header", "rejected, never shifted"),
    "unreadable-row": Rule("the row cannot be read as a row", "rejected"),
    "no-id": Rule("no job id", "rejected: records of one job could not be told apart"),
    "no-submit": Rule("no submit time", "rejected: nothing says when the job arrived"),
    "bad-time": Rule("a time that is no time, or after the year 2100", "rejected"),
    "bad-number": Rule("a number that is no finite number", "rejected"),
    "bad-gpus": Rule("GPUs or processors that are negative, not whole, or above a million", "rejected"),
    "negative-run": Rule("a negative run time", "rejected"),
    "run-too-long": Rule("a run time above ten years: a wrong unit or date", "rejected"),
    "end-before-start": Rule("it ends before it starts", "rejected: one of the two times is wrong"),
    "start-before-submit": Rule(
        "it starts more than 300 s before it was submitted",
        "rejected: clocks so far apart cannot belong to one cluster (a MUNGE credential is valid for 300 s)",
    ),
    "contradiction": Rule("the record contradicts itself", "rejected, not repaired"),
    "attempts-overlap": Rule(
        "two records of one job say different things about the same time", "the later is rejected"
    ),
    "no-base": Rule("a part (step, component, event) of a job that no row begins", "rejected: it is no job by itself"),
    "array-cut": Rule(
        "the list of array tasks is cut, so their number is unknown", "rejected; print it with SLURM_BITSTR_LEN=0"
    ),
    "array-too-large": Rule("one row for more than 4,000,001 array tasks, Slurm's highest MaxArraySize", "rejected"),
}
PARTS: Final[dict[str, Rule]] = {
    "step": Rule("a step (.batch, .extern, .0 …)", "inside its allocation, never added to it"),
    "attempt": Rule(
        "a further attempt of a requeued job", "one job: first submission, last run; earlier runs are lost"
    ),
    "component": Rule("a further component of a heterogeneous job", "one job: its GPUs are added"),
    "update": Rule("a later record of an attempt that had not ended", "the later record holds"),
    "repeat": Rule("a record that stands there twice, equal in every field", "counted once"),
    "partial-run": Rule("a partial execution (SWF status 2, 3, 4)", "inside the job's summary line"),
    "event": Rule("a further event of a job", "one job"),
    "other-event": Rule("an event of a node or of the engine, not of a job", "no job"),
    "node": Rule("a node", "no job: it belongs to the list of nodes"),
}
REMARKS: Final[dict[str, Rule]] = {
    "clock-skew": Rule("it starts up to 300 s before it was submitted", "the clocks differ: taken as a wait of 0 s"),
    "zero-run": Rule("it ran for 0 s", "kept: it started and ended within one second"),
    "time-not-there": Rule(
        "a local time that a change to summer time skipped", "taken as if the clock had not been changed"
    ),
    "time-twice": Rule("a local time that a change to winter time repeats", "the first of the two is taken"),
    "never-ran": Rule("cancelled before it started", "kept: it was demand; it has no run time"),
    "still-running": Rule("not ended when the source was written", "kept: its run time is a lower bound"),
    "still-pending": Rule("not started when the source was written", "kept: its wait is a lower bound"),
    "requeued": Rule("started more than once", "one job: first submission, last run; earlier runs are lost"),
    "submit-reset": Rule(
        "requeued, but its earlier records are not there",
        "its wait counts from the last requeue (man sacct, Submit: requeue resets it); `sacct --duplicates` shows them",
    ),
    "id-used-again": Rule("its id was used before", "another job: id and submit time tell them apart"),
    "array": Rule("one row for several tasks of an array that have not started", "one job for each task"),
    "component-mixed": Rule("its components hold different numbers of GPUs per node", "GPUs per node are unknown"),
    "gpus-not-recorded": Rule(
        "no GPUs in its trackable resources, nor in those of any job before it",
        "unknown, not 0; slurm.conf needs AccountingStorageTRES=gres/gpu",
    ),
    "gpus-not-named": Rule("its trackable resources name no GPU, those of earlier jobs do", "0 GPUs"),
    "gpus-cut": Rule("its list of resources is cut or unreadable", "GPUs unknown"),
    "gpus-not-per-node": Rule("its GPUs are no multiple of its nodes", "GPUs per node are unknown"),
    "gpu-slices": Rule("it asks for MIG instances, which are parts of GPUs", "counted as the source counts them"),
    "no-limit": Rule("it has no time limit", "an infinite one"),
    "partition-limit": Rule("the limit of its partition holds, which the source does not tell", "unknown"),
    "over-limit": Rule("it ran more than 10 % and 5 min longer than its limit", "kept as recorded"),
    "gpu-time-differs": Rule("its GPU time is not GPUs × duration", "GPUs and duration are kept"),
    "run-differs": Rule("its run time is not end − start (suspended, or the clock changed)", "the run time is kept"),
    "processors-not-gpus": Rule("its processors are no multiple of those per GPU", "GPUs are rounded up"),
    "unknown-state": Rule("a state that is not known", "kept without a state"),
}
