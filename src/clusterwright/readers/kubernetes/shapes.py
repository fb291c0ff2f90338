"""Fields of decoded objects, with nothing assumed about their types; the kind of an object whose head was cut off."""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]


def table(value: object) -> Fields:
    """The value when it is an object, an empty one otherwise."""
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def rows(value: object) -> list[Fields]:
    """The objects of a list; what is no object is left out."""
    return [table(item) for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def words(value: object) -> list[str]:
    """The texts of a list."""
    return [word(item) for item in value if word(item)] if isinstance(value, list) else []


def word(value: object) -> str:
    """The value as text when it is a text, a number or a flag; "" otherwise."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return "" if value is None or isinstance(value, list | dict) else str(value)


def dig(value: object, *path: str) -> object:
    """What stands at a path of keys, None when a part of it is not there."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def guess_kind(body: Fields) -> tuple[str, str, Fields]:
    """(API group, kind, object) of an excerpt without apiVersion and kind; ("", "", body) when its fields say nothing.

    The object is put together again: labels alone become those of a node, `allocatable` alone becomes its status.
    """
    body = _without_cut_parents(body)
    spec, status = table(body.get("spec")), table(body.get("status"))
    if "resourceGroups" in spec or "resourceGroups" in body:
        return "kueue.x-k8s.io", "ClusterQueue", body if spec else {"spec": body}
    if _is_workload(body, status):
        return "kueue.x-k8s.io", "Workload", body if status else {"status": body}
    if "allocatable" in status or "capacity" in status:
        return "", "Node", body
    if "allocatable" in body or "capacity" in body or "nodeInfo" in body:
        return "", "Node", {"status": body, "metadata": body.get("metadata")}
    if "driver" in spec and ("pool" in spec or "devices" in spec):
        return "resource.k8s.io", "ResourceSlice", body
    if "driver" in body and "pool" in body:
        return "resource.k8s.io", "ResourceSlice", {"spec": body}
    labels = _labels_of(body)
    if any(key.startswith(("nvidia.com/", "feature.node.kubernetes.io/", "amd.com/gpu")) for key in labels):
        metadata = {**table(body.get("metadata")), "labels": labels}
        return "", "Node", {**body, "metadata": metadata}
    conditions = {word(row.get("type")) for row in rows(status.get("conditions"))}
    if conditions & {"MemoryPressure", "DiskPressure", "PIDPressure"}:
        return "", "Node", body
    if "PodScheduled" in conditions or "containerStatuses" in status or "containers" in spec:
        return "", "Pod", body
    return "", "", body


def _is_workload(body: Fields, status: Fields) -> bool:
    for place in (status, body):
        conditions = {word(row.get("type")) for row in rows(place.get("conditions"))}
        if conditions & {"QuotaReserved", "Admitted", "Evicted"} or (
            "admissionChecks" in place and "spec" not in place
        ):
            return True
    return False


def _labels_of(body: Fields) -> Fields:
    for place in (table(body.get("metadata")).get("labels"), body.get("labels"), body):
        found = table(place)
        if found and all(not isinstance(item, dict | list) for item in found.values()):
            return found
    return {}


def _without_cut_parents(body: Fields) -> Fields:
    """The object with keys that stood below a parent that was cut off put where they belong."""
    for _ in range(20):
        cut = next((key for key in body if key.startswith("cut-parent-")), None)
        if cut is None:
            return body
        inner = table(body.pop(cut))
        flat = bool(inner) and all(not isinstance(item, dict | list) for item in inner.values())
        if flat and any("/" in key for key in inner):
            body.setdefault("labels", inner)
        else:
            body = {**inner, **body}
    return body
