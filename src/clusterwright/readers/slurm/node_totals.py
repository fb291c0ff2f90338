"""Sums over the nodes of a listing, and what is said about all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from clusterwright.lib.hostlists import fold
from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.refusing import shorten
from clusterwright.readers.slurm.job_notices import LimitedNotices

_SHOWN: Final = 200
_MOST_REASONS: Final = 50


@dataclass
class Totals:
    """Sums over the nodes; a sum stays None until a node has the amount."""

    said: LimitedNotices
    configured: int | None = None
    allocated: int | None = None
    taking: int | None = None
    slices: int = 0
    unread: list[str] = field(default_factory=list)
    kept_out: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    stateless: int = 0
    reasons: dict[str, list[str]] = field(default_factory=dict)
    untracked: list[str] = field(default_factory=list)

    def conclude(self, run: RunBuilder) -> None:
        """Write the sums into the run."""
        for name, total in (
            ("gpus_configured", self.configured),
            ("gpus_allocated", self.allocated),
            ("gpus_on_nodes_taking_jobs", self.taking),
        ):
            if total is not None and not self.unread:
                run.condition(name, float(total))
        if self.unread:
            run.notice(
                "gres-unreadable",
                f"resources of {len(self.unread)} nodes cannot be read ({listed_nodes(self.unread)}): no sum is given",
                Weight.ERROR,
            )
        if self.slices:
            run.condition("mig_slices_configured", float(self.slices))
            run.notice(
                "mig-slices",
                f"{self.slices} MIG slices are listed as gpu; they are parts of GPUs and are not added to whole GPUs",
            )
        if self.kept_out:
            run.notice(
                "nodes-take-no-jobs",
                f"{len(self.kept_out)} nodes take no ordinary jobs (drained, down, reserved, in maintenance, "
                f"not responding …): {listed_nodes(self.kept_out)}",
            )
        for reason, names in list(self.reasons.items())[:_MOST_REASONS]:
            run.notice("nodes-out", f"{listed_nodes(names)} ({len(names)} nodes): {reason}")
        if self.silent:
            run.notice("not-responding", f"{len(self.silent)} nodes do not respond: {listed_nodes(self.silent)}")
        if self.untracked:
            run.notice(
                "tres-without-gpu",
                f"nodes with GPUs have no gres/gpu among their trackable resources ({listed_nodes(self.untracked)}): "
                "AccountingStorageTRES lacks gres/gpu, accounting of this cluster carries no GPU hours, and AllocTRES "
                "must not be read as 0 GPUs",
            )


def listed_nodes(names: Iterable[str]) -> str:
    """The names as a host list, shortened."""
    return shorten(fold(names), _SHOWN)
