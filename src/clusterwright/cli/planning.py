"""`cw plan`: what fits where, how fast, how failure-proof, at what cost."""

from __future__ import annotations

import datetime
from typing import Annotated

import typer

from clusterwright.app.planning import describe_plan, explain_figure, plan_files, values_of_figure, values_of_plan
from clusterwright.cli.output import Exit, Format, columns, say, say_json


def plan(
    files: Annotated[list[str], typer.Argument(help="Architecture files, merged in order; - reads standard input.")],
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="NAME",
            help="Print the tree behind one number, such as workloads.chat.service.replica_rate; its end is enough "
            "where only one ends so.",
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
    """Compute what fits where, how fast, how failure-proof, at what cost.

    For each workload: memory per GPU, placement with its failure domain, replicas for the load and after the declared
    losses, the rate that storage must deliver, checkpoints, capacity, and the cost of an accepted unit here and in the
    declared alternatives. Every number carries its unit and where it came from; what was assumed is ranked by its
    effect. What cannot be planned is named with what would allow it.

    Exit codes: 0 everything was planned and holds; 1 something does not fit or misses a target; 2 invalid input;
    3 something could not be planned.
    """
    planned = plan_files(files, overrides or (), catalogues or ())
    if explain is not None:
        if output is Format.json:
            say_json(values_of_figure(planned, explain))
        else:
            say(explain_figure(planned, explain))
        return
    if output is Format.json:
        say_json(values_of_plan(planned))
    else:
        say(describe_plan(planned, columns(), datetime.date.today(), catalogues or ()))
    if planned.misfits:
        raise typer.Exit(Exit.FAILED)
    if planned.unplanned:
        raise typer.Exit(Exit.INCOMPLETE)
