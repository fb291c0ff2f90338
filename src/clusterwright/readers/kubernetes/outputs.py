"""The Kubernetes readers: whatever stands in an output is read, whichever of them was asked, in one run.

An output is one snapshot: nodes and the pods on them, queues and flavors belong together, so that what is free or
overlaps can be said. A reader refuses when nothing of its own kind is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.kubernetes import claims, devices, flavors, operators, pods, queues, quotas, workloads
from clusterwright.readers.kubernetes.autoscaling import Scaling
from clusterwright.readers.kubernetes.describing import Described, observe_pod, read_events, split_objects
from clusterwright.readers.kubernetes.describing import read_node as read_described
from clusterwright.readers.kubernetes.describing_workloads import rebuild_workload
from clusterwright.readers.kubernetes.events import Event, report_events
from clusterwright.readers.kubernetes.explaining import explain, tell_message
from clusterwright.readers.kubernetes.listing import report_tables
from clusterwright.readers.kubernetes.manifests import Manifest, Thing, load_manifest
from clusterwright.readers.kubernetes.nodes import Node, read_node, report_nodes, tell_excerpt
from clusterwright.readers.kubernetes.recognising import DRA, FAMILIES, KUEUE, NODE, PENDING, PLUGIN
from clusterwright.readers.kubernetes.shapes import dig, table, word
from clusterwright.readers.kubernetes.sharing import read_data, tell_config
from clusterwright.readers.refusing import Refused

_OBJECT_START: Final = re.compile(r"(?:apiVersion|kind|metadata|status|spec|items):")
_CLAIMS: Final = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceClass")
_QUEUES: Final = ("ClusterQueue", "LocalQueue", "Cohort")


def reads(kind: str) -> Callable[[Source], Sequence[Run]]:
    """The `read` of a kind of output."""

    def read(source: Source) -> Sequence[Run]:
        head = source.head
        if kind in (NODE, KUEUE, PENDING, DRA) and not _is_document(head):
            return [_read_text(kind, source.lines(prefixes=False))]
        if kind == "k8s-describe":
            return [_read_text(kind, source.lines(prefixes=False))]
        return [_read_objects(kind, source.text())]

    return read


def _is_document(head: str) -> bool:
    """Whether a text is JSON or YAML, and no table, event or log."""
    lines = [line for line in head.split("\n") if line.strip() and not line.lstrip().startswith(("#", "$"))][:60]
    if any(line.rstrip() == "{" or line.startswith('{"') for line in lines[:20]):
        return True
    if any(line.lstrip().startswith(("{", "[")) for line in lines[:1]) or _OBJECT_START.match("\n".join(lines)):
        return True
    keyed = sum(bool(re.match(r"\s*(?:- )?[\"']?[\w./-]+[\"']?:(?:\s|$)|\s*- |---|\s+\S", line)) for line in lines)
    shouted = any(
        line.startswith(("NAME ", "NAMESPACE ", "LAST SEEN", "Events:", "Name: ", "Warning ")) for line in lines
    )
    return not shouted and bool(lines) and keyed >= 0.9 * len(lines) and not lines[0].startswith(("Normal", "Warning"))


def _read_objects(kind: str, text: str) -> Run:
    manifest = load_manifest(text)
    builder = RunBuilder(kind)
    _report(kind, manifest, text, builder)
    if builder.bare and not builder.rejected:
        found = ", ".join(sorted({thing.kind or "objects of no known kind" for thing in manifest.things}))
        raise Refused(f"holds nothing that {kind} reads", found=found)
    if builder.bare:
        line, sample, why = manifest.rejected[0] if manifest.rejected else (0, "", "")
        unread = builder.build().unread
        if unread and not sample:
            line, sample, why = unread[0].line, unread[0].text, unread[0].why
        raise Refused(f"nothing in it could be read: {why}", line, sample)
    return builder.build()


def _report(kind: str, manifest: Manifest, text: str, builder: RunBuilder) -> None:
    things = manifest.things
    by_kind: dict[str, list[Thing]] = {}
    for thing in things:
        by_kind.setdefault(thing.kind, []).append(thing)
    manifest.tell(builder)
    _report_nodes(by_kind, builder)
    if any(name in by_kind for name in (*_QUEUES, "ResourceFlavor", "Topology")):
        quotas.report_quotas(queues.read_queues(things, builder), builder)
        flavors.report_flavors(things, builder)
        queues.tell_references(things, builder)
        queues.tell_comments(manifest.comments, builder)
    workloads.report_workloads(things, builder)
    if "ResourceSlice" in by_kind:
        devices.report_slices(by_kind["ResourceSlice"], builder)
    claims.report_claims([thing for thing in things if thing.kind in _CLAIMS], builder)
    claims.tell_extended_pods(by_kind.get("Pod", ()), text, builder)
    _report_settings(kind, things, builder)
    report_events((_event(thing) for thing in by_kind.get("Event", ())), builder)
    _tell_unread(things, builder)


def _report_nodes(by_kind: dict[str, list[Thing]], builder: RunBuilder) -> None:
    nodes = [read_node(thing) for thing in by_kind.get("Node", ())]
    for thing in by_kind.get("Node", ()):
        tell_excerpt(thing, builder)
    pods.add_requests(nodes, by_kind.get("Pod", ()))
    if nodes:
        report_nodes(nodes, builder)
    pods.report_pods(by_kind.get("Pod", ()), builder)


def _report_settings(kind: str, things: Iterable[Thing], builder: RunBuilder) -> None:
    for thing in things:
        if thing.kind in ("ClusterPolicy", "NVIDIADriver", "NicClusterPolicy"):
            operators.tell_policy(thing, builder)
        elif thing.kind == "ConfigMap":
            read_data(table(thing.body.get("data")), thing.line, builder)
        elif thing.kind in ("", "HelmRelease", "HelmChart", "HelmChartConfig", "Application"):
            values = operators.unwrap(thing)
            for found in values[:4]:
                operators.tell_values(found, thing.line, builder)
            if not values and not tell_config("", thing.body, thing.line, builder) and kind == PLUGIN:
                read_data(table(dig(thing.body, "config", "map")), thing.line, builder)


def _event(thing: Thing) -> Event:
    """An Event object as a row."""
    body = thing.body
    about = table(body.get("involvedObject")) or table(body.get("regarding"))
    times = body.get("count")
    return Event(
        word(body.get("type")),
        word(body.get("reason")),
        "/".join(part for part in (word(about.get("kind")).lower(), word(about.get("name"))) if part),
        word(dig(body, "source", "component")) or word(body.get("reportingComponent")),
        word(body.get("message")) or word(body.get("note")),
        thing.line,
        times=times if isinstance(times, int) and 0 < times < 10**9 else 1,
    )


def _tell_unread(things: Iterable[Thing], builder: RunBuilder) -> None:
    known = {*FAMILIES, "Pod", "Event", "ConfigMap", "HelmRelease", "HelmChart", "HelmChartConfig", "Application", ""}
    others: dict[str, int] = {}
    for thing in things:
        if thing.kind not in known:
            others[thing.kind] = others.get(thing.kind, 0) + 1
    if others:
        listed = ", ".join(f"{count} {kind}" for kind, count in list(others.items())[:20])
        builder.notice("objects-not-read", f"objects of other kinds are not read: {listed}", Weight.INFO)


def _read_text(kind: str, lines: Iterable[Line]) -> Run:
    """Describe outputs, tables, events and autoscaler logs, also several pasted together."""
    builder, scaling = RunBuilder(kind), Scaling()
    kept: list[Line] = []
    for line in lines:
        if not scaling.take(line.text, line.number) and len(kept) < _MOST_LINES:
            kept.append(line)
    if len(kept) >= _MOST_LINES:
        builder.missing(f"lines beyond the first {_MOST_LINES:,}")
    elided = [line.number for line in kept if line.text.strip() in ("...", "…", "[...]")]
    if elided:
        builder.missing(f"what stood where line {', '.join(map(str, elided[:3]))} says that something was left out")
    objects, text = _split_embedded(kept)
    nodes = _embedded_nodes(objects, builder)
    described = split_objects(text)
    nodes = _merge([*nodes, *(node for one in described if (node := read_described(one, builder)) is not None)])
    if nodes:
        report_nodes(nodes, builder)
    report_tables(text, builder)
    _report_events(described, text, builder)
    _report_bare_messages(text, builder)
    scaling.tell(builder)
    if (workload := rebuild_workload(text)) is not None:
        workloads.report_workloads([workload], builder)
    if builder.bare:
        raise Refused(f"holds nothing that {kind} reads", found=kept[0].text if kept else "")
    return builder.build()


_MOST_LINES: Final = 1_000_000


def _split_embedded(lines: Sequence[Line]) -> tuple[list[str], list[Line]]:
    """(YAML objects pasted among the text, the other lines)."""
    objects: list[str] = []
    others: list[Line] = []
    held: list[str] = []
    for line in lines:
        if line.text.startswith("apiVersion:") and not held:
            held = [line.text]
        elif held and line.text.strip():
            held.append(line.text)
        else:
            if held:
                objects.append("\n".join(held))
                held = []
            others.append(line)
    return [*objects, *(["\n".join(held)] if held else [])], others


def _embedded_nodes(objects: Iterable[str], builder: RunBuilder) -> list[Node]:
    nodes = []
    for text in objects:
        try:
            manifest = load_manifest(text)
        except Refused as refused:
            builder.reject(refused.refusal.line, text[:80], refused.refusal.reason)
            continue
        manifest.tell(builder)
        for thing in manifest.things:
            if thing.kind == "Node":
                tell_excerpt(thing, builder)
                nodes.append(read_node(thing))
    return nodes


def _merge(nodes: Sequence[Node]) -> list[Node]:
    """Parts without a name that were pasted together are one node when no part has a name."""
    if len(nodes) < 2 or any(node.name for node in nodes):
        return list(nodes)
    first = nodes[0]
    for node in nodes[1:]:
        first.capacity = first.capacity or node.capacity
        first.allocatable = first.allocatable or node.allocatable
        first.requested = first.requested if first.requested is not None else node.requested
        first.conditions = first.conditions or node.conditions
    return [first]


def _report_events(described: Sequence[Described], text: Sequence[Line], builder: RunBuilder) -> None:
    inside: set[int] = set()
    events: list[Event] = []
    for one in described:
        name = observe_pod(one, builder) if one.pod else one.first("Name")
        found = list(read_events(one.sections.get("Events", ()), name))
        events += found
        inside.update(event.line for event in found)
    events += [event for event in read_events(text) if event.line not in inside]
    report_events(events, builder)


_BARE: Final = re.compile(r"\d+/\d+ nodes are (?:un)?available|couldn't assign flavors|insufficient (?:unused )?quota ")


def _report_bare_messages(text: Iterable[Line], builder: RunBuilder) -> None:
    """Messages of the scheduler that stand on a line of their own."""
    for line in text:
        stripped = line.text.strip()
        if _BARE.match(stripped) and explain(stripped):
            tell_message(stripped, (), line.number, builder, waiting=f"the pod of line {line.number}")
