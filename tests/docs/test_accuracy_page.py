"""docs/accuracy.md without the measurements it was written from: linked, whole, and true to its own table."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "accuracy.md"
#: First words of the sets' names: memory and speed of inference and training, fabric, models, formulas.
SETS = ("inference memory", "training memory", "serving", "training throughput", "collectives", "shapes", "formula")


def section(heading: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    return re.split(r"\n#{2,3} ", text.split(f"{heading}\n", 1)[1])[0]


def table(heading: str) -> list[list[str]]:
    lines = [line for line in section(heading).splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_readme_and_planning_link_it_and_its_own_links_lead_somewhere():
    assert "docs/accuracy.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(accuracy.md)" in (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([\w.]+\.md)\)", PAGE.read_text(encoding="utf-8"))
    assert {"calibrate.md", "planning.md", "models.md"} <= set(links)
    assert all((ROOT / "docs" / link).is_file() for link in links)


def test_every_kind_of_estimate_is_in_the_one_table():
    names = {row[0] for row in table("## In one table")}
    assert [kind for kind in SETS if not any(name.startswith(kind) for name in names)] == []


def test_every_set_says_what_it_was_fitted_on():
    said = {row[0]: row[2] for row in table("## What was fitted on which rows")}
    assert {row[0] for row in table("## In one table")} == set(said)
    assert all(said.values())


def test_what_the_table_says_is_missed_is_said_in_words_too():
    sentences = section("### Missed")
    missed = [row for row in table("## In one table") if row[-1] == "MISSED"]
    assert all(f"- {row[0]}, {row[1]}: {row[-2]} of" in sentences for row in missed)
    assert len(missed) == sentences.count("rows in the band")


def test_verdicts_are_those_of_the_numbers_beside_them():
    for row in table("## In one table"):
        rows, inside, verdict = int(row[2].replace(",", "")), row[-2], row[-1]
        if verdict in ("holds", "MISSED"):
            assert rows >= 20
            assert (float(inside.removesuffix(" %")) >= 79.95) == (verdict == "holds"), row
        elif verdict == "too few":
            assert rows < 20
