"""Scheduling: the engine and how capacity is shared."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clusterwright.model.pools import EngineName
from clusterwright.model.section import Section
from clusterwright.model.units import Duration, Text

Gpus = dict[str, int]


class Queue(Section):
    """A node of the quota tree. Guarantee, borrow and lend are GPUs by pool."""

    parent: Text | None = None
    guarantee: Gpus = Field(default_factory=dict, description="GPUs by pool")
    borrow: Gpus | None = Field(default=None, description="most GPUs to borrow by pool; unlimited if absent")
    lend: Gpus | None = Field(default=None, description="most GPUs to lend by pool; everything if absent")
    weight: float = Field(default=1.0, ge=0)
    strategy: Literal["strict", "best-effort"] = "best-effort"
    owner: Text | None = None
    slack: bool = Field(default=False, description="holds spare capacity, has no users")


class Preemption(Section):
    """Who may take capacity from whom."""

    within_queue: Literal["never", "lower-priority", "lower-or-newer-equal"] = "never"
    reclaim: Literal["never", "lower-priority", "any"] = "never"
    borrow_and_preempt: Literal["never", "lower-priority"] = "never"
    grace: Duration | None = Field(default=None, description="between SIGTERM and SIGKILL, to write a checkpoint")
    minimum_runtime: Duration | None = None


class Retries(Section):
    """What happens to a failed attempt."""

    limit: int = Field(ge=0, le=1000)
    backoff: Duration | None = None


class MixedSite(Section):
    """What must be designed across both engines when a site has two."""

    identity: Text | None = None
    data: Text | None = None
    observability: Text | None = None
    cost: Text | None = None


class Scheduling(Section):
    """One clear owner of queues, quotas, retries and access."""

    engine: EngineName
    queues: dict[str, Queue] = Field(default_factory=dict)
    priorities: dict[str, int] = Field(default_factory=dict)
    preemption: Preemption | None = None
    retries: Retries | None = None
    node_loss: Literal["replace", "shrink", "requeue"] | None = Field(default=None, description="for a gang")
    mixed_site: MixedSite | None = None
