"""What the queue owes a waiting job: a start that it was promised, GPUs that are kept for it."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.model.jobs import JobId
from clusterwright.queueing.domains import Ints
from clusterwright.queueing.requests import Demand, Placement, Request, Shape
from clusterwright.queueing.usages import Usage


@dataclass(slots=True)
class Promise:
    """When the first job that cannot start will, if every running job runs to its limit.

    Args:
        at_s: the promised start.
        placement: where, at that time.
        left: (nodes,) int32 GPUs that are free at `at_s` on the flavor once the promised job has its own.
        spare: further resources that are left then, as `Floor.spare`; empty where the flavor declares none.
        usage: the quota in use at that time, the promised job included.
        surprises: `State.surprises` when it was made; a later count makes it void.
        passed: whether jobs that run past `at_s` started since; another placement may be the best now.
        basis: the last job whose end it waits for, None when it waits for none.
    """

    request: Request
    at_s: float
    placement: Placement
    left: Ints
    spare: dict[str, Ints]
    usage: Usage
    surprises: int
    basis: JobId | None = None
    passed: bool = False


@dataclass(slots=True)
class Claim:
    """GPUs kept for a job whose victims are leaving.

    Args:
        kept: GPUs by node index that are held for it already.
    """

    request: Request
    placement: Placement
    victims: tuple[JobId, ...]
    kept: dict[int, int]


def kept_of(claim: Claim) -> tuple[Placement, Demand]:
    """What a claim keeps, as a placement of single GPUs."""
    runs = tuple((0, node, gpus) for node, gpus in claim.kept.items())
    total = sum(claim.kept.values())
    return Placement(claim.placement.flavor, runs, total), Demand((Shape(total, 1),))
