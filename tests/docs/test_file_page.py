"""docs/file.md: current, and every key of the file is on it."""

from __future__ import annotations

from pathlib import Path

from clusterwright.model.architecture import Architecture
from clusterwright.model.metrics import METRICS
from clusterwright.model.suggestions import keys_of, sections
from clusterwright.report.references import render_file_reference

PAGE = (Path(__file__).parents[2] / "docs" / "file.md").read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    assert render_file_reference() == PAGE, "run `make docs`"


def test_every_section_and_key_has_an_entry() -> None:
    blocks = PAGE.split("\n## ")
    for path, section in sections(Architecture):
        title = f"`{path}`" if path else "Top level"
        (block,) = [b for b in blocks if b.startswith(f"{title}\n")]
        for key in keys_of(section):
            (row,) = [line for line in block.splitlines() if line.startswith(f"| `{key}` |")]
            assert all(cell.strip() for cell in row.strip("|").split("|")), row


def test_every_metric_has_an_entry() -> None:
    assert all(f"| `{name}` |" in PAGE for name in METRICS)
