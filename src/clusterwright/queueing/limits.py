"""How much a queue's quota lets a job take now."""

from __future__ import annotations

from clusterwright.queueing.policies import Policy
from clusterwright.queueing.requests import Request
from clusterwright.queueing.usages import Usage

#: Nothing may be taken, not even by a job that wants no GPUs.
NOTHING = -1.0


def gpus_allowed(request: Request, flavor: str, usage: Usage, policy: Policy) -> float:
    """GPUs of a flavor that the job may take, below 0 when its queue may not use the flavor at all.

    A job that may not be preempted takes guaranteed quota only, where the policy says so. Further resources count for
    the smallest gang; a gang that could be larger is not made larger than they allow.
    """
    queue, demand = request.queue, request.demand
    if not usage.named(queue, flavor):
        return NOTHING
    if policy.guaranteed_only and not request.preemptible:
        allowed = usage.guaranteed_available(queue, flavor)
    else:
        allowed = usage.available(queue, flavor)
    if demand.plain:
        return allowed
    for name, amount in demand.least_resources:
        if not usage.named(queue, flavor, name) or usage.available(queue, flavor, name) < amount:
            return NOTHING
    most = dict(demand.most_resources)
    fits_whole = all(usage.available(queue, flavor, name) >= amount for name, amount in most.items())
    return allowed if fits_whole else min(allowed, demand.least_gpus)
