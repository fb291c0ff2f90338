"""JSON documents inside a text: several after each other, JSON lines, or one after a launcher's warnings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from clusterwright.readers.documents import Json, load_json
from clusterwright.readers.refusing import Refused

_START: Final = re.compile(r"^[ \t]*(?=[\[{](?:\s*(?:[\"{\[\]}]|-?\d|true|false|null|$)))", re.MULTILINE)
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?+|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """One JSON document.

    Args:
        line: at which it begins, from 1.
        cut: the text ends before the document does.
    """

    text: str
    line: int
    cut: bool


def split_json(text: str) -> Iterator[Piece]:
    """The documents of a text in order; text between them is passed over. Time is linear in the text."""
    position, line, counted = 0, 1, 0
    while (start := _START.search(text, position)) is not None:
        begin = start.end()
        line += text.count("\n", counted, begin)
        counted = begin
        end = _end_of(text, begin)
        yield Piece(text[begin : end if end is not None else len(text)], line, end is None)
        if end is None:
            return
        position = end


def load_documents(text: str) -> list[tuple[Json, int]]:
    """Every document with the line at which it begins.

    Raises:
        Refused: when there is none, or one is cut or no JSON.
    """
    found = []
    for piece in split_json(text):
        if piece.cut:
            raise Refused("the JSON ends in the middle", piece.line + piece.text.count("\n"), piece.text[-60:])
        try:
            found.append((load_json(piece.text, first_line=piece.line), piece.line))
        except Refused:
            if piece.text.startswith("[") and "\n" not in piece.text:
                continue  # the date or level of a log line
            raise
    if not found:
        raise Refused("holds no JSON document", 1, text.lstrip()[:80])
    return found


def _end_of(text: str, begin: int) -> int | None:
    """Offset behind the document that begins at an offset, None when the text ends first."""
    depth = 0
    for token in _TOKEN.finditer(text, begin):
        mark = text[token.start()]
        if mark in "[{":
            depth += 1
        elif mark in "]}":
            depth -= 1
            if depth <= 0:
                return token.end()
    return None
