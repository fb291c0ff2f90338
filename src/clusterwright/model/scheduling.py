"""Scheduling: the engine and how capacity is shared."""

from typing import Literal

from pydantic import Field

from clusterwright.model.pools import EngineName
from clusterwright.model.section import Section
from clusterwright.model.units import Delay, Priority, Text, Whole

Gpus = dict[str, Whole]


class Queue(Section):
    """A node of the quota tree. Guarantee, borrow and lend are GPUs by pool."""

    parent: Text | None = Field(default=None, description="queue above it in the tree")
    guarantee: Gpus = Field(default_factory=dict, description="GPUs by pool")
    borrow: Gpus | None = Field(default=None, description="most GPUs to borrow by pool; unlimited if absent")
    lend: Gpus | None = Field(default=None, description="most GPUs to lend by pool; everything if absent")
    weight: float = Field(default=1.0, ge=0, le=1e6, description="of fair share among siblings")
    strategy: Literal["strict", "best-effort"] = Field(
        default="best-effort",
        description="strict: the head of the queue waits and blocks what follows; best-effort: smaller jobs may pass",
    )
    owner: Text | None = Field(default=None, description="who decides about it")
    slack: bool = Field(default=False, description="holds spare capacity, has no users")


class Preemption(Section):
    """Who may take capacity from whom."""

    within_queue: Literal["never", "lower-priority", "lower-or-newer-equal"] = Field(
        default="never", description="who may preempt in the same queue"
    )
    reclaim: Literal["never", "lower-priority", "any"] = Field(
        default="never", description="who may take back a lent guarantee"
    )
    borrow_and_preempt: Literal["never", "lower-priority"] = Field(
        default="never", description="who may preempt while borrowing"
    )
    grace: Delay | None = Field(default=None, description="between SIGTERM and SIGKILL, to write a checkpoint")
    minimum_runtime: Delay | None = Field(default=None, description="a job is safe from preemption for this long")


class Retries(Section):
    """What happens to a failed attempt."""

    limit: int = Field(ge=0, le=1000, description="attempts after the first")
    backoff: Delay | None = Field(default=None, description="wait before the first retry")


class MixedSite(Section):
    """What must be designed across both engines when a site has two."""

    identity: Text | None = Field(default=None, description="one identity for both engines")
    data: Text | None = Field(default=None, description="how both reach the same data")
    observability: Text | None = Field(default=None, description="how both are seen together")
    cost: Text | None = Field(default=None, description="how both are charged alike")


class Scheduling(Section):
    """One clear owner of queues, quotas, retries and access."""

    engine: EngineName = Field(description="what runs the jobs")
    queues: dict[str, Queue] = Field(default_factory=dict, description="the quota tree by name")
    priorities: dict[str, Priority] = Field(
        default_factory=dict, description="priority classes: name → number, higher first"
    )
    preemption: Preemption | None = Field(default=None, description="who may take capacity from whom")
    retries: Retries | None = Field(default=None, description="what happens to a failed attempt")
    node_loss: Literal["replace", "shrink", "requeue"] | None = Field(default=None, description="for a gang")
    mixed_site: MixedSite | None = Field(default=None, description="for a site with two engines")
