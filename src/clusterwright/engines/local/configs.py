"""What a cluster is told when it is started: its nodes, its queues, how patient it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from clusterwright.engines.local.layout import Layout, read_json, write_json
from clusterwright.lib.errors import Unavailable
from clusterwright.model.jobs import NodeSpec
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
    """

    cluster: str
    nodes: tuple[NodeSpec, ...]
    tree: QueueTree
    restart_agents: bool = True
    heartbeat_s: float = HEARTBEAT_S
    heartbeat_timeout_s: float = HEARTBEAT_TIMEOUT_S


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
    nodes = tuple(NodeSpec(**{**n, "topology": tuple(n["topology"])}) for n in found["nodes"])
    queues = tuple(_queue(q) for q in found["tree"]["queues"])
    return ClusterConfig(**{**found, "nodes": nodes, "tree": QueueTree(queues)})


def _queue(found: Mapping[str, Any]) -> Queue:
    quotas = {flavor: Quota(**quota) for flavor, quota in found["quotas"].items()}
    return Queue(found["name"], found["parent"], quotas, found["strict"])
