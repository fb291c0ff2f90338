"""`cw up|down|nodes|submit|queue|logs|cancel` as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterwright.engines.local.identities import read_identity
from clusterwright.engines.local.layout import Layout

from .conftest import processes_naming
from .test_chaos import within

pytestmark = pytest.mark.local

EXAMPLES = Path(__file__).parents[2] / "examples"


class Shell:
    """Runs `cw` with its own state directory."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.environment = {**os.environ, "CLUSTERWRIGHT_STATE": str(state)}

    def command(self, *argv: str) -> list[str]:
        return [sys.executable, "-m", "clusterwright.cli.entry", *argv]

    def cw(self, *argv: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(self.command(*argv), env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done

    def foreground(self, *argv: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command("up", *argv), env=self.environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    found = Shell(tmp_path / "state")
    yield found
    found.cw("down", "--grace", "0 s")
    assert processes_naming(str(tmp_path)) == {}


def test_a_whole_day_at_the_terminal(shell: Shell) -> None:
    shell.cw("up", "--nodes", "n[1-2]", "--gpus", "2", "--gpu-model", "h100", "--detach")
    assert shell.cw("nodes").stdout.splitlines() == [
        "NODE  STATE  GPUS  MODEL  KIND     AGENT  REASON",
        "n1    idle   0/2   h100   virtual  #1     -",
        "n2    idle   0/2   h100   virtual  #1     -",
        "virtual: the processes are real, the GPUs are not",
    ]
    long = shell.cw("submit", "--gpus", "2", "--nodes", "2", "--grace", "1 s", "--", "sleep", "600").stdout.strip()
    waiting = shell.cw("submit", "--gpus", "2", "--name", "it's; $(x)\n", "--", "true").stdout.strip()
    text = shell.cw("queue").stdout
    assert f"HARDWARE_WAIT: 0 h100 GPUs free, the job needs 1 × 2 GPUs; held by job {long}" in text
    assert "it's; $(x)\\n" in text
    (found,) = json.loads(shell.cw("queue", waiting, "--format", "json").stdout)
    assert found["blockers"][0]["numbers"]["needed_gpus"] == 2
    assert (found["position"], found["promise"]) == (1, None)
    text = shell.cw("why", waiting).stdout
    assert f"job {waiting} \"it's; $(x)\\n\" is PENDING, position 1 in queue 'default'" in text
    assert "needed_gpus 2, free_gpus 0" in text
    found = json.loads(shell.cw("why", waiting, "--format", "json").stdout)
    assert (found["job"], found["position"], found["blockers"][0]["holders"]) == (waiting, 1, [long])
    assert shell.cw("why", long).stdout == f'job {long} "sleep" is RUNNING; nothing keeps it from running\n'
    shell.cw("cancel", long, "--wait")
    done = shell.cw("submit", "--wait", "--gpus", "2", "--env", "A=b c", "--", "sh", "-c", 'echo "$RANK $A $PWD"')
    assert "SUCCEEDED" in done.stderr
    job = done.stdout.strip()
    here = Path.cwd()
    assert sorted(shell.cw("logs", job, "-f").stdout.splitlines()) == [f"[0] 0 b c {here}", f"[1] 1 b c {here}"]
    assert shell.cw("logs", job, "--rank", "1").stdout == f"1 b c {here}\n"
    line = json.loads(shell.cw("logs", job, "--rank", "0", "--format", "json").stdout)
    assert line == {"attempt": 1, "rank": 0, "stream": "stdout", "text": f"0 b c {here}"}
    text = shell.cw("queue", "--all").stdout
    assert "cancelled by its owner" in text


def test_a_failing_job_makes_wait_exit_1(shell: Shell) -> None:
    shell.cw("up", "--nodes", "n1", "--detach")
    done = shell.cw("submit", "--wait", "--", "sh", "-c", "echo no >&2; exit 3", code=1)
    assert "FAILED: rank 0 on n1: exit code 3" in done.stderr
    assert shell.cw("logs", done.stdout.strip()).stdout == "[0 err] no\n"


def test_mistakes_exit_2_with_the_valid_choices(shell: Shell) -> None:
    assert "no cluster is up" in shell.cw("queue", code=2).stderr
    assert "nothing to do" in shell.cw("down").stderr
    assert "--gpus" in shell.cw("up", "--nodes", "n1", "--gpus", "200000000", code=2).stderr
    assert "--nodes: range '3-1'" in shell.cw("up", "--nodes", "n[3-1]", code=2).stderr
    assert "not both" in shell.cw("up", "x.yaml", "--nodes", "n1", code=2).stderr
    shell.cw("up", "--nodes", "n1", "--detach")
    assert "no job '7'; there are no jobs yet" in shell.cw("logs", "7", code=2).stderr
    assert "--time-limit:" in shell.cw("submit", "--time-limit", "5 GB", "--", "true", code=2).stderr
    assert "write NOPE=VALUE" in shell.cw("submit", "--env", "NOPE", "--", "true", code=2).stderr
    assert "--nodes-min is 3, must be from 1 to 2" in shell.cw(
        "submit", "--nodes", "2", "--nodes-min", "3", "--", "true", code=2
    ).stderr  # fmt: skip
    assert "--gpus" in shell.cw("submit", "--gpus", "200000000", "--", "true", code=2).stderr
    assert "must be text" in shell.cw("submit", "--name", "\udcff", "--", "true", code=2).stderr
    assert "queue 'nope' does not exist" in shell.cw("submit", "--queue", "nope", "--", "true", code=2).stderr
    excluding = shell.cw("submit", "--exclude", "n1", "--", "true").stdout.strip()
    assert "NEVER_FITS: the job excludes the only node" in shell.cw("queue", excluding).stdout
    assert "already up" in shell.cw("up", "--nodes", "n1", "--detach", code=2).stderr


@pytest.mark.timeout(60)
def test_a_state_directory_that_cannot_be_used_is_named_at_once(shell: Shell, tmp_path: Path) -> None:
    def up(state: Path) -> str:
        began = time.monotonic()
        error = shell.cw("up", "--nodes", "n1", "--detach", "--state", str(state), code=2).stderr
        assert time.monotonic() - began < 15  # a start that waits gives up after 60 s
        assert "Traceback" not in error
        return error

    assert "bytes too long: SQLite opens files with at most 504 bytes" in up(tmp_path.joinpath(*["x" * 99] * 9))
    (tmp_path / "file").touch()
    assert "Not a directory" in up(tmp_path / "file" / "state")
    assert "File name too long" in up(tmp_path / ("x" * 300))
    (tmp_path / "spoilt").mkdir()
    (tmp_path / "spoilt" / "state.db").write_text("this is not a database, but it is long enough to be taken for one\n")
    assert "the control plane cannot begin: " in (error := up(tmp_path / "spoilt"))
    assert "state.db: cannot be used as state: file is not a database" in error


def test_a_program_whose_name_is_no_text_runs_under_a_readable_name(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "p\udcff"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o700)
    shell.cw("up", "--nodes", "n1", "--detach")
    job = shell.cw("submit", "--wait", "--", str(program)).stdout.strip()
    assert json.loads(shell.cw("queue", job, "--format", "json").stdout)[0]["spec"]["name"] == "p\ufffd"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_on_a_foreground_cluster_leaves_no_process(shell: Shell, number: signal.Signals) -> None:
    process = shell.foreground("--nodes", "n[1-2]", "--gpus", "1", "--grace", "0.2 s")
    assert process.stderr is not None
    assert "cluster is up: 2 nodes" in process.stderr.readline()
    shell.cw("submit", "--nodes", "2", "--", "sleep", "600")
    os.killpg(process.pid, number)
    assert process.wait(timeout=60) == 0
    process.stderr.close()
    assert processes_naming(str(shell.state)) == {}


def test_ctrl_c_while_it_starts_leaves_no_process(shell: Shell) -> None:
    process = shell.foreground("--nodes", "n[1-2]")
    assert process.stderr is not None
    within(60, lambda: read_identity(Layout(shell.state), "supervisor"), "the supervisor")
    os.killpg(process.pid, signal.SIGINT)
    process.wait(timeout=60)
    process.stderr.close()
    within(30, lambda: processes_naming(str(shell.state)) == {}, "everything gone")


def test_down_ends_a_foreground_cluster_which_says_so(shell: Shell) -> None:
    process = shell.foreground("--nodes", "n1")
    assert process.stderr is not None
    assert "cluster is up" in process.stderr.readline()
    shell.cw("down")
    assert process.wait(timeout=60) == 2
    assert "ended without being asked to here" in process.stderr.read()
    process.stderr.close()


def test_the_nodes_and_queues_of_a_file_are_started(shell: Shell) -> None:
    done = shell.cw("up", str(EXAMPLES / "two-workers" / "cluster.yaml"), "--detach")
    assert "virtual GPUs" in done.stderr
    found = json.loads(shell.cw("nodes", "--format", "json").stdout)
    assert [(n["spec"]["gpus"], n["spec"]["virtual"], n["state"]) for n in found] == [(8, True, "idle")] * 2
