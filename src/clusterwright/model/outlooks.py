"""Why a job waits, as data: its blockers, its place, its promise.

Standard library only, as `jobs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from clusterwright.model.jobs import JobId


class BlockerKind(StrEnum):
    """Why a job waits; the words of the queue model."""

    HELD = "HELD"
    GATED = "GATED"
    MISCONFIGURED = "MISCONFIGURED"
    NEVER_FITS = "NEVER_FITS"
    QUOTA_WAIT = "QUOTA_WAIT"
    BUDGET = "BUDGET"
    HARDWARE_WAIT = "HARDWARE_WAIT"
    TOPOLOGY = "TOPOLOGY"
    FRAGMENTED = "FRAGMENTED"
    ORDER = "ORDER"
    BACKOFF = "BACKOFF"
    STARTING = "STARTING"
    FENCING = "FENCING"
    PREEMPTING = "PREEMPTING"


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason why a job does not run, as data: numbers by name, who holds what it needs, the next step."""

    kind: BlockerKind
    message: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    holders: tuple[str, ...] = ()
    next_step: str = ""
    evaluated_at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PromisedStart:
    """When a waiting job starts at the latest, and what that rests on; never said without a basis.

    Args:
        at_s: POSIX seconds.
        basis: in words, such as "if job 17 runs to its limit".
        jobs: whose ends it waits for.
    """

    at_s: float
    basis: str
    jobs: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where a job that does not run stands.

    Args:
        blockers: every reason; none for a job that runs or has ended.
        position: in its queue by priority and age, 1 goes first; None for one that is not in the line (held, gated,
            after a failure, without budget) or does not wait.
        promise: only where there is one: a job that may be passed has none.
    """

    blockers: tuple[Blocker, ...] = ()
    position: int | None = None
    promise: PromisedStart | None = None
