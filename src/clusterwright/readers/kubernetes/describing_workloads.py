"""`kubectl describe workload` of Kueue: the conditions and admission checks in its text, as an object again.

Source: kubernetes/kubectl pkg/describe/describe.go, printUnstructuredContent (keys sorted, camel case spread out).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.readers.cleaning import Line
from clusterwright.readers.kubernetes.manifests import Thing
from clusterwright.readers.kubernetes.shapes import Fields

_FIELD: Final = re.compile(r"\s*(?P<key>[A-Z][A-Za-z ]{1,40}):(?:\s+(?P<value>\S.*))?\s*")
_KEYS: Final = {
    "Last Transition Time": "lastTransitionTime",
    "Message": "message",
    "Reason": "reason",
    "Status": "status",
    "Type": "type",
    "Name": "name",
    "State": "state",
}


def rebuild_workload(lines: Sequence[Line]) -> Thing | None:
    """The workload that a describe output shows, None when it has no conditions of one."""
    names: dict[str, str] = {}
    parts: dict[str, list[Fields]] = {"conditions": [], "admissionChecks": []}
    part, last, fields = "", "", Fields()
    for line in lines:
        match = _FIELD.fullmatch(line.text)
        if match is None:
            if part and last and line.text.strip():
                fields[last] = f"{fields.get(last, '')} {line.text.strip()}"
            continue
        key, value = match["key"], match["value"]
        if not line.text.startswith(" ") and key in ("Name", "Namespace"):
            names.setdefault(key, value or "")
        if value is None:
            part = {"Conditions": "conditions", "Admission Checks": "admissionChecks"}.get(key, "")
            last, fields = "", {}
        elif part and key in _KEYS:
            last = _KEYS[key]
            fields[last] = value
            if last == ("type" if part == "conditions" else "state"):
                parts[part].append(fields)
                fields = {}
        else:
            last = ""
    known = {"QuotaReserved", "Admitted", "Evicted", "PodsReady", "Finished", "Requeued", "Preempted"}
    if not any(row["type"] in known for row in parts["conditions"]):
        return None
    body: Fields = {"status": {name: found for name, found in parts.items() if found}}
    number = lines[0].number if lines else 0
    return Thing("kueue.x-k8s.io", "", "Workload", names.get("Name", ""), names.get("Namespace", ""), body, number)
