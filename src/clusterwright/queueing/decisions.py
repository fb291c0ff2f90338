"""What a cycle decided, each decision with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from clusterwright.model.jobs import JobId
from clusterwright.queueing.requests import Placement, Request


class Start(NamedTuple):
    """A job starts now.

    Args:
        backfilled: the job that it passes and whose promised start it keeps, None when it passes none.
        after_preemption: whether it takes what its victims left.
    """

    request: Request
    placement: Placement
    borrowed: bool = False
    backfilled: JobId | None = None
    after_preemption: bool = False

    @property
    def reason(self) -> str:
        """In plain words."""
        nodes = len({node for _, node, _ in self.placement.runs})
        said = [f"{self.placement.gpus} GPUs on {nodes} node{'s' * (nodes != 1)}"]
        said += ["borrowing"] * self.borrowed
        said += [f"backfilled before job {self.backfilled}"] * (self.backfilled is not None)
        said += ["after preemption"] * self.after_preemption
        return ", ".join(said)


@dataclass(frozen=True, slots=True)
class Preemption:
    """Jobs that must leave so that another can start.

    Args:
        leaving_at_s: (time, job) when each gives its GPUs back at the latest.
    """

    request: Request
    victims: tuple[JobId, ...]
    leaving_at_s: tuple[float, ...]
    placement: Placement

    @property
    def reason(self) -> str:
        """In plain words."""
        return f"for job {self.request.id} of queue '{self.request.queue}', priority {self.request.priority}"


class Decisions(NamedTuple):
    """Everything that one cycle decided, in order; it is written into the state already."""

    starts: tuple[Start, ...]
    preemptions: tuple[Preemption, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.starts or self.preemptions)
