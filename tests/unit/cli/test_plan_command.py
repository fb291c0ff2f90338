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


def test_a_wrong_figure_names_the_nearest_and_all(path: str) -> None:
    done = run(path, "--explain", "chat.replica_rat")
    assert done.returncode == 2
    assert "did you mean workloads.chat.service.replica_rate" in done.stderr
    assert "\n  workloads.finetune.training.time_to_target" in done.stderr
