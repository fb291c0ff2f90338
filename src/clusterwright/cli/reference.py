"""The page of commands, written from the commands themselves."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final

import typer

from clusterwright.cli.main import COMMANDS

_HEAD: Final = """\
# Commands

`cw` and `clusterwright` are the same program. Results go to standard output, progress and remarks to standard error.
Exit codes: 0 all that is required holds, 1 something required fails, 2 usage or invalid input, 3 incomplete, 4 drift;
70 is a bug of ours, 130 an interruption. This page is written by `make docs`.
"""


def commands_page() -> str:
    """Every command with its description, arguments and options, in Markdown."""
    blocks = [_HEAD]
    for heading, commands in COMMANDS.items():
        blocks.append(f"## {heading}\n")
        blocks += [_describe(name, command) for entry in commands for name, command in commands_under(entry)]
    return "\n".join(blocks)


def commands_under(entry: str) -> Iterator[tuple[str, Callable[..., None]]]:
    """(name, function) of a command; of a group, of every command in it, such as `accept plan`."""
    module, function, _ = next(commands[entry] for commands in COMMANDS.values() if entry in commands)
    found = getattr(import_module(f"clusterwright.cli.{module}"), function)
    if not isinstance(found, typer.Typer):
        yield entry, found
        return
    for member in found.registered_commands:
        if member.callback is not None:
            yield f"{entry} {member.name or member.callback.__name__}", member.callback


def _describe(name: str, command: Callable[..., None]) -> str:
    rows = list(_rows(command))
    table = "\n".join(["| | |", "|---|---|", *rows, ""]) if rows else ""
    return f"### cw {name}\n\n{inspect.getdoc(command)}\n\n{table}"


def _rows(command: Callable[..., None]) -> Iterator[str]:
    hints = typing.get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        info: Any = next(m for m in hints[name].__metadata__ if hasattr(m, "help"))
        # Inside Annotated, Typer takes the first flag as the parameter called `default`.
        flags = [f for f in (info.default, *(info.param_decls or ())) if isinstance(f, str) and f.startswith("-")]
        option = type(info).__name__.startswith("Option")
        label = ", ".join(flags) or (f"--{name.replace('_', '-')}" if option else str(info.metavar or name).upper())
        if option and info.metavar:
            label += f" {info.metavar}"
        default = _default(parameter.default)
        text = " ".join((info.help or "").split())
        yield f"| `{label}` | {text}{default} |".replace("\n", " ")


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty or value is None or value is False or value in ((), [], ""):
        return ""
    shown = getattr(value, "value", value)
    return f" Default: `{shown}`."
