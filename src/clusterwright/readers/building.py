"""Collecting a run while its lines go by, within bounds: what exceeds them is counted and said, never dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Labels, Notice, Observation, Run, Unread, Value, Weight
from clusterwright.readers.refusing import shorten

#: Most observations that one run keeps.
MOST_OBSERVATIONS: Final = 500_000
#: Most notices of each weight, and most parts that are named as missing.
_MOST_NOTICES: Final = 1_000
_MOST_MISSING: Final = 1_000
_SAMPLES: Final = 10
_new: Final = tuple.__new__


class RunBuilder:
    """A run that grows; `build` gives the finished value.

    Args:
        tool: name of the program, such as `all_reduce_perf`.
    """

    def __init__(self, tool: str, version: str = "") -> None:
        self.tool = tool
        self.version = version
        self.observations: list[Observation] = []
        self.rejected = 0
        self._conditions: dict[str, Value] = {}
        self._notices: dict[tuple[str, str], Notice] = {}
        self._missing: dict[str, None] = {}
        self._unread: list[Unread] = []
        self._left_out = 0
        self._said: Counter[Weight] = Counter()
        self._unsaid = 0
        self._unnamed = 0

    def observe(self, name: str, value: Value, subject: Labels = (), line: int = 0) -> None:
        """Keep one value."""
        if len(self.observations) < MOST_OBSERVATIONS:
            self.observations.append(_new(Observation, (name, value, subject, line)))
        else:
            self._left_out += 1

    def extend(self, observations: Sequence[Observation]) -> None:
        """Keep several values, as far as there is room."""
        room = self.room
        if len(observations) <= room:
            self.observations += observations
        else:
            self.observations += observations[:room]
            self._left_out += len(observations) - room

    @property
    def room(self) -> int:
        """How many more values are kept."""
        return MOST_OBSERVATIONS - len(self.observations)

    def condition(self, name: str, value: Value) -> None:
        """Keep what was printed about how it was run; a later different value is a notice, the first one stays."""
        before = self._conditions.setdefault(name, value)
        if before != value:
            self.notice("condition-twice", f"{name} is printed as {before} and as {value}")

    def conditions(self) -> dict[str, Value]:
        """The conditions so far."""
        return dict(self._conditions)

    def notice(self, code: str, message: str, weight: Weight = Weight.WARNING, line: int = 0) -> None:
        """Say something about the run, once per message."""
        if (code, message) in self._notices:
            return
        if self._said[weight] < _MOST_NOTICES:
            self._said[weight] += 1
            self._notices[(code, message)] = Notice(code, message, weight, line)
        else:
            self._unsaid += 1

    def missing(self, part: str) -> None:
        """A part of a whole output that is not there."""
        if len(self._missing) < _MOST_MISSING or part in self._missing:
            self._missing[part] = None
        else:
            self._unnamed += 1

    def reject(self, line: int, text: str, why: str) -> None:
        """A row that looked like data and was not read."""
        self.rejected += 1
        if len(self._unread) < _SAMPLES:
            self._unread.append(Unread(line, shorten(text), why))

    @property
    def bare(self) -> bool:
        """Whether nothing was observed."""
        return not self.observations

    def build(self) -> Run:
        """The run as a value."""
        missing = list(self._missing)
        if self._left_out:
            missing.append(f"{self._left_out:,} values beyond the first {MOST_OBSERVATIONS:,}")
        if self._unsaid:
            missing.append(f"{self._unsaid:,} notices beyond the first {_MOST_NOTICES:,} of their weight")
        if self._unnamed:
            missing.append(f"{self._unnamed:,} more, beyond the {_MOST_MISSING:,} that are named")
        return Run(
            tool=self.tool,
            version=self.version,
            conditions=tuple(self._conditions.items()),
            observations=tuple(self.observations),
            notices=tuple(self._notices.values()),
            missing=tuple(missing),
            rejected=self.rejected,
            unread=tuple(self._unread),
        )
