"""What a file declares about sharing, as the engine, the review and the simulator all read it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Final

from clusterwright.model.scheduling import Budget as DeclaredBudget
from clusterwright.model.scheduling import FairShare as DeclaredFairShare
from clusterwright.model.scheduling import Preemption, Scheduling
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.policies import (
    Backfill,
    FairShare,
    NodeTie,
    Packing,
    Policy,
    PreemptionPolicy,
    Reclaim,
    WithinQueue,
)
from clusterwright.queueing.quotas import Queue, QueueTree, Quota

_HOUR_S: Final = 3600.0


def declared_tree(scheduling: Scheduling | None) -> QueueTree:
    """The queues of the file with their quotas by pool; the empty tree without a scheduling section.

    A `borrow` that is given limits the pools it names and forbids the others; one that is absent is unlimited.

    Raises:
        InvalidInput: on unknown parents and cycles.
    """
    if scheduling is None:
        return QueueTree()
    queues = []
    for name, queue in scheduling.queues.items():
        pools = dict.fromkeys((*queue.guarantee, *(queue.borrow or {}), *(queue.lend or {})))
        quotas = {
            pool: Quota(
                queue.guarantee.get(pool, 0),
                None if queue.borrow is None else queue.borrow.get(pool, 0),
                None if queue.lend is None else queue.lend.get(pool),
            )
            for pool in pools
        }
        queues.append(Queue(name, queue.parent, quotas, strict=queue.strategy == "strict", slack=queue.slack))
    return QueueTree(tuple(queues))


def declared_policy(scheduling: Scheduling | None) -> Policy:
    """How the file shares its GPUs; the default policy without a scheduling section."""
    if scheduling is None:
        return Policy()
    return Policy(
        backfill=Backfill(scheduling.backfill),
        preemption=_preemption(scheduling.preemption),
        fair=_fair_share(scheduling.fair_share),
        guaranteed_only=scheduling.guaranteed_only,
        node_tie=NodeTie(scheduling.tie_break),
        packing=Packing(scheduling.packing),
        weights={name: queue.weight for name, queue in scheduling.queues.items() if queue.weight != 1},
    )


def declared_budgets(scheduling: Scheduling | None) -> dict[str, Budget]:
    """Budgets by queue; times are seconds since 1970-01-01 UTC."""
    queues = {} if scheduling is None else scheduling.queues
    return {name: _budget(queue.budget) for name, queue in queues.items() if queue.budget is not None}


def _preemption(declared: Preemption | None) -> PreemptionPolicy:
    if declared is None:
        return PreemptionPolicy()
    lower, most = declared.borrow_and_preempt == "lower-priority", declared.borrow_and_preempt_up_to
    runtime, grace, unsaid = declared.minimum_runtime, declared.grace, PreemptionPolicy()
    return PreemptionPolicy(
        within_queue=WithinQueue(declared.within_queue),
        reclaim=Reclaim(declared.reclaim),
        borrow_below=None if not lower else float("inf") if most is None else float(most),
        minimum_runtime_s=unsaid.minimum_runtime_s if runtime is None else runtime.value,
        grace_s=unsaid.grace_s if grace is None else grace.value,
    )


def _fair_share(declared: DeclaredFairShare | None) -> FairShare:
    if declared is None:
        return FairShare()
    half_life = None if declared.half_life is None else declared.half_life.value
    return FairShare(now=declared.now, half_life_s=half_life, by_user=declared.by_user)


def _budget(declared: DeclaredBudget) -> Budget:
    return Budget(
        gpu_hours=declared.gpu_time.value / _HOUR_S,
        every_s=None if declared.every is None else declared.every.value,
        from_s=0.0 if declared.starts is None else _midnight_s(declared.starts),
        until_s=None if declared.until is None else _midnight_s(declared.until),
    )


def _midnight_s(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
