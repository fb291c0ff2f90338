"""Annotations in which vGPU schedulers keep the devices of a node: HAMi (and its older name 4paradigm).

Source: HAMi pkg/device, DecodeNodeDevices: id, count, memory in MiB, cores in %, type, NUMA node, health, joined by
`,` and `:`; JSON since HAMi 2.6.
"""

from __future__ import annotations

import json
import re
from typing import Final

from clusterwright.model.observations import Labels
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.shapes import rows, word
from clusterwright.readers.values import read_number, read_quantity

_KEY: Final = re.compile(r"(?:hami\.io|4pd\.io)/node-(?:[\w-]+-)?register")
_MOST: Final = 1024


def is_registration(key: str) -> bool:
    """Whether an annotation holds the devices of a node."""
    return _KEY.fullmatch(key) is not None


def tell_registration(key: str, text: str, subject: Labels, builder: RunBuilder, *, cut: bool = False) -> None:
    """Observe the physical devices and into how many virtual ones each is split.

    Args:
        cut: whether kubectl cut the text (describe does so with `...`), so that its last device is torn.
    """
    torn = cut or text.endswith(("...", "…"))
    devices = _decode(text)
    if torn:
        builder.missing(f"the devices after the first {max(0, len(devices) - 1)} in the annotation {key}, which is cut")
    shares = []
    for position, device in enumerate(devices[:_MOST]):
        last = position == len(devices) - 1
        if len(device) < 6 or (torn and last):
            builder.reject(0, ",".join(device), f"a torn device in the annotation {key}")
            continue
        count = read_number(device[1])
        at = (*subject, ("gpu", str(position)), ("uuid", device[0]))
        product = device[4].removeprefix("NVIDIA-")
        builder.observe("gpu", product, at)
        builder.observe("gpu_replicas", count, at)
        builder.observe("memory_total", read_quantity(device[2], "MiB"), at)
        if len(device) > 6:
            builder.observe("gpu_healthy", device[6].strip().lower() == "true", at)
        if isinstance(count, float):
            shares.append(count)
    if shares:
        more = "at least " if torn else ""
        least = len(devices) if torn else len(shares)
        each = f"{max(shares):g}" if len(set(shares)) == 1 else f"{min(shares):g} to {max(shares):g}"
        builder.notice(
            "gpus-virtual",
            f"{key.split('/')[0]} splits each GPU into {each} virtual ones: nvidia.com/gpu counts virtual GPUs; "
            "physical "
            f"are {more}{least}",
        )


def _decode(text: str) -> list[list[str]]:
    """Fields of every device, the last one perhaps torn."""
    stripped = text.strip().removesuffix("...").removesuffix("…")
    if stripped.startswith("["):
        try:
            found = json.loads(stripped)
        except (ValueError, RecursionError):
            return []
        keys = ("id", "count", "devmem", "devcore", "type", "numa", "health")
        return [[word(device.get(key)) for key in keys] for device in rows(found)]
    return [device.split(",") for device in stripped.split(":") if device]
