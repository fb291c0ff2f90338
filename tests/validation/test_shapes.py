"""Counts against published totals: the catalogue's own models always, the public configs where they are present."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from validation.shapes import PAGE, page, score, table

CASES = Path(__file__).parents[3] / "shared" / "cases"
#: Flat configs of Step-3.7 leave out how many heads windowed layers have.
REFUSED = {"stepfun-ai/Step-3.7-Flash", "stepfun-ai/Step-3.7-Flash-FP8"}


def test_no_model_of_the_catalogue_is_off() -> None:
    shapes = table()
    assert not [s.name for s in shapes if s.verdict in ("OFF", "refused")]
    assert sum(s.verdict == "exact" for s in shapes) >= 110


def test_the_page_is_as_generated() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(table())


@pytest.mark.skipif(not CASES.exists(), reason="no public configs beside the clone (../shared/cases/model_configs)")
def test_every_public_config_is_counted_or_refused_by_name() -> None:
    shapes = table(CASES)
    assert {s.name for s in shapes if s.refused} == REFUSED
    scored = score(CASES)
    assert all(row.inside for row in scored.rows)
