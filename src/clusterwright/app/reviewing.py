"""Reviewing: files → document → plan → review."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.model.documents import Document
from clusterwright.model.findings import Severity, Stage
from clusterwright.plan.planning import plan_architecture
from clusterwright.report.reviews import (
    WIDTH,
    render_review,
    render_rules_page,
    review_values,
    rules_values,
)
from clusterwright.review.reviewing import review_document
from clusterwright.review.reviews import Review
from clusterwright.review.rulebook import RULES


@dataclass(frozen=True)
class Reviewed:
    """A document with its review."""

    document: Document
    review: Review

    def exit_code(self, fail_on: Severity = Severity.ERROR) -> int:
        """1 when a finding of at least `fail_on` stands, 3 when such a rule is undecided, else 0."""
        return self.review.exit_code(fail_on)


def review_files(
    paths: Sequence[str | Path],
    overrides: Sequence[str] = (),
    catalogues: Sequence[str | Path] = (),
    *,
    today: datetime.date,
    stage: Stage = "build",
) -> Reviewed:
    """Review what the files describe.

    Args:
        today: day on which waivers, prices and lifetimes are judged.

    Raises:
        InvalidInput: when a file or a catalogue of the user cannot be read.
    """
    document, catalogue = load_document(paths, overrides), load_catalogue(catalogues)
    plan = plan_architecture(document, catalogue)
    return Reviewed(document, review_document(document, catalogue, plan, today=today, stage=stage))


def describe_review(reviewed: Reviewed, *, whole: bool = False, colour: bool = False, width: int = WIDTH) -> str:
    """The review as text, for a terminal of `width` columns."""
    name, places = reviewed.document.architecture.cluster.name, reviewed.document.places
    return render_review(reviewed.review, places, name=name, whole=whole, colour=colour, width=width)


def values_of_review(reviewed: Reviewed) -> dict[str, Any]:
    """The review as plain values."""
    name = reviewed.document.architecture.cluster.name
    return review_values(reviewed.review, reviewed.document.places, name=name)


def list_rules() -> str:
    """Every rule on one line."""
    width = max(len(rule.id) for rule in RULES)
    return "\n".join(f"{rule.id:<{width}}  {rule.severity.word:<7}  {rule.area:<13}  {rule.catches}" for rule in RULES)


def values_of_rules() -> dict[str, Any]:
    """Every rule as plain values, in the order of the rulebook."""
    return rules_values(RULES)


def rules_page() -> str:
    """The page docs/rules.md."""
    return render_rules_page(RULES)
