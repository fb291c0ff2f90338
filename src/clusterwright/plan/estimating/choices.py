"""Names that a caller chose, checked: a wrong one is answered with the valid ones."""

from __future__ import annotations

from collections.abc import Iterable

from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.spelling import did_you_mean


def chosen(what: str, name: str, known: Iterable[str]) -> str:
    """The name, if it is one of the known.

    Raises:
        InvalidInput: if it is not; names the nearest, else all.
    """
    names = list(known)
    if name in names:
        return name
    raise InvalidInput(f"no {what} '{name}'; {did_you_mean(name, names) or 'one of ' + ', '.join(names)}")
