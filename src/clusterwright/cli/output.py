"""What every command shares: consoles, formats, exit codes, and how an error is shown."""

from __future__ import annotations

import json
import re
import shutil
import sys
from enum import IntEnum, StrEnum
from typing import Any, Final

import typer

from clusterwright.lib.errors import ClusterwrightError, InvalidInput

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Exit(IntEnum):
    """Exit codes; where several apply, 2 > 1 > 3 > 4 > 0."""

    OK = 0
    FAILED = 1
    INVALID = 2
    INCOMPLETE = 3
    DRIFT = 4


class Format(StrEnum):
    """Output for people or for programs."""

    text = "text"
    json = "json"


def say(text: str) -> None:
    """Print a result to standard output."""
    typer.echo(text)


def say_bytes(data: bytes, *, error: bool = False) -> None:
    """Write bytes as they are to standard output, or to standard error, at once."""
    stream = typer.get_binary_stream("stderr" if error else "stdout")
    stream.write(data)
    stream.flush()


def note(text: str) -> None:
    """Print progress or a remark to standard error."""
    typer.echo(text, err=True)


def say_json(value: Any) -> None:
    """Print a value as JSON to standard output; bytes that are not UTF-8 as the escapes of Python's surrogates."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    typer.echo(_SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text))


def show_error(error: ClusterwrightError) -> None:
    """Print an error with every problem and its place to standard error."""
    if isinstance(error, InvalidInput):
        for problem in error.problems:
            typer.echo(f"error: {problem}", err=True)
        if len(error.problems) > 1:
            typer.echo(f"{len(error.problems)} problems", err=True)
    else:
        typer.echo(f"error: {error}", err=True)


def is_terminal() -> bool:
    """Whether standard error is a terminal that can show live progress."""
    return sys.stderr.isatty()


def columns() -> int:
    """Columns of the terminal, or what COLUMNS says; 120 where neither is known."""
    return shutil.get_terminal_size((120, 40)).columns
