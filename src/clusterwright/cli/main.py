"""The command line: which command lives where. A command's module is imported when it is invoked, not before."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

from clusterwright import __version__
from clusterwright.app.guarding import guard
from clusterwright.cli.importing import quick_imports
from clusterwright.cli.output import show_error
from clusterwright.cli.plain_values import PlainCommand, keep_plain

#: heading → command → (module, function or typer group, one line for the overview), in the order of help.
COMMANDS: Final[dict[str, dict[str, tuple[str, str, str]]]] = {
    "The first question": {
        "fit": ("fit", "fit_", "Say whether a model fits these GPUs, how many, in which layout, for how much."),
    },
    "From a file to a verdict": {
        "prove": ("proving", "prove", "Review, plan, rehearse and judge one architecture; write the report."),
        "review": ("reviewing", "review", "Say what is missing or contradictory, with file and line."),
        "plan": ("planning", "plan", "Compute what fits where, how fast, how failure-proof, at what cost."),
        "compare": ("comparing", "compare", "Put designs side by side: what differs, and what makes it differ."),
        "explain": ("explaining", "explain", "Explain a rule, a number of a plan, or a word of the field."),
        "init": ("documents", "init", "Write a first architecture file from a template."),
        "schema": ("documents", "schema", "Print the JSON Schema of the file, for editors."),
    },
    "Evidence and acceptance": {
        "evidence": ("evidence", "evidence", "Keep, list, compare, export and verify what was measured."),
        "lint-thresholds": (
            "linting",
            "lint_thresholds",
            "Find thresholds that nothing meets, or that everything meets.",
        ),
        "read": ("readings", "read", "Read what a tool printed: values with units, and what could not be read."),
        "judge": ("judging", "judge", "Say what outputs prove, and judge the claims of an architecture by them."),
        "find-node": (
            "finding",
            "find_node_",
            "Find a bad node by runs over pairs or halves: the plan, then the node.",
        ),
        "accept": ("accepting", "accept", "Plan an acceptance, export it as scripts, judge what comes back."),
        "calibrate": ("calibrating", "calibrate_", "Refit the speed of serving to benchmarks of your own."),
    },
    "What a cluster's users did": {
        "trace": ("trace", "trace", "Look into a job trace, fit distributions to it, write it in another form."),
    },
    "What a cluster would do": {
        "simulate": ("simulate", "simulate", "Simulate weeks of queueing, failures and repairs in seconds."),
        "what-if": ("what_if", "what_if", "Simulate the cluster as it is and changed, and say what differs."),
    },
    "The embedded engine, on one machine": {
        "up": ("running", "up", "Start a control plane and one agent per node."),
        "down": ("running", "down", "Stop everything that `up` started."),
        "nodes": ("running", "nodes", "List nodes with their state and GPUs."),
        "submit": ("running", "submit", "Submit a job: real processes, all or nothing."),
        "queue": ("waiting", "queue", "List jobs, with the reason for whatever waits."),
        "why": ("waiting", "why", "Say everything that keeps a job from running."),
        "logs": ("running", "logs", "Print the output of a job's ranks."),
        "cancel": ("running", "cancel", "Stop a job and all its processes."),
        "release": ("running", "release", "Let a held job start."),
    },
}
_TABLE: Final = {name: entry for group in COMMANDS.values() for name, entry in group.items()}

_OVERVIEW: Final = """\
Usage: cw [--version] COMMAND [ARGS]...

Architecture as code for GPU clusters, with proof.

{commands}
Start with  cw init  or  cw prove FILE;  cw COMMAND --help  explains a command.
Exit codes: 0 all that is required holds, 1 something required fails, 2 usage or invalid input,
3 incomplete (something required was not measured or is unknown), 4 drift.
"""


class LazyGroup(TyperGroup):
    """A group that lists its commands from the table and loads one only to run it."""

    def get_params(self, ctx: Any) -> Any:
        """Options of `cw` itself."""
        return keep_plain(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands in the order of the overview."""
        return list(_TABLE)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load the command, or None so that the parser names the nearest choices."""
        if cmd_name not in _TABLE:
            return None
        module, function, _ = _TABLE[cmd_name]
        with quick_imports():
            loaded = getattr(import_module(f"clusterwright.cli.{module}"), function)
        if isinstance(loaded, typer.Typer):
            return _load_group(loaded, cmd_name)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name, cls=PlainCommand)(loaded)
        return typer.main.get_command(single)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; a wrong name is answered with the nearest ones."""
        if args and args[0] not in _TABLE and not args[0].startswith("-"):
            near = get_close_matches(args[0], _TABLE, n=3) or list(_TABLE)
            ctx.fail(f"no command '{args[0]}'; did you mean {', '.join(near)}?")
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: Any) -> str:
        """The overview, without importing any command."""
        return overview()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the overview (Typer would import every command to describe it)."""
        typer.echo(overview(), nl=False)


def command_group(summary: str) -> typer.Typer:
    """A group of commands such as `cw accept plan`, to be named in COMMANDS like a function.

    Args:
        summary: what the commands have in common, shown by its help.
    """
    return typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, help=summary)


def _load_group(group: typer.Typer, name: str) -> Any:
    loaded = typer.main.get_group(group)
    loaded.name = name
    return loaded


def overview() -> str:
    """What `cw --help` prints."""
    blocks = []
    for heading, commands in COMMANDS.items():
        rows = [f"  {name:<15} {summary}" for name, (_, _, summary) in commands.items()]
        blocks.append(f"{heading}:\n" + "\n".join(rows) + "\n")
    return _OVERVIEW.format(commands="\n".join(blocks))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clusterwright {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=LazyGroup, add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_print_version, is_eager=True),
) -> None:
    """Architecture as code for GPU clusters, with proof."""


def run() -> int:
    """Run the command that the arguments name and return its exit code."""
    return guard(app, show_error)


if __name__ == "__main__":
    sys.exit(run())
