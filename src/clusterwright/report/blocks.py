"""A page as blocks, from which text for a terminal and Markdown are made."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_LEAST: Final = 40


@dataclass(frozen=True)
class Heading:
    """Title of what follows."""

    text: str


@dataclass(frozen=True)
class Lines:
    """Paragraphs, one a line; `bullet` marks each."""

    lines: tuple[str, ...]
    bullet: bool = False


@dataclass(frozen=True)
class Grid:
    """A table whose first column names rows.

    Args:
        head: of every column. rows: cells. numbers: columns but the first are aligned to the right.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: bool = True


@dataclass(frozen=True)
class Bars:
    """Parts of a whole, each with its value and a bar."""

    parts: tuple[tuple[str, float], ...]
    whole: float
    unit: str


@dataclass(frozen=True)
class Code:
    """Text to copy, never wrapped inside a word."""

    text: str


Block = Heading | Lines | Grid | Bars | Code


def as_text(blocks: Sequence[Block], width: int) -> str:
    """The page for a terminal of that many columns."""
    wide = max(width, _LEAST)
    return "\n".join(_text(blocks, wide)).strip("\n")


def _text(blocks: Sequence[Block], width: int) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Heading):
            yield ""
            yield block.text
        elif isinstance(block, Lines):
            for line in block.lines:
                yield from _wrapped(line, width, "  - " if block.bullet else "")
        elif isinstance(block, Grid):
            yield ""
            yield from _grid(block, width)
        elif isinstance(block, Bars):
            yield from _bars(block, width)
        else:
            yield from _code(block.text, width)


def _wrapped(line: str, width: int, start: str) -> list[str]:
    follow = " " * len(start) if start else "  "
    return textwrap.wrap(
        line, width, initial_indent=start, subsequent_indent=follow, break_long_words=False, break_on_hyphens=False
    )


def _grid(grid: Grid, width: int) -> Iterator[str]:
    """The table; columns that do not fit beside the first go into tables below it."""
    first = max(len(row[0]) for row in (grid.head, *grid.rows))
    sizes = [max(len(row[i]) for row in (grid.head, *grid.rows)) for i in range(len(grid.head))]
    start = 1
    while start < len(grid.head):
        end, used = start, first
        while end < len(grid.head) and (used + 2 + sizes[end] <= width or end == start):
            used += 2 + sizes[end]
            end += 1
        if start > 1:
            yield ""
        for row in (grid.head, *grid.rows):
            cells = [f"{row[i]:>{sizes[i]}}" if grid.numbers else f"{row[i]:<{sizes[i]}}" for i in range(start, end)]
            yield "  ".join([f"{row[0]:<{first}}", *cells]).rstrip()
        start = end


def _bars(bars: Bars, width: int) -> Iterator[str]:
    longest = max(len(name) for name, _ in bars.parts)
    room = max(min(width - longest - 18, 50), 10)
    for name, value in bars.parts:
        length = max(round(value / bars.whole * room), 0) if bars.whole else 0
        yield f"  {name:<{longest}}  {value:7.1f} {bars.unit}  {'█' * length}".rstrip()


def _code(text: str, width: int) -> Iterator[str]:
    """Command lines broken between options with a backslash, as a shell reads them; other lines as they are."""
    for line in text.splitlines():
        if len(line) + 2 <= width or not line.strip().count(" --"):
            yield f"  {line}"
            continue
        parts = re.split(r" (?=--)", line)
        held = "  " + parts[0]
        for part in parts[1:]:
            if len(held) + 1 + len(part) + 2 > width:
                yield held + " \\"
                held = "    " + part
            else:
                held += " " + part
        yield held


def as_markdown(blocks: Sequence[Block], title: str) -> str:
    """The page as Markdown."""
    return "\n".join([f"# {_escaped(title)}", *_markdown(blocks)]).strip("\n") + "\n"


def _markdown(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        yield ""
        if isinstance(block, Heading):
            yield f"## {_escaped(block.text)}"
        elif isinstance(block, Lines):
            for line in block.lines:
                yield f"- {_escaped(line)}" if block.bullet else _escaped(line)
                if not block.bullet:
                    yield ""
        elif isinstance(block, Grid):
            yield _row(block.head)
            yield _row(["---"] + ["---:" if block.numbers else "---"] * (len(block.head) - 1), plain=True)
            yield from (_row(row) for row in block.rows)
        elif isinstance(block, Bars):
            yield _row(("", block.unit))
            yield _row(("---", "---:"), plain=True)
            yield from (_row((name, f"{value:.1f}")) for name, value in block.parts)
        else:
            yield "```"
            yield block.text.replace("```", "'''")
            yield "```"


def _row(cells: Sequence[str], plain: bool = False) -> str:
    return "| " + " | ".join(cell if plain else _escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is: no table cell, tag, emphasis or link begins in it."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text.replace("\n", " "))
