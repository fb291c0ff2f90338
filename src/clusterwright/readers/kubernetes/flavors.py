"""Kueue ResourceFlavors and Topologies: which nodes a quota stands for, and where flavors mean the same ones.

Observed (subject flavor): `flavor_label` (subject label), `flavor_taint`, `flavor_topology`; (subject topology):
`topology_level` (subject position).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.manifests import Thing
from clusterwright.readers.kubernetes.nodes import spell_taint
from clusterwright.readers.kubernetes.shapes import rows, table, word

_PRODUCT: Final = "nvidia.com/gpu.product"
_VERSIONS: Final = frozenset({"v1alpha1", "v1beta1", "v1beta2", ""})


def report_flavors(things: Sequence[Thing], builder: RunBuilder) -> None:
    """Observe flavors and topologies, and say which flavors overlap."""
    flavors: dict[str, dict[str, str]] = {}
    for thing in things:
        if thing.kind not in ("ResourceFlavor", "Topology"):
            continue
        if thing.version not in _VERSIONS:
            builder.reject(thing.line, f"{thing.group}/{thing.version} {thing.kind}", "an unknown API version")
        elif thing.kind == "ResourceFlavor":
            flavors[thing.name] = _observe_flavor(thing, builder)
        else:
            for position, level in enumerate(rows(thing.spec.get("levels")), 1):
                at = (("topology", thing.name), ("position", str(position)))
                builder.observe("topology_level", word(level.get("nodeLabel")), at, thing.line)
    _tell_products(flavors, builder)
    _tell_same(flavors, builder)


def _observe_flavor(thing: Thing, builder: RunBuilder) -> dict[str, str]:
    # Before v1beta1 the labels stood at the top of the object.
    labels = table(thing.spec.get("nodeLabels")) or table(thing.body.get("nodeSelector"))
    subject = (("flavor", thing.name),)
    for label, value in labels.items():
        builder.observe("flavor_label", word(value), (*subject, ("label", label)), thing.line)
    for taint in rows(thing.spec.get("nodeTaints")):
        builder.observe("flavor_taint", spell_taint(taint), subject, thing.line)
    topology = word(thing.spec.get("topologyName"))
    if topology:
        builder.observe("flavor_topology", topology, subject, thing.line)
    if not labels:
        builder.observe("flavor_label", "(every node)", subject, thing.line)
        builder.notice(
            "flavor-every-node",
            f"flavor {thing.name} has no node labels: it matches every node",
            Weight.INFO,
            thing.line,
        )
    return {label: word(value) for label, value in labels.items()}


def _tell_products(flavors: dict[str, dict[str, str]], builder: RunBuilder) -> None:
    for name, labels in flavors.items():
        product = labels.get(_PRODUCT, "")
        if "-MIG-" in product:
            builder.notice(
                "flavor-counts-mig",
                f"flavor {name} selects {product}: its nvidia.com/gpu quota counts MIG slices, not GPUs",
            )
        if product.endswith("-SHARED"):
            builder.notice(
                "flavor-counts-shares",
                f"flavor {name} selects {product}: its nvidia.com/gpu quota counts shares of GPUs, not GPUs",
            )


def _tell_same(flavors: dict[str, dict[str, str]], builder: RunBuilder) -> None:
    by_hardware: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, labels in flavors.items():
        if labels:
            plain = {label: value.removesuffix("-SHARED") for label, value in labels.items()}
            by_hardware.setdefault(tuple(sorted(plain.items())), []).append(name)
    for labels_of, names in by_hardware.items():
        if len(names) > 1:
            selected = ", ".join(f"{label}={value}" for label, value in labels_of)
            builder.notice(
                "flavors-same-hardware",
                f"flavors {', '.join(names)} select the same hardware ({selected}), whole and shared alike: its "
                "GPUs are "
                "counted twice when their quotas are added",
            )
