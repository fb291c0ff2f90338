"""Rows → the table of a trace, a few bytes a value while it grows; columns that a source does not have take none."""

from __future__ import annotations

from array import array
from math import nan
from typing import Any, Final, TypedDict, Unpack

import numpy as np

from clusterwright.traces.tables import UNKNOWN, Trace, Words

#: Column of numbers → (type code of `array`, value where a row says nothing).
_NUMBERS: Final[dict[str, tuple[str, float]]] = {
    "eligible_s": ("d", nan), "start_s": ("d", nan), "end_s": ("d", nan), "run_s": ("d", nan), "lost_s": ("d", 0.0),
    "limit_s": ("d", nan), "cpus": ("d", nan), "memory_gib": ("d", nan), "priority": ("d", nan),
    "gpus": ("i", UNKNOWN), "gpu_milli": ("i", 1000), "tasks": ("i", UNKNOWN), "gpus_per_task": ("i", UNKNOWN),
    "attempts": ("i", 1), "line": ("i", 0), "censored": ("b", 0),
}  # fmt: skip
_WORDS: Final = ("queue", "account", "user", "qos", "flavor", "state", "cause")
_TYPES: Final = {"d": np.float64, "i": np.int32, "b": np.bool_}


class Known(TypedDict, total=False):
    """What a row may say of a job; the names and units are those of `Trace`."""

    eligible_s: float
    start_s: float
    end_s: float
    run_s: float
    lost_s: float
    limit_s: float
    cpus: float
    memory_gib: float
    priority: float
    gpus: int
    gpu_milli: int
    tasks: int
    gpus_per_task: int
    attempts: int
    line: int
    censored: bool
    queue: str
    account: str
    user: str
    qos: str
    flavor: str
    state: str
    cause: str


class TraceBuilder:
    """A trace that grows job by job, in any order; `build` gives the table in the order of submission."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._submit_s = array("d")
        self._columns: dict[str, array[Any]] = {name: array(code) for name, (code, _) in _NUMBERS.items()}
        self._columns |= {name: array("i") for name in _WORDS}
        self._codes: dict[str, dict[str, int]] = {name: {"": 0} for name in _WORDS}

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, id: str, submit_s: float, **known: Unpack[Known]) -> int:
        """Take a job and give its place among those added; what is not given is not recorded."""
        place = len(self.ids)
        self.ids.append(id)
        self._submit_s.append(submit_s)
        self._write(place, known)
        return place

    def change(self, place: int, **known: Unpack[Known]) -> None:
        """Write over what an earlier row said of a job."""
        self._write(place, known)

    def number(self, place: int, name: str) -> float:
        """What a column of numbers holds for a job."""
        column = self._columns[name]
        return float(column[place]) if place < len(column) else _NUMBERS[name][1]

    def word(self, place: int, name: str) -> str:
        """What a column of words holds for a job."""
        column = self._columns[name]
        return list(self._codes[name])[column[place]] if place < len(column) else ""

    def submitted_s(self, place: int) -> float:
        """When a job was submitted."""
        return self._submit_s[place]

    def resubmit(self, place: int, submit_s: float) -> None:
        """Write over when a job was submitted."""
        self._submit_s[place] = submit_s

    def copy(self, place: int) -> int:
        """Add a job that is equal to an earlier one, and give its place."""
        self.ids.append(self.ids[place])
        self._submit_s.append(self._submit_s[place])
        for name, column in self._columns.items():
            if len(column) > place:
                self._pad(name, column, len(self.ids) - 1)
                column.append(column[place])
        return len(self.ids) - 1

    def build(self) -> Trace:
        """The table."""
        count = len(self.ids)
        order = np.argsort(np.array(self._submit_s, dtype=np.float64), kind="stable")
        columns: dict[str, Any] = {}
        for name, column in self._columns.items():
            self._pad(name, column, count)
            kind = _TYPES[_NUMBERS[name][0]] if name in _NUMBERS else np.int32
            sorted_column: Any = np.array(column, dtype=kind)[order]
            columns[name] = Words(sorted_column, tuple(self._codes[name])) if name in self._codes else sorted_column
        ids = tuple(self.ids[place] for place in order.tolist())
        return Trace(ids=ids, submit_s=np.array(self._submit_s, dtype=np.float64)[order], **columns)

    def _write(self, place: int, known: Known) -> None:
        value: Any
        columns, words = self._columns, self._codes
        for name, value in known.items():
            column = columns[name]
            if name in words:
                codes = words[name]
                value = codes.setdefault(value, len(codes))
            if len(column) == place:
                column.append(value)
            elif len(column) > place:
                column[place] = value
            else:
                self._pad(name, column, place)
                column.append(value)

    @staticmethod
    def _pad(name: str, column: array[Any], count: int) -> None:
        fill = _NUMBERS[name][1] if name in _NUMBERS else 0
        column.extend(array(column.typecode, [fill]) * (count - len(column)))
