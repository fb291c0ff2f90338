"""`cw prove` from outside: the example, twice in a row, interrupted, killed, and clusters that cannot be rehearsed."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.local

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "two-workers" / "cluster.yaml"
NAMES = ("scheduled-execution", "worker-loss")
GOLDEN = ROOT / "tests" / "golden" / "two-workers-not-measured.txt"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "clusterwright.cli.main", "prove", *map(str, arguments)]


def prove(*arguments: str | Path, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False)


def report(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "report.json").read_text())
    return found


def processes_of(out: Path) -> Iterator[str]:
    """Command lines of processes that know the directory from their arguments or environment."""
    mark = str(out).encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            known = words + (process / "environ").read_bytes()
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
        if mark in known and process.name != str(os.getpid()):
            yield words.replace(b"\0", b" ").decode(errors="replace")


def assert_no_process(out: Path, within_s: float = 0.0) -> None:
    deadline = time.monotonic() + within_s
    while list(processes_of(out)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(processes_of(out)) == []


def assert_free(out: Path) -> None:
    """Nobody owns the directory, and nothing in it looks like a lock or half a file."""
    handle = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)
    assert {p.name for p in out.iterdir()} <= {"report.json", "report.html", "rehearsals"}


def test_the_example_is_incomplete_and_nothing_else_twice_in_a_row(tmp_path: Path) -> None:
    out = tmp_path / "proof"
    for _ in range(2):
        ended = prove(EXAMPLE, "--out", out)
        assert ended.returncode == 3, ended.stderr + ended.stdout
        found = report(out)
        assert found["exit_code"] == 3
        assert [r["outcome"] for r in found["rehearsals"]] == ["passed", "passed"], ended.stderr
        assert all(c["holds"] for r in found["rehearsals"] for c in r["checks"])
        unmeasured = [v["id"] for v in found["verdicts"] if v["outcome"] == "not measured"]
        assert unmeasured == GOLDEN.read_text().split()
        assert found["review"]["findings"] == [f for f in found["review"]["findings"] if f["severity"] != "error"]
        assert found["seconds"] < 60
        assert_no_process(out)
        assert_free(out)
    columns = {v["id"]: (v["rehearsal"], v["rehearsed"]) for v in found["verdicts"] if v["rehearsal"] != "not run"}
    assert set(columns) == {"tasks-land-as-declared", "finetune-detection", "finetune-recovery", "finetune-lost-work"}
    assert columns["tasks-land-as-declared"] == ("passed", "100% on virtual nodes; target at least 100%")
    assert "checkpoints every 1 s; target at most 30 min" in columns["finetune-lost-work"][1]
    loss = found["rehearsals"][1]
    assert "of work done again with checkpoints every 1 s here; chat-0 finds no place" in loss["reason"]
    names = {c["name"]: c for c in loss["checks"]}
    assert names["agrees with the plan"]["expected"].startswith("without gpu-001 the job finds GPUs again on gpu-002")
    assert names["agrees with the plan"]["seen"] == "without gpu-001 finetune works again on gpu-002"
    assert names["chat: replicas apart"]["seen"] == "chat-1 on gpu-002"
    assert [m["kind"] for m in loss["timeline"] if m["kind"] != "event"] == ["loss", "noticed", "recovered"]
    assert [r["log_directory"] for r in found["rehearsals"]] == [f"rehearsals/{n}" for n in NAMES]
    assert all((out / r["log_directory"] / "state").is_dir() for r in found["rehearsals"])
    assert "two-workers: nothing fails" in ended.stdout
    assert "proves nothing about the declared cluster" in ended.stdout
    assert len(ended.stdout.splitlines()) < 45, ended.stdout
    assert "worker-loss" not in ended.stdout.splitlines()[0]
    html = (out / "report.html").read_text()
    assert html.startswith("<!DOCTYPE html>")
    assert "finetune-lost-work" in html


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, "rehearse scheduled execution …"),
        (signal.SIGTERM, "virtual nodes are up"),
        (signal.SIGINT, "killed with -9"),
    ],
)
def test_an_interruption_leaves_no_process_and_a_report_of_what_was_done(
    tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    out = tmp_path / "proof"
    running = subprocess.Popen(
        command(EXAMPLE, "--out", out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert any(moment in line for line in running.stderr), "the moment never came"
    running.send_signal(number)
    summary, rest = running.communicate(timeout=60)
    assert running.returncode == 130, rest
    assert "Traceback" not in rest
    found = report(out)
    assert found["interrupted"] == f"stopped by {number.name}"
    assert found["exit_code"] == 130
    assert summary.startswith(f"two-workers: stopped by {number.name}")
    states = {s["name"]: s["state"] for s in found["steps"]}
    assert states["review"] == "done"
    assert states["rehearse worker loss"] == "not run"
    assert all(v["outcome"] != "met" for v in found["verdicts"])
    assert_no_process(out, within_s=10.0)
    assert_free(out)


def test_a_signal_before_anything_was_read_is_an_interruption_too(tmp_path: Path) -> None:
    pipe = tmp_path / "cluster.yaml"
    os.mkfifo(pipe)  # nobody writes: whatever is done first takes for ever
    running = subprocess.Popen(
        command(pipe, "--out", tmp_path / "proof"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not catches(running.pid, signal.SIGTERM) and time.monotonic() < deadline:
        time.sleep(0.001)
    running.send_signal(signal.SIGTERM)
    out, rest = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, ""), rest
    assert "stopped by SIGTERM" in rest
    assert "Traceback" not in rest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cluster.yaml"]


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal (proc(5), SigCgt)."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(status["SigCgt"], 16) >> (number - 1) & 1)


def test_without_out_the_report_is_below_the_working_directory(tmp_path: Path) -> None:
    ended = subprocess.run(command(EXAMPLE), cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 3, ended.stderr
    assert [r["outcome"] for r in report(tmp_path / "proof" / "two-workers")["rehearsals"]] == ["passed", "passed"]
    assert ended.stdout.rstrip().endswith("proof/two-workers/report.html")


def test_a_killed_run_leaves_no_process_and_the_next_one_starts_clean(tmp_path: Path) -> None:
    out = tmp_path / "proof"
    running = subprocess.Popen(
        command(EXAMPLE, "--out", out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert any("virtual nodes are up" in line for line in running.stderr)
    running.kill()
    running.communicate()
    assert_no_process(out, within_s=20.0)
    assert not (out / "report.json").exists(), "nothing half done looks like a report"
    ended = prove(EXAMPLE, "--out", out)
    assert ended.returncode == 3, ended.stderr


def test_two_runs_never_write_into_one_directory(tmp_path: Path) -> None:
    out = tmp_path / "proof"
    out.mkdir()
    handle = os.open(out, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    ended = prove(EXAMPLE, "--out", out, "--skip-rehearsal")
    os.close(handle)
    assert ended.returncode == 2
    assert "another run writes its results there" in ended.stderr
    assert prove(EXAMPLE, "--out", out, "--skip-rehearsal").returncode == 3


def test_a_cluster_too_large_for_one_machine_is_proven_as_far_as_it_goes(tmp_path: Path) -> None:
    out = tmp_path / "proof"
    ended = prove(ROOT / "examples" / "training-1024" / "cluster.yaml", "--out", out)
    found = report(out)
    assert [r["outcome"] for r in found["rehearsals"]] == ["not run", "not run"]
    assert all(r["reason"].startswith("scope too small: 1") for r in found["rehearsals"])
    assert found["plan"] is not None
    assert ended.returncode == 3, ended.stderr
    assert "scope too small" in ended.stdout


def test_a_review_error_is_rehearsed_all_the_same_and_ends_with_1(tmp_path: Path) -> None:
    out = tmp_path / "proof"
    ended = prove(EXAMPLE, "--out", out, "--set", "software.profiles.gpu-node.fabric_manager=590.10")
    assert ended.returncode == 1, ended.stderr
    assert [r["outcome"] for r in report(out)["rehearsals"]] == ["passed", "passed"]
    assert "fabric" in ended.stdout.lower()


def test_without_rehearsal_the_report_says_so(tmp_path: Path) -> None:
    out = tmp_path / "proof"
    ended = prove(EXAMPLE, "--out", out, "--skip-rehearsal", "--format", "json")
    assert ended.returncode == 3
    printed = json.loads(ended.stdout)
    assert printed == report(out)
    assert [r["reason"] for r in printed["rehearsals"]] == ["left out on request (--skip-rehearsal)"] * 2
    later = [s for s in printed["steps"] if s["name"] in ("simulate", "render", "accept on hardware", "operate")]
    assert [s["state"] for s in later] == ["not run"] * 4
    assert all(s["reason"] for s in later)


def test_what_cannot_be_read_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    file, out = tmp_path / "cluster.yaml", tmp_path / "proof"
    file.write_text("apiVersion: clusterwright/v1alpha1\ncluster: x\npool: {}\n")
    ended = prove(file, "--out", out)
    assert ended.returncode == 2
    assert "cluster.yaml:3" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    assert not out.exists()


def test_results_go_where_a_directory_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = prove(EXAMPLE, "--out", tmp_path / "file", "--skip-rehearsal")
    assert ended.returncode == 2
    assert "cannot be used as a directory" in ended.stderr


@pytest.mark.parametrize("name", ["a b; $(x)", "../up", "'quoted\"", "ü" * 300])
def test_a_hostile_cluster_name_stays_a_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(f"apiVersion: clusterwright/v1alpha1\ncluster: {json.dumps(name)}\n")
    ended = subprocess.run(
        command(file, "--skip-rehearsal"), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode in (1, 3), ended.stderr
    (out,) = (tmp_path / "proof").iterdir()
    assert {p.name for p in out.iterdir()} == {"report.json", "report.html"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cluster.yaml", "proof"]
