"""What failures, checkpoints and missing nodes take of a training run, with how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from clusterwright.lib.scales import DAY_S
from clusterwright.physics.failures import MTTF_BAND, SPARES_MOST, ettr_exact, spared_share, spares
from clusterwright.physics.training.runs import Run
from clusterwright.plan.fitting.bands import Band
from clusterwright.plan.fitting.wants import TrainingWants, Wants
from clusterwright.plan.searching.questions import TrainingQuestion
from clusterwright.plan.searching.training import TrainingRow


@dataclass(frozen=True)
class Interruptions:
    """Of one job.

    Args:
        origin: of the failure rate: stated, profile or assumed.
        failures: of nodes per 1,000 node-days.
        run: of the job: interval and stall of checkpoints.
        mttf_h: hours between failures of the job.
        goodput: useful ÷ elapsed time, the wait for nodes included.
        needed: spare nodes with which `target` of the time no node is missing; None where no number is enough.
        spares: spare nodes that were asked for, None where every failed node is replaced at once.
        covered: share of the time in which no node is missing.
    """

    origin: str
    failures: float
    run: Run
    mttf_h: Band
    goodput: Band
    target: float
    needed: int | None
    spares: int | None
    covered: float


def interruptions_of(question: TrainingQuestion, row: TrainingRow, wants: Wants) -> Interruptions:
    """What a layout loses."""
    own, losses = wants.training or TrainingWants(), question.losses
    assert row.run is not None
    assert losses is not None
    rate, nodes = losses.per_1000_node_days, row.gpus / question.pool.gpus_per_node
    origin, kept = wants.origin("failures"), wants.serving.survive_nodes
    stated = origin != "assumed"
    asked = None if wants.origin("survive") == "assumed" else kept
    covered = 1.0 if asked is None else covered_by(row.nodes, asked, rate, own.repair_s)
    worst = 1.0 if stated else 1 / MTTF_BAND[0]
    least = ettr_exact(nodes, rate * worst, losses.restart_s, row.run.interval_s, row.run.stall_s)
    mttf, value = row.run.mttf_h, row.run.goodput * covered
    return Interruptions(
        origin,
        rate,
        row.run,
        Band(mttf, mttf / worst, mttf),
        Band(value, min(least * covered, value), value),
        wants.spares_target,
        needed_spares(row.nodes, rate, own.repair_s, wants.spares_target),
        asked,
        covered,
    )


def covered_by(nodes: int, kept: int, failures: float, repair_s: float) -> float:
    """Share of the time in which at most `kept` of nodes + kept are in repair."""
    return spared_share(nodes, kept, 1000 / failures, repair_s / DAY_S) if failures else 1.0


def needed_spares(nodes: int, failures: float, repair_s: float, target: float) -> int | None:
    """Fewest spares that keep all nodes at work for a share of the time; None where no number does."""
    if not failures:
        return 0
    if target >= 1:
        return None
    found = spares(nodes, 1000 / failures, repair_s / DAY_S, target)
    return None if found > SPARES_MOST else found


def expected_failures(found: Interruptions, days: float) -> float:
    """Failures of the job in so many days."""
    return days * 24 / found.mttf_h.value if math.isfinite(found.mttf_h.value) else 0.0
