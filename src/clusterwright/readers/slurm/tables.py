"""Listings of sinfo, squeue, sacct, sprio, sshare and sacctmgr: header and rows → cells by column name.

A row is split by the header's delimiter (`|`, sacct's `--delimiter`, 0x1F of squeue scripts), by the dashes that sacct
prints under its header, or by blanks. A row that does not fit its header is rejected, never shifted; a record that a
line break inside a job's name has torn is joined again when its fields then fit.
Source: man sinfo, squeue, sacct (--format, --parsable2, --delimiter); print_fields in Slurm's src/common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line

#: Delimiters that are tried, longest and surest first.
DELIMITERS: Final = ("\x1f", "|#", "|", "\t", ";", ",")
_MOST_JOINED: Final = 50
_WIDEST: Final = 400
_DASHES: Final = re.compile(r"-{2,}(?: +-{2,})* *")
#: Columns whose cells may hold blanks.
_FREE: Final = frozenset({"REASON", "NAME", "JOBNAME", "COMMENT", "NODELIST(REASON)", "COMMAND", "WORK_DIR"})
#: Columns of names that sinfo and squeue cut → their widths by default (man squeue -o, man sinfo -R).
_CUT: Final = {"PARTITION": (9,), "NAME": (8,), "USER": (8, 9), "REASON": (19, 20)}

Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a listing's rows are split.

    Args:
        names: of the columns as printed, in order; a name may stand twice.
        delimiter: between cells; "" for blanks.
        spans: of the columns (start, end) where dashes give them; empty otherwise.
        starts: of the header's words, for rows with blank cells.
    """

    names: tuple[str, ...]
    delimiter: str
    spans: tuple[tuple[int, int], ...] = ()
    starts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One row: column → cell (the first one where a column stands twice).

    Args:
        cut: columns whose cell ends in the `+` by which sacct marks what it cut to the column's width.
    """

    cells: Mapping[str, str]
    line: int
    text: str
    cut: frozenset[str] = frozenset()


def find_layout(header: str, below: str, known: frozenset[str]) -> Layout | None:
    """The layout that a header line gives, None when it is no header of a tool with these column names.

    Args:
        below: the next line, which holds the dashes of sacct.
    """
    if len(header) > 20_000:
        return None
    if _DASHES.fullmatch(below.strip() and below) and "--" in below:
        spans = tuple((m.start(), m.end()) for m in re.finditer(r"-+", below))
        names = tuple(header[a:b].strip() for a, b in spans)
        if _knows(names, known):
            return Layout(names, "", spans)
    for delimiter in DELIMITERS:
        if delimiter in header:
            names = tuple(name.strip() for name in header.split(delimiter))
            names = names[:-1] if names and not names[-1] else names
            if _knows(names, known):
                return Layout(names, delimiter)
    words = list(re.finditer(r"\S+", header))
    names = tuple(word.group() for word in words)
    if _knows(names, known):
        return Layout(names, "", starts=tuple((w.start(), w.end()) for w in words))
    return None


def _knows(names: tuple[str, ...], known: frozenset[str]) -> bool:
    """Whether nearly all names are the tool's own (users may label some columns themselves)."""
    hits = sum(name in known for name in names)
    return 0 < len(names) <= _WIDEST and hits * 10 >= len(names) * 6


def read_rows(
    lines: Iterable[Line], layout: Layout, run: RunBuilder, checks: Mapping[str, Check] | None = None
) -> Iterator[Row]:
    """Rows of a listing; what does not fit is rejected and counted in the run.

    Args:
        checks: column → whether a cell can stand there, for rows that are split by blanks.
    """
    if layout.delimiter:
        for row in _delimited(lines, layout, run):
            wrong = next((n for n, test in (checks or {}).items() if row.cells.get(n) and not test(row.cells[n])), None)
            if wrong is None:
                yield row
            else:
                run.reject(row.line, row.text, f"{wrong} {row.cells[wrong][:40]!r} is cut or no such value")
        return
    for line in lines:
        if not line.text.strip():
            continue
        cells = _slice(line.text, layout) if layout.spans else _split_blanks(line.text, layout, checks or {})
        if cells is not None and layout.spans and not _fits(layout.names, [c.strip() for c in cells], checks or {}):
            cells = None
        if cells is None:
            run.reject(line.number, line.text, f"does not fit the header of {len(layout.names)} columns")
        else:
            _say_full_cells(cells, layout, run)
            yield _row(layout, cells, line)


def _say_full_cells(cells: list[str], layout: Layout, run: RunBuilder) -> None:
    """Say where a name is as wide as its column: sinfo and squeue cut there without a mark."""
    for place, (name, cell) in enumerate(zip(layout.names, cells, strict=True)):
        if name not in _CUT or not layout.starts:
            continue
        start, end = layout.starts[place]
        left = layout.starts[place + 1][0] - start - 1 if place + 1 < len(cells) else 0
        right = end - (layout.starts[place - 1][1] + 1 if place else 0)
        if len(cell) in _CUT[name] and {len(cell), len(cell) + 1} & {left, right}:
            run.notice(
                "cells-may-be-cut",
                f"cells of {name} are as wide as the column and may be cut without a mark",
                Weight.INFO,
            )


def _delimited(lines: Iterable[Line], layout: Layout, run: RunBuilder) -> Iterator[Row]:
    wanted = len(layout.names)
    held: list[str] = []
    first: Line | None = None
    joined = pieces = 0
    for line in lines:
        if not line.text.strip() and first is None:
            continue
        cells = line.text.split(layout.delimiter)
        whole = _fit(cells, wanted)
        if whole is not None:
            if first is not None:
                run.reject(first.number, first.text, f"{len(held)} of {wanted} fields")
                first, held = None, []
            yield _row(layout, whole, line)
            continue
        if first is None and len(cells) < wanted:
            first, held, pieces = line, cells, 1
            continue
        if first is None:
            run.reject(line.number, line.text, f"{len(cells)} fields where the header has {wanted}")
            continue
        held = [*held[:-1], f"{held[-1]} {cells[0]}", *cells[1:]]
        pieces += 1
        whole = _fit(held, wanted)
        if whole is not None:
            joined += 1
            yield _row(layout, whole, first)
            first, held = None, []
        elif len(held) > wanted or pieces > _MOST_JOINED:
            run.reject(first.number, first.text, f"{len(held)} fields after joining lines where there are {wanted}")
            first, held = None, []
    if first is not None:
        run.reject(first.number, first.text, f"{len(held)} of {wanted} fields; the last row is cut")
        run.missing("end: the last row is cut")
    if joined:
        run.notice(
            "records-joined", f"{joined} records were torn by line breaks inside a field and joined again", Weight.INFO
        )


def _fit(cells: list[str], wanted: int) -> list[str] | None:
    if len(cells) == wanted:
        return cells
    return cells[:-1] if len(cells) == wanted + 1 and not cells[-1].strip() else None


def _row(layout: Layout, cells: list[str], line: Line) -> Row:
    named: dict[str, str] = {}
    for name, cell in zip(layout.names, cells, strict=True):
        named.setdefault(name, cell.strip())
    wide = (b - a for a, b in layout.spans)
    cut = frozenset(
        name for name, cell, width in zip(layout.names, cells, wide, strict=False)
        if len(cell) >= width and cell.endswith("+")
    )  # fmt: skip
    return Row(named, line.number, line.text, cut)


def _slice(text: str, layout: Layout) -> list[str] | None:
    cells = [text[a:b] for a, b in layout.spans]
    between = [text[b:a] for (_, b), (a, _) in zip(layout.spans, layout.spans[1:], strict=False)]
    last = layout.spans[-1][1]
    return None if any(gap.strip() for gap in between) or text[last:].strip() else cells


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


def _split_blanks(text: str, layout: Layout, checks: Mapping[str, Check]) -> list[str] | None:
    words = tokens_of(text)
    wanted = len(layout.names)
    tried: list[list[str] | None] = []
    if len(words) == wanted:
        tried.append([word.group() for word in words])
    if len(words) > wanted:
        tried += [_widen(text, words, place, wanted) for place in _free_columns(layout)]
    if len(words) < wanted:
        tried.append(_place(words, layout))
    for cells in tried:
        if cells is not None and _fits(layout.names, cells, checks):
            return cells
    return None


def _free_columns(layout: Layout) -> list[int]:
    return [i for i, name in enumerate(layout.names) if name.upper() in _FREE]


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


def _fits(names: tuple[str, ...], cells: list[str], checks: Mapping[str, Check]) -> bool:
    return all(not cell or name not in checks or checks[name](cell) for name, cell in zip(names, cells, strict=True))
