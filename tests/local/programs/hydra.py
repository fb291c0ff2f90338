"""A job that is hard to kill: forks, setsids, daemonises, clears its environment, ignores every signal it can.

Every process appends `EPOCH RANK PID KIND start|alive` to one file, until a stop file appears: then the main process
ends with code 0 and leaves its children running. Usage: hydra.py FILE STOP
"""

import os
import signal
import sys
import time

TICK_S = 0.03


def write(fd: int, epoch: str, rank: str, kind: str, word: str) -> None:
    os.write(fd, f"{epoch} {rank} {os.getpid()} {kind} {word}\n".encode())


def tick(fd: int, epoch: str, rank: str, kind: str, stop: str | None) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    write(fd, epoch, rank, kind, "start")
    while stop is None or not os.path.exists(stop):
        write(fd, epoch, rank, kind, "alive")
        time.sleep(TICK_S)


def detached(fd: int, epoch: str, rank: str) -> None:
    """A child in its own session, and one that has lost its parent as daemons do."""
    if os.fork() == 0:
        os.setsid()
        tick(fd, epoch, rank, "session", None)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            tick(fd, epoch, rank, "daemon", None)
        os._exit(0)


def nameless(path: str, epoch: str, rank: str) -> None:
    """A child without any environment."""
    if os.fork() == 0:
        os.setsid()
        os.execve(sys.executable, [sys.executable, "-I", "-S", __file__, path, "-", epoch, rank], {})


if __name__ == "__main__":
    path, stop, *known = sys.argv[1:]
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    if known:
        tick(fd, *known, "nameless", None)
    epoch, rank = os.environ["CLUSTERWRIGHT_EPOCH"], os.environ["RANK"]
    detached(fd, epoch, rank)
    nameless(path, epoch, rank)
    tick(fd, epoch, rank, "main", stop)
