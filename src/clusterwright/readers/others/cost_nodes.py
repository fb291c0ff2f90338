"""Node prices in a cost export, and whether their parts add up to the price of the node."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from clusterwright.model.observations import Labels, NoValue, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.values import quantity, read_amount, read_number

#: How far parts may be from the price of the node; prices are printed with six digits.
TOLERANCE_SHARE: Final = 0.01
_GIB: Final = 2.0**30
_PRICES: Final = {
    "hourlyCost": "price_per_hour",
    "CPUHourlyCost": "cpu_price_per_hour",
    "RAMGBHourlyCost": "ram_price_per_gib_hour",
    "gpuCost": "gpu_price_per_hour",
}
_COUNTS: Final = {"CPU": "cpus", "gpu": "gpus", "vgpu": "gpus_virtual"}
_TEXTS: Final = ("instanceType", "region", "usageType", "gpuName", "providerID")
_MOST: Final = 100_000
_SIZE: Final = re.compile(r"\d+(?:\.\d+)? ?[KMGT]i?B?")


def find_nodes(data: object) -> list[tuple[str, dict[str, Any]]]:
    """(name, node) of every object with a node's hourly prices, one for each node name."""
    found: dict[str, dict[str, Any]] = {}
    for name, node in _walk(data):
        found.setdefault(name or f"(node {len(found) + 1})", node)
        if len(found) >= _MOST:
            break
    return list(found.items())


def _walk(data: object) -> Iterator[tuple[str, dict[str, Any]]]:
    waiting: list[tuple[str, object]] = [("", data)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, list):
            waiting.extend((name, item) for item in reversed(value))
        elif isinstance(value, dict):
            if "hourlyCost" in value and ("CPUHourlyCost" in value or "RAMGBHourlyCost" in value):
                yield str(value.get("name") or name), value
                continue
            for key, item in reversed(value.items()):
                inner = value.get("nodeName") if key == "node" else key
                waiting.append((str(inner or name), item))


def report_nodes(nodes: list[tuple[str, dict[str, Any]]], builder: RunBuilder) -> None:
    """Observe every node's prices, and recompute the price of the node from its parts."""
    for name, node in nodes:
        subject: Labels = (("node", name),)
        values: dict[str, Value] = {}
        for key, label in {**_PRICES, **_COUNTS}.items():
            if key in node:
                values[label] = read_cost(node[key])
                builder.observe(label, values[label], subject)
        memory = read_cost(node.get("RAMBytes"))
        if isinstance(memory, float):
            builder.observe("memory_total", quantity(memory, "B"), subject)
        for key in _TEXTS:
            if isinstance(node.get(key), str) and node[key]:
                builder.observe(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower(), node[key][:200], subject)
        if node.get("gpuName") == "" and values.get("gpus") not in (None, 0.0):
            builder.notice("gpu-name-empty", f"node {name} has {values['gpus']} GPUs and no name for them")
        if node.get("usesDefaultPrice") is True:
            builder.notice("default-price", f"node {name} is priced by defaults, not by its provider")
        _tell_parts(name, node, values, memory, subject, builder)


def read_cost(raw: object) -> Value:
    """A number, also one written as text."""
    if isinstance(raw, bool) or raw is None:
        return read_number("")
    return read_number(str(raw)[:64])


def _tell_parts(
    name: str, node: dict[str, Any], values: dict[str, Value], memory: Value, subject: Labels, builder: RunBuilder
) -> None:
    """Compare CPU + RAM + GPU with the node's own price; the parts must not exceed it."""
    whole, cpus = values.get("price_per_hour"), values.get("cpus")
    cpu, ram = values.get("cpu_price_per_hour"), values.get("ram_price_per_gib_hour")
    if not (isinstance(whole, float) and isinstance(cpus, float) and isinstance(cpu, float) and isinstance(ram, float)):
        return
    if not isinstance(memory, float) or whole <= 0:
        return
    # gpuCost of the node is the price of all its GPUs together.
    gpu_price, gpus = values.get("gpu_price_per_hour"), values.get("gpus")
    gpu = gpu_price if isinstance(gpu_price, float) and gpus != 0.0 else 0.0
    parts = cpus * cpu + memory / _GIB * ram + gpu
    builder.observe("parts_per_hour", parts, subject)
    stated = node.get("RAM")
    nominal = read_amount(stated) if isinstance(stated, str) and _SIZE.fullmatch(stated) else None
    more = ""
    if nominal is not None and not isinstance(nominal, NoValue):
        gib = nominal.value / _GIB
        more = f" ({cpus * cpu + gib * ram + gpu:.4f} with the stated {stated})"
    off = parts / whole - 1
    if abs(off) > TOLERANCE_SHARE:
        builder.notice(
            "parts-do-not-add-up",
            f"node {name}: {cpus:g} CPU x {cpu:g} + {memory / _GIB:.4f} GiB x {ram:g} + GPU {gpu:g} = {parts:.4f} "
            "an hour"
            f"{more}, the node's own price is {whole:.4f}: the parts {'exceed' if off > 0 else 'fall short of'} it by "
            f"{abs(off):.1%}",
            Weight.ERROR,
        )
