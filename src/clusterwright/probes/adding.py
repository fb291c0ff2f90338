"""All-reduce between processes of one node, on CPUs, over gloo (PyTorch) or MPI (mpi4py).

    python3 collective_cpu.py [--sizes BYTES,BYTES] [--ranks N] [--rounds N]

Exported as one file. It says nothing about GPUs or their links, and its numbers are labelled so. Exit code 69 (no such
tool) where neither torch nor mpi4py with mpirun is installed. One line of JSON:

    {"format": "clusterwright-cpu-collective/1", "device": "cpu", "backend": "gloo", "version": "2.9.0", "node": "n1",
     "operation": "all-reduce", "ranks": 2, "rows": [{"bytes": 1048576, "seconds": 0.0004, "wrong": 0}]}

`seconds` is the mean time of one all-reduce over the rounds, on the slowest rank.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

FORMAT = "clusterwright-cpu-collective/1"
#: EX_UNAVAILABLE of BSD sysexits.h.
NO_TOOL = 69


def _header(backend: str, version: str, ranks: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "device": "cpu",
        "backend": backend,
        "version": version,
        "node": os.environ.get("CW_NODE") or socket.gethostname().split(".")[0],
        "operation": "all-reduce",
        "ranks": ranks,
    }


def _gloo_rank(rank: int, ranks: int, sizes: list[int], rounds: int, meeting: str) -> None:
    torch: Any = importlib.import_module("torch")
    distributed: Any = importlib.import_module("torch.distributed")
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    rows = []
    for size in sizes:
        values = torch.full((size // 4,), float(rank + 1))
        distributed.all_reduce(values.clone())
        distributed.barrier()
        began = time.perf_counter()
        for _ in range(rounds):
            copy = values.clone()
            distributed.all_reduce(copy)
        slowest = torch.tensor([(time.perf_counter() - began) / rounds])
        distributed.all_reduce(slowest, op=distributed.ReduceOp.MAX)
        wrong = int((copy != ranks * (ranks + 1) / 2).sum())
        rows.append({"bytes": size, "seconds": float(slowest[0]), "wrong": wrong})
    if rank == 0:
        print(json.dumps({**_header("gloo", torch.__version__, ranks), "rows": rows}))
    distributed.destroy_process_group()


def run_gloo(ranks: int, sizes: list[int], rounds: int) -> int:
    """Over PyTorch's gloo; as many processes as ranks."""
    spawn: Any = importlib.import_module("torch.multiprocessing").spawn
    with tempfile.TemporaryDirectory() as directory:
        spawn(_gloo_rank, args=(ranks, sizes, rounds, os.path.join(directory, "meeting")), nprocs=ranks)
    return 0


def run_mpi_rank(sizes: list[int], rounds: int) -> int:
    """One rank of an MPI job."""
    mpi: Any = importlib.import_module("mpi4py.MPI")
    world = mpi.COMM_WORLD
    ranks, rows = world.Get_size(), []
    for size in sizes:
        values = bytearray(size)
        view = memoryview(values).cast("d")
        total = memoryview(bytearray(size)).cast("d")
        for i in range(0, len(view), 512):
            view[i] = world.Get_rank() + 1.0
        world.Allreduce(view, total)
        world.Barrier()
        began = time.perf_counter()
        for _ in range(rounds):
            world.Allreduce(view, total)
        slowest = world.allreduce((time.perf_counter() - began) / rounds, op=mpi.MAX)
        expected = ranks * (ranks + 1) / 2
        wrong = sum(total[i] != (expected if i % 512 == 0 else 0.0) for i in range(len(total)))
        rows.append({"bytes": size, "seconds": slowest, "wrong": wrong})
    if world.Get_rank() == 0:
        name = mpi.Get_library_version().split("\n")[0].split(",")[0].strip()
        print(json.dumps({**_header("mpi", name, ranks), "rows": rows}))
    return 0


def run_mpi(ranks: int, argv: list[str]) -> int:
    """Start this file again under mpirun."""
    command = ["mpirun", "--oversubscribe", "-n", str(ranks)]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    return subprocess.run([*command, sys.executable, __file__, *argv, "--mpi"], check=False).returncode


def _has(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="All-reduce on CPUs.")
    parser.add_argument("--sizes", default="1048576,16777216", help="bytes per rank, multiples of 8")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--mpi", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    sizes = [int(size) // 8 * 8 for size in asked.sizes.split(",")]
    if asked.mpi:
        return run_mpi_rank(sizes, asked.rounds)
    if _has("torch"):
        return run_gloo(asked.ranks, sizes, asked.rounds)
    if _has("mpi4py") and shutil.which("mpirun"):
        return run_mpi(asked.ranks, ["--sizes", asked.sizes, "--rounds", str(asked.rounds)])
    print("neither torch nor mpi4py with mpirun is installed", file=sys.stderr)
    return NO_TOOL


if __name__ == "__main__":
    sys.exit(main())
