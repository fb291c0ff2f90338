"""What GPU feature discovery wrote into a node's labels: product, physical count, sharing, MIG.

Source: labels of NVIDIA gpu-feature-discovery (now in k8s-device-plugin), docs/gpu-feature-discovery.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from clusterwright.model.observations import Labels, NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.amounts import read_exact
from clusterwright.readers.values import read_number, read_quantity

_MIG: Final = re.compile(r"nvidia\.com/mig-(?P<profile>[\w.+-]{1,40}?)\.count")
_TEXTS: Final = {
    "nvidia.com/gpu.product": "gpu_product",
    "nvidia.com/gpu.sharing-strategy": "gpu_sharing",
    "nvidia.com/mig.strategy": "mig_strategy",
    "nvidia.com/mig.config": "mig_config",
    "nvidia.com/mig.config.state": "mig_config_state",
    "nvidia.com/gpu.family": "gpu_family",
    "nvidia.com/gpu.machine": "machine",
    "nvidia.com/gpu.clique": "gpu_clique",
    "nvidia.com/device-plugin.config": "device_plugin_config",
    "amd.com/gpu.product-name": "gpu_product",
    "node.kubernetes.io/instance-type": "instance_type",
}


def tell_labels(
    labels: Mapping[str, str], subject: Labels, line: int, amounts: Mapping[str, object], builder: RunBuilder
) -> None:
    """Observe what the labels say about GPUs, and where they and the advertised resources differ.

    Args:
        amounts: the node's resources, empty when they were not printed.
    """
    for label, name in _TEXTS.items():
        if labels.get(label):
            builder.observe(name, labels[label], subject, line)
    _observe_driver(labels, subject, line, builder)
    named = f"node {dict(subject)['node']}" if "node" in dict(subject) else "the node"
    count = replicas = None
    if "nvidia.com/gpu.count" in labels:
        count = read_number(labels["nvidia.com/gpu.count"])
        builder.observe("gpus_physical", count, subject, line)
    if "nvidia.com/gpu.replicas" in labels:
        replicas = read_number(labels["nvidia.com/gpu.replicas"])
        builder.observe("gpu_replicas", replicas, subject, line)
    if "nvidia.com/gpu.memory" in labels:
        builder.observe("gpu_memory", read_quantity(labels["nvidia.com/gpu.memory"], "MiB"), subject, line)
    devices = _observe_mig(labels, subject, line, builder)
    if devices and count is None:
        builder.notice(
            "mig-devices-only",
            f"{named}: labels count MIG devices ({devices}) and no nvidia.com/gpu.count: they are slices, the "
            "number of "
            "physical GPUs is not here",
            line=line,
        )
    if isinstance(count, float) and isinstance(replicas, float):
        _tell_shared(named, labels, count, replicas, line, amounts, builder)
    elif labels.get("nvidia.com/gpu.product", "").endswith("-SHARED"):
        builder.notice(
            "gpus-shared",
            f"{named}: the product ends in -SHARED: nvidia.com/gpu counts shares of GPUs, not GPUs",
            line=line,
        )
    if labels.get("nvidia.com/mig.config.state") == "failed":
        wanted = labels.get("nvidia.com/mig.config", "?")
        builder.notice("mig-config-failed", f"{named}: MIG configuration {wanted} failed", Weight.ERROR, line)


def _observe_driver(labels: Mapping[str, str], subject: Labels, line: int, builder: RunBuilder) -> None:
    for full, parts, name in (
        ("nvidia.com/cuda.driver-version.full", "nvidia.com/cuda.driver.", "driver"),
        ("nvidia.com/cuda.runtime-version.full", "nvidia.com/cuda.runtime.", "cuda"),
    ):
        pieces = [labels.get(parts + part, "") for part in ("major", "minor", "rev")]
        text = labels.get(full) or ".".join(piece for piece in pieces if piece)
        if text:
            builder.observe(name, text, subject, line)


def _observe_mig(labels: Mapping[str, str], subject: Labels, line: int, builder: RunBuilder) -> str:
    """Observe the MIG devices; the counts as text."""
    said = []
    for label, text in labels.items():
        if (match := _MIG.fullmatch(label)) is not None:
            value = read_number(text)
            builder.observe("mig_devices", value, (*subject, ("profile", match["profile"])), line)
            if not isinstance(value, NoValue):
                said.append(f"{value:g} x {match['profile']}")
    return " + ".join(said)


def _tell_shared(
    named: str,
    labels: Mapping[str, str],
    count: float,
    replicas: float,
    line: int,
    amounts: Mapping[str, object],
    builder: RunBuilder,
) -> None:
    advertised = read_exact(amounts.get("nvidia.com/gpu.shared", amounts.get("nvidia.com/gpu")))
    if replicas > 1:
        how = labels.get("nvidia.com/gpu.sharing-strategy", "sharing")
        builder.notice(
            "gpus-shared",
            f"{named}: {count:g} physical GPUs are advertised {replicas:g} times each ({how}): {count * replicas:g} "
            f"advertised are {count:g} GPUs",
            line=line,
        )
    expected = count * max(1.0, replicas)
    if advertised is not None and float(advertised) != expected and labels.get("nvidia.com/mig.strategy") != "mixed":
        builder.notice(
            "count-differs-from-label",
            f"{named}: labels say {count:g} GPUs x {max(1.0, replicas):g}, the device plugin advertises "
            f"{float(advertised):g}",
            line=line,
        )
