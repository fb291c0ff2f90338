"""`cw review`: what is missing or contradictory, with file and line."""

from __future__ import annotations

import datetime
import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from clusterwright.app.reviewing import describe_review, review_files, values_of_review
from clusterwright.cli.output import Format, columns, say, say_json
from clusterwright.model.findings import Severity


class StageName(StrEnum):
    """What the design must be ready for."""

    quote = "quote"
    build = "build"
    accept = "accept"


class FailOn(StrEnum):
    """Lowest severity that fails."""

    error = "error"
    warning = "warning"


def review(
    files: Annotated[list[str], typer.Argument(help="Architecture files, merged in order; - reads standard input.")],
    stage: Annotated[
        StageName, typer.Option(help="Ready for what: a quote, building, or acceptance; each requires more.")
    ] = StageName.build,
    whole: Annotated[bool, typer.Option("--all", help="Show every finding, not only those that change most.")] = False,
    fail_on: Annotated[FailOn, typer.Option(help="Lowest severity that gives exit code 1.")] = FailOn.error,
    today: Annotated[
        datetime.datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"], help="Day on which waivers, prices and lifetimes are judged; today if absent."
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Write over a value of the files.")
    ] = None,
    catalogues: Annotated[
        list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="Text for people, or everything as JSON.")] = Format.text,
) -> None:
    """Say what is missing or contradictory, with file and line, numbers, what to do, and who owns it.

    The findings that change most come first with their source line; the rest is folded by area. A rule that lacks an
    input is undecided and never passes. Waivers of the file are applied and listed. `cw explain RULE` says why a rule
    matters and how to satisfy it.

    Exit codes: 0 ready; 1 an error stands (with --fail-on warning: a warning); 2 invalid input; 3 no error, but a
    required rule could not be evaluated.
    """
    day = today.date() if today is not None else datetime.date.today()
    reviewed = review_files(files, overrides or (), catalogues or (), today=day, stage=stage.value)
    if output is Format.json:
        say_json(values_of_review(reviewed))
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        say(describe_review(reviewed, whole=whole, colour=colour, width=columns()))
    code = reviewed.exit_code(Severity.WARNING if fail_on is FailOn.warning else Severity.ERROR)
    if code:
        raise typer.Exit(code)
