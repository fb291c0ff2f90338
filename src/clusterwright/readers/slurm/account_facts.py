"""Rows of accounting → observations, column by column; each text of a column is read once.

A plan made at the header says for each column what reads its cells, so that a row costs a look at each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Observation, Value
from clusterwright.readers.memos import MOST, Memo
from clusterwright.readers.slurm.amounts import memory_scope, read_count, read_duration, read_memory, read_time
from clusterwright.readers.slurm.gres import gpus_of
from clusterwright.readers.slurm.job_rows import JobRow, seconds_between
from clusterwright.readers.slurm.states import read_job_state
from clusterwright.readers.values import lacking, quantity, unreadable

#: What one cell says: names with their values.
Facts = tuple[tuple[str, Value], ...]

_TEXTS: Final = {
    "JobName": "job_name", "User": "user", "Account": "account", "Partition": "partition", "QOS": "qos",
    "Cluster": "cluster", "NodeList": "node_list", "Reason": "pending_reason",
}  # fmt: skip
_TIMES: Final = {"Submit": "submit", "Eligible": "eligible", "Start": "start", "End": "end"}
_DURATIONS: Final = {"Elapsed": "elapsed", "Timelimit": "time_limit", "TotalCPU": "total_cpu", "CPUTime": "cpu_time"}
_RAW_SECONDS: Final = {"ElapsedRaw": "elapsed", "CPUTimeRAW": "cpu_time"}
_MEMORIES: Final = {"MaxRSS": "max_rss", "AveRSS": "average_rss", "MaxVMSize": "max_vmsize"}
_COUNTS: Final = {"NNodes": "nodes", "AllocNodes": "nodes", "AllocCPUS": "cpus", "NCPUS": "cpus"}
#: Columns that are read only where another one is blank.
_UNLESS: Final = {
    "ElapsedRaw": "Elapsed", "CPUTimeRAW": "CPUTime", "AllocNodes": "NNodes", "NCPUS": "AllocCPUS",
    "ConsumedEnergyRaw": "ConsumedEnergy",
}  # fmt: skip
_CUT: Final = "cut by the column's width: not guessed"
_FIELDS: Final = JobRow._fields
_new: Final = tuple.__new__


class Observing:
    """Rows of one output → observations.

    Args:
        cells: of a row; the others have the same columns.
    """

    def __init__(self, cells: Mapping[str, str]) -> None:
        there = [(column, Memo(read)) for column, read in _columns() if column in cells]
        self._always = [(column, memo) for column, memo in there if _UNLESS.get(column) not in cells]
        self._unless = [(column, memo, _UNLESS[column]) for column, memo in there if _UNLESS.get(column) in cells]
        self._times = [(column, name, _FIELDS.index(name)) for column, name in _TIMES.items() if column in cells]
        self._seconds: dict[float, Quantity] = {}
        self._hours: dict[float, Quantity] = {}

    def observe(self, row: JobRow) -> list[Observation]:
        """What a record says."""
        cells, subject, line = row.cells, row.subject, row.line
        facts: list[tuple[str, Value]] = []
        for column, memo in self._always:
            facts += memo[cells[column]]
        if row.cut:
            shown = {name: cells[column] for column, name in _TEXTS.items() if column in row.cut}
            facts = [(n, unreadable(shown[n], _CUT) if n in shown else value) for n, value in facts]
        for column, memo, other in self._unless:
            if not cells[other]:
                facts += memo[cells[column]]
        for column, name, place in self._times:
            facts.append((name, cells[column] if row[place] is not None else read_time(cells[column])))
        self._add_derived(row, facts)
        return [_new(Observation, (name, value, subject, line)) for name, value in facts]

    def _add_derived(self, row: JobRow, facts: list[tuple[str, Value]]) -> None:
        """What follows from several cells of a row."""
        cells = row.cells
        if not cells.get("Elapsed") and not cells.get("ElapsedRaw"):
            between = seconds_between(row.start, row.end)
            if between is not None:
                facts.append(("start_to_end", _shared(self._seconds, between, 1, "s")))
        if row.step:
            return
        waited, spent = row.waited_s, row.gpu_seconds
        if waited is not None and waited >= 0:
            facts.append(("waited", _shared(self._seconds, waited, 1, "s")))
        if spent is not None:
            facts.append(("gpu_time", _shared(self._hours, spent, 3600, "GPU-h")))


def _shared(known: dict[float, Quantity], number: float, divisor: float, unit: str) -> Quantity:
    found = known.get(number)
    if found is None:
        if len(known) >= MOST:
            known.clear()
        found = known[number] = quantity(number / divisor, unit)
    return found


def _columns() -> Iterator[tuple[str, Callable[[str], Facts]]]:
    """What reads the cells of each column, in the order in which a record is described."""
    yield "State", _read_state
    yield "ExitCode", _read_exit_code
    for column, name in _TEXTS.items():
        yield column, _named(name, lambda text: text, lambda text: lacking(text) is None)
    for column, name in _DURATIONS.items():
        yield column, _named(name, read_duration)
    for column, name in _RAW_SECONDS.items():
        yield column, _named(name, lambda text: _counted(text, "s"))
    for column, name in _MEMORIES.items():
        yield column, _named(name, read_memory)
    for column, name in _COUNTS.items():
        yield column, _named(name, read_count)
    yield "ReqMem", _read_request
    for column in ("ConsumedEnergy", "ConsumedEnergyRaw"):
        yield column, _named("consumed_energy", lambda text: _counted(text, "J"), lambda t: t not in ("", "0", "N/A"))
    for column, name in (("AllocTRES", "gpus_allocated"), ("ReqTRES", "gpus_requested")):
        yield column, _named(name, _count_gpus, lambda text: True)


def _named(name: str, read: Callable[[str], Value], holds: Callable[[str], bool] = bool) -> Callable[[str], Facts]:
    """A reader of cells that give one value, where they hold something."""
    return lambda text: ((name, read(text)),) if holds(text) else ()


def _counted(text: str, unit: str) -> Value:
    number = read_count(text)
    return number if isinstance(number, NoValue) else quantity(number, unit)


def _count_gpus(text: str) -> Value:
    count = gpus_of(text)
    return float(count) if isinstance(count, int) else count


def _read_state(text: str) -> Facts:
    state = read_job_state(text) or unreadable(text, "cut, or no state that Slurm documents")
    by = re.fullmatch(r"CANCELLED by (\S{1,64})", text.strip())
    return (("job_state", state), *((("cancelled_by", by[1]),) if by is not None else ()))


def _read_exit_code(text: str) -> Facts:
    code = re.fullmatch(r"(\d{1,10}):(\d{1,4})", text)
    return (("exit_code", float(code[1])), ("exit_signal", float(code[2]))) if code is not None else ()


def _read_request(text: str) -> Facts:
    if not text:
        return ()
    everything = text.strip("cn0.KMG") == ""
    asked = (
        NoValue(Lack.ABSENT, text, "0 asks for all memory of the node")
        if everything
        else read_memory(text, plain="MiB")
    )
    scope = memory_scope(text)
    return (("memory_requested", asked), *((("memory_scope", scope),) if scope else ()))
