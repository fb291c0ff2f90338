"""Write the generated pages of docs/ anew from the code they describe. `make docs`; a test finds a stale page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from clusterwright.app.reviewing import rules_page
from clusterwright.cli.reference import commands_page
from clusterwright.report.references import render_file_reference

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"

#: page → what renders it
PAGES: Final[dict[str, Callable[[], str]]] = {
    "commands.md": commands_page,
    "file.md": render_file_reference,
    "rules.md": rules_page,
}


def main() -> None:
    for name, render in PAGES.items():
        (DOCS / name).write_text(render(), encoding="utf-8")
        print(DOCS / name)


if __name__ == "__main__":
    main()
