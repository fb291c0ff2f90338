"""`cw read`: what the tools printed, with units, and what could not be read."""

from __future__ import annotations

from typing import Annotated

import typer

from clusterwright.app.reading import (
    all_read,
    describe_files,
    describe_kinds,
    read_files,
    values_of_files,
    values_of_kinds,
)
from clusterwright.cli.output import Exit, Format, columns, is_terminal, note, say, say_json
from clusterwright.lib.errors import InvalidInput


def read(
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Outputs of tools; a directory stands for the files in it, - for standard input."),
    ] = None,
    kind: Annotated[str, typer.Option(metavar="KIND", help="What they are; found out for each if absent.")] = "",
    kinds: Annotated[bool, typer.Option("--kinds", help="List what can be read.")] = False,
    whole: Annotated[bool, typer.Option("--all", help="Show every row.")] = False,
    output: Annotated[Format, typer.Option("--format", help="Text for people, or everything as JSON.")] = Format.text,
) -> None:
    """Read what nccl-tests, nvidia-smi, DCGM, fio, Slurm, Kubernetes and others printed.

    Finds out the kind of each output, prints its values with units, what a careful person would notice, what is
    missing from a whole output, and what could not be read. N/A, blanks and sentinels are absent, never 0.
    It judges nothing: `cw judge` says what an output proves.

    Exit codes: 0 everything was read; 2 a file is not there or the kind does not exist; 3 something was refused, cut
    or not readable.
    """
    if kinds:
        if output is Format.json:
            say_json(values_of_kinds())
        else:
            say(describe_kinds())
        return
    if not files:
        raise InvalidInput("name at least one file, or - for standard input; --kinds lists what can be read")
    progress = (lambda path: note(f"reading {path}")) if is_terminal() and len(files) > 1 else None
    found = read_files(files, kind=kind, progress=progress)
    if output is Format.json:
        say_json(values_of_files(found))
    else:
        say(describe_files(found, whole=whole, width=columns()))
    if not all_read(found):
        raise typer.Exit(Exit.INCOMPLETE)
