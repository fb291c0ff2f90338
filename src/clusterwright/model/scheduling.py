"""Scheduling: the engine and how capacity is shared."""

from typing import Literal

from pydantic import Field

from clusterwright.model.pools import EngineName
from clusterwright.model.section import Section
from clusterwright.model.units import Day, Delay, Duration, GpuTime, Period, Priority, Text, Whole

Gpus = dict[str, Whole]


class Budget(Section):
    """GPU time that a queue may plan. It stops admission and never ends a running job."""

    gpu_time: GpuTime = Field(description="of jobs that ended, and of running jobs until their time limits")
    every: Period | None = Field(
        default=None, description="length of a period, after which it is renewed; never renewed if absent"
    )
    starts: Day | None = Field(default=None, description="a day on which a period begins, at 00:00 UTC")
    until: Day | None = Field(default=None, description="nothing is admitted from this day on, 00:00 UTC")


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
    budget: Budget | None = Field(default=None, description="GPU time of its jobs, and of those of queues below it")


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
    borrow_and_preempt_up_to: Priority | None = Field(
        default=None, description="highest priority that is preempted for a job that borrows; any lower one if absent"
    )
    grace: Delay | None = Field(default=None, description="between SIGTERM and SIGKILL, to write a checkpoint")
    minimum_runtime: Delay | None = Field(default=None, description="a job is safe from preemption for this long")


class FairShare(Section):
    """How queues are ranked by what they have, besides priority and age."""

    now: bool = Field(default=False, description="by what they borrow now, ÷ weight: who borrows least goes first")
    half_life: Duration | None = Field(
        default=None,
        description="by GPU time used so far, which counts half after this long; not ranked so if absent",
    )
    by_user: bool = Field(default=False, description="rank users within a queue by GPU time used so far, too")


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
    fair_share: FairShare | None = Field(default=None, description="how queues are ranked by what they have")
    backfill: Literal["none", "easy"] = Field(
        default="none",
        description="easy: the first job that cannot start gets a promised start, others may pass if that keeps",
    )
    guaranteed_only: bool = Field(default=False, description="jobs that may not be preempted use guaranteed quota only")
    packing: Literal["fullest", "emptiest"] = Field(
        default="fullest", description="which nodes are filled first: fullest keeps nodes whole, emptiest spreads load"
    )
    tie_break: Literal["name", "declared"] = Field(
        default="name", description="which of equally good nodes is taken: the first by name, or as declared"
    )
    retries: Retries | None = Field(default=None, description="what happens to a failed attempt")
    node_loss: Literal["replace", "shrink", "requeue"] | None = Field(default=None, description="for a gang")
    mixed_site: MixedSite | None = Field(default=None, description="for a site with two engines")
