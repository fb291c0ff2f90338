"""docs/ledger.md: every line of the ledger has its row, in order."""

from __future__ import annotations

from pathlib import Path

from clusterwright.ledger.lines import Line
from clusterwright.ledger.usage import SLURM_GPUS

PAGE = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")


def test_every_line_has_a_row_that_says_how_it_is_decided() -> None:
    block = PAGE.split("\n## Lines\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in block.splitlines() if row.startswith("| ")]
    assert [name for name, _, _ in rows[1:]] == list(Line)
    assert all(how for _, _, how in rows)


def test_the_line_to_add_is_the_one_that_is_printed() -> None:
    assert SLURM_GPUS.add.split(" in ")[0] in PAGE
