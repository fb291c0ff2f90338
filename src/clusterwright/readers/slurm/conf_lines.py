"""The syntax of Slurm's configuration files: `Key=value` pairs, comments, continued lines, include lines.

Keys are case-insensitive; a value ends at a blank unless it is quoted; `#` begins a comment unless it is escaped; a
backslash at the end of a line continues it.
Source: man slurm.conf; `parse_config.c` in Slurm's src/common (`_get_next_line`, `s_p_parse_line`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line

_PAIR: Final = re.compile(r"\s*([A-Za-z][\w./]{0,60})\s*[-+*/]?=\s*(?:\"([^\"]*)\"|(\S*))")
_INCLUDE: Final = re.compile(r"\s*include\s+(\S.*)", re.IGNORECASE)
_MOST_CONTINUED: Final = 1000
_LONGEST: Final = 1024 * 1024


class ConfLine:
    """One logical line.

    Args:
        pairs: (key as written, value) in order.
        include: the file that the line includes, "" for a line of pairs.
        comment: text of a line that is only a comment.

    Attributes:
        keys: lower-case key → value; the last one counts, as in Slurm.
    """

    __slots__ = ("comment", "include", "keys", "line", "pairs")

    def __init__(
        self, line: int, pairs: tuple[tuple[str, str], ...] = (), include: str = "", comment: str = ""
    ) -> None:
        self.line = line
        self.pairs = pairs
        self.include = include
        self.comment = comment
        self.keys = {name.lower(): value for name, value in pairs}

    def get(self, key: str) -> str | None:
        """The value of a key, given in small letters."""
        return self.keys.get(key)

    @property
    def first(self) -> str:
        """The first key, lower case."""
        return self.pairs[0][0].lower() if self.pairs else ""


def read_conf(lines: Iterable[Line], run: RunBuilder) -> Iterator[ConfLine]:
    """Logical lines; text that is no pair is rejected and counted."""
    for number, text in _join(lines):
        body = _strip_comment(text)
        if not body.strip():
            if text.strip().startswith("#"):
                yield ConfLine(number, comment=text.strip().lstrip("#").strip())
            continue
        include = _INCLUDE.match(body) if body.lstrip()[:7].lower() == "include" else None
        if include is not None:
            yield ConfLine(number, include=include[1].strip())
            continue
        pairs, rest = _split(body)
        if rest:
            run.reject(number, rest, "no Key=value")
        if pairs:
            yield ConfLine(number, pairs)


def _join(lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
    held: list[str] = []
    first = size = 0
    for line in lines:
        text = line.text.rstrip()
        first = line.number if not held else first
        # A backslash at the end of a comment continues nothing that counts: the comment runs to its own line's end.
        if text.endswith("\\") and "#" not in text and len(held) < _MOST_CONTINUED and size < _LONGEST:
            held.append(text[:-1])
            size += len(text)
            continue
        yield first, " ".join([*held, line.text]) if held else line.text
        held, size = [], 0
    if held:
        yield first, " ".join(held)


def _strip_comment(text: str) -> str:
    place = text.find("#")
    while place > 0 and text[place - 1] == "\\":
        place = text.find("#", place + 1)
    return text if place < 0 else text[:place]


def _split(body: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Pairs of a line and what could not be read from some place on."""
    pairs: list[tuple[str, str]] = []
    place, look = 0, _PAIR.match
    end = len(body.rstrip())
    while place < end:
        match = look(body, place)
        if match is None:
            return tuple(pairs), body[place:].strip()
        key, quoted, bare = match.groups()
        pairs.append((key, bare if quoted is None else quoted))
        place = match.end()
    return tuple(pairs), ""


def key_share(text: str, keys: frozenset[str], most: int = 400) -> tuple[int, int]:
    """How many of the first lines with a pair begin with one of the keys, and how many there are."""
    hits = lines = 0
    for line in text.split("\n")[:most]:
        body = line.strip()
        if not body or body.startswith("#"):
            continue
        match = _PAIR.match(body)
        include = _INCLUDE.match(body)
        if match is None and include is None:
            lines += not line.startswith((" ", "\t"))
            continue
        lines += 1
        hits += match is not None and match[1].lower() in keys
    return hits, lines
