"""Comparing designs: files, or one file and changes to it → plans side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.lib.errors import InvalidInput
from clusterwright.plan.comparing import Comparison, Side, compare_designs
from clusterwright.plan.planning import plan_architecture
from clusterwright.report.comparisons import comparison_values, render_comparison, render_comparison_markdown


def compare_files(
    files: Sequence[str | Path],
    changes: Sequence[str] = (),
    catalogues: Sequence[str | Path] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Plan every design and compare it with the first.

    Args:
        files: one architecture each. changes: `path=value`; of one file alone, which is compared with itself changed.

    Raises:
        InvalidInput: for one file without changes, for changes beside several files, and for what cannot be read.
    """
    if len(files) > 1 and changes:
        raise InvalidInput("--set changes one file; name one file with --set, or several files without")
    if len(files) < 2 and not changes:
        raise InvalidInput("one design alone; name another file, or what to change: --set PATH=VALUE")
    catalogue = load_catalogue(catalogues)
    designs = [(_name(file), load_document([file])) for file in files]
    if changes:
        designs.append((f"with {', '.join(changes)}", load_document(files, changes)))
    sides = [Side(name, document, plan_architecture(document, catalogue)) for name, document in designs]
    return compare_designs(sides, catalogue, progress)


def _name(file: str | Path) -> str:
    return "standard input" if str(file) == "-" else str(file)


def comparison_text(found: Comparison, width: int, *, whole: bool = False) -> str:
    """For a terminal of that many columns."""
    return render_comparison(found, width, whole=whole)


def comparison_markdown(found: Comparison, *, whole: bool = False) -> str:
    """As Markdown."""
    return render_comparison_markdown(found, whole=whole)


def values_of_comparison(found: Comparison) -> dict[str, Any]:
    """As plain values."""
    return comparison_values(found)
