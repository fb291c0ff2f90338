"""CSV text → header and rows with their line numbers; a row that does not fit its header is rejected, never shifted.

Source: RFC 4180; the delimiter is the one of the header.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Final

from clusterwright.traces.counting import Tally
from clusterwright.traces.imports import Lines

_DELIMITERS: Final = (",", ";", "\t", "|")


class NotThisKind(ValueError):
    """The text is not of the kind that it was to be read as; says what was expected."""


class CsvRows:
    """The rows of a CSV text, one after the other.

    Attributes:
        header: the names of the columns, without blanks around them; an empty one for a text without lines.
        line: of the last row that was given, from 1.
        text: of that line.
    """

    def __init__(self, lines: Lines, tally: Tally) -> None:
        self.line = 0
        self.text = ""
        self._lines = iter(lines)
        self._tally = tally
        first = next((text for text in self._feed() if text.strip()), "")
        self.delimiter = next((d for d in _DELIMITERS if d in first), ",")
        cells = next(csv.reader([first], delimiter=self.delimiter, skipinitialspace=True), [])
        self.header = tuple(cell.strip().strip("\ufeff") for cell in cells)

    def __iter__(self) -> Iterator[list[str]]:
        """Cells of every row with content, as many as the header has; others are rejected."""
        wanted = len(self.header)
        reader = csv.reader(self._feed(), delimiter=self.delimiter)
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                self._tally.reject("unreadable-row", self.line, self.text, str(error))
                continue
            if len(cells) == wanted:
                yield cells
            elif any(cell.strip() for cell in cells):
                self._tally.reject("fields", self.line, self.text, f"{len(cells)} where the header has {wanted}")

    def _feed(self) -> Iterator[str]:
        for line, text in self._lines:
            self.line, self.text = line, text
            yield text
