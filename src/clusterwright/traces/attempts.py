"""Records of one job id → jobs with their attempts: requeued, recorded again while open, or an id that was used again.

A requeue gives a job a new submit time and a record of its own; the first record keeps the original one.
Source: man sacct (Submit; --duplicates): "If a job is requeued, the submit time is reset"; job_mgr.c of slurmctld sets
a new submit time so that the restarted job looks like a new one in the accounting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Final, NamedTuple

#: States after which the next record of the same id is another attempt of the same job (RESIZING: of another size).
REQUEUING: Final = frozenset(
    {
        "REQUEUED",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "REQUEUE_HOLD",
        "REQUEUE_FED",
        "SPECIAL_EXIT",
        "LAUNCH_FAILED",
        "RESIZING",
    }
)
#: States of an attempt that had not ended when it was recorded.
OPEN: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", ""})


class Attempt(NamedTuple):
    """One record, as one try of a job; times as in `Trace`.

    Args:
        place: of the record in the source, for the order of equal times.
    """

    place: int
    line: int
    text: str
    same: int
    submit_s: float
    eligible_s: float
    start_s: float
    end_s: float
    run_s: float
    limit_s: float
    gpus: int
    nodes: int
    state: str
    user: str
    censored: bool


class Sorted(NamedTuple):
    """What the records of one id are.

    Args:
        jobs: each the attempts of one job in their order.
        updated: records in whose place a later one of the same attempt stands.
        repeated: records that stand there again.
        clashing: records that contradict an earlier one of the same attempt.
    """

    jobs: list[list[Attempt]]
    updated: list[Attempt]
    repeated: list[Attempt]
    clashing: list[Attempt]


def sort_attempts(records: Sequence[Attempt]) -> Sorted:
    """Tell apart what the records of one id are."""
    found = Sorted([], [], [], [])
    seen: set[int] = set()
    fresh: list[Attempt] = []
    for record in records:
        (found.repeated if record.same in seen else fresh).append(record)
        seen.add(record.same)
    distinct: list[Attempt] = []
    for record in sorted(fresh, key=_order):
        last = distinct[-1] if distinct else None
        if last is None or last.submit_s != record.submit_s or _started_apart(last, record):
            distinct.append(record)
        elif last.state in OPEN:
            found.updated.append(last)
            distinct[-1] = record
        else:
            found.clashing.append(record)
    found.jobs.extend(_chains(distinct))
    return found


def _order(record: Attempt) -> tuple[float, float, bool, float, int]:
    """By submission and start; of one attempt an open record comes first, then by what had run."""
    start_s = -1.0 if isnan(record.start_s) else record.start_s
    run_s = -1.0 if isnan(record.run_s) else record.run_s
    return (record.submit_s, start_s, record.state not in OPEN, run_s, record.place)


def _started_apart(one: Attempt, other: Attempt) -> bool:
    return not isnan(one.start_s) and not isnan(other.start_s) and one.start_s != other.start_s


def _chains(attempts: Sequence[Attempt]) -> Iterator[list[Attempt]]:
    chain: list[Attempt] = []
    for attempt in attempts:
        if chain and not (chain[-1].state in REQUEUING and chain[-1].user == attempt.user):
            yield chain
            chain = []
        chain.append(attempt)
    if chain:
        yield chain
