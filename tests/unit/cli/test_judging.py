"""`cw judge` from the command line: exit codes, formats, standard input."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput

XID = "[  900.0] NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
LOG = "[    1.0] Linux version 6.8.0\n" + XID


def run(*arguments, given=None):
    result = CliRunner().invoke(app, ["judge", *arguments], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_a_lost_gpu_exits_1_and_says_what_to_do(tmp_path):
    file = tmp_path / "dmesg.txt"
    file.write_text(LOG)
    code, output = run(str(file), "--kind", "kernel-log")
    assert code == 1
    assert "what to do:" in output
    assert "Xid 79 at" in output


def test_standard_input_is_judged():
    code, output = run("-", "--kind", "kernel-log", given=LOG)
    assert code == 1
    assert "Xid 79" in output


def test_json_holds_everything(tmp_path):
    file = tmp_path / "dmesg.txt"
    file.write_text(LOG)
    code, output = run(str(file), "--format", "json", "--kind", "kernel-log")
    values = json.loads(output)
    assert code == values["exit_code"] == 1
    assert values["outputs"][0]["advice"][0]["what"] == "Xid 79"


def test_what_nobody_can_read_exits_3(tmp_path):
    file = tmp_path / "note.txt"
    file.write_text("hello\n")
    code, output = run(str(file))
    assert code == 3
    assert "refused" in output


def test_a_wrong_engine_is_invalid_input(tmp_path):
    file = tmp_path / "note.txt"
    file.write_text("hello\n")
    with pytest.raises(InvalidInput, match="slurm, kubernetes, local"):
        run(str(file), "--engine", "pbs")
