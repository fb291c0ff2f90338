"""What every engine offers: take jobs, say what became of them and why they wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from clusterwright.model.jobs import Event, Job, JobId, JobSpec, LogLine, Node
from clusterwright.model.outlooks import Blocker


class Engine(Protocol):
    """Runs jobs on nodes.

    Every method raises `Unavailable` when the engine does not answer, and `InvalidInput` for a job that does not exist.
    """

    def submit(self, spec: JobSpec) -> JobId:
        """Take a job; when this returns, the job survives a crash of the engine."""
        ...

    def jobs(self) -> tuple[Job, ...]:
        """All jobs, in order of submission."""
        ...

    def job(self, job: JobId) -> Job:
        """One job with all its attempts."""
        ...

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in order of declaration."""
        ...

    def events(self, after: int = 0, *, job: JobId | None = None, wait_s: float = 0.0) -> tuple[Event, ...]:
        """Events with a sequence number above `after`, oldest first; waits up to `wait_s` for the first one."""
        ...

    def why(self, job: JobId) -> tuple[Blocker, ...]:
        """Why the job does not run now; at least one blocker for every job that has not ended and does not run."""
        ...

    def logs(
        self, job: JobId, *, rank: int | None = None, attempt: int | None = None, follow: bool = False
    ) -> Iterator[LogLine]:
        """What the ranks wrote, of the latest attempt unless one is named; `follow` ends when the job has ended."""
        ...

    def cancel(self, job: JobId) -> None:
        """End the job (SIGTERM, grace, SIGKILL); returns when the wish is recorded. A job that ended stays as it is."""
        ...
