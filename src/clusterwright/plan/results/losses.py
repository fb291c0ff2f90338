"""What is left of a workload after nodes are lost."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.lib.figures import Figure


@dataclass(frozen=True, slots=True)
class LossPlan:
    """What is left of a workload after nodes are lost.

    Args:
        nodes_lost: how many.
        worst: the nodes whose loss hurts this workload most.
        surviving: replicas that run on without being moved (training: 1 when untouched).
        placeable: replicas that run after everything was placed again on what is left, by priority.
        needed: replicas that carry the declared load (training: 1).
        capacity: req/s of the surviving replicas; None for training or when no rate is known.
        carries: whether the load is carried (inference: by the surviving replicas; training: it can be placed again).
        reason: one sentence.
    """

    nodes_lost: int
    worst: tuple[str, ...]
    surviving: int
    placeable: int
    needed: int
    capacity: Figure | None
    carries: bool
    reason: str
