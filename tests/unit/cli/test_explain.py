"""`cw explain`: rules, numbers of a plan, words; and what is called by none of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "two-workers" / "cluster.yaml")


def run(*args: str) -> str:
    result = CliRunner().invoke(app, ["explain", *args])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_word_is_explained_with_formula_and_source() -> None:
    text = run("busbw")
    assert "2(n − 1) ÷ n" in text
    assert "nccl-tests" in text
    assert json.loads(run("busbw", "--format", "json"))["term"] == "busbw"


def test_a_number_is_explained_down_to_the_file_with_its_word() -> None:
    text = run("chat.service.ttft", EXAMPLE)
    assert text.startswith("workloads.chat.service.ttft = ")
    assert "cluster.yaml:" in text
    assert "TTFT, time to first token" in text
    values = json.loads(run("chat.service.ttft", EXAMPLE, "--format", "json"))
    assert values["inputs"]
    assert [term["term"] for term in values["terms"]] == ["TTFT"]


def test_a_rule_is_explained_as_ever() -> None:
    assert run("cache-only-copy") == run("cache-only-copy", EXAMPLE)
    assert "Why:" in run("cache-only-copy")


def test_several_numbers_beside_a_word_are_listed() -> None:
    text = run("cold start", EXAMPLE)
    assert "workloads.chat.payload_plan.cold_start" in text
    assert "workloads.finetune.payload_plan.cold_start" in text


def test_all_words_are_listed() -> None:
    assert "MFU" in run("--terms")
    assert len(json.loads(run("--terms", "--format", "json"))["terms"]) == len(run("--terms").splitlines())


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("ttfx",), "the word TTFT"),
        (("cache-only",), "the rule cache-only-copy"),
        (("chat.service.ttf", EXAMPLE), "the number workloads.chat.service.ttft"),
        (("workloads.chat.service.ttft",), "cw explain NAME FILE"),
        (("qqqqqqqq",), "--terms"),
    ],
)
def test_what_is_called_by_no_name_is_answered_with_the_nearest(args: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(app, ["explain", *args])
    assert isinstance(result.exception, InvalidInput)
    assert said in str(result.exception)


def test_an_ending_of_several_numbers_asks_for_one_of_them() -> None:
    result = CliRunner().invoke(app, ["explain", "memory.total", EXAMPLE])
    assert isinstance(result.exception, InvalidInput)
    said = str(result.exception)
    assert "several numbers of this plan end in 'memory.total'" in said
    assert "workloads.chat.memory.total" in said
    assert "nothing is called" not in said
