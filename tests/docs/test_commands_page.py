"""docs/commands.md: current, hence complete."""

from __future__ import annotations

from pathlib import Path

from clusterwright.cli.main import COMMANDS
from clusterwright.cli.reference import commands_page, commands_under

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    assert commands_page() == PAGE, "run `make docs`"


def test_every_command_has_an_entry() -> None:
    entries = [line.removeprefix("### cw ") for line in PAGE.splitlines() if line.startswith("### ")]
    assert entries == [n for group in COMMANDS.values() for entry in group for n, _ in commands_under(entry)]
