"""The epoch file in a checkpoint directory: who may start processes there, and whether somebody still does.

    open ─ the attempt ends ─▶ closing ─ no process of it is left ─▶ closed ─ the next attempt ─▶ open

Only an open epoch lets shims of its job start; only a closed one lets another job or another cluster open the next.
The file is made once and then written in place, under flock(2): that needs no room on a full disk, leaves no temporary
file, and of two clusters only one can open an epoch. Its first line has a fixed length: `EPOCH WORD CLUSTER JOB`; the
second says where that cluster keeps its state, for people.

A cluster that was lost for good leaves its last epoch open. When no process of it is left, removing the file frees the
directory.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clusterwright.engines.local.shim import LINE, Fence, parse_fence

#: The file's name in a checkpoint directory.
NAME: Final = ".clusterwright-epoch"
OPEN: Final = "open"
CLOSING: Final = "closing"
CLOSED: Final = "closed"

_NEVER: Final[Fence] = (0, CLOSED, "-", "-")
#: Whether a job of the own cluster, by its id, has no process of an epoch any more.
Over = Callable[[str, int], bool]


class DirectoryBusy(OSError):
    """An epoch of somebody else is not closed there."""


@dataclass(frozen=True, slots=True)
class Owner:
    """For whom an epoch is opened; `state_dir` is only told to people."""

    cluster: str
    job: str
    state_dir: str = ""


def fence_path(checkpoint_dir: str) -> Path:
    """The epoch file of a checkpoint directory."""
    return Path(checkpoint_dir) / NAME


def open_epoch(checkpoint_dir: str, owner: Owner, least: int, over: Over = lambda job, epoch: False) -> int:
    """Let processes of a new epoch start; makes the directory. Returns the epoch: above every one opened there so far.

    Args:
        checkpoint_dir: an absolute path.
        owner: for whom.
        least: the epoch is at least this.
        over: tells which epochs of other jobs of the same cluster count as closed, whatever the file says.

    Raises:
        DirectoryBusy: when another cluster or job has an epoch there that is not closed.
        OSError: when the directory cannot be made or written, or its epoch file cannot be read.
    """
    with _claimed(checkpoint_dir, owner, over) as (file, found):
        epoch = max(least, found[0] + 1)
        _write(file, epoch, OPEN, owner)
    return epoch


def settle(checkpoint_dir: str, owner: Owner, over: Over = lambda job, epoch: False) -> None:
    """Close what the owner left open and show that the next epoch could be opened.

    Raises:
        DirectoryBusy, OSError: as `open_epoch` would.
    """
    with _claimed(checkpoint_dir, owner, over) as (file, found):
        _write(file, found[0], CLOSED, owner)


def stop_epoch(checkpoint_dir: str, owner: Owner) -> None:
    """Let no process of the owner's epoch start any more; the directory stays the owner's.

    Raises:
        OSError: when the file can be neither written nor removed.
    """
    _end(checkpoint_dir, owner, CLOSING)


def close_epoch(checkpoint_dir: str, owner: Owner) -> None:
    """Give the directory up, once no process of the owner is left in it.

    Where the owner has nothing open this does nothing: the file is not there, not a file, or somebody else's.

    Raises:
        OSError: when the file can be neither written nor removed.
    """
    _end(checkpoint_dir, owner, CLOSED)


def _end(checkpoint_dir: str, owner: Owner, word: str) -> None:
    path = fence_path(checkpoint_dir)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), _locked(path, 0) as file:
        found = None if file is None else _read(file)
        if file is None or found is None or found[2:] != (owner.cluster, owner.job) or found[1] in (CLOSED, word):
            return
        try:
            _write(file, found[0], word, owner)
        except OSError:
            path.unlink()  # a full disk that copies on write: shims refuse to start without the file, too


@contextlib.contextmanager
def _claimed(checkpoint_dir: str, owner: Owner, over: Over) -> Iterator[tuple[int, Fence]]:
    """The locked epoch file and what it says, when nobody else has an open epoch there."""
    path = fence_path(checkpoint_dir)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path, os.O_CREAT) as file:
        if file is None:
            raise OSError(errno.EINVAL, "the epoch file there is not a regular file; remove it", str(path))
        found = _read(file)
        if found is None:
            why = "the epoch file there cannot be read; remove it if no other job uses the directory"
            raise OSError(errno.EBADMSG, why, str(path))
        epoch, word, cluster, job = found
        if word != CLOSED and (cluster != owner.cluster or (job != owner.job and not over(job, epoch))):
            raise DirectoryBusy(errno.EBUSY, _who(file, found, owner), str(path))
        try:
            yield file, found
        except OSError:
            if not os.fstat(file).st_size:  # made here, and there was no room for its line
                path.unlink(missing_ok=True)
            raise


def _who(file: int, found: Fence, owner: Owner) -> str:
    epoch, word, cluster, job = found
    if cluster == owner.cluster:
        return f"job {job} has epoch {epoch} {word} there under another path"
    with contextlib.suppress(ValueError, KeyError, TypeError):
        where = json.loads(os.pread(file, 65536, LINE))
        state = f" (state in {where['state_dir']} on {where['host']})"
        return _foreign(epoch, word, cluster, job, state)
    return _foreign(epoch, word, cluster, job, "")


def _foreign(epoch: int, word: str, cluster: str, job: str, state: str) -> str:
    return (
        f"job {job} of another cluster, {cluster[:8]}{state}, has epoch {epoch} {word} there; cancel it, "
        "or, if no process of that cluster is left, remove the file"
    )


@contextlib.contextmanager
def _locked(path: Path, flags: int) -> Iterator[int | None]:
    """The epoch file, locked against other clusters; None where something else has its name.

    Never waits for the other end of a named pipe; may wait as long as the file system or another cluster takes.
    """
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise
            yield None
            return
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                yield None
                return
            fcntl.flock(file, fcntl.LOCK_EX)
            if _still(path, file):
                yield file
                return
        finally:
            os.close(file)


def _still(path: Path, file: int) -> bool:
    """Whether the path still names the open file."""
    try:
        now = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(now, os.fstat(file))


def _read(file: int) -> Fence | None:
    data = os.pread(file, LINE, 0)
    return parse_fence(data) if data.strip(b"\0") else _NEVER  # made, but never written


def _write(file: int, epoch: int, word: str, owner: Owner) -> None:
    line = f"{epoch} {word} {owner.cluster} {owner.job}".ljust(LINE - 1) + "\n"
    where = json.dumps({"state_dir": owner.state_dir, "host": socket.gethostname()}) + "\n"
    data = (line + where).encode("ascii")
    if os.pwrite(file, data, 0) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.ftruncate(file, len(data))
    os.fsync(file)
