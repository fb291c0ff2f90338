"""Judge a document: its claims, the evidence for them, and what the rehearsals showed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from clusterwright.judging.ceilings import limits_of
from clusterwright.judging.requirements import collect_claims
from clusterwright.judging.sites import site_of
from clusterwright.judging.verdicts import cover, judge
from clusterwright.model.documents import Document
from clusterwright.model.evidence import Coverage, Evidence, Rehearsal, Verdict
from clusterwright.plan.results.plans import Plan


def judge_document(
    document: Document,
    plan: Plan | None,
    rehearsals: Sequence[Rehearsal],
    evidence: Sequence[Evidence] = (),
    *,
    now: datetime,
) -> tuple[tuple[Verdict, ...], Coverage]:
    """A verdict on every claim of the file, and what of the required ones they cover.

    Args:
        plan: gives the ceilings above which a reading is invalid; without one nothing is refused for its size.
        now: aware time of the judgement.
    """
    claims = collect_claims(document.architecture)
    limits = limits_of(claims, plan) if plan is not None else {}
    site = site_of(document.architecture)
    verdicts = judge(claims, evidence, rehearsals, now=now, site=site, limits=limits)
    return verdicts, cover(verdicts)
