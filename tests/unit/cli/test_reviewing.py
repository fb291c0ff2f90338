"""`cw review` and `cw explain` from the command line: exit codes, formats, stages, wrong names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterwright.cli.main import app
from clusterwright.review.rulebook import BY_ID

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "two-workers" / "cluster.yaml")
DAY = ("--today", "2026-11-30")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_the_example_is_ready() -> None:
    code, output = run("review", EXAMPLE, *DAY)
    assert code == 0
    assert "two-workers: review for stage build, 2026-11-30: ready" in output


def test_an_error_exits_1() -> None:
    code, output = run("review", EXAMPLE, *DAY, "--set", "owners.network=")
    assert code == 1
    assert "error owner-missing" in output


def test_warnings_exit_1_when_asked() -> None:
    assert run("review", EXAMPLE, *DAY, "--fail-on", "warning")[0] == 1


def test_an_undecided_required_rule_exits_3() -> None:
    assert run("review", EXAMPLE, *DAY, "--set", "pools.gpu.hardware.vbios=")[0] == 3


def test_json_holds_everything() -> None:
    code, output = run("review", EXAMPLE, *DAY, "--format", "json", "--set", "owners.network=")
    values = json.loads(output)
    assert code == 1
    assert values["state"] == "not ready"
    assert values["findings"][0]["rule"] == "owner-missing"
    assert values["findings"][0]["place"]["line"] > 0


def test_a_stage_requires_less() -> None:
    assert run("review", EXAMPLE, *DAY, "--set", "access=")[0] == 1
    assert run("review", EXAMPLE, *DAY, "--set", "access=", "--stage", "quote")[0] == 0


def test_all_unfolds() -> None:
    folded, whole = run("review", EXAMPLE, *DAY)[1], run("review", EXAMPLE, *DAY, "--all")[1]
    assert "--all shows each" in folded
    assert len(whole) > len(folded)


def test_explain_prints_one_rule_or_all() -> None:
    assert "Why: A cache may be emptied" in run("explain", "cache-only-copy")[1]
    assert json.loads(run("explain", "cache-only-copy", "--format", "json")[1])["area"] == "storage"
    assert len(run("explain")[1].splitlines()) > 200


def test_explain_without_a_rule_gives_all_rules_as_json() -> None:
    code, output = run("explain", "--format", "json")
    values = json.loads(output)
    assert code == 0
    assert values["schema"] == "clusterwright/rules/v1"
    assert len(values["rules"]) == len(run("explain")[1].splitlines())
    assert json.loads(run("explain", "cache-only-copy", "--format", "json")[1]) in values["rules"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_keeps_to_the_columns_of_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (("review", EXAMPLE, *DAY, "--all", "--set", "fabric="), ("explain", "cache-only-copy")):
        lines = run(*arguments)[1].splitlines()
        example = {*BY_ID["cache-only-copy"].example.splitlines()}
        assert [
            line for line in lines if len(line) > width and " " in line.strip() and line.strip() not in example
        ] == []


def test_a_terminal_narrower_than_60_columns_gets_60(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    narrow = run("review", EXAMPLE, *DAY)[1]
    monkeypatch.setenv("COLUMNS", "60")
    assert narrow == run("review", EXAMPLE, *DAY)[1]
