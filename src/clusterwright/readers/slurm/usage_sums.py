"""Sums over all allocations of one output, however many of them are listed one by one.

Observations: `allocations_by_state` (subject: state), `gpu_time_by_state` (subject: state), `gpu_time_by_account`
(subject: account, cluster where printed), and beside a sum that lacks some `allocations_without_gpu_time` (same
subject): what their records do not tell is not in the sum, and is not 0. A requeued job counts with every attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from clusterwright.model.observations import Labels, Lack, NoValue
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.slurm.job_rows import JobRow
from clusterwright.readers.values import lacking, quantity

#: Most groups of one kind; what lies beyond is said to be missing.
MOST_GROUPS: Final = 5_000
_NO_STATE: Final = "unreadable"
_NO_ACCOUNT: Final = "(none)"


@dataclass(slots=True)
class _Group:
    allocations: int = 0
    gpu_seconds: float = 0.0
    unknown: int = 0


class UsageSums:
    """Allocations and GPU time by state and by account."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str, str], _Group] = {}
        self._left_out = 0
        self._tracked = False

    def add(self, row: JobRow) -> None:
        """Count an allocation."""
        cells = row.cells
        account = cells.get("Account", "")
        key = (row.state or _NO_STATE, account, cells.get("Cluster", ""))
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= MOST_GROUPS:
                self._left_out += 1
                return
            group = self._groups[key] = _Group()
        self._tracked = self._tracked or "AllocTRES" in cells
        group.allocations += 1
        spent = row.gpu_seconds
        if spent is None:
            group.unknown += 1
        else:
            group.gpu_seconds += spent

    def conclude(self, run: RunBuilder, *, states: bool, accounts: bool) -> None:
        """Write the sums into the run.

        Args:
            states, accounts: whether the output has such a column.
        """
        by_state: dict[Labels, _Group] = {}
        by_account: dict[Labels, _Group] = {}
        for (state, account, cluster), group in self._groups.items():
            _merge(by_state, (("state", state),), group)
            named = (("account", account if lacking(account) is None else _NO_ACCOUNT),)
            _merge(by_account, (*named, ("cluster", cluster)) if cluster else named, group)
        for subject, group in by_state.items() if states else ():
            run.observe("allocations_by_state", float(group.allocations), subject)
        for name, groups, asked in (("state", by_state, states), ("account", by_account, accounts)):
            for subject, group in groups.items() if asked and self._tracked else ():
                _observe(run, f"gpu_time_by_{name}", subject, group)
        if self._left_out:
            run.missing(f"{self._left_out:,} allocations in the sums, beyond {MOST_GROUPS:,} states and accounts")


def _merge(groups: dict[Labels, _Group], key: Labels, more: _Group) -> None:
    group = groups.setdefault(key, _Group())
    group.allocations += more.allocations
    group.gpu_seconds += more.gpu_seconds
    group.unknown += more.unknown


def _observe(run: RunBuilder, name: str, subject: Labels, group: _Group) -> None:
    if group.unknown == group.allocations:
        run.observe(name, NoValue(Lack.ABSENT, "", "no record of these tells its GPUs and its time"), subject)
        return
    run.observe(name, quantity(group.gpu_seconds / 3600, "GPU-h"), subject)
    if group.unknown:
        run.observe("allocations_without_gpu_time", float(group.unknown), subject)
