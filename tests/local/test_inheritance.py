"""What the shell of `cw up` has in its environment, its directory and its open files stays there."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterwright.app.running import start_cluster
from clusterwright.model.jobs import NodeSpec

from .conftest import processes_naming

pytestmark = pytest.mark.local

LOOK = "import json, os; print(json.dumps([dict(os.environ), sorted(map(int, os.listdir('/proc/self/fd')))]))"
PROCESSES = ("supervisor", "controlplane", "agent")


class Shell:
    """Runs `cw` as installed, with an environment and a working directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.state = directory, directory / "state"
        self.environment = {**os.environ, "CLUSTERWRIGHT_STATE": str(self.state)}

    def cw(self, *argv: str, files: tuple[int, ...] = (), **more: str) -> str:
        command = [str(Path(sys.executable).with_name("cw")), *argv]
        done = subprocess.run(
            command,
            env={**self.environment, **more},
            cwd=self.directory,
            pass_fds=files,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    def up(self, files: tuple[int, ...] = (), **more: str) -> None:
        self.cw("up", "--nodes", "n1", "--gpus", "1", "--detach", files=files, **more)

    def look(self) -> tuple[dict[str, str], list[int]]:
        """The environment and the open files of a rank."""
        job = self.cw("submit", "--wait", "--", sys.executable, "-I", "-S", "-c", LOOK).strip()
        environment, files = json.loads(self.cw("logs", job, "--rank", "0"))
        return environment, files


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    found = Shell(tmp_path)
    yield found
    found.cw("down", "--grace", "0 s")
    assert processes_naming(str(tmp_path)) == {}


def test_a_job_gets_what_submit_passes_and_a_small_base_of_the_shell_that_started_the_cluster(shell: Shell) -> None:
    shell.up(SECRET_TOKEN="s3cret", PYTHONPATH="/of/up", LD_LIBRARY_PATH="/of/up", LC_TIME="C", TZ="Asia/Kolkata")
    shell.environment = {k: v for k, v in shell.environment.items() if k not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    environment, _ = shell.look()
    assert {"SECRET_TOKEN", "PYTHONPATH", "LD_LIBRARY_PATH"}.isdisjoint(environment)
    assert (environment["LC_TIME"], environment["TZ"]) == ("C", "Asia/Kolkata")
    assert environment["PATH"] == os.environ["PATH"]


def test_no_module_of_the_working_directory_or_of_pythonpath_is_run_by_a_process_of_the_cluster(shell: Shell) -> None:
    spoilt = shell.directory / "elsewhere"
    spoilt.mkdir()
    for directory in (shell.directory, spoilt):
        for module in ("asyncio", "selectors", "logging", "sqlalchemy", "uuid"):
            line = f"open({str(shell.directory / 'ran')!r}, 'a').write(__file__); raise SystemExit('spoilt')"
            (directory / f"{module}.py").write_text(line)
    sane = dict(shell.environment)
    # `cw` itself runs what its user's PYTHONPATH says; what it starts inherits the variable.
    code = (
        "import os, sys; from pathlib import Path; from clusterwright.app.running import start_cluster\n"
        "from clusterwright.model.jobs import NodeSpec\n"
        "os.environ['PYTHONPATH'] = sys.argv[2]\n"
        "start_cluster(Path(sys.argv[1]), [NodeSpec('n1', 1)], detach=True)\n"
    )
    command = [sys.executable, "-P", "-c", code, str(shell.state), str(spoilt)]
    done = subprocess.run(command, env=sane, cwd=shell.directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "n1    idle" in shell.cw("nodes")
    assert not (shell.directory / "ran").exists()


def test_a_lock_and_a_pipe_of_the_shell_are_not_held_by_the_cluster(shell: Shell) -> None:
    lock = os.open(shell.directory / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    read_end, write_end = os.pipe()
    shell.up(files=(lock, write_end))
    os.close(lock)
    os.close(write_end)
    os.set_blocking(read_end, False)
    assert os.read(read_end, 1) == b""  # the end of the file: nobody holds the other end
    os.close(read_end)
    again = os.open(shell.directory / "lock", os.O_RDWR)
    fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(again)
    _, files = shell.look()
    assert files[:3] == [0, 1, 2]
    assert len(files) == 4  # and the one that lists them


def test_a_supervisor_watches_a_lifeline_whose_number_is_beyond_what_select_takes(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with start_cluster(tmp_path / "state", [NodeSpec("n1", 1)]) as cluster:
            assert cluster.engine.nodes()[0].up
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert processes_naming(str(tmp_path)) == {}
