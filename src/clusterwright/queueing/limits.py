"""How much a queue's quota lets a job take now."""

from __future__ import annotations

from clusterwright.queueing.policies import Policy
from clusterwright.queueing.requests import Request
from clusterwright.queueing.usages import Usage

#: Nothing may be taken, not even by a job that wants no GPUs.
NOTHING = -1.0


def gpus_allowed(request: Request, flavor: str, usage: Usage, policy: Policy) -> float:
    """GPUs of a flavor that the job may take, below 0 when a further resource is lacking.

    A queue may not use GPUs that it does not name; tasks without GPUs may run on their nodes. A job that may not be
    preempted takes guaranteed quota only, where the policy says so. Further resources count for the smallest gang; a
    gang that could be larger is not made larger than they allow.
    """
    queue, demand = request.queue, request.demand
    if policy.guaranteed_only and not request.preemptible:
        allowed = usage.guaranteed_available(queue, flavor) if usage.named(queue, flavor) else 0.0
    else:
        allowed = usage.gpus(queue, flavor)
    if demand.plain or not usage.named(queue, flavor):
        return allowed
    if not usage.fits(queue, flavor, 0, demand.least_resources):
        return NOTHING
    return allowed if usage.fits(queue, flavor, 0, demand.most_resources) else min(allowed, demand.least_gpus)
