"""The epoch file in a checkpoint directory: the line between an attempt and what is left of an older one.

Opening an epoch comes before any launch of it, closing it before the search for its processes. A shim that starts late
reads the file and refuses; one that read it earlier is alive with its tag when the search begins, and is found.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from clusterwright.engines.local.shim import read_fence

#: The file's name in a checkpoint directory.
NAME: Final = ".clusterwright-epoch"


def fence_path(checkpoint_dir: str) -> Path:
    """The epoch file of a checkpoint directory."""
    return Path(checkpoint_dir) / NAME


def newest_epoch(checkpoint_dir: str) -> int:
    """The highest epoch ever opened there, 0 where none was."""
    found = read_fence(str(fence_path(checkpoint_dir)))
    return 0 if found is None else found[0]


def open_epoch(checkpoint_dir: str, epoch: int) -> None:
    """Let processes of this epoch start; makes the directory. Doing it twice is fine.

    Raises:
        OSError: when the directory cannot be made or written, when its epoch file cannot be read, or when that names a
            newer epoch, because another cluster uses the directory.
    """
    path = fence_path(checkpoint_dir)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = read_fence(str(path))
    if found is None and path.exists():
        raise OSError(
            errno.EBADMSG, "the epoch file there cannot be read; remove it if no other job uses it", str(path)
        )
    if found is not None and (found[0] > epoch or found == (epoch, False)):
        raise OSError(errno.ESTALE, f"epoch {epoch} is over, another cluster uses this directory", str(path))
    _write(checkpoint_dir, epoch, "open")


def close_epoch(checkpoint_dir: str, epoch: int) -> None:
    """Let no process of this or an older epoch start any more. A directory that is gone is closed: shims need the file.

    Raises:
        OSError: when the file cannot be written.
    """
    if newest_epoch(checkpoint_dir) > epoch or not Path(checkpoint_dir).is_dir():
        return
    _write(checkpoint_dir, epoch, "closed")


def _write(checkpoint_dir: str, epoch: int, word: str) -> None:
    path = fence_path(checkpoint_dir)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with open(temporary, "w", encoding="ascii") as file:
        file.write(f"{epoch} {word}\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
