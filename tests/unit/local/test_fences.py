"""The epoch file: who may open, who has to wait, and what a disk that is full does to it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clusterwright.engines.local import fences
from clusterwright.engines.local.fences import DirectoryBusy, Owner
from clusterwright.engines.local.shim import read_fence

A, A2, B = Owner("a", "1", "/a\n"), Owner("a", "2"), Owner("b", "1")


def says(directory: Path) -> tuple[int, str, str, str] | None:
    return read_fence(str(fences.fence_path(str(directory))))


def test_numbers_grow_and_the_directory_holds_one_file(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "ckpt"
    assert fences.open_epoch(str(directory), A, 3) == 3
    fences.close_epoch(str(directory), A)
    assert fences.open_epoch(str(directory), B, 1) == 4
    assert says(directory) == (4, "open", "b", "1")
    assert os.listdir(directory) == [fences.NAME]


@pytest.mark.parametrize("end", [lambda d, o: None, fences.stop_epoch], ids=["open", "closing"])
def test_what_another_cluster_has_not_closed_is_refused_with_the_way_out(tmp_path: Path, end) -> None:  # type: ignore[no-untyped-def]
    fences.open_epoch(str(tmp_path), A, 1)
    end(str(tmp_path), A)
    before = says(tmp_path)
    for claim in (lambda: fences.open_epoch(str(tmp_path), B, 9), lambda: fences.settle(str(tmp_path), B)):
        with pytest.raises(DirectoryBusy, match=r"job 1 of another cluster, a \(state in /a\n on .*remove the file"):
            claim()
    assert says(tmp_path) == before
    fences.close_epoch(str(tmp_path), B)
    assert says(tmp_path) == before
    fences.close_epoch(str(tmp_path), A)
    assert fences.open_epoch(str(tmp_path), B, 1) == 2


def test_another_job_of_the_cluster_is_refused_until_its_epoch_is_over(tmp_path: Path) -> None:
    fences.open_epoch(str(tmp_path), A, 1)
    with pytest.raises(DirectoryBusy, match="job 1 has epoch 1 open there under another path"):
        fences.open_epoch(str(tmp_path), A2, 2)
    assert fences.open_epoch(str(tmp_path), A2, 2, lambda job, epoch: (job, epoch) == ("1", 1)) == 2


def test_the_owner_itself_may_open_the_next(tmp_path: Path) -> None:
    fences.open_epoch(str(tmp_path), A, 1)
    assert fences.open_epoch(str(tmp_path), A, 1) == 2


def test_settling_closes_what_the_owner_left_and_keeps_the_number(tmp_path: Path) -> None:
    fences.settle(str(tmp_path / "new"), A)
    assert says(tmp_path / "new") == (0, "closed", "a", "1")
    fences.open_epoch(str(tmp_path), A, 5)
    fences.settle(str(tmp_path), A)
    assert says(tmp_path) == (5, "closed", "a", "1")


@pytest.mark.parametrize("kind", ["pipe", "directory", "link", "garbage"])
def test_what_is_no_epoch_file_is_refused_at_once_and_needs_no_closing(tmp_path: Path, kind: str) -> None:
    path = fences.fence_path(str(tmp_path))
    makers = {
        "pipe": lambda: os.mkfifo(path),
        "directory": path.mkdir,
        "link": lambda: path.symlink_to("elsewhere"),
        "garbage": lambda: path.write_text("1 open"),
    }
    makers[kind]()
    fences.stop_epoch(str(tmp_path), A)
    fences.close_epoch(str(tmp_path), A)
    with pytest.raises(OSError, match="remove it"):
        fences.open_epoch(str(tmp_path), A, 1)


@pytest.mark.parametrize("path", ["gone", "file/ckpt"])
def test_closing_where_nothing_can_be_open_is_no_error(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    fences.close_epoch(str(tmp_path / path), A)


def test_a_file_that_was_made_and_never_written_is_as_good_as_none(tmp_path: Path) -> None:
    fences.fence_path(str(tmp_path)).touch()
    assert fences.open_epoch(str(tmp_path), A, 1) == 1


def test_of_many_clusters_at_once_one_wins(tmp_path: Path) -> None:
    """flock(2) tells open files apart, not processes: threads meet each other as clusters do."""
    start = threading.Barrier(8)

    def claim(cluster: str) -> bool:
        start.wait(10)
        try:
            return fences.open_epoch(str(tmp_path), Owner(cluster, "1"), 1) == 1
        except DirectoryBusy:
            return False

    names = [f"c{i}" for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        won = [n for n, w in zip(names, pool.map(claim, names), strict=True) if w]
    assert [says(tmp_path)] == [(1, "open", n, "1") for n in won]


def test_a_file_replaced_while_its_lock_was_waited_for_is_not_written(tmp_path: Path) -> None:
    """What is locked must still be what the path names."""
    path = fences.fence_path(str(tmp_path))
    fences.open_epoch(str(tmp_path), A, 1)
    with path.open("r+b") as old, ThreadPoolExecutor(1) as pool:
        fcntl.flock(old, fcntl.LOCK_EX)
        waiting = pool.submit(fences.open_epoch, str(tmp_path), B, 7)
        within(10, lambda: waits_for_lock(old.fileno()), "waiting for the lock")
        path.unlink()
        fcntl.flock(old, fcntl.LOCK_UN)
        assert waiting.result(10) == 7
        assert old.read(3) == b"1 o"
    assert says(tmp_path) == (7, "open", "b", "1")


def waits_for_lock(file: int) -> bool:
    """Whether /proc/locks has a waiter (`->`) for the file's inode."""
    inode = f":{os.fstat(file).st_ino} "
    return any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


def within(seconds: float, condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    directory = tmp_path / "small"
    directory.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(directory)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no permission to mount a small file system: {made.stderr.strip()}")
    yield directory
    subprocess.run(["umount", "-l", str(directory)], check=True)


def fill(directory: Path) -> None:
    with (directory / "ballast").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert shutil.disk_usage(directory).free == 0


def test_an_epoch_is_closed_and_the_next_opened_on_a_full_disk(small: Path) -> None:
    fences.open_epoch(str(small), A, 1)
    fill(small)
    fences.stop_epoch(str(small), A)
    fences.close_epoch(str(small), A)
    assert says(small) == (1, "closed", "a", "1")
    assert fences.open_epoch(str(small), A, 1) == 2


def test_a_first_epoch_on_a_full_disk_fails_and_leaves_nothing(small: Path) -> None:
    fill(small)
    with pytest.raises(OSError, match="No space left"):
        fences.open_epoch(str(small), A, 1)
    assert os.listdir(small) == ["ballast"]
