"""`cw init` and `cw schema` as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from clusterwright.cli.documents import Template
from clusterwright.files.outputs import TEMPLATES, read_template


def run(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clusterwright.cli.main", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_init_writes_a_file_that_review_accepts(tmp_path: Path) -> None:
    done = run("init", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "cluster.yaml\n"
    assert (tmp_path / "cluster.yaml").read_text(encoding="utf-8") == read_template("two-workers")
    assert "cw review cluster.yaml" in done.stderr


@pytest.mark.parametrize("template", list(TEMPLATES))
def test_every_template_passes_review_without_errors(tmp_path: Path, template: str) -> None:
    directory = tmp_path / "a b; $(x)"
    done = run("init", str(directory), "--template", template, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"cw review '{directory}/cluster.yaml'" in done.stderr
    reviewed = run("review", str(directory), cwd=tmp_path)
    assert reviewed.returncode == 0, reviewed.stdout
    assert "\n0 errors, " in reviewed.stdout


def test_init_replaces_nothing_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("mine", encoding="utf-8")
    refused = run("init", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert (tmp_path / "cluster.yaml").read_text(encoding="utf-8") == "mine"
    assert run("init", "--force", cwd=tmp_path).returncode == 0
    assert (tmp_path / "cluster.yaml").read_text(encoding="utf-8") == read_template("two-workers")


def test_init_names_the_templates(tmp_path: Path) -> None:
    done = run("init", "--template", "laptop", cwd=tmp_path)
    assert done.returncode == 2
    assert all(name in done.stderr for name in TEMPLATES)


def test_schema_prints_json_schema_and_nothing_else(tmp_path: Path) -> None:
    done = run("schema", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    Draft202012Validator.check_schema(json.loads(done.stdout))


def test_the_command_offers_exactly_the_templates_there_are() -> None:
    assert [t.value for t in Template] == list(TEMPLATES)
