"""cw lint-thresholds on files, options and wrong input."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterwright.cli.main import app

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(*arguments):
    return CliRunner().invoke(app, ["lint-thresholds", *map(str, arguments)])


def test_the_example_has_two_sound_thresholds_and_each_fault_once():
    result = run(EXAMPLES / "thresholds" / "collectives.yaml", "--format", "json")
    assert result.exit_code == 1
    (file,) = json.loads(result.stdout)
    assert {t["name"]: [f["rule"] for f in t["findings"]] for t in file["thresholds"]} == {
        "in a node": [],
        "over two nodes": [],
        "beyond the link": ["floor-unattainable"],
        "four slow ports": ["floor-unattainable"],
        "toothless": ["floor-vacuous"],
        "without size": ["floor-size-missing"],
        "bits or bytes": ["floor-unit-suspect"],
    }


def test_an_architecture_is_linted_through_its_review():
    result = run(EXAMPLES / "two-workers" / "cluster.yaml")
    assert result.exit_code == 0, result.output
    assert "18 requirements, 0 findings" in result.stdout


def test_a_broken_architecture_gives_the_rule_of_the_review():
    result = run(EXAMPLES / "broken" / "floor-vacuous.yaml")
    assert result.exit_code == 1
    assert "[floor-vacuous]" in result.stdout


def test_a_table_in_csv_says_the_line_of_what_is_wrong(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("name,gpu,operation,message_size,at_least\na,h100-sxm-80,all_reduce_perf,16 GiB,430 GB/s\n")
    assert run(table).exit_code == 0
    table.write_text("name,gpu,operation,message_size,at_least\na,h100,all-reduce,16 GiB\n")
    result = run(table)
    assert (result.exit_code, "t.csv:2" in str(result.exception)) == (2, True) or "t.csv:2" in result.output + str(
        result.exception
    )


@pytest.mark.parametrize("text", ["", "[]", "a: [1]", "- 3", "a: &x {gpu: *x", "\t- x", "hello"])
def test_what_holds_no_threshold_is_invalid(tmp_path, text):
    table = tmp_path / "t.yaml"
    table.write_text(text)
    result = run(table)
    assert result.exit_code != 0
    assert "Traceback" not in result.output
    assert type(result.exception).__name__ in ("InvalidInput", "SystemExit")


def test_one_threshold_can_be_given_as_options():
    given = ("--shape", "hgx-h100-sxm-8", "--operation", "all-reduce", "--message-size", "16 GiB")
    assert run(*given, "--at-least", "430 GB/s").exit_code == 0
    assert run(*given, "--at-least", "800 GB/s").exit_code == 1
    assert run(*given, "--nodes", "2", "--at-least", "300 GB/s").exit_code == 3
