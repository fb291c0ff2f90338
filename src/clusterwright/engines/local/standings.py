"""How a node stands: before its agent has reported, when it does, when it is lost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from clusterwright.model.jobs import AgentIdentity, Node, NodeSpec, NodeState


def virtual_devices(spec: NodeSpec) -> tuple[str, ...]:
    """Ids of the virtual GPUs of a node; CUDA takes none of them for a real one."""
    return tuple(f"VIRTUAL-{i}" for i in range(spec.gpus)) if spec.virtual else ()


def awaited(stored: Node | None, spec: NodeSpec, now_s: float) -> Node:
    """A node before its agent has reported to this control plane."""
    if stored is None:
        reason = "its agent has not reported yet"
        return Node(spec, NodeState.UNKNOWN, virtual_devices(spec), reason=reason, since_s=now_s)
    if stored.spec != spec:
        reason = "its declaration changed"
        return replace(stored, spec=spec, devices=virtual_devices(spec), state=NodeState.DOWN, reason=reason)
    if stored.agent is None or stored.state is NodeState.DOWN:
        return stored
    return replace(stored, state=NodeState.UNKNOWN, reason="the control plane restarted and waits for its agent")


def admitted(node: Node, boot: str, pid: int, starttime: int, found: Sequence[str], now_s: float) -> Node:
    """The node with a new incarnation of its agent, which found these real GPUs."""
    incarnation = node.incarnation + 1
    agent = AgentIdentity(node.spec.name, incarnation, boot, pid, starttime)
    devices = virtual_devices(node.spec) if node.spec.virtual else tuple(found[: node.spec.gpus])
    return replace(node, agent=agent, incarnation=incarnation, devices=devices, since_s=now_s)


def connected(node: Node) -> Node:
    """The node while its agent is there: up, unless it has fewer GPUs than declared."""
    missing = len(node.devices) < node.spec.gpus
    reason = f"{len(node.devices)} of {node.spec.gpus} declared GPUs found through NVML" if missing else ""
    return replace(node, state=NodeState.DOWN if missing else NodeState.IDLE, reason=reason)


def lost(node: Node, why: str, now_s: float) -> Node:
    """The node without its agent."""
    return replace(node, state=NodeState.DOWN, reason=why, since_s=now_s)


def event_data(node: Node, **more: Any) -> dict[str, Any]:
    """What history keeps about a node."""
    pid = None if node.agent is None else node.agent.pid
    return {"incarnation": node.incarnation, "pid": pid, "virtual": node.spec.virtual, **more}
