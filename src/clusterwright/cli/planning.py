"""`cw plan`: what fits where, how fast, how failure-proof, at what cost."""

from __future__ import annotations

import datetime
from typing import Annotated

import typer

from clusterwright.app.planning import describe_plan, explain_figure, plan_files, values_of_figure, values_of_plan
from clusterwright.cli.output import Exit, Format, columns, say, say_json
from clusterwright.model.workloads import Goal


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
    goal: Annotated[
        Goal | None,
        typer.Option(
            "--goal",
            help="What a layout that the files leave open is best in: cost per token, latency, throughput per GPU, "
            "domain (fewest GPUs that one failing node stops). Over what the files say.",
        ),
    ] = None,
    layouts: Annotated[
        bool, typer.Option("--layouts", help="Show every possible layout and why each popular one lost.")
    ] = False,
    catalogues: Annotated[
        list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="Text for people, or everything as JSON.")] = Format.text,
) -> None:
    """Compute what fits where, how fast, how failure-proof, at what cost.

    For each workload: the layout, declared or the best of all possible ones by its goal, memory per GPU, placement with
    its failure domain, replicas for the load and after the declared losses, the rate that storage must deliver,
    checkpoints, capacity, and the cost of an accepted unit here and in the declared alternatives. Every number carries
    its unit and where it came from; what was assumed is ranked by its effect. What cannot be planned is named with what
    would allow it.

    Exit codes: 0 everything was planned and holds; 1 something does not fit or misses a target; 2 invalid input;
    3 something could not be planned.
    """
    planned = plan_files(files, overrides or (), catalogues or (), goal)
    if explain is not None:
        if output is Format.json:
            say_json(values_of_figure(planned, explain))
        else:
            say(explain_figure(planned, explain))
        return
    if output is Format.json:
        say_json(values_of_plan(planned))
    else:
        say(describe_plan(planned, columns(), datetime.date.today(), catalogues or (), layouts=layouts))
    if planned.misfits:
        raise typer.Exit(Exit.FAILED)
    if planned.unplanned:
        raise typer.Exit(Exit.INCOMPLETE)
