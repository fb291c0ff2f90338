"""How a cluster shares its GPUs, as plain values: order, backfill, preemption, fair share, ties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class WithinQueue(StrEnum):
    """Whom a job may preempt in its own queue."""

    NEVER = "never"
    LOWER = "lower-priority"
    LOWER_OR_NEWER = "lower-or-newer-equal"


class Reclaim(StrEnum):
    """From which borrowers a job within its queue's guarantee may take GPUs."""

    NEVER = "never"
    LOWER = "lower-priority"
    ANY = "any"


class Backfill(StrEnum):
    """What may pass a job that cannot start.

    NONE: nothing of its queue passes (strict), or all that fits does (best effort), as the queue says. EASY: the head
    gets a promised start, and a later job may start only if that keeps (Lifka 1995, the ANL/IBM SP scheduling system).
    """

    NONE = "none"
    EASY = "easy"


class NodeTie(StrEnum):
    """Which of equally good nodes is taken: the first by name, or the first as declared."""

    NAME = "name"
    DECLARED = "declared"


class Packing(StrEnum):
    """Which nodes are filled first: the fullest that fits (keeps nodes whole), or the emptiest (spreads load)."""

    FULLEST = "fullest"
    EMPTIEST = "emptiest"


@dataclass(frozen=True, slots=True)
class PreemptionPolicy:
    """Who may take GPUs from whom.

    Args:
        borrow_below: a job that borrows may preempt jobs of lower priority, up to this priority; None is never.
        minimum_runtime_s: nobody is a victim before.
        grace_s: between SIGTERM and SIGKILL.
    """

    within_queue: WithinQueue = WithinQueue.NEVER
    reclaim: Reclaim = Reclaim.NEVER
    borrow_below: float | None = None
    minimum_runtime_s: float = 0.0
    grace_s: float = 30.0

    @property
    def active(self) -> bool:
        """Whether anybody may ever be preempted."""
        off = self.within_queue is WithinQueue.NEVER and self.reclaim is Reclaim.NEVER and self.borrow_below is None
        return not off


@dataclass(frozen=True, slots=True)
class FairShare:
    """How queues that borrow are ranked.

    Args:
        now: by dominant resource share of what they borrow now (Kueue's fairSharing).
        half_life_s: usage over time, decayed by half in this time, orders jobs of equal priority; None is off
            (Slurm PriorityDecayHalfLife, Kueue AdmissionFairSharing usageHalfLifeTime).
        by_user: whether usage over time is that of users within a queue too, not of queues alone.
    """

    now: bool = False
    half_life_s: float | None = None
    by_user: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything a cycle needs to know about how to decide.

    Args:
        backfill_depth: how many waiting jobs of a queue are looked at for backfilling, None is all
            (Slurm bf_max_job_test).
        guaranteed_only: jobs that may not be preempted use guaranteed quota only.
        weights: of queues for fair share; 1 unless named.
    """

    backfill: Backfill = Backfill.NONE
    backfill_depth: int | None = None
    preemption: PreemptionPolicy = PreemptionPolicy()
    fair: FairShare = FairShare()
    guaranteed_only: bool = False
    node_tie: NodeTie = NodeTie.NAME
    packing: Packing = Packing.FULLEST
    weights: Mapping[str, float] = field(default_factory=dict)
