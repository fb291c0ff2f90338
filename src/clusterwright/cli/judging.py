"""`cw judge`: what outputs prove."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clusterwright.app.judging_outputs import (
    OutputRequest,
    describe_judgement,
    judge_outputs,
    values_of_judgement,
)
from clusterwright.app.kept_evidence import load_kept
from clusterwright.cli.output import Format, columns, say, say_json


def judge(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ARCHITECTURE] [OUTPUT...]",
            help="What tools wrote: files, directories of them, or - for standard input; with an architecture file "
            "among them, its claims are judged.",
        ),
    ] = None,
    nodes: Annotated[
        str, typer.Option(metavar="HOSTS", help="Hosts they were taken on, where neither output nor path names them.")
    ] = "",
    engine: Annotated[
        str, typer.Option(metavar="ENGINE", help="What ran them: slurm, kubernetes or local; never assumed.")
    ] = "",
    workload: Annotated[str, typer.Option(metavar="NAME", help="Declared workload that they are about.")] = "",
    taken: Annotated[
        str, typer.Option(metavar="DATE", help="Day or time of outputs that print none; else the file's own time.")
    ] = "",
    kind: Annotated[str, typer.Option(metavar="KIND", help="What they are; found out for each if absent.")] = "",
    evidence: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="A store or a bundle of evidence that counts beside the outputs."),
    ] = None,
    keys: Annotated[
        list[Path] | None,
        typer.Option("--key", metavar="FILE", help="Public key of somebody whose signature on a bundle counts."),
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="Show every claim, notice and reading.")] = False,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Write over a value of the architecture.")
    ] = None,
    catalogues: Annotated[
        list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="Text for people, or everything as JSON.")] = Format.text,
) -> None:
    """Say what the outputs of tools prove, and judge the claims of an architecture by them.

    A claim is met only by readings of its metric under its conditions, over its whole scope, from the declared
    engine, fresh, from a whole output. What was skipped, cut, not checked or not readable is not measured, with what
    to run next; a failure counts also when a later run passes. A tool's own verdict is never used.

    With --evidence, outputs may be left out: what was kept before counts as far as it is fresh, from the engine that
    it was kept with.

    Without an architecture: what each output proves and does not, what it shows to be wrong, and how a collective
    compares with what its GPUs and NICs can reach.

    Exit codes: 0 every required claim is met (without an architecture: all was read and nothing is wrong); 1 a claim
    is not met or an output shows a failure; 2 invalid input; 3 something was not measured or not read whole.
    """
    request = OutputRequest(
        files or (), nodes, engine, workload, taken, kind, overrides=overrides or (), catalogues=catalogues or ()
    )
    judged = judge_outputs(request, kept=load_kept(evidence or (), keys or ()))
    if output is Format.json:
        say_json(values_of_judgement(judged))
    else:
        say(describe_judgement(judged, whole=whole, width=columns()))
    if judged.exit_code:
        raise typer.Exit(judged.exit_code)
