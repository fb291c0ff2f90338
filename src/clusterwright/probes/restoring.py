"""Write one checkpoint with several processes at once, flush it, and restore it past the page cache.

    python3 checkpoint.py --directory DIR --bytes N [--processes P] [--block BYTES]

Exported as one file that needs nothing but Python 3.8 or later. Every process writes its share with O_DIRECT where the
file system takes it, calls fsync, and reads the file of its neighbour back, comparing every block. One line of JSON on
standard output; times are seconds, moments are seconds since 1970 UTC:

    {"format": "clusterwright-checkpoint/1", "node": "gpu-001", "directory": "/lustre/x", "filesystem": "lustre",
     "processes": 8, "bytes": 112000000000, "block": 16777216, "error": "",
     "write":   {"started": 1.0, "ended": 2.0, "seconds": 1.0, "direct": true, "ranks": [{"rank": 0, "bytes": 1, ...}]},
     "restore": {"started": 2.0, "ended": 3.0, "seconds": 1.0, "direct": true, "verified": true, "ranks": [...]}}

`seconds` runs from the moment in which all processes were let go until the last one was done, fsync included.
"""

from __future__ import annotations

import argparse
import json
import mmap
import multiprocessing
import os
import socket
import sys
import time
from typing import Any

FORMAT = "clusterwright-checkpoint/1"
#: O_DIRECT wants sizes and addresses that are multiples of this. Source: open(2), NOTES.
ALIGNMENT = 4096
_STAMP = 16


def block_of(rank: int, number: int, base: bytes) -> bytes:
    """The block that must stand at this place of a process's file."""
    return f"{rank % 10**8:08d}{number % 10**8:08d}".encode() + base[_STAMP:]


def open_direct(path: str, flags: int) -> tuple[int, bool]:
    """A file descriptor, and whether it goes past the page cache."""
    direct = getattr(os, "O_DIRECT", 0)
    if direct:
        try:
            return os.open(path, flags | direct, 0o600), True
        except OSError:
            pass
    return os.open(path, flags, 0o600), False


def write_share(path: str, rank: int, size: int, base: bytes) -> dict[str, Any]:
    """Write and flush one process's file, block by block from `base` with a stamp of its own in each."""
    block = len(base)
    buffer = mmap.mmap(-1, block)  # aligned to a page
    began = time.time()
    handle, direct = open_direct(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        buffer[:] = base
        written, number = 0, 0
        while written < size:
            length = min(block, size - written)
            buffer[:_STAMP] = block_of(rank, number, base)[:_STAMP]
            _write_all(handle, memoryview(buffer)[:length])
            written += length
            number += 1
        flushing = time.time()
        os.fsync(handle)
        ended = time.time()
    finally:
        os.close(handle)
    return {
        "rank": rank, "bytes": written, "seconds": ended - began, "fsync_seconds": ended - flushing,
        "direct": direct, "ended": ended,
    }  # fmt: skip


def _write_all(handle: int, view: memoryview) -> None:
    while len(view):
        view = view[os.write(handle, view) :]


def read_share(path: str, rank: int, size: int, base: bytes) -> dict[str, Any]:
    """Read one process's file and compare every block; what the page cache holds of it is dropped first."""
    block = len(base)
    handle, direct = open_direct(path, os.O_RDONLY)
    try:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        buffer = mmap.mmap(-1, block)
        began = time.time()
        seen, number, wrong = 0, 0, 0
        while seen < size:
            length = min(block, size - seen)
            if os.readv(handle, [memoryview(buffer)[:length]]) != length:
                wrong += 1
                break
            if buffer[:length] != block_of(rank, number, base)[:length]:
                wrong += 1
            seen += length
            number += 1
        ended = time.time()
    finally:
        os.close(handle)
    return {"rank": rank, "bytes": seen, "seconds": ended - began, "direct": direct, "wrong": wrong, "ended": ended}


def _work(task: str, path: str, rank: int, size: int, base: bytes, barrier: Any, queue: Any) -> None:
    try:
        barrier.wait(120)
        result = (write_share if task == "write" else read_share)(path, rank, size, base)
    except Exception as error:  # noqa: BLE001  # the parent reports it
        result = {"rank": rank, "error": f"{type(error).__name__}: {error}"}
    queue.put(result)


def run_together(task: str, paths: list[tuple[str, int]], size: int, base: bytes) -> dict[str, Any]:
    """Let one process per file do the task at the same time, and say how long all of them took."""
    context = multiprocessing.get_context("fork")
    barrier, queue = context.Barrier(len(paths) + 1), context.Queue()
    workers = [
        context.Process(target=_work, args=(task, path, rank, size, base, barrier, queue)) for path, rank in paths
    ]
    for worker in workers:
        worker.start()
    barrier.wait(120)
    started = time.time()
    ranks = sorted((queue.get() for _ in workers), key=lambda r: r["rank"])
    for worker in workers:
        worker.join()
    failed = [r["error"] for r in ranks if "error" in r]
    if failed:
        raise OSError(failed[0])
    ended = max(r.pop("ended") for r in ranks)
    result = {
        "started": started, "ended": ended, "seconds": ended - started,
        "direct": all(r.pop("direct") for r in ranks), "ranks": ranks,
    }  # fmt: skip
    if task == "restore":
        result["verified"] = all(not r.pop("wrong") for r in ranks)
    return result


def filesystem_of(path: str) -> str:
    """Type of the file system below a path, "" when the system does not say."""
    found, longest = "", -1
    try:
        with open("/proc/self/mounts") as file:
            for line in file:
                fields = line.split()
                point = fields[1].replace("\\040", " ")
                inside = os.path.realpath(path).startswith(point.rstrip("/") + "/") or point == "/"
                if inside and len(point) > longest:
                    found, longest = fields[2], len(point)
    except (OSError, IndexError):
        return ""
    return found


def measure(directory: str, total: int, processes: int, block: int) -> dict[str, Any]:
    """Write and restore one checkpoint; what was written is removed."""
    size = -(-total // processes // ALIGNMENT) * ALIGNMENT
    seen = {
        "format": FORMAT, "node": os.environ.get("CW_NODE") or socket.gethostname().split(".")[0],
        "directory": directory, "filesystem": filesystem_of(directory), "processes": processes,
        "bytes": size * processes, "block": block, "error": "",
    }  # fmt: skip
    paths = [os.path.join(directory, f"checkpoint.{rank}") for rank in range(processes)]
    base = os.urandom(block)  # nothing that a store could compress or share
    try:
        seen["write"] = run_together("write", [(p, r) for r, p in enumerate(paths)], size, base)
        turned = [(paths[(r + 1) % processes], (r + 1) % processes) for r in range(processes)]
        seen["restore"] = run_together("restore", turned, size, base)
    except (OSError, ValueError) as error:
        seen["error"] = str(error) or type(error).__name__
    for path in paths:
        if os.path.exists(path):
            os.unlink(path)
    return seen


def main(argv: list[str] | None = None) -> int:
    """Entry point; exit code 1 when anything failed, with the reason in the output."""
    parser = argparse.ArgumentParser(description="Write and restore one checkpoint.")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--bytes", type=int, required=True, help="of the whole checkpoint on this node")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--block", type=int, default=16 << 20)
    asked = parser.parse_args(argv)
    if asked.bytes < 1 or asked.processes < 1 or asked.block < ALIGNMENT or asked.block % ALIGNMENT:
        parser.error(f"bytes and processes must be positive, block a multiple of {ALIGNMENT}")
    seen = measure(asked.directory, asked.bytes, asked.processes, asked.block)
    sys.stdout.write(json.dumps(seen) + "\n")
    return 1 if seen["error"] or not seen["restore"]["verified"] else 0


if __name__ == "__main__":
    sys.exit(main())
