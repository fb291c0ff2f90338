"""docs/simulate.md: every sizing question, every field of the JSON, and the tolerance that is applied."""

from __future__ import annotations

from pathlib import Path

from builders.simulated import a_simulation
from clusterwright.app.sizing import QUESTIONS
from clusterwright.report.simulation_values import SCHEMA, simulated_values
from clusterwright.simulate.calibrating import Tolerance

PAGE = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text(encoding="utf-8")
#: Fields that say what was asked for.
PLAIN = {"schema", "cluster", "label", "source", "replayed", "days", "seed", "seeds", "pools", "gpus", "jobs"}


def test_every_question_has_a_row():
    block = PAGE.split("\n## Sizing questions\n")[1].split("\n## ")[0]
    assert [line.split("`")[1] for line in block.splitlines() if line.startswith("| `") and "--ask" not in line] == [
        *QUESTIONS
    ]


def test_every_field_of_the_json_is_described():
    block = PAGE.split("\n## JSON\n")[1].split("\n## ")[0]
    assert SCHEMA in block
    missing = [name for name in simulated_values(a_simulation()) if name not in PLAIN and f"`{name}`" not in block]
    assert missing == []


def test_the_tolerance_is_the_one_that_is_applied():
    assert Tolerance() == Tolerance(share=0.5, least_s=600.0, fewest_jobs=30)
    assert "A group of\n30 jobs or more is within the tolerance when each of both differs by at most half" in PAGE
    assert "or 10 min" in PAGE
