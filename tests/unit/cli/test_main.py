"""The command shell: overview, laziness, wrong names, exit codes of what escapes a command."""

from __future__ import annotations

import ast
import inspect
import signal
import subprocess
import sys
import types
from importlib.metadata import entry_points

import pytest
import typer
from typer.testing import CliRunner

from clusterwright.app.guarding import BUG, guard
from clusterwright.cli.main import _TABLE, COMMANDS, app, command_group, overview
from clusterwright.cli.reference import commands_page, commands_under
from clusterwright.lib.errors import ClusterwrightError, Interrupted, InvalidInput


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clusterwright.cli.entry", *argv], capture_output=True, text=True, check=False
    )


def test_overview_names_every_command() -> None:
    text = overview()
    assert all(f"  {name} " in text for group in COMMANDS.values() for name in group)


@pytest.mark.parametrize("name", list(_TABLE))
def test_every_command_loads_and_has_help(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 5


def imported_by(*argv: str) -> set[str]:
    """Modules that a command has imported when it has answered."""
    probe = (
        "import contextlib, io, sys; sys.argv = ['cw', *sys.argv[1:]]\n"
        "from clusterwright.cli.main import app\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n    app()\n"
        "print(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", probe, *argv], capture_output=True, text=True, check=True)
    return set(ast.literal_eval(done.stdout))


def test_help_imports_no_command_and_nothing_heavy() -> None:
    found = imported_by("--help")
    assert not {m for m in found if m.split(".")[0] in {"pydantic", "numpy", "sqlalchemy", "ruamel"}}
    assert not {m for m in found if m.startswith(("clusterwright.model", "clusterwright.catalogue"))}


def test_a_first_question_imports_only_what_it_asks_about() -> None:
    """Half a second with its start-up: no validation library, no YAML, nothing of other engines, models, training."""
    found = imported_by("fit", "llama-3.1-8b", "h100", "--profile", "")
    assert {"numpy", "clusterwright.physics.engines.vllm"} <= found
    heavy = {"pydantic", "pydantic_core", "ruamel", "sqlalchemy", "rich", "numpy.ma"}
    others = {f"clusterwright.physics.engines.{name}" for name in ("sglang", "tensorrt_llm", "arrays")}
    others |= {f"clusterwright.model.huggingface.{name}" for name in ("latents", "hybrids", "gemmas", "towers")}
    others |= {f"clusterwright.{name}" for name in ("model.architecture", "model.support", "physics.training")}
    assert not found & (heavy | others)


def test_wrong_command_is_answered_with_the_nearest() -> None:
    done = run("reviw")
    assert done.returncode == 2
    assert "review" in done.stderr
    assert "Traceback" not in done.stderr


#: Runs `cw queue`, but one import in it says that it began and then takes a minute.
_IMPORTING = """
import sys, time
from importlib.abc import MetaPathFinder

wanted = sys.argv[1]

class Slow(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            print("importing", flush=True)
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                raise ImportError("what a library makes of it") from None

from clusterwright.cli import entry
sys.meta_path.insert(0, Slow())
sys.argv = ["cw", "queue", "--state", "/nonexistent"]
entry.main()
"""


@pytest.mark.parametrize("module", ["typer", "clusterwright.cli.running", "pydantic"])
def test_ctrl_c_during_any_import_ends_at_once_without_a_traceback(module: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _IMPORTING, module], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "error: interrupted\n")


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", ignore + _IMPORTING.replace("60", "0.5"), "typer"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "no cluster is up" in err


def test_the_installed_commands_start_at_the_entry_point_that_answers_signals() -> None:
    found = {e.name: e.value for e in entry_points(group="console_scripts") if e.name in ("cw", "clusterwright")}
    assert found == dict.fromkeys(("cw", "clusterwright"), "clusterwright.cli.entry:main")


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


@pytest.mark.parametrize("entry", list(_TABLE))
def test_every_command_function_is_documented(entry: str) -> None:
    found = dict(commands_under(entry))
    assert found
    assert all(inspect.getdoc(command) for command in found.values())


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> str:
    """A group of two commands in the table, and its name."""
    group = command_group("Try a group.")

    @group.command("first")
    def first() -> None:
        """Do the first thing."""
        raise typer.Exit(4)

    @group.command("second")
    def second() -> None:
        """Do the second thing."""

    module = types.ModuleType("clusterwright.cli.sample")
    vars(module)["sample"] = group
    entry = ("sample", "sample", "Try a group.")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(_TABLE, "sample", entry)
    monkeypatch.setitem(COMMANDS, "Samples", {"sample": entry})
    return "sample"


def test_a_group_runs_its_commands_and_names_them(sample: str) -> None:
    assert CliRunner().invoke(app, [sample, "first"]).exit_code == 4
    shown = CliRunner().invoke(app, [sample, "--help"])
    assert all(text in shown.output for text in ("Try a group.", "first", "Do the second thing."))


def test_a_group_answers_a_wrong_command_with_the_nearest(sample: str) -> None:
    shown = CliRunner().invoke(app, [sample, "secnd"])
    assert shown.exit_code == 2
    assert "second" in shown.output


def test_the_page_of_commands_describes_every_command_of_a_group(sample: str) -> None:
    page = commands_page()
    assert "### cw sample first\n\nDo the first thing." in page
    assert "### cw sample second\n\nDo the second thing." in page
