"""`cw compare`: designs side by side, and which difference of their inputs makes which difference of their plans."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from clusterwright.app.comparing import compare_files, comparison_markdown, comparison_text, values_of_comparison
from clusterwright.cli.output import Exit, columns, is_terminal, note, say, say_json


class Form(StrEnum):
    """Text for people, tables for a page, or values for programs."""

    text = "text"
    markdown = "markdown"
    json = "json"


def compare(
    files: Annotated[list[str], typer.Argument(help="One architecture each, compared with the first; - reads one.")],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="With one file: compare it with itself so changed."),
    ] = None,
    catalogues: Annotated[
        list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="Show rows that do not differ, too.")] = False,
    output: Annotated[Form, typer.Option("--format", help="Text, Markdown, or everything as JSON.")] = Form.text,
) -> None:
    """Plan designs and put them side by side: memory, replicas, latency, failure domain, unit cost, power.

    Every difference says whether it can be relied on: beyond the bands of the estimates that differ, inside them, or by
    formula where no band is known. Estimates that are the same in both err in both, so their bands cancel. Below stand
    the inputs that differ, path by path, and what each alone does to the first design; many are taken together by
    section.

    Exit codes: 0 compared, everything planned holds in all; 1 something does not fit or misses a target in one of them;
    2 invalid input; 3 a part of one of them could not be planned.
    """
    found = compare_files(files, changes or (), catalogues or (), _show if is_terminal() else lambda done, total: None)
    if output is Form.json:
        say_json(values_of_comparison(found))
    elif output is Form.markdown:
        say(comparison_markdown(found, whole=whole))
    else:
        say(comparison_text(found, columns(), whole=whole))
    if any(side.plan.misfits for side in found.sides):
        raise typer.Exit(Exit.FAILED)
    if any(side.plan.unplanned for side in found.sides):
        raise typer.Exit(Exit.INCOMPLETE)


def _show(done: int, total: int) -> None:
    if total > 2:
        note(f"planning the first design with one input of the other: {done + 1} of {total}")
