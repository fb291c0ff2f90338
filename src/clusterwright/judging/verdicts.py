"""The verdict on every claim, how much of what is required they cover, and the exit code that follows.

The worst usable reading decides: a later pass never overwrites a failure. A failure leaves the judgement only when its
evidence is too old, or is taken out of the bundle by a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from clusterwright.judging.comparing import badness, holds, why_toothless, why_unusable
from clusterwright.judging.matching import Match, Sighting, counts_by_node, match_evidence, required_nodes
from clusterwright.judging.requirements import Claim
from clusterwright.judging.sites import Site, why_not_applicable, why_undecidable
from clusterwright.lib.hostlists import fold
from clusterwright.lib.quantities import Quantity, format_base
from clusterwright.model.acceptance import Requirement
from clusterwright.model.evidence import (
    Coverage,
    Evidence,
    Outcome,
    Reading,
    Rehearsal,
    RehearsalOutcome,
    Verdict,
)
from clusterwright.model.metrics import CLAIM_CLASSES

#: What a rehearsal sees and no faster or slower host would change; only these may be refuted by it.
HOST_INDEPENDENT: Final = frozenset({"tasks_as_expected"})
#: What tools print in units so small that nobody reads the number.
_LONG: Final = re.compile(r"\d{7,}")
_WORDS: Final = {"at_least": "at least", "at_most": "at most", "equals": "equal to"}


def judge(
    claims: Sequence[Claim],
    evidence: Sequence[Evidence],
    rehearsals: Sequence[Rehearsal],
    *,
    now: datetime,
    site: Site,
    limits: Mapping[str, Quantity] | None = None,
) -> tuple[Verdict, ...]:
    """One verdict per claim, in the order of the claims.

    Args:
        now: aware time of the judgement.
        site: what the file declares about pools and engines.
        limits: claim id → the most that the declared hardware can reach; a reading above it is invalid.

    Returns:
        A claim is MET only with at least one usable reading measured on the declared engine and real devices, within
        its conditions and age, over its whole scope, and with no usable reading on the wrong side.
    """
    limits = limits or {}
    return tuple(
        _judge_claim(claim, evidence, rehearsals, now=now, site=site, limit=limits.get(claim.id)) for claim in claims
    )


def _judge_claim(
    claim: Claim,
    evidence: Sequence[Evidence],
    rehearsals: Sequence[Rehearsal],
    *,
    now: datetime,
    site: Site,
    limit: Quantity | None,
) -> Verdict:
    requirement = claim.requirement
    column, rehearsed, refuted = _read_rehearsals(requirement, rehearsals)

    def verdict(outcome: Outcome, reason: str, decided: Sighting | None = None, next_step: str = "") -> Verdict:
        return Verdict(
            id=claim.id,
            requirement=requirement,
            outcome=outcome,
            reason=reason,
            reading=decided.reading if decided else None,
            evidence_id=decided.evidence.id if decided else "",
            age_s=(now - decided.evidence.ended).total_seconds() if decided else None,
            rehearsal=column,
            rehearsed=rehearsed,
            next_step=next_step,
        )

    if why := why_not_applicable(requirement, site):
        return verdict(Outcome.NOT_APPLICABLE, why)
    if why := why_undecidable(requirement, site) or why_toothless(requirement):
        return verdict(Outcome.NOT_MEASURED, why, next_step=f"correct {claim.path} in the file")
    match = match_evidence(claim.id, requirement, evidence, now=now, site=site, limit=limit)
    worst = max(match.sightings, key=lambda s: badness(requirement, s.value), default=None)
    if worst is not None and not worst.passes:
        return verdict(Outcome.NOT_MET, _describe_failure(requirement, worst), worst)
    gap = _why_not_covered(requirement, match, site)
    if worst is not None and not gap:
        return verdict(Outcome.MET, _describe_pass(requirement, worst), worst)
    if refuted:
        return verdict(Outcome.NOT_MET, refuted)
    return verdict(Outcome.NOT_MEASURED, gap or "not run", next_step=describe_next_step(requirement, site))


def _why_not_covered(requirement: Requirement, match: Match, site: Site) -> str:
    """What the passing readings leave uncovered, or ""."""
    if not match.sightings:
        return match.nearest_refusal()
    if not counts_by_node(requirement):
        return ""
    seen = frozenset(n for s in match.sightings for n in s.nodes)
    needed = required_nodes(requirement, site)
    if len(seen) >= needed:
        return ""
    missing = [h for h in site.pool_hosts(requirement) if h not in seen]
    refusal = match.refusal_on(missing)
    return f"scope too small: {len(seen)} of {needed} nodes, without {fold(missing)}{f'; {refusal}' if refusal else ''}"


def _describe_failure(requirement: Requirement, worst: Sighting) -> str:
    bound = f"{_WORDS[requirement.comparison]} {describe_threshold(requirement)}"
    return f"{_say(worst.value)} on {fold(sorted(worst.nodes))}, required {bound}"


def _describe_pass(requirement: Requirement, worst: Sighting) -> str:
    return f"{_say(worst.value)}, required {_WORDS[requirement.comparison]} {describe_threshold(requirement)}"


def describe_threshold(requirement: Requirement) -> str:
    """The threshold as people read it."""
    return _say(requirement.threshold)


def _say(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Quantity) and _LONG.match(value.text):
        return format_base(value.value, value.powers)
    return f"{value:g}" if isinstance(value, float) else str(value)


def describe_next_step(requirement: Requirement, site: Site) -> str:
    """What to run to measure a claim, where, and who can run it."""
    who = {"renter": "you", "provider": "the provider", "both": "you or the provider"}[requirement.provider]
    rights = {"user": "an ordinary user", "admin": "an administrator of the engine", "root": "root"}[requirement.rights]
    where = fold(site.pool_hosts(requirement))
    return f"{requirement.about.next_step}; on {where}, by {who} as {rights}"


def _read_rehearsals(requirement: Requirement, rehearsals: Iterable[Rehearsal]) -> tuple[RehearsalOutcome, str, str]:
    """(column, value beside the target, why it refutes the claim or "")."""
    name = requirement.about.rehearsal
    fitting = [r for r in rehearsals if name and r.name == name and _same_workload(requirement, r)]
    readings = [
        (r, reading)
        for r in fitting
        for reading in r.readings
        if reading.metric == requirement.metric and not why_unusable(requirement, reading, None)
    ]
    if readings:
        rehearsal, reading = max(readings, key=lambda p: badness(requirement, p[1].value or 0.0))
        good = reading.value is not None and holds(requirement, reading.value)
        shown = _show_rehearsed(requirement, reading, rehearsal)
        if not good:
            lasting = requirement.metric in HOST_INDEPENDENT
            refuted = f"refuted by the rehearsal: {shown}; {rehearsal.reason}" if lasting else ""
            return RehearsalOutcome.FAILED, shown, refuted
        failed = any(r.outcome is RehearsalOutcome.FAILED for r in fitting)
        return (RehearsalOutcome.FAILED if failed else RehearsalOutcome.PASSED), shown, ""
    if any(r.outcome is RehearsalOutcome.FAILED for r in fitting):
        return RehearsalOutcome.FAILED, "", ""
    return RehearsalOutcome.NOT_RUN, "", ""


def _same_workload(requirement: Requirement, rehearsal: Rehearsal) -> bool:
    workload = requirement.scope.workload
    return workload is None or not rehearsal.workload or rehearsal.workload == workload


def _show_rehearsed(requirement: Requirement, reading: Reading, rehearsal: Rehearsal) -> str:
    kind = "virtual nodes" if rehearsal.devices == "virtual" else "this machine's devices"
    bound = f"{_WORDS[requirement.comparison]} {describe_threshold(requirement)}"
    under = "".join(f", {name} {text}" for name, text in reading.conditions)
    return f"{_say(reading.value)} on {kind}{under}; target {bound}"


def cover(verdicts: Iterable[Verdict]) -> Coverage:
    """How many required claims are in each state, in total and by class (counts in the order of Outcome)."""
    required = [v for v in verdicts if v.requirement.required]

    def count(group: list[Verdict]) -> tuple[int, int, int, int]:
        met, not_met, unmeasured, out = (sum(v.outcome is o for v in group) for o in Outcome)
        return met, not_met, unmeasured, out

    by_class = tuple((name, count([v for v in required if v.requirement.claim == name])) for name in CLAIM_CLASSES)
    ages = [v.age_s for v in required if v.age_s is not None]
    met, not_met, unmeasured, out = count(required)
    return Coverage(met, not_met, unmeasured, out, max(ages, default=None), by_class)


def exit_code(coverage: Coverage) -> int:
    """0 only when something is required and all of it is met; 1 when a required claim is not met; 3 otherwise."""
    if coverage.not_met:
        return 1
    complete = coverage.met and not coverage.not_measured and not coverage.not_applicable
    return 0 if complete else 3
