"""Readings, evidence, verdicts, and rehearsals, which are kept apart from verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from clusterwright.lib.quantities import Quantity
from clusterwright.model.acceptance import Requirement


class Outcome(StrEnum):
    """How a requirement ends. Only MET is a pass."""

    MET = "met"
    NOT_MET = "not met"
    NOT_MEASURED = "not measured"
    NOT_APPLICABLE = "not applicable"


class RehearsalOutcome(StrEnum):
    """How a rehearsal on virtual nodes ends. It never makes a requirement MET."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Reading:
    """One number or fact read from output.

    Args:
        metric: a key of METRICS.
        value: Quantity, number, flag or text; None when unreadable, with the text kept in `unreadable`.
        conditions: what was printed about the conditions, such as {"message_size": "16 GiB"}.
        nodes: host names it was measured on.
    """

    metric: str
    value: Quantity | float | bool | str | None
    conditions: tuple[tuple[str, str], ...] = ()
    nodes: tuple[str, ...] = ()
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One immutable observation.

    Args:
        id: digest of its content (`sha256:...`).
        requirements: ids of the requirements it speaks about.
        basis: `measured` on the declared engine with real devices, else `rehearsed`.
        engine: engine that ran it (local, kubernetes, slurm), or "" if none.
        devices: `real` or `virtual`.
    """

    id: str
    requirements: tuple[str, ...]
    tool: str
    readings: tuple[Reading, ...]
    basis: Literal["measured", "rehearsed"]
    engine: str
    devices: Literal["real", "virtual"]
    nodes: tuple[str, ...]
    started: datetime
    ended: datetime
    raw_digest: str = ""
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison within a rehearsal: what was expected, what was seen."""

    name: str
    expected: str
    seen: str
    holds: bool


class MomentKind(StrEnum):
    """What a moment of a rehearsal is; the times to notice and to recover begin with LOSS."""

    EVENT = "event"
    LOSS = "loss"
    NOTICED = "noticed"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class Moment:
    """What happened in a rehearsal, `at_s` seconds after it began."""

    at_s: float
    what: str
    kind: MomentKind = MomentKind.EVENT


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What one rehearsal showed on the embedded engine, with virtual or real devices.

    Args:
        name: `scheduled-execution` or `worker-loss`.
        reason: why it failed or was not run; a summary when it passed.
        readings: rehearsed readings (detection_time, recovery_time, lost_work, tasks_as_expected).
        timeline: what happened, in order of time.
        log_directory: where its state and logs are; in a report relative to the report's directory.
    """

    name: str
    outcome: RehearsalOutcome
    reason: str
    workload: str = ""
    checks: tuple[Check, ...] = ()
    readings: tuple[Reading, ...] = ()
    timeline: tuple[Moment, ...] = ()
    seconds: float = 0.0
    devices: Literal["real", "virtual"] = "virtual"
    log_directory: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Requirement × evidence → outcome with its reason.

    Args:
        reading: the reading that decided, if any.
        evidence_id: evidence that decided, or "".
        age_s: age of that evidence in seconds, or None.
        rehearsal: what the rehearsal column says, with `rehearsed` as the value seen there.
        next_step: for NOT_MEASURED, what to run and who can run it.
    """

    id: str
    requirement: Requirement
    outcome: Outcome
    reason: str
    reading: Reading | None = None
    evidence_id: str = ""
    age_s: float | None = None
    rehearsal: RehearsalOutcome = RehearsalOutcome.NOT_RUN
    rehearsed: str = ""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many required claims are in each state, and the oldest evidence among them."""

    met: int = 0
    not_met: int = 0
    not_measured: int = 0
    not_applicable: int = 0
    oldest_age_s: float | None = None
    by_class: tuple[tuple[str, tuple[int, int, int, int]], ...] = field(default=())
