"""One process per GPU of a node: who it is, which GPU it has, and which other ranks it meets. A line of JSON each.

    python3 placement.py [--wait S] [--port P]

Exported as one file that needs nothing but Python 3.8 or later; run once on every node of a job. The node takes its
number and the address of the first node from CW_NODE_RANK, CW_NODES and CW_MASTER (which the exported scripts set from
Slurm or Kubernetes) and starts CW_GPUS ranks, as torchrun does:

    {"format": "clusterwright-placement/1", "node": "gpu-001", "host": "pod-0", "node_rank": 0, "rank": 3,
     "local_rank": 3, "world_size": 16, "device": "GPU-5d0c…", "devices": ["GPU-…", …], "pid": 812, "image": "",
     "members": [[0, "gpu-001", "GPU-…"], …], "meeting": ""}

`meeting` says why the ranks did not meet, "" when they did; membership was observed on the wire.
"""

from __future__ import annotations

import argparse
import glob
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from typing import Any

FORMAT = "clusterwright-placement/1"
_LONGEST = 1 << 24


def visible_devices() -> list[str]:
    """GPUs that this process may use: UUIDs where the driver tells them, else device files."""
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=True,
        )
        found = [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
    except (OSError, subprocess.SubprocessError):
        found = sorted(p for p in glob.glob("/dev/nvidia[0-9]*") if p[len("/dev/nvidia") :].isdigit())
    if wanted is None:
        return found
    chosen = [w.strip() for w in wanted.split(",") if w.strip()]
    return [found[int(w)] if w.isdigit() and int(w) < len(found) else w for w in chosen]


def meet(rank: int, size: int, address: tuple[str, int], said: dict[str, Any], wait_s: float) -> list[Any]:
    """What every rank said, in the order of ranks, through rank 0; OSError when they do not meet in time."""
    deadline = time.monotonic() + wait_s
    return _host(size, address[1], said, deadline) if rank == 0 else _join(address, said, deadline)


def _host(size: int, port: int, said: dict[str, Any], deadline: float) -> list[Any]:
    heard = {0: said}
    sockets = []
    with socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET) as server:
        if server.family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("", port))
        server.listen(size)
        while len(heard) < size:
            server.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                peer, _ = server.accept()
            except socket.timeout:  # noqa: UP041  # before Python 3.10 these are two exceptions
                missing = sorted(set(range(size)) - set(heard))
                raise OSError(f"{len(missing)} of {size} ranks did not come, first {missing[0]}") from None
            peer.settimeout(30)
            message = json.loads(_line(peer))
            if message["rank"] in heard:
                raise OSError(f"rank {message['rank']} came twice")
            heard[message["rank"]] = message
            sockets.append(peer)
    everything = [heard[r] for r in sorted(heard)]
    text = json.dumps(everything).encode() + b"\n"
    for peer in sockets:
        peer.sendall(text)
        peer.close()
    return everything


def _join(address: tuple[str, int], said: dict[str, Any], deadline: float) -> list[Any]:
    while True:
        try:
            with socket.create_connection(address, timeout=10) as peer:
                peer.sendall(json.dumps(said).encode() + b"\n")
                peer.settimeout(max(1.0, deadline - time.monotonic()))
                members = json.loads(_line(peer))
                return list(members)
        except (ConnectionError, socket.gaierror):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _line(peer: socket.socket) -> bytes:
    parts: list[bytes] = []
    size = 0
    while not parts or not parts[-1].endswith(b"\n"):
        part = peer.recv(1 << 16)
        size += len(part)
        if not part or size > _LONGEST:
            raise ConnectionError("the connection ended in the middle")
        parts.append(part)
    return b"".join(parts)


def report(local_rank: int, gpus: int, wait_s: float, port: int) -> dict[str, Any]:
    """Everything that one rank sees."""
    node_rank, nodes = int(os.environ.get("CW_NODE_RANK", "0")), int(os.environ.get("CW_NODES", "1"))
    devices = visible_devices()
    host = socket.gethostname().split(".")[0]
    seen: dict[str, Any] = {
        "format": FORMAT,
        "node": os.environ.get("CW_NODE") or host,
        "host": host,
        "node_rank": node_rank,
        "rank": node_rank * gpus + local_rank,
        "local_rank": local_rank,
        "world_size": nodes * gpus,
        "device": devices[local_rank] if local_rank < len(devices) else "",
        "devices": devices,
        "pid": os.getpid(),
        "image": os.environ.get("CW_IMAGE", ""),
        "members": [],
        "meeting": "",
    }
    said = {k: seen[k] for k in ("rank", "node", "device")}
    try:
        address = (os.environ.get("CW_MASTER") or "127.0.0.1", port)
        members = meet(seen["rank"], seen["world_size"], address, said, wait_s)
        seen["members"] = [[m["rank"], m["node"], m["device"]] for m in members]
    except (OSError, ValueError, KeyError, TypeError) as error:
        seen["meeting"] = str(error) or type(error).__name__
    return seen


def _run(local_rank: int, gpus: int, wait_s: float, port: int, lock: Any) -> None:
    seen = report(local_rank, gpus, wait_s, port)
    with lock:
        sys.stdout.write(json.dumps(seen) + "\n")
        sys.stdout.flush()
    sys.exit(1 if seen["meeting"] else 0)


def main(argv: list[str] | None = None) -> int:
    """Entry point; exit code 1 when a rank did not meet the others."""
    parser = argparse.ArgumentParser(description="One process per GPU of this node reports.")
    parser.add_argument("--wait", type=float, default=120.0, help="seconds until all ranks must have met")
    parser.add_argument("--port", type=int, default=29400)
    asked = parser.parse_args(argv)
    gpus = int(os.environ.get("CW_GPUS", "1"))
    context = multiprocessing.get_context("fork")
    lock = context.Lock()
    ranks = [context.Process(target=_run, args=(r, gpus, asked.wait, asked.port, lock)) for r in range(gpus)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    return max(1 if rank.exitcode else 0 for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
