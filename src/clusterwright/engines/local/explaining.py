"""Why jobs wait, kept in history: looked at a few jobs at a time, so that no decision waits for hundreds of reasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from clusterwright.engines.local.deciding import Decided
from clusterwright.model.jobs import JobId
from clusterwright.model.outlooks import Blocker, BlockerKind
from clusterwright.ports.stores import NewEvent

#: Jobs that are looked at in one go. A choice: the reasons of one take about half a millisecond.
AT_ONCE: Final = 20


class Reasons:
    """What history was last told about each waiting job, and who is to be looked at again."""

    def __init__(self) -> None:
        self._told: dict[JobId, list[BlockerKind]] = {}
        self._due: dict[JobId, None] = {}
        self._decided: Decided | None = None

    def decided(self, decided: Decided) -> None:
        """Reasons may be others now; who has waited longest to be looked at stays first."""
        waiting = decided.state.waiting
        self._decided = decided
        self._due = dict.fromkeys([*(j for j in self._due if j in waiting), *waiting])
        self._told = {j: kinds for j, kinds in self._told.items() if j in waiting}

    def look(self, commit: Callable[[Sequence[NewEvent]], None]) -> bool:
        """Tell history about some jobs whose kinds of reasons changed; whether more are due.

        Raises:
            Unavailable: from `commit`; then nothing counts as told.
        """
        if self._decided is None or not self._due:
            return False
        jobs = list(self._due)[:AT_ONCE]
        found = {j: self._decided.blockers(j) for j in jobs}
        kinds = {j: [b.kind for b in blockers] for j, blockers in found.items()}
        at_s = self._decided.at_s
        commit([_event(j, found[j], at_s) for j in jobs if kinds[j] != self._told.get(j, [])])
        self._told |= kinds
        for job in jobs:
            del self._due[job]
        return bool(self._due)


def _event(job: JobId, blockers: Sequence[Blocker], at_s: float) -> NewEvent:
    said = [{"kind": b.kind, "message": b.message} for b in blockers]
    return NewEvent("blocked_by", at_s, job, data={"blockers": said})
