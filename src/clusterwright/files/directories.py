"""A directory of generated files: written whole, and never over something that was not meant to be replaced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clusterwright.files.outputs import write_text
from clusterwright.lib.errors import InvalidInput, Place, Problem, Unavailable


def write_tree(directory: Path, files: Mapping[str, str], *, replace: bool = False) -> None:
    """Write files below a directory; scripts (`.sh`) can be executed.

    Args:
        files: relative path → text.
        replace: whether a directory that holds something may be written to; only files of these names are replaced.

    Raises:
        InvalidInput: when the directory holds something and may not be written to, or is none.
        Unavailable: when the system does not let us write.
    """
    try:
        if directory.exists() and not directory.is_dir():
            raise InvalidInput(Problem(Place(str(directory)), "", "this is no directory", "choose another name"))
        if not replace and directory.is_dir() and any(directory.iterdir()):
            hint = "choose another one, or --force to write over files of the same names"
            raise InvalidInput(Problem(Place(str(directory)), "", "this directory is not empty", hint))
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{directory} cannot be written: {error.strerror or error}") from error
    for name, text in sorted(files.items()):
        path = directory / name
        write_text(path, text, replace=replace)
        if name.endswith(".sh"):
            path.chmod(path.stat().st_mode | 0o111)
