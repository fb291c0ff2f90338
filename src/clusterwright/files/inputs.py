"""Input files: a path or standard input → a source, with a clear reason when it cannot be read."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Final

from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.sources import MAX_BYTES, Source, decode_source

#: The path that means standard input.
STANDARD_INPUT: Final = "-"
#: The file looked for when a directory is given.
DEFAULT_NAME: Final = "cluster.yaml"


def read_source(path: str) -> Source:
    """Read one architecture file; at most one byte more than the limit is read from anything.

    Args:
        path: a file, a directory that holds `cluster.yaml`, a pipe, or `-` for standard input.

    Raises:
        InvalidInput: naming the path and why it cannot be read.
    """
    if path == STANDARD_INPUT:
        return _read_standard_input()
    file = Path(path)
    try:
        if file.is_dir():
            file = _inside(file)
        with file.open("rb") as stream:
            return decode_source(str(file), stream.read(MAX_BYTES + 1))
    except FileNotFoundError:
        raise _fault(path, "no such file", _neighbour(file)) from None
    except PermissionError:
        raise _fault(path, "you may not read this file", "check its permissions") from None
    except OSError as error:
        hint = "give a file" if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG) else ""
        raise _fault(path, f"cannot be read: {error.strerror or error}", hint) from None
    except ValueError as error:
        # An embedded NUL is no path on any system.
        raise _fault(repr(path), f"is no path: {error}", "give a file") from None


def _read_standard_input() -> Source:
    name = "standard input"
    if sys.stdin is None:  # the caller closed it
        raise _fault(name, "there is none", "pipe a file into the command, or name one")
    try:
        return decode_source(name, sys.stdin.buffer.read(MAX_BYTES + 1))
    except OSError as error:
        raise _fault(name, f"cannot be read: {error.strerror or error}", "") from None


def _inside(directory: Path) -> Path:
    file = directory / DEFAULT_NAME
    if not file.is_file():
        raise _fault(str(directory), f"this is a directory without a {DEFAULT_NAME}", "give a file")
    return file


def _neighbour(file: Path) -> str:
    """A file beside the missing one whose name is close."""
    try:
        names = [f.name for f in file.parent.iterdir() if f.is_file()][:1000]
    except OSError:
        return f"there is no directory {file.parent}"
    return did_you_mean(file.name, names)


def _fault(path: str, message: str, hint: str) -> InvalidInput:
    return InvalidInput(Problem(Place(path), "", message, hint))
