"""Adds up a history as it happens: constant time per call, memory by accounts and lines, never by jobs or nodes.

Three counts come from the caller and are never computed from each other: GPUs installed, GPUs that attempts hold, GPUs
that nobody holds (free, or out of use). So their balance is a check: at every instant, and of every sum at the end.
What does not balance is an error that names flavor, time and counts; no line takes it up.

Changes at one instant may come in any order; the balance is looked at when time goes on. An attempt is charged once,
when it ends; until then its GPUs are only known to be held. A node that fails under an attempt stays the attempt's
until the attempt gives it back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

from clusterwright.ledger.attempts import ENTRIES, AttemptRecord, charge_attempt, charge_part
from clusterwright.ledger.lines import OUT, Account, Entry, Line, to_ms
from clusterwright.ledger.totals import Lines

_FREE: Final = Entry(Line.FREE)
_NEVER: Final = 2**63


class Unbalanced(ArithmeticError):
    """The counts of a ledger contradict each other; whoever called it has lost or counted twice the difference."""


@dataclass(slots=True)
class _Out:
    """GPUs of one entry that are out of use since an instant."""

    gpus: int
    since_ms: int


@dataclass(slots=True)
class _Flavor:
    """What is known of one flavor since `at_ms`, and what it has added up to.

    `free_gpu_ms` is that of the blocker of now; those of earlier ones are in `demands`, "" is without demand.
    """

    at_ms: int
    installed: int = 0
    free: int = 0
    held: int = 0
    out_of_use: int = 0
    blocker: str = ""
    out: dict[Entry, _Out] = field(default_factory=dict)
    installed_gpu_ms: int = 0
    free_gpu_ms: int = 0
    demands: dict[str, int] = field(default_factory=dict)
    sums: dict[Entry, int] = field(default_factory=dict)


class Ledger:
    """The accounts of a cluster from `since_s` until `until_s`; what happens before and after is only followed.

    Every call names its time, which never goes back for one flavor. The lines of adjoining intervals of one history
    add up to those of the whole.
    """

    def __init__(self, since_s: float = 0.0, until_s: float | None = None) -> None:
        self._since_s, self._until_s = since_s, math.inf if until_s is None else until_s
        self._since_ms, self._until_ms = to_ms(since_s), _NEVER if until_s is None else to_ms(until_s)
        self._flavors: dict[str, _Flavor] = {}
        self._sums: dict[Account, list[int]] = {}

    def install(self, at_s: float, flavor: str, gpus: int) -> None:
        """`gpus` are installed in all from now on; the same instant says whether what is new is free or out."""
        at_ms = to_ms(at_s)
        if flavor not in self._flavors:
            self._flavors[flavor] = _Flavor(at_ms)
        self._at(at_ms, flavor).installed = gpus

    def free(self, at_s: float, flavor: str, gpus: int, blocker: str = "") -> None:
        """`gpus` could be given to a job now; `blocker` is why the head does not get them, "" when nobody waits."""
        self.count(to_ms(at_s), flavor, 0, gpus, blocker)

    def put_out(self, at_s: float, flavor: str, line: Line, gpus: int, why: str = "") -> None:
        """`gpus` more that nobody holds are reserved, drained, unhealthy or unknown; negative takes them back."""
        if line not in OUT:
            raise ValueError(f"'{line}' is no line of GPUs out of use: {', '.join(sorted(OUT))}")
        at_ms, entry = to_ms(at_s), Entry(line, why)
        side = self._at(at_ms, flavor)
        out = side.out.get(entry)
        if out is None:
            out = side.out[entry] = _Out(0, at_ms)
        self._settle_out(side, entry, out, at_ms)
        out.gpus += gpus
        side.out_of_use += gpus

    def admit(self, at_s: float, flavor: str, gpus: int) -> None:
        """An attempt holds `gpus` from now on."""
        self._at(to_ms(at_s), flavor).held += gpus

    def charge(self, account: Account, record: AttemptRecord) -> None:
        """An attempt ended: it gives its GPUs back at its end and is divided into lines.

        Raises:
            ValueError: when its facts contradict each other; Unbalanced when time went on without balance before.
        """
        self._at(to_ms(record.ended_s), account.flavor).held -= record.gpus
        self.divide(self.sums_of(account), record)

    def count(self, at_ms: int, flavor: str, more_held: int, free: int, blocker: str = "") -> None:
        """All that changed at one instant: GPUs that attempts hold more, and what is `free` now, as the calls above."""
        side = self._at(at_ms, flavor)
        if blocker != side.blocker:
            _settle_free(side)
            side.blocker = blocker
        side.held += more_held
        side.free = free

    def sums_of(self, account: Account) -> list[int]:
        """What an account was charged so far, by `ENTRIES`; the list itself, for who adds to it in place."""
        sums = self._sums.get(account)
        if sums is None:
            sums = self._sums[account] = [0] * len(ENTRIES)
        return sums

    def divide(self, sums: list[int], record: AttemptRecord) -> None:
        """Divide an attempt that ended into lines; `count` is told apart that it gave its GPUs back.

        Raises:
            ValueError: when its facts contradict each other.
        """
        if record.admitted_s >= self._since_s and record.ended_s <= self._until_s:
            charge_attempt(sums, record)
        else:
            charge_part(sums, record, self._since_ms, self._until_ms)

    def fork(self) -> Ledger:
        """A copy that goes its own way: charge what still runs there, and close it for a partial result."""
        other = Ledger(self._since_s)
        other._until_s, other._until_ms = self._until_s, self._until_ms
        other._sums = {account: list(sums) for account, sums in self._sums.items()}
        other._flavors = {name: _copy(side) for name, side in self._flavors.items()}
        return other

    def close(self, at_s: float, *, partial: bool = False) -> Lines:
        """The lines until `at_s`, which sum to installed GPUs × time for every flavor; no call may follow.

        Raises:
            Unbalanced: when they do not, or an attempt that holds GPUs was not charged.
        """
        at_ms = to_ms(at_s)
        amounts: dict[tuple[Account, Entry], int] = {}
        for account, sums in self._sums.items():
            amounts |= {(account, entry): gpu_ms for entry, gpu_ms in zip(ENTRIES, sums, strict=True) if gpu_ms}
        for flavor, side in self._flavors.items():
            if side.held:
                raise Unbalanced(f"{flavor}: attempts that hold {side.held} GPUs at {at_s} s were not charged")
            self._at(at_ms, flavor)
            _settle_free(side)
            for entry, out in side.out.items():
                self._settle_out(side, entry, out, at_ms)
            own = Account(flavor)
            for entry, gpu_ms in _entries(side).items():
                amounts[own, entry] = amounts.get((own, entry), 0) + gpu_ms
        lines = Lines(amounts, {name: side.installed_gpu_ms for name, side in self._flavors.items()}, partial)
        _check(lines, at_s)
        return lines

    def _at(self, at_ms: int, flavor: str) -> _Flavor:
        """A flavor at an instant; where that is a later one, what was known until then must balance."""
        side = self._flavors[flavor]
        low_ms = side.at_ms
        if at_ms <= low_ms:
            if at_ms < low_ms:
                raise ValueError(f"{flavor}: time goes back from {low_ms / 1000} s to {at_ms / 1000} s")
            return side
        if side.free + side.held + side.out_of_use != side.installed:
            raise Unbalanced(
                f"{flavor}: from {low_ms / 1000} s on {side.installed} GPUs are installed, but {side.free} are free, "
                f"{side.held} held and {side.out_of_use} out of use"
            )
        side.at_ms = at_ms
        if low_ms < self._since_ms:
            low_ms = self._since_ms
        if at_ms > self._until_ms:
            at_ms = self._until_ms
        if at_ms > low_ms:
            side.installed_gpu_ms += side.installed * (at_ms - low_ms)
            side.free_gpu_ms += side.free * (at_ms - low_ms)
        return side

    def _settle_out(self, side: _Flavor, entry: Entry, out: _Out, at_ms: int) -> None:
        span_ms = min(at_ms, self._until_ms) - max(out.since_ms, self._since_ms)
        out.since_ms = at_ms
        if span_ms > 0:
            side.sums[entry] = side.sums.get(entry, 0) + out.gpus * span_ms


def _settle_free(side: _Flavor) -> None:
    side.demands[side.blocker] = side.demands.get(side.blocker, 0) + side.free_gpu_ms
    side.free_gpu_ms = 0


def _entries(side: _Flavor) -> dict[Entry, int]:
    """What nobody held, without empty entries."""
    free = {Entry(Line.FREE_WITH_DEMAND, why) if why else _FREE: gpu_ms for why, gpu_ms in side.demands.items()}
    return {entry: gpu_ms for entry, gpu_ms in (free | side.sums).items() if gpu_ms}


def _copy(side: _Flavor) -> _Flavor:
    out = {entry: replace(out) for entry, out in side.out.items()}
    return replace(side, out=out, demands=dict(side.demands), sums=dict(side.sums))


def _check(lines: Lines, at_s: float) -> None:
    for (account, entry), gpu_ms in lines.amounts.items():
        if gpu_ms < 0:
            name = f"'{entry.line}' ({entry.why})" if entry.why else f"'{entry.line}'"
            raise Unbalanced(f"{account.flavor}: {name} comes to {gpu_ms} GPU-ms until {at_s} s")
    found = lines.by("flavor")
    for flavor, installed in lines.installed_gpu_ms.items():
        difference = installed - found.get((flavor,), 0)
        if difference:
            raise Unbalanced(
                f"{flavor}: until {at_s} s installed GPUs × time is {installed} GPU-ms, the lines sum to "
                f"{installed - difference}: {abs(difference)} {'missing' if difference > 0 else 'counted twice'}; "
                "an attempt was charged with other times or GPUs than it was admitted with"
            )
