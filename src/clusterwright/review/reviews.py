"""The result of a review: findings, what was waived, what could not be decided, what was not asked at this stage."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Literal

from clusterwright.model.findings import Finding, Severity, Stage

#: `not ready`: an error; `incomplete`: no error, but a required rule could not be evaluated; `ready`: neither.
State = Literal["ready", "incomplete", "not ready"]
#: What became of a waiver; only an applied one hides anything.
Fate = Literal["applied", "unused", "expired", "unknown rule"]


@dataclass(frozen=True, slots=True)
class WaiverUse:
    """One waiver of the file and what became of it.

    Args:
        path: of the waiver in the file (`waivers.0`).
        state: `applied`, `unused` (no finding matches), `expired`, or `unknown rule`; only the first hides anything.
        findings: how many findings it covers.
    """

    path: str
    rule: str
    reason: str
    owner: str
    expires: datetime.date
    state: Fate
    findings: int = 0


@dataclass(frozen=True)
class Review:
    """What the rules say about one document at one stage.

    Args:
        findings: not waived, most severe first, then decided before undecided, then by weight.
        waived: findings that a valid waiver covers; each keeps its reason.
        waivers: every waiver of the file with its use.
        evaluated: ids of the rules that this stage requires, in the order of the rulebook.
        not_required: ids of the rules that this stage does not ask for.
        digest: of the document.
    """

    findings: tuple[Finding, ...]
    waived: tuple[Finding, ...]
    waivers: tuple[WaiverUse, ...]
    stage: Stage
    today: datetime.date
    evaluated: tuple[str, ...]
    not_required: tuple[str, ...]
    digest: str = ""

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """Decided findings of a severity that no waiver covers."""
        return tuple(f for f in self.findings if f.severity is severity and not f.undecided)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What makes the design not ready."""
        return self.of(Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Risks taken knowingly."""
        return self.of(Severity.WARNING)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """What is worth knowing."""
        return self.of(Severity.NOTE)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """What could not be evaluated for want of an input; never a pass."""
        return tuple(f for f in self.findings if f.undecided)

    @property
    def blocking_undecided(self) -> tuple[Finding, ...]:
        """Undecided findings of rules that would be errors."""
        return tuple(f for f in self.undecided if f.severity is Severity.ERROR)

    @property
    def state(self) -> State:
        """Whether the design is ready for the stage."""
        if self.errors:
            return "not ready"
        return "incomplete" if self.blocking_undecided else "ready"

    def exit_code(self, fail_on: Severity = Severity.ERROR) -> int:
        """1 when a finding of at least `fail_on` stands; else 3 when a required rule is undecided; else 0."""
        if any(f.severity >= fail_on and not f.undecided for f in self.findings):
            return 1
        if any(f.severity >= fail_on for f in self.undecided):
            return 3
        return 0
