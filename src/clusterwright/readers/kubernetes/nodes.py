"""What a node offers, whichever command printed it: capacity, allocatable, requested and free are four numbers.

Observed (subject node, resource): `capacity`, `allocatable`, `requested`, `free`; (subject node): `node_ready`,
`node_condition` (subject type too), `unschedulable`, `taint`, `virtual`, `gpu_product`, `gpus_physical` (label of GPU
feature discovery), `gpu_memory`, `gpu_replicas`, `gpu_sharing`, `mig_strategy`, `mig_devices` (subject profile),
`driver`, `kubelet`. Over all real nodes (subject resource): `total_capacity`, `total_allocatable`,
`total_schedulable` (of devices, on nodes that are ready and not cordoned).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from clusterwright.model.observations import Labels, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.amounts import is_accelerator, read_exact, read_resource, to_value
from clusterwright.readers.kubernetes.labels import tell_labels
from clusterwright.readers.kubernetes.manifests import Thing
from clusterwright.readers.kubernetes.registrations import is_registration, tell_registration
from clusterwright.readers.kubernetes.shapes import Fields, rows, table, word

_UNREACHABLE: Final = ("Unknown",)
_CONTROL: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


@dataclass(slots=True)
class Node:
    """One node as printed; an empty mapping means that the part is not there, not that it is zero.

    Args:
        requested: sum of the requests of its pods, by resource; None when no pods were printed.
        conditions: (type, status, reason, message).
    """

    name: str = ""
    line: int = 0
    capacity: Fields = field(default_factory=dict)
    allocatable: Fields = field(default_factory=dict)
    requested: Fields | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: list[str] = field(default_factory=list)
    conditions: list[tuple[str, str, str, str]] = field(default_factory=list)
    unschedulable: bool = False
    kubelet: str = ""
    cut_annotations: bool = False

    @property
    def virtual(self) -> bool:
        """Whether it is simulated (KWOK, virtual kubelet) and has no hardware."""
        marks = (*self.annotations, *self.labels, *self.taints)
        if any("kwok.x-k8s.io" in mark or "virtual-kubelet.io/provider" in mark for mark in marks):
            return True
        return self.labels.get("type") in ("kwok", "virtual-kubelet")

    def subject(self, **more: str) -> Labels:
        """Labels of an observation about it."""
        name = (("node", self.name),) if self.name else ()
        return (*name, *more.items())


def read_node(thing: Thing) -> Node:
    """The node that an object describes."""
    status, spec, metadata = thing.status, thing.spec, thing.metadata
    labels = {key: word(item) for key, item in table(metadata.get("labels")).items()}
    node = Node(thing.name or labels.get("kubernetes.io/hostname", ""), thing.line)
    node.labels = labels
    node.annotations = {key: word(item) for key, item in table(metadata.get("annotations")).items()}
    node.capacity, node.allocatable = table(status.get("capacity")), table(status.get("allocatable"))
    node.taints = [spell_taint(taint) for taint in rows(spec.get("taints"))]
    node.unschedulable = spec.get("unschedulable") is True
    node.kubelet = word(table(status.get("nodeInfo")).get("kubeletVersion"))
    if not node.name:
        hosts = [word(a.get("address")) for a in rows(status.get("addresses")) if a.get("type") == "Hostname"]
        node.name = hosts[0] if hosts else ""
    for condition in rows(status.get("conditions")):
        texts = (word(condition.get(key)) for key in ("type", "status", "reason", "message"))
        kind, state, reason, message = texts
        node.conditions.append((kind, state, reason, message))
    return node


def spell_taint(taint: Fields) -> str:
    """A taint as kubectl writes it."""
    value = word(taint.get("value"))
    return f"{word(taint.get('key'))}{'=' if value else ''}{value}:{word(taint.get('effect'))}"


def tell_excerpt(thing: Thing, builder: RunBuilder) -> None:
    """Name what is missing from a node that was not printed whole."""
    named = f"node {thing.name}" if thing.name else "the node"
    status = thing.status
    if thing.excerpt:
        builder.missing(f"apiVersion, kind and the other fields of {named}: this is an excerpt")
        return
    if not status:
        builder.missing(f"the status of {named}")
        return
    absent = [key for key in ("capacity", "allocatable", "conditions") if key not in status]
    capacity, allocatable = table(status.get("capacity")), table(status.get("allocatable"))
    lost = sorted(set(allocatable) - set(capacity)) if capacity and allocatable else []
    if absent:
        builder.missing(f"{', '.join(absent)} of {named}")
    if lost:
        builder.missing(f"{', '.join(lost[:5])} in the capacity of {named}, which its allocatable has")


def report_nodes(nodes: Sequence[Node], builder: RunBuilder) -> None:
    """Observe every node, then what only all of them together show."""
    seen: set[str] = set()
    unique = []
    for node in nodes:
        if node.name and node.name in seen:
            builder.notice("node-twice", f"node {node.name} stands more than once; it is counted once", line=node.line)
            continue
        seen.add(node.name)
        unique.append(node)
    for node in unique:
        _observe(node, builder)
        _tell_amounts(node, builder)
        _tell_state(node, builder)
    _tell_all(unique, builder)


def _observe(node: Node, builder: RunBuilder) -> None:
    parts = [("capacity", node.capacity), ("allocatable", node.allocatable)]
    if node.requested is not None:
        parts.append(("requested", node.requested))
    for name, amounts in parts:
        for resource, raw in amounts.items():
            value = read_resource(resource, raw)
            builder.observe(name, value, node.subject(resource=resource), node.line)
    if node.requested is not None:
        for resource in node.allocatable:
            offered, asked = read_exact(node.allocatable[resource]), read_exact(node.requested.get(resource, 0))
            if offered is not None and asked is not None and (resource in node.requested or is_accelerator(resource)):
                free = max(Fraction(0), offered - asked)
                builder.observe("free", to_value(resource, free), node.subject(resource=resource), node.line)
    for taint in node.taints:
        builder.observe("taint", taint, node.subject(), node.line)
    if node.kubelet:
        builder.observe("kubelet", node.kubelet, node.subject(), node.line)
    if node.virtual:
        builder.observe("virtual", True, node.subject(), node.line)
    if node.unschedulable:
        builder.observe("unschedulable", True, node.subject(), node.line)
    for kind, state, _, _ in node.conditions:
        if kind == "Ready":
            builder.observe("node_ready", state == "True", node.subject(), node.line)
        elif kind:
            builder.observe("node_condition", state, node.subject(type=kind), node.line)
    tell_labels(node.labels, node.subject(), node.line, node.allocatable or node.capacity, builder)
    for key, text in node.annotations.items():
        if is_registration(key):
            tell_registration(key, text, node.subject(), builder, cut=node.cut_annotations)


def _tell_amounts(node: Node, builder: RunBuilder) -> None:
    named = f"node {node.name}" if node.name else "the node"
    devices = [r for r in {**node.capacity, **node.allocatable} if is_accelerator(r)]
    for resource in devices:
        capacity, offered = read_exact(node.capacity.get(resource)), read_exact(node.allocatable.get(resource))
        if capacity is not None and offered is not None and offered < capacity:
            lost = capacity - offered
            what = (
                "all of them are unhealthy or the device plugin is gone" if offered == 0 else "unhealthy or held back"
            )
            builder.notice(
                "gpus-not-allocatable",
                f"{named}: capacity {float(capacity):g} {resource}, allocatable {float(offered):g}: {float(lost):g} "
                "cannot "
                f"be scheduled ({what}); only what is allocatable counts",
                Weight.ERROR,
                node.line,
            )
    if len({name.split("/")[0] for name in devices}) > 1:
        listed = ", ".join(f"{r} {word({**node.capacity, **node.allocatable}[r])}" for r in sorted(devices))
        builder.notice(
            "several-gpu-resources",
            f"{named} advertises accelerators under {len(devices)} names of different device plugins ({listed}); "
            "they may "
            "stand for the same devices: do not add them",
            line=node.line,
        )
    if devices and node.requested is None and node.allocatable and not node.virtual:
        builder.notice(
            "free-not-known",
            "allocatable does not fall while pods use devices: free devices are allocatable minus the requests of the "
            "pods, which are not in this output (kubectl get pods -A -o json, or kubectl describe node)",
            Weight.INFO,
        )
    if node.requested is not None:
        _tell_full(node, devices, named, builder)


def _tell_full(node: Node, devices: Iterable[str], named: str, builder: RunBuilder) -> None:
    for resource in devices:
        offered = read_exact(node.allocatable.get(resource))
        asked = read_exact((node.requested or {}).get(resource, 0))
        if offered is None or asked is None:
            continue
        if asked > offered:
            builder.notice(
                "requested-above-allocatable",
                f"{named}: pods hold {float(asked):g} {resource}, allocatable is {float(offered):g}",
                Weight.ERROR,
                node.line,
            )
        elif asked == offered and offered > 0:
            builder.notice(
                "none-free",
                f"{named}: 0 {resource} free, all {float(offered):g} allocatable are requested by pods; allocatable is "
                "not availability",
                line=node.line,
            )


def _tell_state(node: Node, builder: RunBuilder) -> None:
    named = f"node {node.name}" if node.name else "the node"
    if node.virtual:
        builder.notice(
            "virtual-node",
            f"{named} is simulated (KWOK or virtual kubelet): its devices do not exist and are left out of the totals",
            line=node.line,
        )
    if node.unschedulable or any(t.startswith("node.kubernetes.io/unschedulable") for t in node.taints):
        builder.notice("node-cordoned", f"{named} is cordoned: nothing new is scheduled there", line=node.line)
    for kind, state, reason, message in node.conditions:
        if kind == "Ready" and state != "True":
            said = f": {message}" if message else ""
            builder.notice("node-not-ready", f"{named} is not ready ({state}, {reason}){said}", Weight.ERROR, node.line)
        elif kind not in ("Ready", "AggregatedNodeHealth") and state in ("True", *_UNREACHABLE):
            builder.notice(
                "node-condition", f"{named}: {kind} is {state} ({reason}) {message}".rstrip(), line=node.line
            )
    devices = [r for r in node.allocatable if is_accelerator(r)]
    if devices and any(role in node.labels for role in _CONTROL) and not any("node-role" in t for t in node.taints):
        builder.notice(
            "gpu-control-plane", f"{named} is control plane and offers {devices[0]} at once", Weight.INFO, node.line
        )


def _tell_all(nodes: Sequence[Node], builder: RunBuilder) -> None:
    real = [node for node in nodes if not node.virtual]
    builder.condition("node_count", float(len(real)))
    if len(real) < len(nodes):
        builder.condition("virtual_nodes", float(len(nodes) - len(real)))
    for name, part in (("total_capacity", "capacity"), ("total_allocatable", "allocatable")):
        sums: dict[str, Fraction] = {}
        for node in real:
            for resource, raw in getattr(node, part).items():
                if (number := read_exact(raw)) is not None:
                    sums[resource] = sums.get(resource, Fraction(0)) + number
        for resource, total in sums.items():
            builder.observe(name, to_value(resource, total), (("resource", resource),))
    _tell_schedulable(real, builder)
    _tell_different(real, builder)
    versions = Counter(node.kubelet for node in real if node.kubelet)
    if len(versions) > 1:
        listed = ", ".join(f"{version} on {count}" for version, count in versions.most_common())
        builder.notice("kubelets-differ", f"kubelets differ: {listed}", Weight.INFO)


def _tell_schedulable(nodes: Sequence[Node], builder: RunBuilder) -> None:
    """Devices on nodes that are ready and not cordoned, where every node says so."""
    ready = [[state for kind, state, _, _ in node.conditions if kind == "Ready"] for node in nodes]
    if not nodes or not all(ready):
        return
    sums: dict[str, Fraction] = {}
    for node, states in zip(nodes, ready, strict=True):
        usable = states[0] == "True" and not node.unschedulable
        for resource, raw in node.allocatable.items():
            number = read_exact(raw)
            if number is not None and is_accelerator(resource):
                sums[resource] = sums.get(resource, Fraction(0)) + (number if usable else 0)
    for resource, total in sums.items():
        builder.observe("total_schedulable", to_value(resource, total), (("resource", resource),))


def _tell_different(nodes: Sequence[Node], builder: RunBuilder) -> None:
    """Name the nodes of one product that advertise another number of GPUs than most of them."""
    groups: dict[str, list[tuple[Node, float]]] = {}
    for node in nodes:
        value = read_resource("nvidia.com/gpu", node.allocatable.get("nvidia.com/gpu"))
        product = node.labels.get("nvidia.com/gpu.product", "")
        if product and isinstance(value, float):
            groups.setdefault(product, []).append((node, value))
    for product, members in groups.items():
        (usual, count), *others = Counter(value for _, value in members).most_common()
        if not others or count <= len(members) / 2:
            continue
        odd = [f"{node.name} {value:g}" for node, value in members if value != usual]
        builder.notice(
            "gpu-count-differs",
            f"{count} of {len(members)} nodes with {product} have {usual:g} nvidia.com/gpu allocatable; others: "
            + ", ".join(odd[:10]),
        )
