"""A directory for results that one run at a time owns."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterwright.lib.errors import InvalidInput, Unavailable


@contextmanager
def owned_directory(path: Path) -> Iterator[Path]:
    """Make a directory and own it until the end of the block; the lock is the kernel's and ends with the process.

    Raises:
        InvalidInput: when the path is a file or cannot be made.
        Unavailable: when another run owns it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be used as a directory for results: {error.strerror}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(
                f"{path}: another run writes its results there; wait for it or name another --out"
            ) from None
        yield path
    finally:
        os.close(handle)
