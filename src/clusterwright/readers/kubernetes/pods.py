"""What pods ask for, and why they wait or were rejected.

Observed (subject pod, namespace, resource): `pod_request`; (subject pod): `pod_phase`. Requests of running pods are
summed per node where nodes stand in the same output.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from clusterwright.model.observations import Labels, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.amounts import is_accelerator, read_exact, read_resource, to_value
from clusterwright.readers.kubernetes.explaining import tell_message
from clusterwright.readers.kubernetes.manifests import Thing
from clusterwright.readers.kubernetes.nodes import Node
from clusterwright.readers.kubernetes.shapes import Fields, rows, table, word

_ENDED = ("Succeeded", "Failed")


def pod_subject(thing: Thing) -> Labels:
    """Labels of an observation about a pod."""
    space = (("namespace", thing.namespace),) if thing.namespace else ()
    return (("pod", thing.name or "(unnamed)"), *space)


def requests_of(spec: Fields) -> dict[str, Fraction]:
    """What a pod asks for, by resource: all containers and sidecars, or its largest init container.

    Source: Kubernetes, Resource Management for Pods, effective requests (limits stand for requests not given).
    """
    together: dict[str, Fraction] = {}
    largest: dict[str, Fraction] = {}
    for container in rows(spec.get("containers")):
        _add(together, _of_container(container))
    for container in rows(spec.get("initContainers")):
        asked = _of_container(container)
        if container.get("restartPolicy") == "Always":
            _add(together, asked)
        for resource, number in asked.items():
            largest[resource] = max(largest.get(resource, Fraction(0)), number)
    for resource, number in largest.items():
        together[resource] = max(together.get(resource, Fraction(0)), number)
    return together


def _of_container(container: Fields) -> dict[str, Fraction]:
    resources = table(container.get("resources"))
    both = {**table(resources.get("limits")), **table(resources.get("requests"))}
    numbers = {name: read_exact(raw) for name, raw in both.items()}
    return {name: number for name, number in numbers.items() if number is not None and number >= 0}


def _add(into: dict[str, Fraction], more: dict[str, Fraction]) -> None:
    for name, number in more.items():
        into[name] = into.get(name, Fraction(0)) + number


def add_requests(nodes: Sequence[Node], pods: Iterable[Thing]) -> None:
    """Give every node the sum of what the pods on it hold, where any pod says on which node it is."""
    placed = [pod for pod in pods if word(pod.spec.get("nodeName")) and pod.status.get("phase") not in _ENDED]
    if not placed:
        return
    by_node: dict[str, dict[str, Fraction]] = {}
    for pod in placed:
        _add(by_node.setdefault(word(pod.spec.get("nodeName")), {}), requests_of(pod.spec))
    for node in nodes:
        node.requested = {
            name: f"{number.numerator}" if number.denominator == 1 else f"{float(number):.9f}"
            for name, number in by_node.get(node.name, {}).items()
        }


def report_pods(pods: Sequence[Thing], builder: RunBuilder) -> None:
    """Observe the device requests of every pod and the reasons of those that wait."""
    for pod in pods:
        subject = pod_subject(pod)
        for resource, number in requests_of(pod.spec).items():
            if is_accelerator(resource):
                builder.observe("pod_request", to_value(resource, number), (*subject, ("resource", resource)), pod.line)
        _tell_bad_amounts(pod, subject, builder)
        phase = word(pod.status.get("phase"))
        if phase:
            builder.observe("pod_phase", phase, subject, pod.line)
        _tell_status(pod, subject, builder)


def _tell_bad_amounts(pod: Thing, subject: Labels, builder: RunBuilder) -> None:
    for container in rows(pod.spec.get("containers")):
        resources = table(container.get("resources"))
        for part in ("limits", "requests"):
            for resource, raw in table(resources.get(part)).items():
                if read_exact(raw) is None:
                    builder.observe("pod_request", read_resource(resource, raw), (*subject, ("resource", resource)))


def _tell_status(pod: Thing, subject: Labels, builder: RunBuilder) -> None:
    named = f"pod {pod.name}" if pod.name else "the pod"
    for condition in rows(pod.status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            tell_message(word(condition.get("message")), subject, pod.line, builder, waiting=named)
    reason, message = word(pod.status.get("reason")), word(pod.status.get("message"))
    if reason and pod.status.get("phase") == "Failed":
        builder.observe("rejected", reason, subject, pod.line)
        tell_message(message, subject, pod.line, builder, waiting=named)
        builder.notice("pod-failed", f"{named} failed: {reason}: {message}"[:400], Weight.ERROR, pod.line)
