"""An attempt's own arithmetic as the ledger wants it."""

from __future__ import annotations

from clusterwright.ledger.attempts import AttemptRecord, Ending
from clusterwright.model.jobs import Cause
from clusterwright.simulate.attempts import Attempt, Spent


def record_spent(
    attempt: Attempt,
    spent: Spent,
    gpus: int,
    admitted_s: float,
    ending: Ending,
    cause: Cause = Cause.UNKNOWN,
    resumed: bool = False,
) -> AttemptRecord:
    """The record of an attempt; its lines add up to `spent.total_ms` × GPUs, each part in its own.

    Args:
        admitted_s: a whole number of milliseconds, as all instants of a simulation are.
        resumed: whether it went on from a checkpoint of an earlier attempt.
    """

    def at_s(ms: int) -> float:
        return admitted_s + ms / 1000

    return AttemptRecord(
        gpus=gpus,
        admitted_s=admitted_s,
        ended_s=at_s(spent.total_ms),
        ending=ending,
        started_s=at_s(spent.starting_ms) if spent.starting_ms == attempt.starting_ms else None,
        saved_s=at_s(spent.saved_at_ms) if spent.productive_ms else None,
        stopped_s=at_s(spent.total_ms - spent.held_ms),
        stalled_s=spent.stalled_ms / 1000,
        stalled_since_s=spent.stalled_since_ms / 1000,
        cause=cause,
        resumed=resumed,
    )
