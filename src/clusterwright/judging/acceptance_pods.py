"""What Kubernetes says about the pod of a test: node, image by digest, how it ended.

Source: Kubernetes API reference, core/v1 Pod, PodStatus and ContainerStatus.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod.

    Args:
        test: that it belongs to, "" when its label is missing.
        image: as the node ran it, with its digest; "" when the status has none.
        problem: why it did not come to its end, "" when it did.
    """

    test: str
    node: str
    image: str
    problem: str = ""


def parse_pod(text: str) -> PodState | None:
    """The state of a pod from its JSON, None when it is no pod."""
    try:
        pod = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pod, dict) or pod.get("kind") != "Pod":
        return None
    status, labels = _map(pod.get("status")), _map(_map(pod.get("metadata")).get("labels"))
    containers = status.get("containerStatuses")
    first = _map(containers[0]) if isinstance(containers, list) and containers else {}
    ended = _map(_map(first.get("state")).get("terminated"))
    waiting = _map(_map(first.get("state")).get("waiting"))
    return PodState(
        test=_text(labels.get("clusterwright.dev/test")),
        node=_text(_map(pod.get("spec")).get("nodeName")),
        image=_digest(_text(first.get("imageID"))),
        problem=_problem(status, ended, waiting),
    )


def _problem(status: dict[str, Any], ended: dict[str, Any], waiting: dict[str, Any]) -> str:
    if ended:
        reason = _text(ended.get("reason"))
        return "" if ended.get("exitCode") == 0 else f"ended with {reason or 'an error'} ({ended.get('exitCode')})"
    if waiting:
        return f"waits: {_text(waiting.get('reason'))} {_text(waiting.get('message'))}".strip()
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if _map(condition).get("type") == "PodScheduled" and _map(condition).get("status") == "False":
            return f"was not scheduled: {_text(_map(condition).get('message'))}"
    return f"is {_text(status.get('phase')) or 'in no phase'}"


def _digest(image: str) -> str:
    """`registry/name@sha256:...` of an imageID, which some runtimes prefix with their name."""
    found = image.rpartition("://")[2]
    return found if "sha256:" in found else ""


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return " ".join(value.split())[:300] if isinstance(value, str) else ""
