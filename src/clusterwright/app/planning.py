"""Planning: files → plan, and the derivation of one of its figures."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Goal
from clusterwright.plan.ages import aged_inputs
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.plans import Plan
from clusterwright.report.plan_figures import (
    derivation_values,
    figure_names,
    find_figure,
    plan_values,
    render_derivation,
)
from clusterwright.report.plans import render_plan


def plan_files(
    paths: Sequence[str | Path],
    overrides: Sequence[str] = (),
    catalogues: Sequence[str | Path] = (),
    goal: Goal | None = None,
) -> Plan:
    """Plan what the files describe; layouts that they leave open are the best in `goal`, over what the files say.

    Raises:
        InvalidInput: when a file or a catalogue of the user cannot be read.
    """
    return plan_architecture(load_document(paths, overrides), load_catalogue(catalogues), goal=goal)


def describe_plan(
    plan: Plan,
    width: int = 120,
    today: datetime.date | None = None,
    catalogues: Sequence[str | Path] = (),
    *,
    layouts: bool = False,
) -> str:
    """The plan as text for a terminal of that many columns, with what is too old on `today`; all layouts if asked."""
    aged = aged_inputs(plan, load_catalogue(catalogues), today) if today else ()
    return render_plan(plan, width, aged, layouts=layouts)


def values_of_plan(plan: Plan) -> dict[str, Any]:
    """The plan as plain values."""
    return plan_values(plan)


def explain_figure(plan: Plan, name: str) -> str:
    """The derivation of a figure as text.

    Raises:
        InvalidInput: when no figure or several are called so; names the nearest.
    """
    return render_derivation(_figure(plan, name))


def values_of_figure(plan: Plan, name: str) -> dict[str, Any]:
    """The derivation of a figure as a tree of plain values.

    Raises:
        InvalidInput: as `explain_figure`.
    """
    return derivation_values(_figure(plan, name))


def _figure(plan: Plan, name: str) -> Figure:
    found = find_figure(plan, name)
    if isinstance(found, Figure):
        return found
    several = sum(n.endswith(f".{name}") for n in found) > 1
    problem = f"several figures end in '{name}'" if several else f"no figure is called '{name}'"
    if found:
        near = "\n  ".join(found)
        raise InvalidInput(f"{problem}; did you mean one of these?\n  {near}")
    count = len(figure_names(plan, computed=True))
    raise InvalidInput(f"{problem}; `cw plan --format json` lists the {count} that are computed under `figures`")
