"""How values cross the socket: types of the model as JSON, both ways."""

from __future__ import annotations

from typing import Final

from pydantic import TypeAdapter

from clusterwright.model.jobs import Event, Job, JobSpec, Node
from clusterwright.model.outlooks import Blocker, Outlook

SPEC: Final = TypeAdapter(JobSpec)
JOB: Final = TypeAdapter(Job)
JOBS: Final = TypeAdapter(tuple[Job, ...])
NODES: Final = TypeAdapter(tuple[Node, ...])
EVENTS: Final = TypeAdapter(tuple[Event, ...])
BLOCKERS: Final = TypeAdapter(tuple[Blocker, ...])
OUTLOOKS: Final = TypeAdapter(tuple[Outlook, ...])
