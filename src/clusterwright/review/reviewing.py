"""Run every rule that a stage requires, apply the waivers, and sort what is found by what it would change."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.model.documents import Document
from clusterwright.model.economics import Waiver
from clusterwright.model.findings import Finding, Stage
from clusterwright.plan.results.plans import Plan
from clusterwright.review.reviews import Fate, Review, WaiverUse
from clusterwright.review.rulebook import RULES, find_rule
from clusterwright.review.rules import Hit, Rule
from clusterwright.review.subjects import Subject

#: Rules about waivers themselves: a waiver cannot silence the rule that judges it.
UNWAIVABLE = frozenset({"waiver-expired", "waiver-unknown-rule"})


def review_document(
    document: Document,
    catalogue: Catalogue,
    plan: Plan,
    *,
    today: datetime.date,
    stage: Stage = "build",
    rules: Sequence[Rule] = RULES,
) -> Review:
    """Review a document.

    Args:
        plan: of the same document and catalogue.
        today: day on which waivers, prices and lifetimes are judged.
        stage: rules that this stage does not require are listed, not evaluated.

    Returns:
        Findings sorted by severity, decided before undecided, then by weight; the same input gives the same order.
    """
    subject = Subject(document, catalogue, plan, today, stage)
    evaluated = [rule for rule in rules if stage in rule.stages]
    found = [finding for rule in evaluated for finding in _findings(rule, subject)]
    standing, waived, uses = _apply_waivers(found, subject)
    return Review(
        findings=tuple(sorted(standing, key=_order)),
        waived=tuple(sorted(waived, key=_order)),
        waivers=uses,
        stage=stage,
        today=today,
        evaluated=tuple(rule.id for rule in evaluated),
        not_required=tuple(rule.id for rule in rules if stage not in rule.stages),
        digest=document.digest,
    )


def _findings(rule: Rule, subject: Subject) -> Iterator[Finding]:
    for hit in rule.check(subject):
        yield _finding(rule, hit, subject)


def _finding(rule: Rule, hit: Hit, subject: Subject) -> Finding:
    area = hit.area or rule.area
    return Finding(
        rule=rule.id,
        severity=rule.severity if hit.severity is None else hit.severity,
        area=area,
        path=hit.path,
        place=subject.document.places.of(hit.path),
        message=hit.message,
        action=hit.action or rule.satisfy,
        owner=subject.architecture.owners.of(area) or "",
        weight=rule.weight if hit.weight is None else hit.weight,
        undecided=hit.undecided,
    )


def _order(finding: Finding) -> tuple[int, bool, int, str, str]:
    return (-finding.severity, finding.undecided, -finding.weight, finding.rule, finding.path)


def _apply_waivers(
    found: Iterable[Finding], subject: Subject
) -> tuple[list[Finding], list[Finding], tuple[WaiverUse, ...]]:
    waivers = subject.architecture.waivers
    covered = [0] * len(waivers)
    standing, waived = list[Finding](), list[Finding]()
    for finding in found:
        index = next((i for i, w in enumerate(waivers) if _covers(w, finding, subject.today)), None)
        if index is None:
            standing.append(finding)
        else:
            covered[index] += 1
            waived.append(replace(finding, waived=waivers[index].reason))
    uses = tuple(_use(i, w, covered[i], subject.today) for i, w in enumerate(waivers))
    return standing, waived, uses


def _covers(waiver: Waiver, finding: Finding, today: datetime.date) -> bool:
    if waiver.rule != finding.rule or finding.rule in UNWAIVABLE or waiver.expires < today:
        return False
    return waiver.path is None or finding.path == waiver.path or finding.path.startswith(waiver.path + ".")


def _use(index: int, waiver: Waiver, covered: int, today: datetime.date) -> WaiverUse:
    return WaiverUse(
        f"waivers.{index}",
        waiver.rule,
        waiver.reason,
        waiver.owner,
        waiver.expires,
        _fate(waiver, covered, today),
        covered,
    )


def _fate(waiver: Waiver, covered: int, today: datetime.date) -> Fate:
    if find_rule(waiver.rule) is None:
        return "unknown rule"
    if waiver.expires < today:
        return "expired"
    return "applied" if covered else "unused"
