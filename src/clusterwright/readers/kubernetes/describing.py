"""The text of `kubectl describe node` and `kubectl describe pod`, whole or a pasted part of it.

Source: kubernetes/kubectl pkg/describe/describe.go (sections, tables, `(x150 over 12h)`, long
annotations cut by `...`).

Of a pod: `pod_phase`, `pod_node`, `pod_request`, `container_state`, `container_last_state` (why it waits or ended),
`exit_code`, `pod_restarts` (subject pod, namespace, container).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from clusterwright.model.observations import Labels, NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.kubernetes.amounts import is_accelerator, read_exact, read_resource
from clusterwright.readers.kubernetes.events import Event, columns_of, is_header, read_event
from clusterwright.readers.kubernetes.nodes import Node

_SECTION: Final = re.compile(r"(?P<key>[A-Z][\w /-]{1,40}):(?:\s+(?P<value>\S.*))?\s*")
_PAIR: Final = re.compile(r"\s+(?P<key>[\w./-]{1,200}):\s+(?P<value>\S+)\s*")
_CELL: Final = re.compile(r"(?P<amount>\S+)(?: \((?P<percent>\d+)%\))?")
_GAP: Final = re.compile(r" {2,}|\t+")
_RULE: Final = re.compile(r"[\s-]+")
_NODE_PARTS: Final = ("Name", "Capacity", "Allocatable", "Conditions", "System Info", "Allocated resources", "Events")
_POD_SECTIONS: Final = frozenset({"Containers", "Init Containers", "Node-Selectors", "QoS Class"})


_ENDED_BADLY: Final = re.compile(
    r"OOMKilled|Error|CrashLoopBackOff|ContainerCannotRun|StartError|ContainerStatusUnknown|DeadlineExceeded|Evicted"
    r"|\w*ImagePull\w*|Create\w*Error|InvalidImageName"
)


@dataclass(slots=True)
class Described:
    """One object of a describe output: its sections with their lines; the first line is the value beside the name."""

    sections: dict[str, list[Line]] = field(default_factory=dict)

    def first(self, key: str) -> str:
        """What stands beside a section's name, "" when nothing does."""
        return next((line.text for line in self.sections.get(key, ())[:1]), "")

    @property
    def pod(self) -> bool:
        """Whether it is a pod."""
        return bool(_POD_SECTIONS & set(self.sections))


def split_objects(lines: Sequence[Line]) -> list[Described]:
    """The objects of an output; a second `Name:` begins the next one."""
    found = [Described()]
    current: list[Line] | None = None
    for line in lines:
        match = _SECTION.fullmatch(line.text) if line.text[:1].isupper() else None
        if match is not None:
            if match["key"] == "Name" and "Name" in found[-1].sections:
                found.append(Described())
            current = found[-1].sections.setdefault(match["key"], [])
            current.append(Line(line.number, match["value"] or ""))
        elif current is not None and line.text.strip():
            current.append(line)
    return [described for described in found if described.sections]


def read_node(described: Described, builder: RunBuilder) -> Node | None:
    """The node in a describe output, None when there is nothing of a node."""
    sections = described.sections
    if not {"Capacity", "Allocatable", "Allocated resources", "Roles"} & set(sections):
        return None
    node = Node(described.first("Name"), next(iter(sections.values()))[0].number)
    node.capacity = dict(_pairs(sections.get("Capacity", ())))
    node.allocatable = dict(_pairs(sections.get("Allocatable", ())))
    node.labels = dict(_labels(sections.get("Labels", ())))
    node.annotations = dict(_annotations(sections.get("Annotations", ())))
    if any(text.endswith("...") for text in node.annotations.values()):
        node.cut_annotations = True
    node.taints = [text for line in sections.get("Taints", ()) if (text := line.text.strip()) not in ("", "<none>")]
    node.unschedulable = described.first("Unschedulable") == "true"
    node.kubelet = dict(_pairs(sections.get("System Info", ()))).get("Kubelet Version", "")
    for line in sections.get("System Info", ()):
        if line.text.strip().startswith("Kubelet Version:"):
            node.kubelet = line.text.split(":", 1)[1].strip()
    node.conditions = list(_conditions(sections.get("Conditions", ())))
    if "Allocated resources" in sections:
        node.requested = _requested(sections["Allocated resources"], builder)
    absent = [part for part in _NODE_PARTS if part not in sections]
    if absent:
        builder.missing(f"{', '.join(absent)} of {'node ' + node.name if node.name else 'the node'}")
    return node


def _pairs(lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    for line in lines:
        match = _PAIR.fullmatch(line.text)
        if match is not None:
            yield match["key"], match["value"]


def _labels(lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    for line in lines:
        key, equals, value = line.text.strip().partition("=")
        if equals:
            yield key, value


def _annotations(lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """`key: value`, or `key:` with a long value on the next line."""
    waiting = ""
    for line in lines:
        text = line.text.strip()
        key, colon, value = text.partition(": ")
        if waiting:
            yield waiting, text
            waiting = ""
        elif text.endswith(":") and " " not in text:
            waiting = text[:-1]
        elif colon and re.fullmatch(r"[\w./-]+", key):
            yield key, value.strip()


def _conditions(lines: Sequence[Line]) -> Iterator[tuple[str, str, str, str]]:
    """Rows of the conditions table; its two times are not needed."""
    for line in lines:
        parts = _GAP.split(line.text.strip())
        if len(parts) >= 3 and parts[1] in ("True", "False", "Unknown"):
            reason = parts[-2] if len(parts) >= 5 else ""
            yield parts[0], parts[1], reason, parts[-1]


def _requested(lines: Sequence[Line], builder: RunBuilder) -> dict[str, object] | None:
    """Requests by resource from the table `Resource  Requests  Limits`, None when it is another table."""
    header = next((line for line in lines if line.text.split()[:2] == ["Resource", "Requests"]), None)
    if header is None:
        builder.missing("the columns Resource and Requests of the allocated resources")
        return None
    found: dict[str, object] = {}
    for line in lines:
        if line.number <= header.number or _RULE.fullmatch(line.text) or not line.text.startswith(" "):
            continue
        if read_event(line.text, line.number) is not None:
            continue  # pasted below, without its own header
        cells = _GAP.split(line.text.strip())
        amount = _CELL.fullmatch(cells[1]) if len(cells) >= 3 else None
        if amount is None or isinstance(read_resource(cells[0], amount["amount"]), NoValue):
            builder.reject(line.number, line.text, "not a resource with its requests and limits")
        else:
            found[cells[0]] = amount["amount"]
    return found


def observe_pod(described: Described, builder: RunBuilder) -> str:
    """Observe what a described pod asks for; its name for its events."""
    name = described.first("Name")
    subject: Labels = (("pod", name or "(unnamed)"),)
    if space := described.first("Namespace"):
        subject = (*subject, ("namespace", space))
    status = described.first("Status")
    if status:
        builder.observe("pod_phase", status, subject, described.sections["Status"][0].number)
    where = described.first("Node").split("/")[0]
    if where and where != "<none>":
        builder.observe("pod_node", where, subject)
    for container, resource, raw, line in _container_amounts(described.sections.get("Containers", ())):
        if is_accelerator(resource) and read_exact(raw) is not None:
            at = (*subject, ("container", container), ("resource", resource))
            builder.observe("pod_request", read_resource(resource, raw), at, line)
    _observe_ends(described.sections.get("Containers", ()), name, subject, builder)
    return name


def _observe_ends(lines: Sequence[Line], pod: str, subject: Labels, builder: RunBuilder) -> None:
    """Why containers wait or ended, and how often they were started again."""
    container, state, reason = "", "", ""
    for line in lines:
        text = line.text.strip()
        if re.fullmatch(r" {2}[\w.-]+:", line.text):
            container, state = text[:-1], ""
            continue
        key, _, value = text.partition(":")
        value, at = value.strip(), (*subject, ("container", container))
        if key in ("State", "Last State"):
            state = f"{key}: {value}"
        elif key == "Reason" and state:
            reason = value
            label = "container_state" if state.startswith("State") else "container_last_state"
            builder.observe(label, reason, at, line.number)
            if _ENDED_BADLY.fullmatch(reason):
                builder.notice("container-failed", f"{pod}, container {container}: {reason}", Weight.ERROR, line.number)
        elif key == "Exit Code" and state and value.isdigit():
            builder.observe("exit_code", float(value[:9]), at, line.number)
        elif key == "Restart Count" and value.isdigit():
            builder.observe("pod_restarts", float(value[:9]), at, line.number)


def _container_amounts(lines: Sequence[Line]) -> Iterator[tuple[str, str, str, int]]:
    """(container, resource, amount, line) of the limits; for devices requests equal them."""
    container, inside = "", False
    for line in lines:
        text = line.text.strip()
        if re.fullmatch(r" {2}[\w.-]+:", line.text):
            container, inside = text[:-1], False
        elif text.endswith(":"):
            inside = text == "Limits:"
        elif inside and (match := _PAIR.fullmatch(line.text)) is not None:
            yield container, match["key"], match["value"], line.number
        else:
            inside = False


def read_events(lines: Sequence[Line], about: str = "") -> Iterator[Event]:
    """Every event row in some lines; a header names the columns for the rows below it."""
    columns: list[tuple[str, int]] = []
    for line in lines:
        if is_header(line.text):
            # The table of describe has an age that itself holds spaces, and no column for the object.
            columns = [] if " From " in line.text else columns_of(line.text)
            continue
        event = read_event(line.text, line.number, about, columns)
        if event is None and columns:
            event = read_event(line.text, line.number, about)
        if event is not None:
            yield event
