"""Readiness of responsibility: every area and every daily duty has somebody who decides and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import AREAS, Area, Severity
from clusterwright.review.requiring import PRACTICE, asked_as_a_whole
from clusterwright.review.rules import ALWAYS, BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject, listed

_TABLE = RuleTable("workload")


@_TABLE.rule(
    "owner-missing",
    Severity.ERROR,
    80,
    why="An area without an owner has nobody who may decide, accept, or be called.",
    satisfy="name a person or team for the area, or owners.default for all that have none of their own",
    example="owners: {default: platform@example.com, network: network@example.com}",
    source=PRACTICE,
    stages=ALWAYS,
)
def owner_missing(subject: Subject) -> Iterator[Hit]:
    """A readiness area has no owner."""
    if asked_as_a_whole(subject, "owners"):
        yield Hit("owners", f"the file names no owner of {', '.join(AREAS[:-1])} and {AREAS[-1]}")
        return
    for area in AREAS:
        if not subject.architecture.owners.of(area):
            yield Hit(f"owners.{area}", f"the area {area} has no owner, and there is no default", area=area)


#: Duty → (the area it belongs to, what it is in words).
DUTIES: Final[dict[str, tuple[Area, str]]] = {
    "drivers": ("compute", "installs and updates GPU drivers and firmware"),
    "images": ("workload", "builds and updates the images"),
    "patching": ("compute", "patches operating systems"),
    "upgrades": ("compute", "upgrades the cluster's software"),
    "scheduler_policy": ("scheduler", "decides quotas and priorities"),
    "telemetry": ("observability", "runs metrics and logs"),
    "access": ("security", "gives and takes access"),
    "incidents": ("observability", "leads incidents"),
    "on_call": ("observability", "is on call"),
}


@_TABLE.rule(
    "duty-unowned",
    Severity.ERROR,
    60,
    why="Clusters fail on what recurs: drivers, patches, quotas, access, nights. Each needs a name beforehand.",
    satisfy="name a person or team for the duty, or owners.default for all that have none of their own",
    example="owners: {duties: {drivers: platform@example.com, on_call: sre@example.com, ...}}",
    source=PRACTICE,
    stages=BUILD,
)
def duty_unowned(subject: Subject) -> Iterator[Hit]:
    """A recurring duty (drivers, images, patching, on-call, ...) has no owner, and there is no default."""
    if asked_as_a_whole(subject, "owners"):
        return  # owner-missing says so
    unowned = {duty: about for duty, about in DUTIES.items() if not owner_of_duty(subject, duty)}
    if subject.architecture.owners.duties is None and unowned:
        yield Hit("owners.duties", f"nobody {listed((words for _, words in unowned.values()), 'or')}")
        return
    for duty, (area, words) in unowned.items():
        yield Hit(f"owners.duties.{duty}", f"nobody {words}", area=area)


def owner_of_duty(subject: Subject, duty: str) -> str | None:
    """Who has a recurring duty: its own owner, else the default, else None."""
    owners = subject.architecture.owners
    return (getattr(owners.duties, duty) if owners.duties else None) or owners.default


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
