"""`cw plan`: formats, derivations, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from builders.plans import BASE

TEXT = BASE.replace("llama-70b", "meta-llama/Llama-3.3-70B-Instruct").replace("llama-8b", "meta-llama/Llama-3.1-8B")
TEXT = TEXT.replace("hgx-h100", "hgx-h100-sxm-8")


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "a file's name.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return str(file)


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clusterwright.cli.main", "plan", *argv], capture_output=True, text=True, check=False
    )


def test_a_plan_that_holds_exits_0(path: str) -> None:
    done = run(path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("test: everything planned holds")


def test_what_does_not_hold_exits_1(path: str) -> None:
    assert run(path, "--set", "workloads.chat.serve.rate=60 req/s").returncode == 1


def test_what_cannot_be_planned_exits_3_and_misfits_weigh_more(path: str) -> None:
    gap = ("--set", "storage.stores.object.read=")
    assert run(path, *gap).returncode == 3
    assert run(path, *gap, "--set", "workloads.chat.serve.rate=60 req/s").returncode == 1


def test_json_is_one_document(path: str) -> None:
    values = json.loads(run(path, "--format", "json").stdout)
    assert values["cluster"] == "test"
    assert values["figures"]["payload_rate"]["unit"] == "GB/s"


def test_a_derivation_goes_down_to_the_file(path: str) -> None:
    done = run(path, "--explain", "chat.payload_plan.required_rate")
    assert done.returncode == 0
    assert "a file's name.yaml:" in done.stdout


def test_a_derivation_is_json_when_asked(path: str) -> None:
    values = json.loads(run(path, "--explain", "chat.payload_plan.required_rate", "--format", "json").stdout)
    assert values["name"] == "workloads.chat.payload_plan.required_rate"
    assert {i["name"] for i in values["inputs"]} >= {"workloads.chat.payload.within"}


def test_a_wrong_figure_ends_with_the_few_nearest(path: str) -> None:
    done = run(path, "--explain", "chat.replica_rat")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[0].endswith("no figure is called 'chat.replica_rat'; did you mean one of these?")
    assert lines[1] == "  workloads.chat.service.replica_rate"
    assert len(lines) <= 7


def test_the_text_keeps_to_the_width_of_the_terminal(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    narrow = run(path).stdout.splitlines()
    assert max(map(len, narrow)) <= 70
    monkeypatch.setenv("COLUMNS", "20")
    assert 60 >= max(map(len, (line for line in run(path).stdout.splitlines() if len(line.split()) > 1))) > 20
