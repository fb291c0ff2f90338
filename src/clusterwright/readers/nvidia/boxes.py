"""Tables drawn with `+`, `-`, `=` and `|`, as nvidia-smi prints them: lines → titles, headings and rows of cells.

A box begins with a border, has heading lines up to a border of `=`, then rows of one or more lines that a border ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from clusterwright.readers.cleaning import Line

_THIN: Final = re.compile(r"[+|][-+]{8,}[+|]?")
_THICK: Final = re.compile(r"[+|][=+]{8,}[+|]?")


@dataclass(slots=True)
class Row:
    """One row: its lines, each as cells without white space around them, and as the text between the outer bars."""

    lines: list[Line] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Line of the file at which it begins."""
        return self.lines[0].number if self.lines else 0


@dataclass(slots=True)
class Box:
    """One table.

    Args:
        title: lines of one cell before the headings, such as the banner or `Processes:`.
        headings: heading lines as cells.
        ruled: whether the `=` border was there.
        closed: whether a border ended the last row.
    """

    title: list[Line] = field(default_factory=list)
    headings: list[list[str]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    ruled: bool = False
    closed: bool = False

    @property
    def heading(self) -> str:
        """All heading words, one space between them."""
        return " ".join(" ".join(" ".join(cells).split()) for cells in self.headings)


def cells_of(text: str) -> list[str] | None:
    """Cells of `| a | b |`; None when the line is not a whole one."""
    body = text.strip()
    if len(body) < 3 or body[0] != "|" or body[-1] != "|":
        return None
    return [cell.strip() for cell in body[1:-1].split("|")]


def is_border(text: str) -> bool:
    """Whether the line is drawn only."""
    body = text.strip()
    return _THIN.fullmatch(body) is not None or _THICK.fullmatch(body) is not None


def boxes_of(lines: Iterable[Line], *, split_rows: bool = True) -> tuple[list[Box], list[Line]]:
    """(tables, lines outside and lines that are cut).

    Args:
        split_rows: rows are separated by borders, not each a line of its own.
    """
    boxes: list[Box] = []
    outside: list[Line] = []
    box: Box | None = None
    row: Row | None = None
    bordered = False
    for line in lines:
        body = line.text.strip()
        before, bordered = bordered, is_border(body)
        if _THICK.fullmatch(body) and box is not None:
            box.ruled, row = True, None
        elif _THIN.fullmatch(body):
            if box is not None and box.ruled and not (before and box.closed):
                box.closed, row = True, None
            elif box is None or box.ruled:
                box = Box()
                boxes.append(box)
        elif (cells := cells_of(body)) is not None and box is not None:
            if not box.ruled:
                if len(cells) == 1 and not box.headings:
                    box.title.append(line)
                box.headings.append(cells)
            else:
                if row is None or not split_rows:
                    row = Row()
                    box.rows.append(row)
                row.lines.append(line)
                row.cells.append(cells)
                box.closed = False
        elif not body:
            box, row = None, None
        else:
            outside.append(line)
    return boxes, outside
