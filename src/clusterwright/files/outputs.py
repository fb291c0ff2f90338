"""Output files: written whole or not at all, and never over something that was not meant to be replaced."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Final, TextIO

from clusterwright.lib.errors import InvalidInput, Place, Problem, Unavailable

#: template → the file of `files/templates` that holds it.
TEMPLATES: Final[dict[str, str]] = {
    "single-server": "single-server.yaml",
    "two-workers": "two-workers.yaml",
    "training": "training.yaml",
}


def read_template(name: str) -> str:
    """Text of a template, a key of TEMPLATES."""
    return (resources.files("clusterwright.files.templates") / TEMPLATES[name]).read_text(encoding="utf-8")


def write_text(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a file, with the directories above it.

    Args:
        replace: whether a file that exists may be replaced; a reader sees the old text or the new, never a part.

    Raises:
        InvalidInput: when the file exists and may not be replaced, or something other than a file has its name.
        Unavailable: when the system does not let us write.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise InvalidInput(Problem(Place(str(path)), "", "this is a directory", "remove it or choose another name"))
        if replace:
            with replacing(path) as stream:
                stream.write(text)
        else:
            with path.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
    except FileExistsError as error:
        if Path(error.filename or path) != path:
            hint = "a directory of that name is needed"
            raise InvalidInput(Problem(Place(str(error.filename)), "", "this is a file", hint)) from None
        raise InvalidInput(Problem(Place(str(path)), "", "this file exists", "use --force to replace it")) from None
    except NotADirectoryError as error:
        hint = "a directory of that name is needed"
        raise InvalidInput(Problem(Place(str(error.filename)), "", "this is a file", hint)) from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A text that is written piece by piece and takes the place of a file, or becomes one, when the block is over.

    Where the block raises nothing is left of it, and what was there before stays. A pipe or a device is written to.

    Raises:
        InvalidInput: when it is a directory.
        Unavailable: when the system does not let us write there.
    """
    if path.is_dir():
        raise InvalidInput(Problem(Place(str(path)), "", "this is a directory", "remove it or choose another name"))
    path = path.resolve()
    try:
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8", newline="\n") as stream:
                yield stream
            return
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        # mkstemp makes the file private; a new file gets the mode any other new file would get.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
