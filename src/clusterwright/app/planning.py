"""Planning: files → plan, and the derivation of one of its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.figures import Figure
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results import Plan
from clusterwright.report.plans import figure_names, find_figure, plan_values, render_derivation, render_plan


def plan_files(
    paths: Sequence[str | Path], overrides: Sequence[str] = (), catalogues: Sequence[str | Path] = ()
) -> Plan:
    """Plan what the files describe.

    Raises:
        InvalidInput: when a file or a catalogue of the user cannot be read.
    """
    return plan_architecture(load_document(paths, overrides), load_catalogue(catalogues))


def describe_plan(plan: Plan) -> str:
    """The plan as text."""
    return render_plan(plan)


def values_of_plan(plan: Plan) -> dict[str, Any]:
    """The plan as plain values."""
    return plan_values(plan)


def explain_figure(plan: Plan, name: str) -> str:
    """The derivation of a figure as text.

    Raises:
        InvalidInput: when no figure or several are called so; names the nearest.
    """
    found = find_figure(plan, name)
    if isinstance(found, Figure):
        return render_derivation(found)
    meant = f"; did you mean {' or '.join(found)}?" if found else ""
    known = "\n  ".join(figure_names(plan, computed=True)) or "none"
    raise InvalidInput(f"no one figure is called '{name}'{meant}\nfigures that are computed:\n  {known}")
