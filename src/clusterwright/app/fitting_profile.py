"""The house profile's file: where it lies, and what it says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from clusterwright.plan.fitting.house import House

#: Names its path where the command does not.
VARIABLE: Final = "CLUSTERWRIGHT_PROFILE"
#: Read where neither does, if it is there.
USUAL: Final = Path(".config") / "clusterwright" / "profile.yaml"


def load_profile(path: str | None = None) -> House:
    """The profile of a path, of $CLUSTERWRIGHT_PROFILE, or of the usual place; an empty one where there is none.

    Args:
        path: "" for no profile, wherever one may lie.

    Raises:
        InvalidInput: the file named cannot be read, or says something wrong; with the place.
    """
    chosen = _path(path)
    if chosen is None:
        return House()
    # The YAML reader is needed only by those who have a profile.
    from clusterwright.files.inputs import read_source
    from clusterwright.model.profiles import parse_profile
    from clusterwright.plan.fitting.house import house_of

    return house_of(parse_profile(read_source(chosen)))


def _path(path: str | None) -> str | None:
    if path is not None:
        return path or None
    if os.environ.get(VARIABLE):
        return os.environ[VARIABLE]
    home = os.environ.get("HOME")
    usual = Path(home) / USUAL if home else None
    return str(usual) if usual is not None and usual.is_file() else None
