"""`cw compare`: what it prints and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "two-workers" / "cluster.yaml")


def run(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["compare", *args])
    assert result.exit_code == code, result.output
    return result.stdout


def test_one_file_is_compared_with_itself_changed() -> None:
    text = run(EXAMPLE, "--set", "pools.gpu.price=$3/GPU-h")
    assert "unit cost" in text
    assert "pools.gpu.price" in text


def test_json_and_markdown_say_the_same() -> None:
    values = json.loads(run(EXAMPLE, "--set", "pools.gpu.price=$3/GPU-h", "--format", "json"))
    assert [said["path"] for said in values["inputs"][0]] == ["pools.gpu.price"]
    assert "`pools.gpu.price`" in run(EXAMPLE, "--set", "pools.gpu.price=$3/GPU-h", "--format", "markdown")


def test_a_design_that_does_not_hold_fails() -> None:
    assert "not hold" in run(EXAMPLE, "--set", "workloads.chat.serve.rate=500 req/s", code=1)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((EXAMPLE,), "--set PATH=VALUE"),
        ((EXAMPLE, EXAMPLE, "--set", "cluster=x"), "one file"),
        (("nothing.yaml",), "alone"),
    ],
)
def test_what_cannot_be_compared_is_said(args: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(app, ["compare", *args])
    assert isinstance(result.exception, InvalidInput)
    assert said in str(result.exception)
