"""Slurm and Kubernetes: GPUs that the scheduler offers, and nodes that take jobs.

A GPU that is advertised several times (time-slicing, MPS) is not that many GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.judging.derivations.facts import Facts
from clusterwright.model.evidence import Reading

METRICS_OF: Final = ("gpus_schedulable", "nodes_schedulable")
_GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu", "gpu")


def derive_schedulers(facts: Facts) -> Iterator[Reading]:
    """Per node the GPUs it offers, and whether it takes jobs (1 or 0, so that the hosts add up)."""
    yield from _gpus(facts)
    yield from _nodes(facts)


def _gpus(facts: Facts) -> Iterator[Reading]:
    replicas = {dict(o.subject).get("node", ""): o for o in facts.of("gpu_replicas") if o.value not in (1.0, 1)}
    for node, observations in facts.per_node("gpus_configured", "allocatable"):
        mine = [
            o for o in observations if o.name == "gpus_configured" or dict(o.subject).get("resource") in _GPU_RESOURCES
        ]
        if not mine:
            continue
        if node in replicas:
            why = "not comparable: each GPU is advertised more than once (time-slicing or MPS)"
            yield facts.reading("gpus_schedulable", None, nodes=(node,), why=why)
            continue
        numbers = [float(o.value) for o in mine if isinstance(o.value, float | int)]
        yield facts.reading("gpus_schedulable", max(numbers) if numbers else None, nodes=(node,))


def _nodes(facts: Facts) -> Iterator[Reading]:
    closed = {dict(o.subject).get("node", "") for o in facts.of("unschedulable") if o.value is True}
    virtual = {dict(o.subject).get("node", "") for o in facts.of("virtual") if o.value is True}
    for node, observations in facts.per_node("takes_jobs", "node_ready"):
        if node in virtual:
            continue
        flags = [o.value for o in observations if isinstance(o.value, bool)]
        if flags:
            takes = all(flags) and node not in closed
            yield facts.reading("nodes_schedulable", float(takes), nodes=(node,))
        else:
            yield facts.reading("nodes_schedulable", None, nodes=(node,))
