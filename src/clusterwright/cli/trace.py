"""`cw trace`: what a job trace holds, distributions fitted to it, the same trace in another form."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from clusterwright.app.trace_reading import TraceRequest
from clusterwright.app.tracing import (
    Inspected,
    describe_fit,
    describe_trace,
    document_of_fit,
    export_trace,
    fit_inspected,
    inspect_trace,
    values_of_trace,
    write_lines,
)
from clusterwright.cli.main import command_group
from clusterwright.cli.output import Exit, Format, columns, is_terminal, note, say, say_json

trace = command_group("Job traces: look into one, fit distributions to it, write it in another form.")

_FILES = typer.Argument(
    metavar="FILE...", help="Files of one trace; a directory stands for the files in it, - for standard input."
)
_KIND = typer.Option(
    metavar="KIND",
    help="slurm-sacct, slurm-json, events, philly, openb, openb-nodes, swf, cw-csv or csv; found out if absent.",
)
_MAP = typer.Option(
    "--map",
    metavar="FIELD=COLUMN[:UNIT],...",
    help="Which columns of a CSV file are what, such as submit=created_at,run=duration:ms,gpus=num_gpus.",
)
_ZONE = typer.Option(
    "--zone",
    metavar="ZONE",
    help="Time zone of local times, such as Europe/Berlin. If absent: US Pacific for Philly, UTC for the others.",
)
_PROCESSORS = typer.Option(
    "--processors-per-gpu", metavar="N", help="How many processors of an SWF log make a GPU; else its GPUs are unknown."
)


class Form(StrEnum):
    """Forms in which a trace can be written."""

    csv = "csv"
    swf = "swf"
    json = "json"


@trace.command()
def inspect(
    files: Annotated[list[str], _FILES],
    kind: Annotated[str, _KIND] = "",
    mapping: Annotated[str, _MAP] = "",
    zone: Annotated[str, _ZONE] = "",
    processors_per_gpu: Annotated[int, _PROCESSORS] = 0,
    output: Annotated[Format, typer.Option("--format", help="Text for people, or everything as JSON.")] = Format.text,
) -> None:
    """Say what a trace holds: window, sizes, run times, waits, GPU-hours, arrivals, and every row that is in no job.

    Reads Slurm's accounting (sacct -P or --json), the engine's own events, Philly, openb, SWF, and any CSV file with
    --map. Every row is a job, a part of one (a step, an attempt), or rejected for a named reason with samples; what
    the source does not record is said, with the line that would record it. Best for Slurm:

    sacct --allusers --duplicates --parsable2 --starttime 2026-05-01 --endtime 2026-06-01 --format
    JobID,Cluster,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,ElapsedRaw,Timelimit,NNodes,AllocTRES,ReqTRES,Priority,Restarts

    Exit codes: 0 every row is accounted for by jobs; 2 a file is not there or no trace of a known kind; 3 rows were
    rejected.
    """
    inspected = _inspect(TraceRequest(files, kind, mapping, zone, processors_per_gpu))
    if output is Format.json:
        say_json(values_of_trace(inspected))
    else:
        say(describe_trace(inspected, columns()))
    _leave(inspected)


@trace.command()
def fit(
    files: Annotated[list[str], _FILES],
    out: Annotated[Path | None, typer.Option("--out", metavar="PATH", help="File to write the fit to.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    kind: Annotated[str, _KIND] = "",
    mapping: Annotated[str, _MAP] = "",
    zone: Annotated[str, _ZONE] = "",
    processors_per_gpu: Annotated[int, _PROCESSORS] = 0,
    output: Annotated[Format, typer.Option("--format", help="Text for people, or the fit as JSON.")] = Format.text,
) -> None:
    """Fit distributions to a trace: arrivals by hour of the week, kinds of jobs, run times by size, limits.

    Run times are lognormal, gamma, Weibull or exponential where one of these is near the data (Kolmogorov-Smirnov
    distance of at most 0.05), else the data's own quantiles; every distance is shown. Jobs that still ran count as
    censored. The fit is a JSON document from which jobs can be drawn; docs/traces.md describes every value.

    Exit codes: 0 fitted; 2 invalid input, too few jobs, or the file exists; 3 fitted, but rows were rejected.
    """
    inspected = _inspect(TraceRequest(files, kind, mapping, zone, processors_per_gpu))
    fitted = fit_inspected(inspected)
    say(document_of_fit(fitted) if output is Format.json else describe_fit(fitted))
    if out is not None:
        write_lines(out, document_of_fit(fitted).split("\n"), force=force)
        note(f"written to {out}")
    _leave(inspected)


@trace.command()
def export(
    files: Annotated[list[str], _FILES],
    to: Annotated[
        Form,
        typer.Option("--to", help="csv loses nothing; swf is the Standard Workload Format; json has a job a line."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PATH", help="File to write; standard output if absent.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    kind: Annotated[str, _KIND] = "",
    mapping: Annotated[str, _MAP] = "",
    zone: Annotated[str, _ZONE] = "",
    processors_per_gpu: Annotated[int, _PROCESSORS] = 0,
) -> None:
    """Write a trace in another form: our own CSV, which loses nothing, SWF, or JSON.

    Columns and units are in docs/traces.md. Rejected rows are not in the output; `cw trace inspect` shows them.

    Exit codes: 0 every row is in the output; 2 invalid input, or the file exists; 3 rows were rejected.
    """
    inspected = _inspect(TraceRequest(files, kind, mapping, zone, processors_per_gpu))
    lines = export_trace(inspected, to.value)
    if out is None:
        for line in lines:
            say(line)
    else:
        write_lines(out, lines, force=force)
        note(f"{len(inspected.found.trace):,} jobs written to {out}")
    _leave(inspected)


def _inspect(request: TraceRequest) -> Inspected:
    if not is_terminal():
        return inspect_trace(request)
    bar = _Bar()
    try:
        return inspect_trace(request, bar.show)
    finally:
        bar.clear()


def _leave(inspected: Inspected) -> None:
    if inspected.whole:
        return
    rejected = inspected.found.counts.rejected_rows
    note(f"{rejected:,} rows were rejected" if rejected else "there is no row in it")
    raise typer.Exit(Exit.INCOMPLETE)


class _Bar:
    """How much was read, on one line of standard error."""

    def __init__(self) -> None:
        self._shown = -1

    def show(self, done: int, total: int, path: str) -> None:
        """Show it when a whole percent, or without a total a megabyte, is new."""
        step = done * 100 // total if total else done >> 20
        if step != self._shown:
            self._shown = step
            much = f"{step} %" if total else f"{step} MiB"
            typer.echo(f"\r\033[Kreading {path[-60:]}: {much}", err=True, nl=False)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown >= 0:
            typer.echo("\r\033[K", err=True, nl=False)
