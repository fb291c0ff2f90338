"""Waivers: a finding accepted knowingly, by somebody, until a day; what is wrong with a waiver is a finding itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.findings import Severity
from clusterwright.review.rules import Check, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject, counted

_TABLE = RuleTable("acceptance")
_SOURCE: Final = "Clusterwright: a waiver has a rule, a reason, an owner and an expiry; all are listed in every report"

#: Days from today beyond which a waiver is no longer a date but a habit; our default.
LONGEST_DAYS: Final = 366


@_TABLE.rule(
    "waiver-expired",
    Severity.ERROR,
    70,
    why="What was accepted until a day is not accepted after it.",
    satisfy="fix what was waived, or decide anew with a new date",
    example="waivers: [{rule: containerd-branch, reason: ..., owner: platform@example.com, expires: 2027-01-31}]",
    source=_SOURCE,
)
def waiver_expired(subject: Subject) -> Iterator[Hit]:
    """A waiver is past its expiry."""
    for index, waiver in enumerate(subject.architecture.waivers):
        if waiver.expires < subject.today:
            days = (subject.today - waiver.expires).days
            message = f"the waiver of {waiver.rule} expired on {waiver.expires}, {counted(days, 'day')} ago"
            yield Hit(f"waivers.{index}.expires", message)


@_TABLE.rule(
    "waiver-too-long",
    Severity.WARNING,
    40,
    why="A waiver without a near end is a rule that was switched off.",
    satisfy="choose a day on which somebody looks again",
    example="expires: 2027-01-31",
    source=_SOURCE + "; a year is our default",
)
def waiver_long(subject: Subject) -> Iterator[Hit]:
    """A waiver ends more than a year from now."""
    for index, waiver in enumerate(subject.architecture.waivers):
        days = (waiver.expires - subject.today).days
        if days > LONGEST_DAYS:
            yield Hit(f"waivers.{index}.expires", f"the waiver of {waiver.rule} ends in {counted(days, 'day')}")


@_TABLE.rule(
    "waiver-without-owner",
    Severity.ERROR,
    60,
    why="A risk that is taken is taken by somebody.",
    satisfy="name the person or team who answers for it",
    example="owner: platform@example.com",
    source=_SOURCE,
)
def waiver_owner(subject: Subject) -> Iterator[Hit]:
    """A waiver's owner, or its reason, is a placeholder."""
    for index, waiver in enumerate(subject.architecture.waivers):
        for field in ("owner", "reason"):
            if getattr(waiver, field).strip().lower().rstrip(".!") in _PLACEHOLDERS:
                message = f"the waiver of {waiver.rule} has the {field} '{getattr(waiver, field)}'"
                yield Hit(f"waivers.{index}.{field}", message)


_PLACEHOLDERS: Final = frozenset(
    {
        "?",
        "-",
        "n/a",
        "na",
        "none",
        "nobody",
        "no one",
        "somebody",
        "tbd",
        "tba",
        "tbc",
        "todo",
        "unknown",
        "later",
        "x",
    }
)


def unknown_rule(known: Collection[str]) -> Rule:
    """The rule that finds waivers of rules that do not exist; it is given every id, its own included."""

    def check(subject: Subject) -> Iterator[Hit]:
        for index, waiver in enumerate(subject.architecture.waivers):
            if waiver.rule not in known:
                message = f"no rule '{waiver.rule}': this waiver covers nothing"
                hint = did_you_mean(waiver.rule, known) or "cw review names the rule of each finding"
                yield Hit(f"waivers.{index}.rule", message, hint)

    return _rule_about_waivers(check)


def _rule_about_waivers(check: Check) -> Rule:
    return Rule(
        id="waiver-unknown-rule",
        severity=Severity.ERROR,
        area="acceptance",
        weight=70,
        catches="A waiver names a rule that does not exist.",
        stages=("quote", "build", "accept"),
        why="A misspelt waiver covers nothing, and who wrote it believes that it does.",
        satisfy="use the id that stands beside the finding",
        example="waivers: [{rule: containerd-branch, reason: ..., owner: platform@example.com, expires: 2027-01-31}]",
        source=_SOURCE,
        check=check,
    )


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
