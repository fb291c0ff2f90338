"""Nodes as they are declared to the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clusterwright.queueing.domains import Ints
from clusterwright.queueing.gangs import PARTS


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node as declared.

    Args:
        path: names of the domains above it, widest first.
        usable: whether it takes tasks now.
        resources: further capacity by name (`cpu` in cores, `memory` in GiB); a node without a resource that others of
            its flavor declare has none of it, and a resource that no node declares is not counted.
    """

    name: str
    flavor: str
    gpus: int
    path: tuple[str, ...] = ()
    usable: bool = True
    resources: tuple[tuple[str, float], ...] = ()


def resources_of_nodes(nodes: Sequence[NodeInfo]) -> dict[str, Ints]:
    """Further capacity by name in thousandths, rounded down."""
    names = sorted({name for node in nodes for name, _ in node.resources})
    amounts = [dict(node.resources) for node in nodes]
    return {n: np.array([int(round(a.get(n, 0.0) * PARTS, 6)) for a in amounts], dtype=np.int64) for n in names}
