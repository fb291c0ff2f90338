"""Nodes and jobs for queue tests, in few words."""

from __future__ import annotations

from typing import Any

from clusterwright.model.jobs import JobId, TaskGroup
from clusterwright.queueing.states import NodeView, Waiting


def node(name: str, gpus: int = 8, *, free: int | None = None, flavor: str = "h100", **more: Any) -> NodeView:
    devices = tuple(f"{name}:{i}" for i in range(gpus))
    return NodeView(name, flavor, devices, devices[: gpus if free is None else free], **more)


def group(count: int = 1, gpus: int = 8, **more: Any) -> TaskGroup:
    return TaskGroup(("true",), count=count, gpus=gpus, **more)


def waiting(job: int, *groups: TaskGroup, at_s: float | None = None, **more: Any) -> Waiting:
    return Waiting(JobId(str(job)), groups or (group(),), float(job) if at_s is None else at_s, **more)
