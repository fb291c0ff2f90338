"""The proof of a cluster: everything that a report of `cw prove` shows, as one value.

Renderers (text, JSON, HTML) read this and nothing else, so that two reports of one run cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from clusterwright.lib.figures import Figure
from clusterwright.model.documents import Document
from clusterwright.model.evidence import Coverage, Outcome, Rehearsal, RehearsalOutcome, Verdict
from clusterwright.plan.results.plans import Plan
from clusterwright.review.reviews import Review

StepState = Literal["done", "failed", "not run"]

#: The step that evidence from the real cluster takes.
ACCEPT: Final = "accept on hardware"
#: What later steps of the method would show; a proof lists each as not run, with the reason, and hides none.
LATER_STEPS: Final[tuple[tuple[str, str], ...]] = (
    ("simulate", "no part of a proof yet; cw simulate plays weeks of queueing and failure"),
    ("render", "the configuration of the declared engine is not written by this version"),
    (ACCEPT, "no evidence from the real cluster was given (--evidence)"),
    ("operate", "nothing observes a running cluster in this version"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a proof.

    Args:
        name: load, review, plan, rehearse scheduled execution, rehearse worker loss, judge, or a later step.
        reason: why it failed or was not run; what it found when done.
        seconds: wall time.
    """

    name: str
    state: StepState
    reason: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumed leaf of the plan, with the result that it moves most.

    Args:
        effect: relative change of `moves` for a change of the leaf by 10 %; may be infinite.
    """

    leaf: Figure
    moves: Figure
    effect: float


@dataclass(frozen=True)
class Proof:
    """What one run of `cw prove` showed.

    Args:
        cluster: name of the cluster.
        document: the declared value; None when it could not be read.
        review: findings, None when the review did not run.
        plan: None when nothing could be planned.
        verdicts: one per requirement, in the order of the file, derived ones after.
        steps: every step in order, later ones as not run.
        assumptions: assumed leaves that the plan's headline figures rest on, largest effect first.
        started: aware time.
        seconds: wall time of the whole run.
        inputs: (what, digest) of everything the result follows from.
        exit_code: 0, 1, 3, or 130 when interrupted.
        interrupted: why the run ended early, or "".
    """

    cluster: str
    document: Document | None
    review: Review | None
    plan: Plan | None
    rehearsals: tuple[Rehearsal, ...]
    verdicts: tuple[Verdict, ...]
    coverage: Coverage
    steps: tuple[Step, ...]
    assumptions: tuple[Assumption, ...]
    started: datetime
    seconds: float
    version: str
    inputs: tuple[tuple[str, str], ...]
    exit_code: int
    interrupted: str = ""

    def of_outcome(self, outcome: Outcome, *, required: bool | None = None) -> tuple[Verdict, ...]:
        """Verdicts with this outcome, of required or informational claims only if asked."""
        return tuple(
            v
            for v in self.verdicts
            if v.outcome is outcome and (required is None or v.requirement.required is required)
        )

    def rehearsals_that(self, outcome: RehearsalOutcome) -> tuple[Rehearsal, ...]:
        """Rehearsals that ended like this."""
        return tuple(r for r in self.rehearsals if r.outcome is outcome)

    def rehearsals_that_ran(self) -> tuple[Rehearsal, ...]:
        """Rehearsals that took place, whatever they showed."""
        return tuple(r for r in self.rehearsals if r.outcome is not RehearsalOutcome.NOT_RUN)


def rank_assumptions(plan: Plan) -> tuple[Assumption, ...]:
    """What the plan's headline figures rest on, largest effect first."""
    return tuple(Assumption(a.leaf, plan.figures[a.on], a.effect) for a in plan.assumptions if a.on in plan.figures)
