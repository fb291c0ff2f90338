"""Finding and killing processes that do not want to be found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterwright.engines.local import fences, reaping, shim
from clusterwright.engines.local.fences import Owner
from clusterwright.engines.local.identities import Identity, alive, read_stat, send_signal
from clusterwright.engines.local.layout import SHIM, TAG
from clusterwright.engines.local.reaping import Quarry

from .conftest import processes_naming
from .test_chaos import HYDRA, within

pytestmark = pytest.mark.local

SPAWN = (sys.executable, "-I", "-S")
#: How a shim ends: killed itself, or with the last process below it, if that had started and was killed before.
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


def identity(pid: int) -> Identity:
    stat = read_stat(pid)
    assert stat is not None
    return stat.identity


@pytest.fixture
def tag() -> Iterator[str]:
    mine = f"{uuid.uuid4().hex}/"
    yield mine
    assert reaping.kill_all(Quarry((mine,)), timeout_s=10)


def start_shim(directory: Path, tag: str, *argv: str, epoch: int = 1) -> tuple[subprocess.Popen[bytes], int]:
    read_end, write_end = os.pipe()
    fence = str(fences.fence_path(str(directory)))
    command = [*SPAWN, shim.__file__, str(epoch), fence, str(directory), str(write_end), str(directory), "--", *argv]
    environment = {
        **os.environ,
        TAG: f"{tag}job/1/{epoch}/0",
        SHIM: "1",
        "CLUSTERWRIGHT_EPOCH": str(epoch),
        "RANK": "0",
    }
    process = subprocess.Popen(command, env=environment, pass_fds=[write_end], start_new_session=True)
    os.close(write_end)
    return process, read_end


def owner(tag: str, job: str = "1") -> Owner:
    return Owner(tag.split("/")[0], job)


def heard(read_end: int) -> str:
    with open(read_end, encoding="utf-8") as pipe:
        return pipe.read().strip()


def test_everything_a_shim_started_is_found_and_killed(tmp_path: Path, tag: str) -> None:
    fences.open_epoch(str(tmp_path), owner(tag), 1)
    exclusive = tmp_path / "exclusive"
    process, _ = start_shim(tmp_path, tag, *SPAWN, str(HYDRA), str(exclusive), str(tmp_path / "stop"))
    kinds = {"main", "session", "daemon", "nameless"}
    within(20, lambda: exclusive.exists() and {s.split()[3] for s in exclusive.read_text().splitlines()} == kinds, "up")
    pids = {int(line.split()[2]) for line in exclusive.read_text().splitlines()}
    assert {f.identity.pid for f in reaping.find(Quarry((tag,)))} >= pids
    assert reaping.kill_all(Quarry((tag,)), timeout_s=20)
    assert process.wait() in KILLED
    assert not any(alive(identity(p)) for p in pids if read_stat(p))


#: Forks children without environment or parent, as fast as it can, until it is killed.
SPAWNER = """
import os, sys
while True:
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            os.execve("/bin/sleep", ["sleep", "600", sys.argv[1]], {})
        os._exit(0)
    os.wait()
"""


def test_nothing_escapes_that_starts_while_it_is_being_killed(tmp_path: Path, tag: str) -> None:
    for _ in range(5):
        epoch = fences.open_epoch(str(tmp_path), owner(tag), 1)
        mark = f"0.{uuid.uuid4().int}"  # sleep adds its arguments up, so that it can carry a mark
        process, _ = start_shim(tmp_path, tag, *SPAWN, "-c", SPAWNER, mark, epoch=epoch)
        within(20, lambda mark=mark: len(processes_naming(mark)) > 20, "many children")
        assert reaping.kill_all(Quarry((f"{tag}job/1/{epoch}/",)), timeout_s=30)
        process.wait()
        escaped = processes_naming(mark)
        for pid in escaped:
            os.kill(pid, signal.SIGKILL)
        assert escaped == {}


def test_a_known_root_is_enough_where_tags_are_gone(tmp_path: Path, tag: str) -> None:
    fences.open_epoch(str(tmp_path), owner(tag), 1)
    process, _ = start_shim(tmp_path, tag, *SPAWN, "-c", "import time; time.sleep(600)")
    assert reaping.kill_all(Quarry(roots=frozenset({identity(process.pid)})), timeout_s=20)
    assert process.wait() in KILLED


def test_a_prefix_does_not_match_a_longer_number(tmp_path: Path, tag: str) -> None:
    process = subprocess.Popen(["sleep", "600"], env={TAG: f"{tag}job/11/1/0"})
    within(5, lambda: reaping.find(Quarry((tag,))), "tagged")
    assert reaping.kill_all(Quarry((f"{tag}job/1/",)), timeout_s=5)
    assert process.poll() is None
    process.kill()
    process.wait()


def test_another_clusters_processes_are_left_alone(tag: str) -> None:
    process = subprocess.Popen(["sleep", "600"], env={TAG: "other/job/1/1/0"})
    assert reaping.kill_all(Quarry((tag,)), timeout_s=5)
    assert process.poll() is None
    process.kill()
    process.wait()


def test_a_child_of_the_supervisor_without_tag_is_a_stray(tag: str) -> None:
    supervisor = subprocess.Popen(
        [*SPAWN, "-c", "import os, time; os.fork() or os.execve('/bin/sleep', ['sleep', '600'], {}); time.sleep(600)"],
        env={TAG: f"{tag}supervisor/"},
    )
    known = identity(supervisor.pid)
    quarry = Quarry((f"{tag}job/",), supervisor=known)
    within(10, lambda: reaping.find(quarry), "the stray")
    assert reaping.kill_all(quarry, timeout_s=10)
    assert supervisor.poll() is None
    supervisor.kill()
    supervisor.wait()


def test_a_process_that_cannot_be_found_dead_makes_it_give_up_at_the_deadline(tag: str) -> None:
    process = subprocess.Popen(["sleep", "600"], env={TAG: f"{tag}x"})
    within(5, lambda: reaping.find(Quarry((tag,))), "tagged")
    looks: list[int] = []
    assert not reaping.kill_all(Quarry((tag,)), timeout_s=-1.0, progress=looks.append)
    assert looks == [1]
    process.wait()


def test_a_signal_never_reaches_a_reused_pid(tag: str) -> None:
    process = subprocess.Popen(["sleep", "600"])
    real = identity(process.pid)
    assert not send_signal(Identity(real.pid, real.starttime - 1), signal.SIGKILL)
    assert process.poll() is None
    assert send_signal(real, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (lambda d, o: None, "no epoch file"),
        (lambda d, o: os.mkfifo(fences.fence_path(d)), "no epoch file"),
        (lambda d, o: fences.open_epoch(d, o, 2), "says 2 open"),
        (lambda d, o: (fences.open_epoch(d, o, 1), fences.stop_epoch(d, o)), "says 1 closing"),
        (lambda d, o: (fences.open_epoch(d, o, 1), fences.close_epoch(d, o)), "says 1 closed"),
        (lambda d, o: fences.open_epoch(d, Owner("other", "1"), 1), "says 1 open (job 1 of other)"),
        (lambda d, o: fences.open_epoch(d, Owner(o.cluster, "2"), 1), "says 1 open (job 2"),
    ],
    ids=["missing", "pipe", "newer", "closing", "closed", "other cluster", "other job"],
)
def test_a_shim_refuses_an_epoch_that_is_over(tmp_path: Path, tag: str, prepare, why: str) -> None:  # type: ignore[no-untyped-def]
    prepare(str(tmp_path), owner(tag))
    process, pipe = start_shim(tmp_path, tag, "touch", str(tmp_path / "ran"))
    line = heard(pipe)
    assert line.startswith("error refused")
    assert why in line
    assert process.wait() == 1
    assert (tmp_path / "exit").read_text().strip() == line
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("code", "line"),
    [("raise SystemExit(7)", "code 7"), ("import os; os.kill(os.getpid(), 9)", "signal 9"), ("pass", "code 0")],
)
def test_a_shim_records_how_its_rank_ended(tmp_path: Path, tag: str, code: str, line: str) -> None:
    fences.open_epoch(str(tmp_path), owner(tag), 1)
    process, pipe = start_shim(tmp_path, tag, *SPAWN, "-c", code)
    assert heard(pipe) == line
    process.wait()
    assert (tmp_path / "exit").read_text() == f"{line}\n"


def test_a_shim_passes_signals_on_and_default_actions_are_restored(tmp_path: Path, tag: str) -> None:
    fences.open_epoch(str(tmp_path), owner(tag), 1)
    process, pipe = start_shim(tmp_path, tag, "sleep", "600")
    within(10, lambda: any(not f.shim for f in reaping.find(Quarry((tag,)))), "the rank")
    process.send_signal(signal.SIGTERM)
    assert heard(pipe) == "signal 15"
    assert process.wait() == 128 + 15


def test_a_rank_dies_with_its_shim(tmp_path: Path, tag: str) -> None:
    fences.open_epoch(str(tmp_path), owner(tag), 1)
    process, _ = start_shim(tmp_path, tag, "sleep", "600")
    within(10, lambda: len(reaping.find(Quarry((tag,)))) == 2, "the rank")
    process.kill()
    process.wait()
    within(10, lambda: not reaping.find(Quarry((tag,))), "the rank gone")
