"""Clusters, jobs and what is held, for queue tests, in few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterwright.model.jobs import JobId
from clusterwright.queueing.clusters import NodeInfo
from clusterwright.queueing.policies import Policy
from clusterwright.queueing.quotas import QueueTree
from clusterwright.queueing.requests import Demand, Holding, Placement, Request, Shape
from clusterwright.queueing.state import State


def node(name: str, gpus: int = 8, *, flavor: str = "h100", **more: Any) -> NodeInfo:
    return NodeInfo(name, flavor, gpus, **more)


def nodes(count: int) -> list[NodeInfo]:
    return [node(f"n{i}") for i in range(1, count + 1)]


def group(count: int = 1, gpus: int = 8, **more: Any) -> Shape:
    return Shape(count, gpus, **more)


def waiting(number: int, *groups: Shape, at_s: float | None = None, **more: Any) -> Request:
    """A job of one task with 8 GPUs unless it says what; `flavor`, `exclude` and `avoid` go into its demand."""
    flavor = more.pop("flavor", None)
    where = {name: more.pop(name) for name in ("exclude", "avoid") if name in more}
    demand = Demand(groups or (group(),), () if flavor is None else (flavor,), **where)
    return Request(JobId(str(number)), demand, float(number) if at_s is None else at_s, **more)


def held(number: int, on: str, gpus: int = 8, *, since_s: float = 0.0, **more: Any) -> tuple[str, int, float, Request]:
    """A job that runs on one node."""
    return on, gpus, since_s, waiting(number, group(1, gpus), **more)


def state_of(
    infos: Sequence[NodeInfo],
    *requests: Request,
    running: Sequence[tuple[str, int, float, Request]] = (),
    tree: QueueTree | None = None,
    policy: Policy | None = None,
) -> State:
    """A state in which these jobs wait and those run."""
    state = State(infos, tree=tree, policy=policy)
    for name, gpus, since_s, request in running:
        flavor = next(n.flavor for n in infos if n.name == name)
        placement = Placement(flavor, ((0, state.cluster.floors[flavor].index[name], 1),), gpus)
        state.hold(Holding(request, placement, since_s, since_s))
    for request in requests:
        state.submit(request)
    return state
