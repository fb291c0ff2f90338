"""Rows without delimiters → cells: by the spans of dashes, or by blanks under the words of the header."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.slurm.layouts import Layout

#: Columns whose cells may hold blanks.
_FREE: Final = frozenset({"REASON", "NAME", "JOBNAME", "COMMENT", "NODELIST(REASON)", "COMMAND", "WORK_DIR"})
_MOST_FREE: Final = 8
#: Columns of names that sinfo and squeue cut → their widths by default (man squeue -o, man sinfo -R).
_CUT: Final = {"PARTITION": (9,), "NAME": (8,), "USER": (8, 9), "REASON": (19, 20)}

#: Places of columns with what their cells must pass.
Tests = list[tuple[int, Callable[[str], bool]]]


def splitting(layout: Layout, tests: Tests) -> Callable[[str], list[str] | None]:
    """What splits a row by blanks or by the dashes under the header; None for a row that does not fit."""
    if not layout.spans:
        return lambda text: _split_blanks(text, layout, tests)
    columns = [slice(a, b) for a, b in layout.spans]
    gaps = [slice(b, a) for (_, b), (a, _) in zip(layout.spans, layout.spans[1:], strict=False)]
    gaps.append(slice(layout.spans[-1][1], None))

    def split(text: str) -> list[str] | None:
        if any(text[gap].strip() for gap in gaps):
            return None
        cells = [text[column] for column in columns]
        return cells if fits([cell.strip() for cell in cells], tests) else None

    return split


def tokens_of(text: str) -> list[re.Match[str]]:
    """Words of a row; a reason in parentheses at its end is one word."""
    words = list(re.finditer(r"\S+", text))
    if not words or not words[-1].group().endswith(")") or words[-1].group().startswith("("):
        return words
    for place, word in enumerate(words):
        if word.group().startswith("(") and not word.group().endswith(")"):
            whole = re.compile(r"\(.*\)", re.DOTALL).match(text, word.start(), words[-1].end())
            return [*words[:place], whole] if whole is not None else words
    return words


def _split_blanks(text: str, layout: Layout, tests: Tests) -> list[str] | None:
    plain = text.split()
    wanted = len(layout.names)
    ending = plain[-1] if plain else ""
    if len(plain) == wanted and (ending[-1:] != ")" or ending[:1] == "(") and fits(plain, tests):
        return plain
    tried = _ways(text, tokens_of(text), layout)
    return next((cells for cells in tried if cells is not None and fits(cells, tests)), None)


def _ways(text: str, words: list[re.Match[str]], layout: Layout) -> Iterator[list[str] | None]:
    """Each way to give the words of a row to the columns."""
    wanted = len(layout.names)
    if len(words) == wanted:
        yield [word.group() for word in words]
    if len(words) > wanted:
        yield from (_widen(text, words, place, wanted) for place in _free_columns(layout))
    if len(words) < wanted:
        yield _place(words, layout)


def _free_columns(layout: Layout) -> list[int]:
    return [i for i, name in enumerate(layout.names) if name.upper() in _FREE][:_MOST_FREE]


def _widen(text: str, words: list[re.Match[str]], place: int, wanted: int) -> list[str]:
    """Give the column at `place` all words that the other columns do not need."""
    after = wanted - place - 1
    last = words[len(words) - after - 1]
    middle = text[words[place].start() : last.end()]
    tail = words[len(words) - after :] if after else []
    return [*(word.group() for word in words[:place]), middle, *(word.group() for word in tail)]


def _place(words: list[re.Match[str]], layout: Layout) -> list[str] | None:
    """Cells by the header word that stands over them; None when a word stands under none or under two."""
    if not layout.starts:
        return None
    cells: list[list[str]] = [[] for _ in layout.names]
    column = 0
    for word in words:
        while column < len(layout.starts) and layout.starts[column][1] <= word.start():
            column += 1
        over = [
            i for i in range(column, min(column + 2, len(layout.starts)))
            if layout.starts[i][0] < word.end() and word.start() < layout.starts[i][1]
        ]  # fmt: skip
        if len(over) != 1:
            return None
        cells[over[0]].append(word.group())
    return [" ".join(cell) for cell in cells]


def fits(cells: list[str], tests: Tests) -> bool:
    """Whether every cell that holds something passes the test of its column."""
    return not [place for place, test in tests if cells[place] and not test(cells[place])]


def watching(layout: Layout, run: RunBuilder) -> Callable[[list[str]], None]:
    """What says where a name is as wide as its column: sinfo and squeue cut there without a mark."""
    widths: dict[int, frozenset[int]] = {}
    for place, name in enumerate(layout.names if layout.starts else ()):
        start, end = layout.starts[place]
        left = layout.starts[place + 1][0] - start - 1 if place + 1 < len(layout.names) else 0
        right = end - (layout.starts[place - 1][1] + 1 if place else 0)
        full = frozenset(width for width in _CUT.get(name, ()) if {width, width + 1} & {left, right})
        if full:
            widths[place] = full

    def say_full(cells: list[str]) -> None:
        if not widths:
            return
        for place in [place for place, full in widths.items() if len(cells[place]) in full]:
            name = layout.names[place]
            widths.pop(place)  # once is enough
            run.notice(
                "cells-may-be-cut",
                f"cells of {name} are as wide as the column and may be cut without a mark",
                Weight.INFO,
            )

    return say_full
