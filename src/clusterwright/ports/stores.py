"""Where an engine keeps its state: current rows and an append-only history, changed together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from clusterwright.model.jobs import Event, Job, JobId, Node


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event before the store numbered it."""

    kind: str
    at_s: float
    job: JobId | None = None
    epoch: int | None = None
    node: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything current, as last committed."""

    jobs: tuple[Job, ...]
    nodes: tuple[Node, ...]


class Store(Protocol):
    """Durable state. A commit is all or nothing and is on disk when it returns.

    Every operation raises Unavailable when the world does not let it happen, a full disk for example.
    """

    def load(self) -> Snapshot:
        """What was last committed."""
        ...

    def commit(self, *, jobs: Sequence[Job] = (), nodes: Sequence[Node] = (), events: Sequence[NewEvent] = ()) -> int:
        """Replace the given rows, append the events; returns the last sequence number of the history."""
        ...

    def forget_nodes(self, names: Sequence[str]) -> None:
        """Drop the rows of nodes that are no longer declared; history keeps them."""
        ...

    def events(self, after: int = 0, *, job: JobId | None = None, limit: int = 10_000) -> tuple[Event, ...]:
        """Events above a sequence number, oldest first, at most `limit`."""
        ...

    def close(self) -> None:
        """Release files; further calls are misuse."""
        ...
