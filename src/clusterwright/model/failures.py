"""Failure rates of nodes as they were published: how often, from what, on how many nodes over how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clusterwright.model.entries import Above, Entry, Positive, Record, Text


@dataclass(frozen=True, kw_only=True)
class FailureCount(Record):
    """How many interruptions had one cause.

    Args:
        effect: on the work: `node` loses it with the node, `job` ends a job on a node that stays good, `silent` makes
            it wrong until somebody notices.
    """

    cause: Text
    interruptions: Positive
    effect: Literal["node", "job", "silent"] = "node"


@dataclass(frozen=True, kw_only=True)
class FailureRates(Entry):
    """How often the nodes of one system interrupted a job.

    Args:
        per_1000_node_days: interruptions in 1,000 days of a node.
        gpus_per_node: of that system.
        nodes, days: what was counted, None where only the rate was published.
        causes: add up to the rate; empty where none were published.
    """

    per_1000_node_days: Above
    gpus_per_node: Positive
    nodes: Positive | None = None
    days: Above | None = None
    causes: tuple[FailureCount, ...] = ()

    def __post_init__(self) -> None:
        if len({c.cause for c in self.causes}) < len(self.causes):
            raise ValueError("a cause is named twice")
        if self.causes:
            if self.nodes is None or self.days is None:
                raise ValueError("counts by cause need nodes and days")
            counted = 1000 * sum(c.interruptions for c in self.causes) / (self.nodes * self.days)
            if abs(counted / self.per_1000_node_days - 1) > 0.005:
                raise ValueError(f"the causes add up to {counted:.3g} per 1,000 node-days")
