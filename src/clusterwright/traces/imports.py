"""What an import gives: the table, an account of every row, and what the source does not record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from clusterwright.traces.counting import RowCounts
from clusterwright.traces.tables import Trace

#: Lines of a source with their numbers, from 1, without their ends.
Lines = Iterable[tuple[int, str]]


class Machine(NamedTuple):
    """A node that a trace lists.

    Args:
        flavor: its GPU type, "" without GPUs or where not recorded.
    """

    name: str
    gpus: int
    flavor: str
    cpus: float
    memory_gib: float


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that the source does not record: never 0, never guessed."""

    what: str
    consequence: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Imported:
    """A source as a trace.

    Args:
        kind: what it was read as.
        zone: that local times were taken to be in; "" where every time has its own, or none has a date.
        dated: whether times are POSIX seconds; else seconds since the start of the trace.
        machines: nodes that it lists, none for most kinds.
        header: what the source says about itself, such as `MaxProcs`.
    """

    kind: str
    trace: Trace
    counts: RowCounts
    gaps: tuple[Gap, ...] = ()
    zone: str = ""
    dated: bool = True
    machines: tuple[Machine, ...] = ()
    header: Mapping[str, str] = field(default_factory=dict)
