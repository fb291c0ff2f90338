"""`cw accept`: formats, exit codes, and what it refuses."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from builders.acceptance import TWO_WORKERS, nccl_output
from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput


def run(*argv):
    return CliRunner().invoke(app, ["accept", *map(str, argv)])


def test_the_plan_is_text_markdown_or_json():
    text = run("plan", TWO_WORKERS)
    assert text.exit_code == 3, "claims without a test leave it incomplete"
    assert "Not covered by any test:" in text.output
    assert run("plan", TWO_WORKERS, "--format", "markdown").output.startswith("# Acceptance of two-workers\n")
    plan = json.loads(run("plan", TWO_WORKERS, "--format", "json").output)
    assert plan["schema"] == "clusterwright/acceptance-plan/v1"
    test = next(t for t in plan["tests"] if t["id"] == "dcgm-level-3")
    assert (test["rights"], test["providers"], test["exclusive"]) == ("root", ["provider"], True)
    assert test["argv"] == ["dcgmi", "diag", "-r", "3", "-j"]


def test_a_window_that_is_too_short_fails():
    done = run("plan", TWO_WORKERS, "--set", "acceptance.window=1 h")
    assert done.exit_code == 1
    assert "Does not fit the window:" in done.output


def test_after_a_replacement_the_plan_says_why_each_claim_is_stale():
    done = run("plan", TWO_WORKERS, "--replaced", "gpu-002")
    assert "Only what must be run again:" in done.output


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("plan", TWO_WORKERS, "--since", "x.tar"), "--replaced"),
        (("export", TWO_WORKERS, "out"), "choose one of"),
        (("export", TWO_WORKERS, "out", "--slurm", "--shell"), "choose one of"),
        (("export", TWO_WORKERS, "--slurm"), "the directory to write to"),
        (("export", TWO_WORKERS, "out", "--slurm", "--store", "object"), "NAME=VALUE"),
        (("import", TWO_WORKERS), "the directory that came back"),
        (("import", TWO_WORKERS, "nowhere"), "no such directory"),
    ],
)
def test_what_cannot_be_meant_is_refused(argv, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*argv)
    assert isinstance(done.exception, InvalidInput)
    assert said in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_an_empty_directory_imports_as_nothing_measured(tmp_path):
    done = run("import", TWO_WORKERS, tmp_path, "--format", "json")
    assert done.exit_code == 3
    found = json.loads(done.output)
    assert found["coverage"]["met"] == 0
    assert found["silent_nodes"] == ["gpu-001", "gpu-002"]
    assert all(c["next"] for c in found["claims"] if c["outcome"] == "not measured")


def test_plain_files_are_read_and_need_an_engine_to_count(tmp_path):
    (tmp_path / "note.txt").write_text("nothing that a tool prints\n", encoding="utf-8")
    found = json.loads(run("import", TWO_WORKERS, tmp_path, "--format", "json").output)
    assert found["others"][0]["path"] == "note.txt"
    assert found["others"][0]["what"].startswith("not read")


def test_a_directory_that_holds_something_needs_force(tmp_path):
    (tmp_path / "mine").write_text("x", encoding="utf-8")
    refused = run("export", TWO_WORKERS, tmp_path, "--shell")
    assert "not empty" in str(refused.exception)
    assert run("export", TWO_WORKERS, tmp_path, "--shell", "--force").exit_code == 0
    assert (tmp_path / "mine").read_text(encoding="utf-8") == "x"
    assert (tmp_path / "run.sh").stat().st_mode & 0o111


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    """A bundle with the in-node bandwidth of both nodes, exported from a store."""
    monkeypatch.chdir(tmp_path)
    for node in ("gpu-001", "gpu-002"):
        (tmp_path / f"{node}.txt").write_text(nccl_output(host=node), encoding="utf-8")
        added = ("evidence", "add", f"{node}.txt", "--nodes", node, "--engine", "kubernetes")
        done = CliRunner().invoke(app, added)
        assert done.exit_code == 0, (done.output, done.exception)
    done = CliRunner().invoke(app, ["evidence", "export", "b.tar"])
    assert done.exit_code == 0, (done.output, done.exception)
    return tmp_path / "b.tar"


def test_since_a_bundle_only_what_the_replaced_node_made_stale_is_planned(bundle):
    done = run("plan", TWO_WORKERS, "--since", bundle, "--replaced", "gpu-002", "--format", "json")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    plan = json.loads(done.output)
    assert list(plan["again"]) == ["all-reduce-in-node"]
    assert {t["id"] for t in plan["tests"]} >= {"collective-in-node"}
    assert not {t["id"] for t in plan["tests"]} & {"collective-all", "sustained-load", "checkpoint", "rdma-write"}
    units = next(t for t in plan["tests"] if t["id"] == "collective-in-node")
    assert "gpu-002" in json.dumps(units)
    assert "gpu-001" not in json.dumps(units)


def test_since_a_file_that_is_no_bundle_is_refused(bundle, tmp_path):
    (tmp_path / "x.tar").write_text("no bundle", encoding="utf-8")
    done = run("plan", TWO_WORKERS, "--since", tmp_path / "x.tar", "--replaced", "gpu-002")
    assert isinstance(done.exception, InvalidInput)


@pytest.mark.parametrize(("engine", "warned"), [("--shell", True), ("--slurm", True), ("--kubernetes", False)])
def test_an_export_for_an_engine_that_the_file_does_not_declare_is_written_with_a_warning(engine, warned, tmp_path):
    done = run("export", TWO_WORKERS, tmp_path / "out", engine)
    assert done.exit_code == 0
    assert ("these results will not count" in done.stderr) == warned
    assert ("declares the engine kubernetes" in done.stderr) == warned
