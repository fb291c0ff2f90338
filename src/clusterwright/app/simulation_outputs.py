"""Simulated futures as text, plain values and a page, and into files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clusterwright.files.outputs import write_text
from clusterwright.report.answers import Answer, answer_values, render_answer
from clusterwright.report.html.simulations import render_page, render_page_of_two
from clusterwright.report.replications import Simulated
from clusterwright.report.simulation_values import pair_values, simulated_values, sweep_values
from clusterwright.report.simulations import render_simulated, render_sweep, render_two


def text_of(found: Sequence[Simulated], sweep: str = "", width: int = 100) -> str:
    """Results as text; of a sweep a row for each value."""
    if not found:
        return "stopped before anything was simulated"
    return render_sweep(sweep.partition("=")[0], found, width) if sweep else render_simulated(found[0], width)


def values_of(found: Sequence[Simulated], sweep: str = "") -> dict[str, Any]:
    """Results as plain values."""
    if not found:
        return {"partial": True, "simulated": []}
    return sweep_values(sweep.partition("=")[0], found) if sweep else simulated_values(found[0])


def page_of(found: Sequence[Simulated], sweep: str = "") -> str:
    """Results as one page."""
    return render_page(found, sweep.partition("=")[0])


def text_of_two(found: tuple[Simulated, Simulated], changes: Sequence[str], width: int = 100) -> str:
    """Two futures side by side."""
    return render_two(*found, changes, width)


def values_of_two(found: tuple[Simulated, Simulated], changes: Sequence[str]) -> dict[str, Any]:
    """Two futures side by side as plain values."""
    return pair_values(*found, changes)


def page_of_two(found: tuple[Simulated, Simulated], changes: Sequence[str]) -> str:
    """Two futures side by side as one page."""
    return render_page_of_two(*found, changes)


def text_of_answer(answer: Answer, found: Sequence[Simulated], width: int = 100) -> str:
    """An answer with what it rests on."""
    return render_answer(answer, found, width)


def values_of_answer(answer: Answer, found: Sequence[Simulated]) -> dict[str, Any]:
    """An answer with what it rests on as plain values."""
    return answer_values(answer, found)


def write_output(path: Path, value: object, *, force: bool = False) -> None:
    """Write a text, or values as JSON, to a file, whole or not at all.

    Raises:
        InvalidInput: when it exists and `force` is not given.
    """
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    write_text(path, text if text.endswith("\n") else text + "\n", replace=force)
