"""Reviews of the two-workers example with some of its values changed, one rule or all of them."""

from __future__ import annotations

import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from clusterwright.app.loading import load_catalogue
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.model.documents import Document
from clusterwright.model.findings import Finding, Stage
from clusterwright.model.nodes import MappingNode
from clusterwright.model.parsing import parse_trees, read_tree
from clusterwright.model.sources import Source
from clusterwright.plan.planning import plan_architecture
from clusterwright.review.reviewing import review_document
from clusterwright.review.reviews import Review
from clusterwright.review.rulebook import BY_ID, RULES

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "two-workers" / "cluster.yaml"
TODAY: Final = datetime.date(2026, 11, 30)


class LazyPlan:
    """A plan that is computed when a rule first asks for a part of it."""

    def __init__(self, document: Document, catalogue: Catalogue) -> None:
        self._inputs, self._plan = (document, catalogue), None

    def __getattr__(self, name: str) -> Any:
        if self._plan is None:
            self._plan = plan_architecture(*self._inputs)
        return getattr(self._plan, name)


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


@cache
def _tree() -> tuple[MappingNode, Source]:
    source = Source("cluster.yaml", EXAMPLE.read_text(encoding="utf-8"))
    return read_tree(source), source


def document(*overrides: str) -> Document:
    """The example with `path=value` written over it; an empty value removes the key."""
    tree, source = _tree()
    return parse_trees([tree], [source], overrides)


def review(*overrides: str, stage: Stage = "build", today: datetime.date = TODAY, only: str = "") -> Review:
    """The review of the changed example, of one rule if `only` names it."""
    changed = document(*overrides)
    rules = (BY_ID[only],) if only else RULES
    plan = LazyPlan(changed, catalogue())
    return review_document(changed, catalogue(), plan, today=today, stage=stage, rules=rules)  # type: ignore[arg-type]


def findings(rule: str, *overrides: str, stage: Stage = "build", today: datetime.date = TODAY) -> list[Finding]:
    """Findings of one rule on the changed example, decided or not."""
    return list(review(*overrides, stage=stage, today=today, only=rule).findings)
