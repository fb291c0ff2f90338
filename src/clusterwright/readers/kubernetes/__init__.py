"""Kubernetes: nodes, pods that wait, Kueue, device plugins, operators, DRA. What the API server or kubectl printed."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.kubernetes import recognising
from clusterwright.readers.kubernetes.outputs import reads
from clusterwright.readers.readers import Reader

_TITLES: Final = {
    recognising.NODE: "Kubernetes nodes (kubectl get nodes, JSON, YAML or table)",
    recognising.DESCRIBE: "Kubernetes nodes and pods as kubectl describe prints them",
    recognising.PENDING: "why pods and workloads wait: events, Kueue Workloads, gangs, autoscaler log",
    recognising.KUEUE: "Kueue queues, cohorts, flavors and topologies",
    recognising.DRA: "DRA resource slices, claims and device classes",
    recognising.OPERATOR: "GPU Operator and network operator: policies and chart values",
    recognising.PLUGIN: "NVIDIA device plugin and MIG manager configuration",
}

READERS: Final[tuple[Reader, ...]] = tuple(
    Reader(kind, title, recognising.recogniser(kind), reads(kind)) for kind, title in _TITLES.items()
)
