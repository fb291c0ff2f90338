"""Slurm and Kubernetes: GPUs that the scheduler offers, and nodes that take jobs.

A GPU that is advertised several times (time-slicing, MPS) is not that many GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.judging.derivations.facts import Facts
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import Observation

METRICS_OF: Final = ("gpus_schedulable", "nodes_schedulable")
_GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu", "gpu")


def derive_schedulers(facts: Facts) -> Iterator[Reading]:
    """Per node the GPUs it offers, and whether it takes jobs (1 or 0, so that the hosts add up)."""
    yield from _gpus(facts)
    yield from _nodes(facts)


def _gpus(facts: Facts) -> Iterator[Reading]:
    """GPUs on offer, of all types together; a node that takes no jobs offers none."""
    replicas = {dict(o.subject).get("node", "") for o in facts.of("gpu_replicas") if o.value not in (1.0, 1)}
    closed, virtual = _closed(facts), _virtual(facts)
    for node, observations in facts.per_node("gpus_configured", "allocatable"):
        mine = [o for o in observations if o.name == "gpus_configured" or _resource(o) in _GPU_RESOURCES]
        if not mine or node in virtual:
            continue
        why = "not comparable: each GPU is advertised more than once (time-slicing or MPS)" if node in replicas else ""
        numbers = [float(o.value) for o in mine if isinstance(o.value, float | int)]
        offered = None if len(numbers) < len(mine) else 0.0 if node in closed else sum(numbers)
        yield facts.reading("gpus_schedulable", offered, nodes=(node,), why=why)


def _resource(observation: Observation) -> str:
    return dict(observation.subject).get("resource", "")


def _closed(facts: Facts) -> set[str]:
    """Nodes that take no jobs: drained, cordoned, down."""
    shut = {dict(o.subject).get("node", "") for o in facts.of("unschedulable") if o.value is True}
    return shut | {dict(o.subject).get("node", "") for o in facts.of("takes_jobs", "node_ready") if o.value is False}


def _virtual(facts: Facts) -> set[str]:
    """Nodes that are simulated."""
    return {dict(o.subject).get("node", "") for o in facts.of("virtual") if o.value is True}


def _nodes(facts: Facts) -> Iterator[Reading]:
    closed, virtual = _closed(facts), _virtual(facts)
    for node, observations in facts.per_node("takes_jobs", "node_ready"):
        if node in virtual:
            continue
        flags = [o.value for o in observations if isinstance(o.value, bool)]
        if flags:
            takes = all(flags) and node not in closed
            yield facts.reading("nodes_schedulable", float(takes), nodes=(node,))
        else:
            yield facts.reading("nodes_schedulable", None, nodes=(node,))
