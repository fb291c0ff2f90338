"""What a rule is, and the table that a module of rules fills.

A rule looks at a `Subject` and yields hits. It never passes silently when an input is missing: it yields
`undecided(...)`, which becomes a finding that is neither a pass nor an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from clusterwright.model.findings import Area, Severity, Stage
from clusterwright.review.subjects import Subject

#: Every stage; a rule about what is contradictory holds whenever its inputs are there.
ALWAYS: Final[tuple[Stage, ...]] = ("quote", "build", "accept")
BUILD: Final[tuple[Stage, ...]] = ("build", "accept")
ACCEPT: Final[tuple[Stage, ...]] = ("accept",)


@dataclass(frozen=True, slots=True)
class Hit:
    """One place at which a rule speaks.

    Args:
        path: dotted path of the value, or of what is missing.
        message: what is wrong, with the numbers.
        action: what to do here; the rule's `satisfy` when empty.
        weight: 0 to 100, the rule's when None.
        severity: where this place weighs differently from the rule's severity.
        undecided: the rule could not be evaluated here.
        area: where this place belongs to another area than the rule.
    """

    path: str
    message: str
    action: str = ""
    weight: int | None = None
    severity: Severity | None = None
    undecided: bool = False
    area: Area | None = None


Check = Callable[[Subject], Iterable[Hit]]
C = TypeVar("C", bound=Check)


def undecided(path: str, needs: str, action: str = "") -> Hit:
    """A hit that says that the rule cannot be evaluated at `path`, and what it needs."""
    return Hit(path, f"cannot be evaluated: {needs}", action or f"supply it: {needs}", undecided=True)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule with its explanation.

    Args:
        id: stable, kebab-case.
        weight: 0 to 100, what answering a finding changes; sorts within a severity.
        catches: one sentence, what it finds.
        stages: stages at which it is required; at others it is not evaluated.
        why: why it matters.
        satisfy: what to do.
        example: lines of the file that satisfy it.
        source: where the rule or its numbers come from.
    """

    id: str
    severity: Severity
    area: Area
    weight: int
    catches: str
    stages: tuple[Stage, ...]
    why: str
    satisfy: str
    example: str
    source: str
    check: Check


@dataclass(slots=True)
class RuleTable:
    """The rules of one module, in the order in which they stand there."""

    area: Area
    rules: list[Rule] = field(default_factory=list)

    def rule(
        self,
        id: str,
        severity: Severity,
        weight: int,
        *,
        why: str,
        satisfy: str,
        example: str,
        source: str,
        stages: tuple[Stage, ...] = ALWAYS,
        area: Area | None = None,
    ) -> Callable[[C], C]:
        """Enter the decorated function as a rule; the first line of its docstring says what it catches."""

        def enter(check: C) -> C:
            catches = (inspect.getdoc(check) or "").partition("\n")[0]
            if not catches:
                raise ValueError(f"rule {id} does not say what it catches")
            self.rules.append(
                Rule(
                    id, severity, area or self.area, weight, catches, stages, why, satisfy, example.strip("\n"), source,
                    check,
                )
            )  # fmt: skip
            return check

        return enter
