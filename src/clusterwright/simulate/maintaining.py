"""Planned windows in which nodes are not available."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Work on nodes that is planned.

    Args:
        nodes: indexes of the nodes it is about.
        first_s: when the first window begins.
        length_s: of one window.
        every_s: between the beginnings of two rounds; None when there is one round only.
        batches: parts of nearly equal size into which the nodes are cut; a round has a window for each, one after the
            other.
    """

    name: str
    nodes: tuple[int, ...]
    first_s: float
    length_s: float
    every_s: float | None = None
    batches: int = 1

    def __post_init__(self) -> None:
        if self.batches < 1 or not self.length_s > 0 or self.first_s < 0:
            raise ValueError(f"maintenance {self.name}: at least one batch, a length above 0, no start before 0")
        if self.every_s is not None and self.every_s < self.batches * self.length_s:
            raise ValueError(f"maintenance {self.name}: a round is not over when the next one begins")


@dataclass(frozen=True, slots=True)
class Window:
    """Nodes that are not available from `begin_s` to `end_s`."""

    name: str
    begin_s: float
    end_s: float
    nodes: tuple[int, ...]


def plan_windows(maintenance: Maintenance, until_s: float) -> tuple[Window, ...]:
    """The windows that begin before `until_s`, in order; none is of no nodes."""
    parts = [tuple(p.tolist()) for p in np.array_split(np.array(maintenance.nodes, dtype=int), maintenance.batches)]
    windows = []
    number = 0
    while True:
        round_number, batch = divmod(number, maintenance.batches)
        if round_number and maintenance.every_s is None:
            break
        begin_s = maintenance.first_s + round_number * (maintenance.every_s or 0.0) + batch * maintenance.length_s
        if begin_s >= until_s:
            break
        if parts[batch]:
            windows.append(Window(maintenance.name, begin_s, begin_s + maintenance.length_s, parts[batch]))
        number += 1
    return tuple(windows)
