"""A text committed line by line, so that single lines can be withheld and the rest still verifies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from clusterwright.lib.commitments import commit, line_salt, root_of_lines


def split_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """The lines of a text with their ends, so that joining them gives it back; any bytes, without loss."""
    held: list[bytes] = []
    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join((*held, end, b"\n")).decode("utf-8", "surrogateescape")
            held = []
        if rest:
            held.append(rest)
    if held:
        yield b"".join(held).decode("utf-8", "surrogateescape")


def commit_lines(chunks: Iterable[bytes], secret: str) -> str:
    """The root over the commitments of all lines.

    Args:
        secret: hex digits from which the salt of each line follows.
    """
    lines = enumerate(split_lines(chunks))
    return root_of_lines([commit(line_salt(secret, n), _place(n), line) for n, line in lines])


def withhold_lines(chunks: Iterable[bytes], secret: str, redacted: Callable[[str], str]) -> Iterator[bytes]:
    """The lines as JSON, one per line: `["open", salt, text]`, or `["withheld", commitment, stand-in]`.

    Args:
        redacted: line → what to show; a line that it leaves as it is stays open.
    """
    for number, line in enumerate(split_lines(chunks)):
        salt = line_salt(secret, number)
        shown = redacted(line)
        row = ["open", salt, line] if shown == line else ["withheld", commit(salt, _place(number), line), shown]
        yield (json.dumps(row) + "\n").encode()


def root_of_withheld(rows: Iterable[bytes]) -> tuple[str, int]:
    """(root over the commitments of the lines that `withhold_lines` wrote, number of withheld ones).

    Raises:
        ValueError: when a row has another form.
    """
    commitments, withheld = [], 0
    for number, row in enumerate(_rows(rows)):
        kind, key, text = row
        withheld += kind == "withheld"
        commitments.append(key if kind == "withheld" else commit(key, _place(number), text))
    return root_of_lines(commitments), withheld


def _rows(chunks: Iterable[bytes]) -> Iterator[tuple[str, str, str]]:
    for line in split_lines(chunks):
        row: Any = json.loads(line)
        if not isinstance(row, list) or len(row) != 3 or not all(isinstance(part, str) for part in row):
            raise ValueError("a line of another form")
        if row[0] not in ("open", "withheld"):
            raise ValueError("a line that is neither open nor withheld")
        yield row[0], row[1], row[2]


def _place(number: int) -> str:
    return f"line/{number}"
