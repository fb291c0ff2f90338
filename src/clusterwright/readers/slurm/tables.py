"""Listings of sinfo, squeue, sacct, sprio, sshare and sacctmgr: header and rows → cells by column name.

A row is split by the header's delimiter (`|`, sacct's `--delimiter`, 0x1F of squeue scripts), by the dashes that sacct
prints under its header, or by blanks. A row that does not fit its header is rejected, never shifted; a record that a
line break inside a job's name has torn is joined again when its fields then fit.
Source: man sinfo, squeue, sacct (--format, --parsable2, --delimiter); print_fields in Slurm's src/common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.memos import Memo
from clusterwright.readers.slurm.layouts import Layout
from clusterwright.readers.slurm.splitting import Tests, splitting, watching

_MOST_JOINED: Final = 50
#: Columns in which hardly a cell stands twice.
_UNIQUE: Final = frozenset({"JobID", "JOBID", "STEPID", "TIME"})
_NONE: Final[frozenset[str]] = frozenset()

Check = Callable[[str], bool]


class Row(NamedTuple):
    """One row: column → cell (the first one where a column stands twice).

    Args:
        cut: columns whose cell ends in the `+` by which sacct marks what it cut to the column's width.
    """

    cells: Mapping[str, str]
    line: int
    text: str
    cut: frozenset[str] = frozenset()


def read_rows(
    lines: Iterable[Line], layout: Layout, run: RunBuilder, checks: Mapping[str, Check] | None = None
) -> Iterator[Row]:
    """Rows of a listing; what does not fit is rejected and counted in the run.

    Args:
        checks: column → whether a cell can stand there; of a row without one that fails.
    """
    tests: Tests = [
        (place, checks[name] if name in _UNIQUE else Memo(checks[name]).__getitem__)
        for place, name in enumerate(layout.names)
        if checks and name in checks
    ]
    return _read_delimited(lines, layout, run, tests) if layout.delimiter else _read_spaced(lines, layout, run, tests)


def _read_delimited(lines: Iterable[Line], layout: Layout, run: RunBuilder, tests: Tests) -> Iterator[Row]:
    name_cells = _naming(layout)
    firsts = [(place, test) for place, test in tests if layout.names.index(layout.names[place]) == place]
    for cells, line in _delimited(lines, layout, run):
        cells = [cell.strip() for cell in cells]
        wrong = -1
        for place, test in firsts:
            if cells[place] and not test(cells[place]):
                wrong = place
                break
        if wrong < 0:
            yield Row(name_cells(cells), line.number, line.text)
        else:
            run.reject(line.number, line.text, f"{layout.names[wrong]} {cells[wrong][:40]!r} is cut or no such value")


def _read_spaced(lines: Iterable[Line], layout: Layout, run: RunBuilder, tests: Tests) -> Iterator[Row]:
    name_cells, split, say_full = _naming(layout), splitting(layout, tests), watching(layout, run)
    for line in lines:
        if not line.text.strip():
            continue
        cells = split(line.text)
        if cells is None:
            run.reject(line.number, line.text, f"does not fit the header of {len(layout.names)} columns")
            continue
        say_full(cells)
        cut = _NONE
        if layout.spans:
            cut = _cut_columns(layout, cells) if "+" in line.text else _NONE
            cells = [cell.strip() for cell in cells]
        yield Row(name_cells(cells), line.number, line.text, cut)


def _naming(layout: Layout) -> Callable[[list[str]], dict[str, str]]:
    """What makes a mapping of a row's cells, the first one where a column stands twice."""
    names = layout.names
    if len(set(names)) == len(names):
        return lambda cells: dict(zip(names, cells, strict=True))
    places = [(name, names.index(name)) for name in dict.fromkeys(names)]
    return lambda cells: {name: cells[place] for name, place in places}


def _delimited(lines: Iterable[Line], layout: Layout, run: RunBuilder) -> Iterator[tuple[list[str], Line]]:
    wanted, delimiter = len(layout.names), layout.delimiter
    telling = wanted > 1 and not delimiter.isspace()  # a line that has the delimiter is not blank
    held: list[str] = []
    first: Line | None = None
    joined = pieces = 0
    for line in lines:
        cells = line.text.split(delimiter)
        if telling and first is None and len(cells) == wanted:
            yield cells, line
            continue
        if first is None and not line.text.strip():
            continue
        whole = _fit(cells, wanted)
        if whole is not None:
            if first is not None:
                run.reject(first.number, first.text, f"{len(held)} of {wanted} fields")
                first, held = None, []
            yield whole, line
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
            yield whole, first
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


def _cut_columns(layout: Layout, cells: list[str]) -> frozenset[str]:
    wide = (b - a for a, b in layout.spans)
    return frozenset(
        name for name, cell, width in zip(layout.names, cells, wide, strict=False)
        if len(cell) >= width and cell.endswith("+")
    )  # fmt: skip
