"""The command shell: overview, laziness, wrong names, exit codes of what escapes a command."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import pytest

from clusterwright.app.guarding import BUG, guard
from clusterwright.cli.main import _TABLE, COMMANDS, overview
from clusterwright.lib.errors import ClusterwrightError, Interrupted, InvalidInput


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clusterwright.cli.main", *argv], capture_output=True, text=True, check=False
    )


def test_overview_names_every_command() -> None:
    text = overview()
    assert all(f"  {name} " in text for group in COMMANDS.values() for name in group)


@pytest.mark.parametrize("name", list(_TABLE))
def test_every_command_loads_and_has_help(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 5


def test_help_imports_no_command_and_nothing_heavy() -> None:
    probe = (
        "import sys; sys.argv = ['cw', '--help']\n"
        "from clusterwright.cli.main import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in {'pydantic', 'sqlalchemy', 'ruamel'}"
        " or m.startswith('clusterwright.model')))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout.splitlines()[-1]) == []


def test_wrong_command_is_answered_with_the_nearest() -> None:
    done = run("reviw")
    assert done.returncode == 2
    assert "review" in done.stderr
    assert "Traceback" not in done.stderr


def raising(error: BaseException) -> int:
    def command() -> object:
        raise error

    shown: list[ClusterwrightError] = []
    return guard(command, shown.append)


@pytest.mark.parametrize(
    ("error", "code"),
    [(InvalidInput("x"), 2), (Interrupted("x"), 130), (KeyboardInterrupt(), 130), (BrokenPipeError(), 141)],
)
def test_errors_map_to_exit_codes(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    assert raising(error) == code


def test_a_bug_is_never_taken_for_a_failed_requirement(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(ZeroDivisionError("oops")) == BUG
    err = capsys.readouterr().err
    assert "ZeroDivisionError" in err
    assert "bug in clusterwright" in err


def test_a_missing_extra_names_itself() -> None:
    def command() -> object:
        raise ModuleNotFoundError("No module named 'sqlalchemy'", name="sqlalchemy")

    shown: list[ClusterwrightError] = []
    assert guard(command, shown.append) == 2
    assert "clusterwright[local]" in str(shown[0])


def test_every_command_function_is_documented() -> None:
    from importlib import import_module

    for module, function, _ in _TABLE.values():
        assert inspect.getdoc(getattr(import_module(f"clusterwright.cli.{module}"), function))
