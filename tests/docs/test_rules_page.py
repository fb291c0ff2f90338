"""docs/rules.md: current, hence complete."""

from __future__ import annotations

from pathlib import Path

from clusterwright.app.reviewing import rules_page
from clusterwright.review.rulebook import RULES

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    assert rules_page() == PAGE, "run `make docs`"


def test_every_rule_has_an_entry() -> None:
    entries = [line[4:] for line in PAGE.splitlines() if line.startswith("### ")]
    assert sorted(entries) == sorted(rule.id for rule in RULES)
