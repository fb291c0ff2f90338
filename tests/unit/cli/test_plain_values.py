"""Values that need no conversion stay as they are, all others are converted by Typer."""

from __future__ import annotations

import enum
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from clusterwright.cli.plain_values import PlainCommand


class Colour(enum.StrEnum):
    red = "red"
    blue = "blue"


def invoke(*args: str) -> str:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command("show", cls=PlainCommand)
    def show(
        name: Annotated[str | None, typer.Argument()] = None,
        colour: Annotated[Colour, typer.Option("--colour")] = Colour.red,
        path: Annotated[Path | None, typer.Option("--path")] = None,
        there: Annotated[Path | None, typer.Option("--there", exists=True)] = None,
        count: Annotated[int, typer.Option("--count")] = 1,
        files: Annotated[list[str] | None, typer.Option("--file")] = None,
        force: Annotated[bool, typer.Option("--force")] = False,
    ) -> None:
        typer.echo(repr((name, colour, path or there, count, files or [], force)))

    found = CliRunner().invoke(app, list(args))
    return found.output.strip()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), (None, Colour.red, None, 1, [], False)),
        (("x",), ("x", Colour.red, None, 1, [], False)),
        (("--colour", "blue", "--count", "3", "--force"), (None, Colour.blue, None, 3, [], True)),
        (("--file", "a", "--file", "b", "y"), ("y", Colour.red, None, 1, ["a", "b"], False)),
    ],
)
def test_values_arrive_as_declared(args: tuple[str, ...], said: tuple[object, ...]) -> None:
    assert invoke(*args) == repr(said)


def test_a_path_arrives_as_a_path() -> None:
    assert "Path('a.md')" in invoke("--path", "a.md")


def test_what_is_asked_of_a_path_is_checked(tmp_path: Path) -> None:
    assert "Path('/nonexistent/a.md')" in invoke("--path", "/nonexistent/a.md")
    assert f"Path('{tmp_path}')" in invoke("--path", str(tmp_path))
    assert "does not exist" in invoke("--there", "/nonexistent/a.md")
    assert f"Path('{tmp_path}')" in invoke("--there", str(tmp_path))


@pytest.mark.parametrize("args", [("--colour", "green"), ("--colour", "Red"), ("--count", "many")])
def test_wrong_values_are_refused(args: tuple[str, str]) -> None:
    said = invoke(*args)
    assert "Invalid value" in said
    assert args[0] in said


@pytest.mark.parametrize("more", [(), ("--format", "json"), ("--to", "a.md"), ("--catalogue", "a.yaml"), ("--bom",)])
def test_plain_options_do_not_import_the_converter(more: tuple[str, ...]) -> None:
    code = (
        "import sys; sys.argv = ['cw', 'fit', 'llama-3.3-70b', 'h100', '--tpot', '1 parsec', *sys.argv[1:]]\n"
        "from clusterwright.cli.main import run\n"
        "assert run() == 2 and 'typer._adapters' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code, *more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
