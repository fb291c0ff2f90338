"""docs/traces.md: every kind, field, column and rule has its entry, as the code has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.traces.distributions import FAR, FEWEST, PROBABILITIES
from clusterwright.traces.mapped import FIELDS
from clusterwright.traces.own import columns
from clusterwright.traces.recognising import KINDS
from clusterwright.traces.rules import PARTS, REJECTED, REMARKS

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("table", [REJECTED, PARTS, REMARKS], ids=["rejected", "parts", "remarks"])
def test_every_rule_is_described_as_it_is(table):
    missing = [code for code, rule in table.items() if f"| `{code}` | {rule.what} | {rule.done} |" not in PAGE]
    assert not missing


def test_every_kind_is_described_as_it_is():
    assert [kind for kind, title in KINDS.items() if f"| `{kind}` | {title} |" not in PAGE] == []


def test_every_field_of_a_mapping_stands_there_with_its_units():
    rows = [
        f"| `{name}` | {what} | {', '.join(f'`{u}`' for u in units) or '–'} |" for name, (units, what) in FIELDS.items()
    ]
    assert [row for row in rows if row not in PAGE] == []


def test_every_column_of_our_own_form_is_described():
    assert [name for name in columns(dated=True) if f"`{name}`" not in PAGE] == []


def test_the_numbers_are_those_of_the_code():
    assert f"at most {FAR:g}," in PAGE
    assert f"at {len(PROBABILITIES)} probabilities" in PAGE
    assert f"at least {FEWEST} jobs" in PAGE
