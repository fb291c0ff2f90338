"""What a cluster is told when it is started: its nodes, its queues, how patient it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from clusterwright.engines.local.layout import Layout, read_json, write_json
from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.model.jobs import DEFAULT_QUEUE, JobSpec, NodeSpec
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.policies import (
    Backfill,
    FairShare,
    NodeTie,
    Packing,
    Policy,
    PreemptionPolicy,
    Reclaim,
    WithinQueue,
)
from clusterwright.queueing.quotas import Queue, QueueTree, Quota

#: How often an agent says that it lives. A choice: on one machine a beat costs nothing worth saving.
HEARTBEAT_S: Final = 1.0
#: Silence after which an agent whose process still exists counts as hung: ten beats. A dead one is seen at once.
HEARTBEAT_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """What supervisor, control plane and agents of one cluster agree on.

    Args:
        cluster: its id; every process carries it in its tag.
        nodes: the nodes, in order of declaration.
        tree: its queues.
        restart_agents: whether a dead agent is started again, as a new incarnation.
        policy: who goes first, who may pass, who may be preempted.
        budgets: GPU-hours by queue.
    """

    cluster: str
    nodes: tuple[NodeSpec, ...]
    tree: QueueTree
    restart_agents: bool = True
    heartbeat_s: float = HEARTBEAT_S
    heartbeat_timeout_s: float = HEARTBEAT_TIMEOUT_S
    policy: Policy = field(default_factory=Policy)
    budgets: Mapping[str, Budget] = field(default_factory=dict)


def check_spec(spec: JobSpec, config: ClusterConfig) -> None:
    """Refuse a job for a queue or node that the cluster does not have.

    Raises:
        InvalidInput: with the queues or nodes that it has.
    """
    tree = config.tree
    if tree.queues and spec.queue not in tree.leaves:
        raise InvalidInput(f"queue '{spec.queue}' takes no jobs; queues: {', '.join(sorted(tree.leaves))}")
    if not tree.queues and spec.queue != DEFAULT_QUEUE:
        raise InvalidInput(f"queue '{spec.queue}' does not exist: no queues are declared, all jobs are in one")
    known = {n.name for n in config.nodes}
    for what, names in (("excluded", spec.exclude), ("first", spec.first_nodes)):
        unknown = [n for n in names if n not in known]
        if unknown:
            raise InvalidInput(f"{what} node '{unknown[0]}' does not exist; nodes: {', '.join(sorted(known))}")


def write_config(layout: Layout, config: ClusterConfig) -> None:
    """Record it in the state directory."""
    write_json(layout.config, asdict(config))


def read_config(layout: Layout) -> ClusterConfig:
    """What was recorded.

    Raises:
        Unavailable: when nothing was, or it cannot be read.
    """
    found = read_json(layout.config)
    if not isinstance(found, dict):
        raise Unavailable(f"{layout.root} has no cluster; start one with `cw up`")
    known: dict[str, Any] = {
        **found,
        "nodes": tuple(NodeSpec(**{**n, "topology": tuple(n["topology"])}) for n in found["nodes"]),
        "tree": QueueTree(tuple(_queue(q) for q in found["tree"]["queues"])),
        "policy": _policy(found.get("policy", {})),
        "budgets": {name: Budget(**budget) for name, budget in found.get("budgets", {}).items()},
    }
    return ClusterConfig(**known)


def _queue(found: Mapping[str, Any]) -> Queue:
    others = {resource: _quotas(quotas) for resource, quotas in found.get("others", {}).items()}
    return Queue(**{**found, "quotas": _quotas(found["quotas"]), "others": others})


def _quotas(found: Mapping[str, Any]) -> dict[str, Quota]:
    return {flavor: Quota(**quota) for flavor, quota in found.items()}


def _policy(found: Mapping[str, Any]) -> Policy:
    """What a file without them leaves out is as by default."""
    types = {"backfill": Backfill, "node_tie": NodeTie, "packing": Packing}
    known: dict[str, Any] = {name: types[name](value) if name in types else value for name, value in found.items()}
    if "preemption" in found:
        kinds = {"within_queue": WithinQueue, "reclaim": Reclaim}
        preemption: dict[str, Any] = {n: kinds[n](v) if n in kinds else v for n, v in found["preemption"].items()}
        known["preemption"] = PreemptionPolicy(**preemption)
    if "fair" in found:
        known["fair"] = FairShare(**found["fair"])
    return Policy(**known)
