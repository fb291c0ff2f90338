"""Outputs of tools: a path, a directory or standard input → its bytes in pieces, in constant memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from clusterwright.files.inputs import STANDARD_INPUT
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.spelling import did_you_mean

_PIECE: Final = 1024 * 1024


def find_outputs(paths: Sequence[str]) -> list[str]:
    """The files that the paths name; a directory stands for every regular file below it, sorted, without hidden ones.

    Raises:
        InvalidInput: with every path that is not there or holds no file.
    """
    found: dict[str, None] = {}
    problems: list[Problem] = []
    if paths.count(STANDARD_INPUT) > 1:
        raise InvalidInput("standard input can be read only once; name `-` once")
    for path in paths:
        if path == STANDARD_INPUT:
            found[path] = None
            continue
        try:
            if os.path.isdir(path):
                inside = _files_below(path)
                found.update(dict.fromkeys(inside))
                if not inside:
                    problems.append(Problem(Place(path), "", "this directory holds no file", "name one with outputs"))
            elif os.path.exists(path):
                found[path] = None
            else:
                problems.append(Problem(Place(path), "", "no such file", _neighbour(Path(path))))
        except ValueError as error:
            problems.append(Problem(Place(repr(path)), "", f"is no path: {error}", "give a file"))
    if problems:
        raise InvalidInput(*problems)
    return list(found)


def stream_bytes(path: str) -> Iterator[bytes]:
    """The bytes of a file or of standard input (`-`), in pieces of at most 1 MiB.

    Raises:
        InvalidInput: when it cannot be read, also in the middle.
    """
    try:
        if path == STANDARD_INPUT:
            if sys.stdin is None:
                raise InvalidInput("there is no standard input; name a file")
            while piece := sys.stdin.buffer.read(_PIECE):
                yield piece
            return
        with open(path, "rb", buffering=0) as stream:
            while piece := stream.read(_PIECE):
                yield piece
    except OSError as error:
        raise InvalidInput(Problem(Place(path), "", f"cannot be read: {error.strerror or error}")) from None


def _files_below(directory: str) -> list[str]:
    found = []
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.startswith(".") and os.path.isfile(path):
                found.append(path)
    return found


def _neighbour(path: Path) -> str:
    try:
        names = [f.name for f in path.parent.iterdir()][:1000]
    except OSError:
        return f"there is no directory {path.parent}"
    return did_you_mean(path.name, names)
