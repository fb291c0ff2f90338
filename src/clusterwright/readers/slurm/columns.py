"""Listings without a header (`-h`, `-n`, cut from a terminal): columns named by what stands in them, or not at all.

A column gets a name only where its cells allow no other one, such as `gpu:h100:8(IDX:0-7)` for GRES_USED; two columns
of plain numbers stay unread. Durations are told apart by arithmetic: time limit = time used + time left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise
from typing import Final

from clusterwright.model.observations import NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.amounts import is_time, seconds_of
from clusterwright.readers.slurm.gres import read_gres, read_tres
from clusterwright.readers.slurm.jobs import is_job_id
from clusterwright.readers.slurm.layouts import DELIMITERS
from clusterwright.readers.slurm.reasons import classify_reason
from clusterwright.readers.slurm.splitting import tokens_of
from clusterwright.readers.slurm.states import read_job_state, read_node_state
from clusterwright.readers.slurm.tables import Row

MOST_ROWS: Final = 500_000
_WIDEST: Final = 400
_SPLIT_RATIO: Final = 0.8
_HOST: Final = re.compile(r"[A-Za-z][\w.-]{0,200}(?:\[[\d,-]{1,4000}\][\w.-]{0,60})?(?:,[A-Za-z][\w.,\[\]-]{0,4000})?")
_ABSENT: Final = frozenset({"(null)", "N/A", ""})

Column = Sequence[str]
Test = Callable[[str], bool]


def hold_rows(lines: Iterable[Line], run: RunBuilder) -> list[Line]:
    """Rows that must be seen together before their columns can be named; a run says how many were too many."""
    rows = iter(lines)
    held = list(islice(rows, MOST_ROWS))
    if rest := sum(1 for _ in rows):
        run.missing(f"{rest:,} rows without a header beyond the first {MOST_ROWS:,}")
    return held


def split_bare(lines: list[Line], run: RunBuilder) -> list[tuple[list[str], Line]]:
    """Cells of rows without a header, all with the same number of columns; others are rejected."""
    texts = [line.text for line in lines]
    rows = _split(texts)
    counts: dict[int, int] = {}
    for cells in rows:
        counts[len(cells)] = counts.get(len(cells), 0) + 1
    width = max(counts, key=lambda n: (counts[n], n), default=0)
    if width > _WIDEST:
        raise Refused(f"rows of {width} columns without a header", lines[0].number, lines[0].text)
    kept = []
    for cells, line in zip(rows, lines, strict=True):
        if len(cells) == width + 1 and not cells[-1].strip():
            cells = cells[:-1]
        if len(cells) != width:
            run.reject(line.number, line.text, f"{len(cells)} fields where most rows have {width}")
            if line is lines[-1]:
                run.missing("end: the last row is cut")
        else:
            kept.append(([cell.strip() for cell in cells], line))
    return kept


def _split(texts: list[str]) -> list[list[str]]:
    for delimiter in DELIMITERS[:-1]:
        if sum(delimiter in text for text in texts) >= max(1, _SPLIT_RATIO * len(texts)):
            return [text.split(delimiter) for text in texts]
    words = [[word.group() for word in tokens_of(text)] for text in texts]
    most = max((len(row) for row in words), default=0)
    if most <= 1:
        return [text.split(",") for text in texts]
    if sum(len(row) == most for row in words) >= _SPLIT_RATIO * len(words):
        return words
    return _split_gutters(texts)


def _split_gutters(texts: list[str]) -> list[list[str]]:
    """Cells between the character columns that are blank in every row."""
    width = min(max(len(text) for text in texts), 4000)
    used = bytearray(width)
    for text in texts:
        for match in re.finditer(r"\S+", text[:width]):
            used[match.start() : match.end()] = b"\x01" * (match.end() - match.start())
    spans = [(m.start(), m.end()) for m in re.finditer(b"\x01+", bytes(used))]
    return [[text[a:b] for a, b in spans] if len(text) >= spans[-1][0] - 40 else text.split() for text in texts]


def name_rows(
    rows: list[tuple[list[str], Line]], naming: Callable[[list[Column]], dict[int, str]], run: RunBuilder
) -> list[Row]:
    """Rows with the columns that could be named; what could not is said in the run."""
    if not rows:
        return []
    columns: list[Column] = [[cells[i] for cells, _ in rows] for i in range(len(rows[0][0]))]
    named = naming(columns)
    run.missing("header")
    listed = ", ".join(f"{i + 1} = {name}" for i, name in sorted(named.items())) or "none"
    unnamed = [str(i + 1) for i in range(len(columns)) if i not in named]
    rest = f"; not read: {', '.join(unnamed)}" if unnamed else ""
    run.notice("no-header", f"no header; columns named by their contents: {listed}{rest}", Weight.INFO)
    return [Row({name: cells[i] for i, name in named.items()}, line.number, line.text) for cells, line in rows]


def name_sinfo(columns: list[Column]) -> dict[int, str]:
    """Columns of sinfo."""
    named: dict[int, str] = {}
    _name_one(named, columns, "STATE", lambda cell: read_node_state(cell) is not None)
    resources = [i for i, c in _open(named, columns) if _all(c, _is_gres) and any(cell not in _ABSENT for cell in c)]
    used = [i for i in resources if any("(IDX:" in cell for cell in columns[i])]
    named.update({used[0]: "GRES_USED"} if len(used) == 1 else {})
    rest = [i for i in resources if i not in used]
    named.update({rest[0]: "GRES"} if len(rest) == 1 else {})
    hosts = [i for i, c in _open(named, columns) if _all(c, _is_host) and _decides(c, columns, named)]
    if hosts:
        named[hosts[0]] = "NODELIST"
        _name_one(named, columns, "CPUS(A/I/O/T)", lambda cell: re.fullmatch(r"(?:\d+/){3}\d+", cell) is not None)
    elif "GRES" in named.values() or "STATE" in named.values():
        _name_one(named, columns, "NODES", str.isdigit)
    return named


def name_squeue(columns: list[Column]) -> dict[int, str]:
    """Columns of squeue."""
    named: dict[int, str] = {}
    ids = [i for i, c in enumerate(columns) if _all(c, is_job_id) and len(set(c)) == len(c)]
    arrays = [i for i in ids if any("_" in cell for cell in columns[i])]
    if arrays or len(ids) == 1:
        named[(arrays or ids)[0]] = "JOBID"
    _name_one(named, columns, "STATE", lambda cell: read_job_state(cell) is not None)
    _name_one(named, columns, "DEPENDENCY", lambda cell: cell in _ABSENT or cell.startswith(("after", "singleton")))
    _name_one(named, columns, "REASON", lambda cell: classify_reason(cell) is not None)
    if "REASON" not in named.values():
        _name_one(named, columns, "REASON", lambda cell: cell.startswith("(") and cell.endswith(")"))
    _name_one(named, columns, "TRES_ALLOC", _is_tres)
    _name_one(named, columns, "TRES_PER_NODE", lambda cell: cell in _ABSENT or cell.startswith(("gres/", "gres:")))
    _name_durations(named, columns)
    return named


def name_sacct(columns: list[Column]) -> dict[int, str]:
    """Columns of sacct."""
    named: dict[int, str] = {}
    ids = [i for i, c in enumerate(columns) if _all(c, is_job_id) and any("." in cell for cell in c)]
    named.update({ids[0]: "JobID"} if ids else {})
    _name_one(named, columns, "State", lambda cell: read_job_state(cell) is not None)
    whole = [n for n, cell in enumerate(columns[ids[0]]) if "." not in cell] if ids else []
    _name_times(named, columns)
    _name_cpu_and_limit(named, columns, whole)
    _name_one(named, columns, "ReqMem", lambda cell: re.fullmatch(r"[\d.]+[KMGTP]?[cn]", cell) is not None)
    amounts = [i for i, c in _open(named, columns) if any(c) and all(_is_amount(cell) for cell in c if cell)]
    energies = [i for i in amounts if whole and all(columns[i][n] for n in whole)]
    named.update({energies[0]: "ConsumedEnergy"} if len(energies) == 1 and len(amounts) > 1 else {})
    _name_one(named, columns, "AllocTRES", lambda cell: not cell or _is_tres(cell))
    return named


def _open(named: dict[int, str], columns: list[Column]) -> Iterable[tuple[int, Column]]:
    return [(i, column) for i, column in enumerate(columns) if i not in named]


def _all(column: Column, test: Test) -> bool:
    return bool(column) and all(test(cell) for cell in column)


def _name_one(named: dict[int, str], columns: list[Column], name: str, test: Test) -> None:
    """Name the only column that passes and holds something; no column when several do."""
    fitting = [i for i, c in _open(named, columns) if _all(c, test) and any(cell not in _ABSENT for cell in c)]
    if len(fitting) == 1:
        named[fitting[0]] = name


def _name_durations(named: dict[int, str], columns: list[Column]) -> None:
    """TIME_LIMIT = TIME + TIME_LEFT in every row; alone, the column that is 0:00 in pending rows is TIME."""
    states = next((columns[i] for i, name in named.items() if name == "STATE"), None)
    found = [(i, [seconds_of(cell) for cell in c]) for i, c in _open(named, columns)]
    times = [(i, [s for s in c if s is not None]) for i, c in found if all(s is not None for s in c)]
    triples = [
        (limit[0], one[0], other[0])
        for limit in times[:8]
        for one in times[:8]
        for other in times[:8]
        if one[0] < other[0] and limit[0] not in (one[0], other[0])
        and all(a == b + c for a, b, c in zip(limit[1], one[1], other[1], strict=True))
    ]  # fmt: skip
    waiting = [n for n, s in enumerate(states or ()) if read_job_state(s) == "PENDING"]
    zero = [i for i, c in times if waiting and all(c[n] == 0 for n in waiting)]
    if len(zero) == 1:
        named[zero[0]] = "TIME"
        for limit, one, other in triples:
            if zero[0] in (one, other):
                named.update({limit: "TIME_LIMIT", one if other == zero[0] else other: "TIME_LEFT"})


def _name_times(named: dict[int, str], columns: list[Column]) -> None:
    """Three times that never decrease are Submit, Start, End; two are Start, End."""
    found = [i for i, c in _open(named, columns) if _all(c, is_time)]
    rising = all(columns[a][n] <= columns[b][n] for a, b in pairwise(found)
                 for n in range(len(columns[a])))  # fmt: skip
    names = {2: ("Start", "End"), 3: ("Submit", "Start", "End")}.get(len(found), ())
    if rising:
        named.update(zip(found, names, strict=False))


def _name_cpu_and_limit(named: dict[int, str], columns: list[Column], whole: list[int]) -> None:
    """Only CPU times have fractions; only the limit is blank in every step; what then remains alone is Elapsed."""
    times = [
        i for i, c in _open(named, columns) if any(c) and all(not cell or seconds_of(cell) is not None for cell in c)
    ]
    processor = [i for i in times if any("." in cell for cell in columns[i])]
    steps = [n for n in range(len(columns[0])) if n not in set(whole)] if columns else []
    limits = [i for i in times if i not in processor and steps and all(not columns[i][n] for n in steps)]
    elapsed = [i for i in times if i not in processor and i not in limits and all(columns[i])]
    for fitting, name in ((processor, "TotalCPU"), (limits, "Timelimit"), (elapsed, "Elapsed")):
        if len(fitting) == 1:
            named[fitting[0]] = name


def _is_gres(cell: str) -> bool:
    if cell in _ABSENT:
        return True
    read = read_gres(cell)
    return not isinstance(read, NoValue) and ":" in cell


def _is_tres(cell: str) -> bool:
    read = read_tres(cell)
    return not isinstance(read, NoValue) and ("cpu" in read or "node" in read)


def _is_amount(cell: str) -> bool:
    return re.fullmatch(r"\d+(?:\.\d+)?[KMGTP]?", cell) is not None


def _is_host(cell: str) -> bool:
    return _HOST.fullmatch(cell) is not None and any(c.isdigit() for c in cell) and ":" not in cell


def _decides(column: Column, columns: list[Column], named: dict[int, str]) -> bool:
    """Whether equal cells of the column always come with equal cells in the named columns, as a node's do."""
    seen: dict[str, tuple[str, ...]] = {}
    for n, cell in enumerate(column):
        rest = tuple(columns[i][n] for i in named)
        if seen.setdefault(cell, rest) != rest:
            return False
    return True
