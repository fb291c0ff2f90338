"""`cw logs`: nothing lost, nothing late, nothing silently absent."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterwright.app.running import connect
from clusterwright.model.jobs import JobSpec, TaskGroup

from .conftest import processes_naming
from .test_running_commands import Shell

pytestmark = pytest.mark.local

#: Writes all bytes, broken UTF-8 and no last newline to both streams.
BYTES = "import os; os.write(1, bytes(range(256)) + b'out'); os.write(2, bytes(range(255, -1, -1)) + b'err')"
#: Shows progress as tqdm does, without a newline, until a file is there.
PROGRESS = (
    "import os, sys, time\nos.write(1, b'\\r 10%')\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"
    "os.write(1, b'\\r 20%\\n')"
)


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code, *arguments)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    directory = tmp_path_factory.mktemp("logs")
    found = Shell(directory / "state")
    found.cw("up", "--nodes", "n[1-2]", "--gpus", "2", "--detach")
    yield found
    found.cw("down", "--grace", "0 s")
    assert processes_naming(str(directory)) == {}


def submit(shell: Shell, *argv: str) -> str:
    return shell.cw("submit", *argv).stdout.strip()


def follow(shell: Shell, *argv: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(shell.command("logs", "-f", *argv), env=shell.environment, stdout=subprocess.PIPE)


def read(process: subprocess.Popen[bytes], until: bytes) -> bytes:
    """What it writes until a text has come; the test's own timeout is the deadline."""
    assert process.stdout is not None
    seen = b""
    while not seen.endswith(until):
        more = os.read(process.stdout.fileno(), 65536)
        assert more, seen
        seen += more
    return seen


def test_one_rank_alone_is_copied_byte_for_byte_each_stream_to_its_own(shell: Shell) -> None:
    job = submit(shell, "--gpus", "2", "--wait", "--", *python(BYTES))
    done = subprocess.run(
        shell.command("logs", job, "--rank", "1"), env=shell.environment, capture_output=True, check=True
    )
    assert done.stdout == bytes(range(256)) + b"out"
    assert done.stderr == bytes(range(255, -1, -1)) + b"err"


@pytest.mark.timeout(90)
def test_a_progress_bar_is_seen_before_it_ends_its_line(shell: Shell, tmp_path: Path) -> None:
    job = submit(shell, "--", *python(PROGRESS, str(tmp_path / "go")))
    with follow(shell, job, "--rank", "0") as alone, follow(shell, job) as named:
        assert read(alone, b"10%") == b"\r 10%"
        assert read(named, b"10%") == b"[0] \r[0]  10%"
        (tmp_path / "go").touch()
        assert alone.communicate(timeout=60)[0] == b"\r 20%\n"
        assert named.communicate(timeout=60)[0] == b"\r[0]  20%\n"


@pytest.mark.timeout(90)
def test_following_goes_on_into_the_next_attempt_and_repeats_nothing(shell: Shell, tmp_path: Path) -> None:
    code = "import os, sys, time\nn = os.environ['CLUSTERWRIGHT_ATTEMPT']\nprint('attempt', n, flush=True)\n"
    code += "while not os.path.exists(sys.argv[1]): time.sleep(0.02)\nsys.exit(n == '1')"
    group = TaskGroup(python(code, str(tmp_path / "go")))
    job = connect(shell.state).submit(JobSpec("job", (group,), max_restarts=1, backoff_s=0.01))
    with follow(shell, job) as process:
        read(process, b"[0] attempt 1\n")
        (tmp_path / "go").touch()
        assert process.communicate(timeout=60)[0] == b"[0] attempt 2\n"


def test_a_rank_that_is_not_there_is_an_error_that_names_those_that_are(shell: Shell) -> None:
    job = submit(shell, "--gpus", "2", "--wait", "--", "true")
    assert f"job {job} has no rank 99 in attempt 1; its ranks are 0 to 1" in shell.cw(
        "logs", job, "--rank", "99", code=2
    ).stderr  # fmt: skip
    assert f"job {job} has no rank 2; its ranks are 0 to 1" in shell.cw("logs", "-f", job, "--rank", "2", code=2).stderr


def test_a_job_that_has_not_started_says_so_and_why(shell: Shell) -> None:
    job = submit(shell, "--nodes", "3", "--", "true")
    done = shell.cw("logs", job)
    assert done.stdout == ""
    assert f"job {job} has written nothing: it has not started" in done.stderr
    assert "NEVER_FITS" in done.stderr
    shell.cw("cancel", job, "--wait")
    assert "cancelled before it started" in shell.cw("logs", job).stderr


def test_lines_as_json(shell: Shell) -> None:
    job = submit(shell, "--wait", "--", *python("print('a\\nb', end='')"))
    lines = [json.loads(line) for line in shell.cw("logs", job, "--format", "json").stdout.splitlines()]
    assert lines == [{"attempt": 1, "rank": 0, "stream": "stdout", "text": t} for t in ("a", "b")]


def test_a_hundred_megabytes_of_short_lines_cost_seconds_not_minutes(shell: Shell) -> None:
    job = submit(shell, "--wait", "--", "sh", "-c", "yes abcdefg | head -c 100000000")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with subprocess.Popen(shell.command("logs", job), env=shell.environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        written = sum(len(data) for data in iter(lambda: process.stdout.read(1 << 20), b""))
    assert written == 100_000_000 // 8 * (8 + len("[0] "))
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 10.0  # of CPU; it was 47 s line by line
