"""Sums of the ledger, as whole GPU-milliseconds by account and entry, to be grouped, merged and turned into shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, HELD, NO_CHECKPOINT_DATA, Account, Entry, Line

_LINE: Final = "line"
_WHY: Final = "why"


@dataclass(frozen=True, slots=True)
class Lines:
    """GPU-milliseconds by account and entry; those of an interval without gaps sum to `installed_gpu_ms`.

    Args:
        installed_gpu_ms: installed GPUs × time by flavor; empty for lines of jobs alone, which need not sum to it.
        partial: whether the interval ended before what it was meant to hold.
    """

    amounts: Mapping[tuple[Account, Entry], int]
    installed_gpu_ms: Mapping[str, int] = field(default_factory=dict)
    partial: bool = False

    @property
    def total_gpu_ms(self) -> int:
        """Sum of all lines."""
        return sum(self.amounts.values())

    @property
    def held_gpu_ms(self) -> int:
        """Sum of what attempts held: allocated, whether or not it was of use."""
        return sum(n for (_, e), n in self.amounts.items() if e.line in HELD or e.why == NO_CHECKPOINT_DATA)

    def of(self, line: Line, why: str | None = None) -> int:
        """GPU-ms of a line, of one detail of it where `why` is given."""
        return sum(n for (_, e), n in self.amounts.items() if e.line is line and why in (None, e.why))

    def by_line(self) -> dict[Line, int]:
        """GPU-ms of every line, in the order of `Line`, 0 for lines without any."""
        found = dict.fromkeys(Line, 0)
        for (_, entry), n in self.amounts.items():
            found[entry.line] += n
        return found

    def by(self, *fields: str) -> dict[tuple[str, ...], int]:
        """GPU-ms grouped by fields of the account ("queue", "team", "size", "flavor", "job"), by "line" or "why".

        Raises:
            ValueError: for a field that there is not.
        """
        known = (*Account._fields, _LINE, _WHY)
        if unknown := [f for f in fields if f not in known]:
            raise ValueError(f"'{unknown[0]}' is no field of the ledger; fields: {', '.join(known)}")
        places = [known.index(f) for f in fields]
        found: dict[tuple[str, ...], int] = {}
        for (account, entry), n in self.amounts.items():
            row: tuple[str, ...] = (*account, *entry)
            key = tuple(row[p] for p in places)
            found[key] = found.get(key, 0) + n
        return found

    def share(self, *lines: Line) -> float | None:
        """What part of all time is in these lines, 0 to 1; None when there is no time."""
        total = self.total_gpu_ms
        return sum(self.of(line) for line in lines) / total if total else None

    def gpu_h(self, line: Line) -> float:
        """GPU-hours of a line."""
        return self.of(line) / GPU_MS_PER_GPU_H


def merge_lines(parts: Iterable[Lines]) -> Lines:
    """The lines of several intervals, or of several clusters, as one; exact, in any order."""
    amounts: dict[tuple[Account, Entry], int] = {}
    installed: dict[str, int] = {}
    partial = False
    for part in parts:
        partial = partial or part.partial
        for key, n in part.amounts.items():
            amounts[key] = amounts.get(key, 0) + n
        for flavor, n in part.installed_gpu_ms.items():
            installed[flavor] = installed.get(flavor, 0) + n
    return Lines(amounts, installed, partial)
