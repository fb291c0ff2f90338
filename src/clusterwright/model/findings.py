"""Findings: what a review rule says about a place in the file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal

from clusterwright.lib.errors import Place

Area = Literal[
    "workload",
    "compute",
    "network",
    "storage",
    "scheduler",
    "observability",
    "security",
    "acceptance",
    "economics",
]
AREAS: Final[tuple[Area, ...]] = (
    "workload",
    "compute",
    "network",
    "storage",
    "scheduler",
    "observability",
    "security",
    "acceptance",
    "economics",
)
Stage = Literal["quote", "build", "accept"]


class Severity(IntEnum):
    """How a finding weighs."""

    NOTE = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        """The severity as it is printed."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a review rule.

    Args:
        rule: stable rule id.
        path: dotted path in the file, of the value or of what is missing.
        place: line and column of the value, or of the nearest present parent.
        message: what is wrong, with the numbers.
        action: what to do.
        owner: who owns the area, or "" if nobody does.
        weight: 0 to 100, what answering it would change; sorts within a severity.
        waived: the reason of a valid waiver, or "".
        undecided: the rule could not be evaluated because an input is missing; never a pass.
    """

    rule: str
    severity: Severity
    area: Area
    path: str
    place: Place
    message: str
    action: str
    owner: str = ""
    weight: int = 50
    waived: str = ""
    undecided: bool = False
