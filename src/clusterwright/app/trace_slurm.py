"""Slurm's accounting → records of a trace, through the product's one reader of it, row by row."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from math import inf, nan
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.memos import Memo
from clusterwright.readers.slurm.accounting import describe_records
from clusterwright.readers.slurm.amounts import read_count, read_duration, read_memory
from clusterwright.readers.slurm.gres import gpus_of, read_tres
from clusterwright.readers.slurm.job_documents import describe_jobs, stream_jobs
from clusterwright.readers.slurm.job_rows import JobRow
from clusterwright.readers.slurm.sources import lines_of
from clusterwright.traces.counting import Tally
from clusterwright.traces.records import UNNAMED, Record
from clusterwright.traces.tables import UNKNOWN

_SLICE: Final = re.compile(r"\d{1,2}[gc]\.\d{1,4}(?:gb|mb)", re.IGNORECASE)
_NOWHERE: Final = frozenset({"none assigned", "(null)"})
_NO_WORDS: Final = frozenset({"(null)", "none", "n/a", "unknown"})


class _Rejecting(RunBuilder):
    """Where the reader rejects rows: into the account of the trace."""

    def __init__(self, tally: Tally) -> None:
        super().__init__("sacct")
        self._tally = tally

    def reject(self, line: int, text: str, why: str) -> None:
        """Count a row that is no record."""
        super().reject(line, text, why)
        code = "no-id" if "job id" in why else "fields" if "field" in why or "column" in why else "unreadable-row"
        self._tally.reject(code, line, text, why)


def records_of_table(source: Source, tally: Tally) -> Iterator[Record]:
    """Records of `sacct`, with any of its delimiters or as its table.

    Raises:
        Refused: when this is no output of sacct.
    """
    describing = _Describing()
    for row, wrong, text in describe_records(lines_of(source), _Rejecting(tally)):
        yield describing.describe(row, wrong, text)


def records_of_document(chunks: Iterable[bytes]) -> Iterator[Record]:
    """Records of `sacct --json`.

    Raises:
        Refused: when this is no such document, or it is cut.
    """
    describing = _Describing()
    for row, wrong, text in describe_jobs(stream_jobs(_decode(chunks))):
        yield describing.describe(row, wrong, text)


def _decode(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", True)


class _Describing:
    """Rows of the reader → records; equal cells are read once."""

    def __init__(self) -> None:
        self._limits = Memo(_limit_of)
        self._raw_limits = Memo(_minutes_of)
        self._resources = Memo(_resources_of)
        self._counts = Memo(_count_of)

    def describe(self, row: JobRow, wrong: str, text: str) -> Record:
        """The record; a step only with what its allocation needs."""
        cells = row.cells
        get = cells.get
        cluster = get("Cluster", "")
        if row.step or wrong:
            return Record(row.line, text, row.job, row.step, cluster, wrong=wrong)
        limit_s, limit = self._limits[get("Timelimit", "")]
        if not get("Timelimit") and (raw := get("TimelimitRaw", "")):
            limit_s, limit = self._raw_limits[raw]
        held = get("AllocTRES", "")
        gpus, slices, flavor, cpus, memory_gib, listed, cut = self._resources[held or get("ReqTRES", "")]
        named = self._counts[get("NNodes") or get("AllocNodes") or get("ReqNodes") or ""]
        nodes = named if named > 0 else listed
        cores = self._counts[get("AllocCPUS") or get("NCPUS") or get("ReqCPUS") or ""]
        priority = self._counts[get("Priority", "")]
        restarts = self._counts[get("Restarts", "")]
        unplaced = ("AllocTRES" in cells and not held) or get("NodeList", "").lower() in _NOWHERE
        return Record(
            row.line, text, row.job, "", cluster, hash(tuple(cells.values())), "", row.state, row.submit, row.eligible,
            row.start, row.end, nan if row.elapsed_s is None else row.elapsed_s, gpus, cut, slices, flavor, unplaced,
            int(nodes) if nodes > 0 else UNKNOWN, cores if cores > 0 else cpus, memory_gib, limit_s, limit, priority,
            int(restarts) if restarts > 0 else 0, _word(cells, "Partition"), _word(cells, "Account"),
            _word(cells, "User"), _word(cells, "QOS"),
        )  # fmt: skip


def _word(cells: Mapping[str, str], column: str) -> str:
    word = cells.get(column, "").strip()
    return "" if word.lower() in _NO_WORDS else word


def _limit_of(text: str) -> tuple[float, str]:
    """Seconds, infinite for none; NaN with the word where the source does not tell."""
    read = read_duration(text)
    if isinstance(read, Quantity):
        return read.value, ""
    if read == "unlimited":
        return inf, ""
    return nan, text.strip()[:40] if text.strip() else ""


def _minutes_of(text: str) -> tuple[float, str]:
    """The same of TimelimitRaw, which is in minutes."""
    minutes = _count_of(text)
    return (minutes * 60.0, "") if minutes >= 0 else _limit_of(text)


def _count_of(text: str) -> float:
    read = read_count(text)
    return nan if isinstance(read, NoValue) else read


def _resources_of(text: str) -> tuple[int, bool, str, float, float, float, bool]:
    """GPUs, whether they are MIG instances, their types, cores, memory in GiB, nodes, whether the list is cut."""
    tres = read_tres(text)
    if isinstance(tres, NoValue):
        return UNKNOWN, False, "", nan, nan, nan, tres.lack is Lack.UNREADABLE
    count = gpus_of(text)
    types = [key.partition(":")[2] for key in tres if key.startswith("gres/gpu:")]
    memory = read_memory(tres["mem"], plain="MiB") if "mem" in tres else None
    memory_gib = memory.to("GiB") if isinstance(memory, Quantity) else nan
    gpus = count if isinstance(count, int) else UNNAMED
    cores, nodes = (_count_of(tres.get(name, "")) for name in ("cpu", "node"))
    return gpus, any(map(_SLICE.search, types)), "|".join(types), cores, memory_gib, nodes, False
