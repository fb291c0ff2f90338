"""Run one rank: refuse a stale epoch, record how the process ended, keep its orphans below.

Started as `python -I -S shim.py …` by path, so it imports the standard library only, and little of it. Usage:

    shim.py EPOCH EPOCH_FILE RANK_DIR NOTIFY_FD WORKDIR -- PROGRAM ARGUMENT…

The environment it is given is the rank's; CLUSTERWRIGHT_TAG there, `CLUSTER/job/JOB/…`, says whose epoch it needs. The
exit goes to RANK_DIR/exit by rename, so it is there as a whole or not at
all, and the same line to NOTIFY_FD: `code N`, `signal N` or `error TEXT`. SIGTERM, SIGINT, SIGHUP, SIGUSR1 and
SIGUSR2 are passed on to the process group of the rank. The shim stays until its last descendant has ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

#: linux/prctl.h
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
#: Length of the first line of an epoch file in bytes, always the same: it is written in place.
LINE = 128
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


#: What an epoch file says: epoch, `open`, `closing` or `closed`, cluster, job.
Fence = tuple[int, str, str, str]


def parse_fence(data: bytes) -> Fence | None:
    """The first line of an epoch file, or None when that is not one."""
    try:
        epoch, word, cluster, job = data.split(b"\n")[0].decode("ascii").split()
        return int(epoch), word, cluster, job
    except ValueError:
        return None


def read_fence(path: str) -> Fence | None:
    """What an epoch file says, or None when there is no readable one. Never waits for a pipe's other end."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return parse_fence(os.pread(file, LINE, 0))  # a pipe cannot be read at a place: that is an error
    except OSError:
        return None
    finally:
        os.close(file)


def refusal(path: str, epoch: int, tag: str) -> str:
    """Why a process of this epoch and tag must not start, or nothing."""
    fence = read_fence(path)
    if fence is None:
        return f"refused: no epoch file at {path}"
    cluster, _, job, *_ = (*tag.split("/"), "", "", "")
    if fence != (epoch, "open", cluster, job):
        return f"refused: epoch {epoch} is over, {path} says {fence[0]} {fence[1]} (job {fence[3]} of {fence[2][:8]})"
    return ""


def run(epoch: int, fence: str, directory: str, notify: int, workdir: str, argv: list[str]) -> int:
    """Run one rank to its end; returns the shim's own exit code."""
    prctl = _load_prctl()
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    why = refusal(fence, epoch, os.environ.get("CLUSTERWRIGHT_TAG", ""))
    if why:
        _record(directory, notify, f"error {why}")
        return 1
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)  # a signal that comes early waits until it can be passed on
    child, error = _start(directory, workdir, argv, prctl)
    for number in _FORWARDED:
        signal.signal(number, lambda n, _: _forward(child, n))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    if error:
        _record(directory, notify, f"error {error}")
        os.waitpid(child, 0)
        return 1
    return _wait(child, directory, notify)


def _start(directory: str, workdir: str, argv: list[str], prctl: Callable[..., int]) -> tuple[int, str]:
    """Fork and exec; returns the child and, when exec did not work, why."""
    read_end, write_end = os.pipe()
    shim = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            _become(directory, workdir, argv, prctl, shim)
        except OSError as error:
            where = f": '{error.filename}'" if error.filename else ""
            os.write(write_end, f"cannot start {argv[0]!r}: {error.strerror}{where}".encode(errors="replace"))
        finally:
            os._exit(127)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        message = pipe.read().decode(errors="replace")
    return child, message


def _become(directory: str, workdir: str, argv: list[str], prctl: Callable[..., int], shim: int) -> None:
    os.setsid()
    os.environ.pop("CLUSTERWRIGHT_SHIM", None)
    for name, number in (("stdout.log", 1), ("stderr.log", 2)):
        file = os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(workdir)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != shim:  # the shim ended before the line above took effect
        os._exit(127)
    os.execvp(argv[0], argv)


def _wait(child: int, directory: str, notify: int) -> int:
    code = 0
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return code
        if pid == child:
            number = os.waitstatus_to_exitcode(status)
            code = number if number >= 0 else 128 - number
            _record(directory, notify, f"code {number}" if number >= 0 else f"signal {-number}")


def _record(directory: str, notify: int, line: str) -> None:
    data = line.replace("\n", " ").encode(errors="replace") + b"\n"
    try:
        temporary = os.path.join(directory, f".exit.{os.getpid()}")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(file, data)
        os.close(file)
        os.rename(temporary, os.path.join(directory, "exit"))
    except OSError:
        pass  # a full disk: the agent still hears it below
    try:
        os.write(notify, data)
        os.close(notify)
    except OSError:
        pass  # the agent is gone: the file above tells


def _forward(child: int, number: int, _frame: FrameType | None = None) -> None:
    with contextlib.suppress(OSError):  # it has ended
        os.killpg(child, number)


def _load_prctl() -> Callable[..., int]:
    import ctypes  # not needed by those who import `read_fence` only

    prctl: Callable[..., int] = ctypes.CDLL(None, use_errno=True).prctl
    return prctl


def main(argv: list[str]) -> int:
    """Entry point: see the usage above."""
    epoch, fence, directory, notify, workdir, dashes, *command = argv
    if dashes != "--" or not command:
        return 2
    os.set_inheritable(int(notify), False)
    return run(int(epoch), fence, directory, int(notify), workdir, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
