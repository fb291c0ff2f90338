"""Samples that a terminal broke inside their labels, joined again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.dcgm.exposition import Broken, Exposition

#: What stands where lines were left out.
ELISIONS: Final = frozenset({"...", "..", "…", "[...]", "[…]", "# ..."})
_MOST_JOINED: Final = 4
_ENDS: Final = frozenset("}0123456789")


def join_samples(source: Source, parser: Exposition, say: Callable[[Line], None]) -> Iterator[Line]:
    """Lines, one that was broken inside its labels joined with what follows.

    Args:
        say: is told the beginning of each line that was joined.
    """
    held: Line | None = None
    pieces = 0
    for line in source.lines():
        if held is None:
            if _is_open(parser, line.text):
                held, pieces = line, 1
            else:
                yield line
            continue
        whole = Line(held.number, held.text + line.text, held.prefix)
        starts_anew = line.text.startswith(("#", "DCGM_", "dcgm_")) or line.text.strip() in ELISIONS
        if starts_anew or (pieces := pieces + 1) > _MOST_JOINED:
            yield held
            held = line if _is_open(parser, line.text) else None
            pieces = 1
            if held is None:
                yield line
        elif _is_open(parser, whole.text):
            held = whole
        else:
            say(held)
            yield whole
            held = None
    if held is not None:
        yield held


def _is_open(parser: Exposition, text: str) -> bool:
    """Whether the line's labels go on in the next one; the usual line is decided without parsing."""
    if "{" not in text or ("}" in text and text.rstrip()[-1:] in _ENDS):
        return False
    parsed = parser.parse(text)
    return isinstance(parsed, Broken) and parsed.open
