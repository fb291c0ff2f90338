"""Allocations and assets of the OpenCost API: cost by name and window, and whether the parts add up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from clusterwright.model.observations import Labels, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.others.cost_nodes import TOLERANCE_SHARE, read_cost
from clusterwright.readers.refusing import Refused

#: Field → our name, and whether it is a part of the total.
_COSTS: Final = {
    "cpuCost": "cost_cpu", "gpuCost": "cost_gpu", "ramCost": "cost_ram", "pvCost": "cost_pv",
    "networkCost": "cost_network", "loadBalancerCost": "cost_load_balancer", "sharedCost": "cost_shared",
    "externalCost": "cost_external",
}  # fmt: skip
_ADJUSTMENTS: Final = (
    "cpuCostAdjustment", "gpuCostAdjustment", "ramCostAdjustment", "pvCostAdjustment", "networkCostAdjustment",
    "loadBalancerCostAdjustment",
)  # fmt: skip
_OTHERS: Final = {
    "totalCost": "cost_total", "gpuHours": "gpu_hours", "cpuCoreHours": "cpu_core_hours", "gpuCount": "gpus",
    "cpuCostIdle": "cost_cpu_idle", "gpuCostIdle": "cost_gpu_idle", "ramCostIdle": "cost_ram_idle",
    "minutes": "minutes", "totalEfficiency": "efficiency", "gpuEfficiency": "gpu_efficiency",
}  # fmt: skip
_GIB: Final = 2.0**30
_LEAST: Final = 0.01


def report_allocations(data: object, builder: RunBuilder) -> None:
    """Observe every allocation or asset of every window."""
    found = 0
    for name, allocation in _allocations(data):
        found += 1
        window = allocation.get("window")
        times = window if isinstance(window, dict) else allocation
        start, end = (str(times.get(key) or "")[:40] for key in ("start", "end"))
        subject: Labels = (("allocation", name[:300]), *((("window", f"{start}/{end}"),) if start else ()))
        for key, label in {**_COSTS, **_OTHERS}.items():
            if key in allocation:
                builder.observe(label, read_cost(allocation[key]), subject)
        hours = read_cost(allocation.get("ramByteHours"))
        if isinstance(hours, float):
            builder.observe("ram_gib_hours", hours / _GIB, subject)
        _tell_total(name, allocation, subject, builder)
        _tell_idle(name, allocation, builder)
    if not found:
        raise Refused("holds no allocation with a cost", found=str(data)[:80])


def _allocations(data: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, allocation) below lists, sets and maps by name; the shape differs between versions."""
    waiting: list[tuple[str, object]] = [("", data)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, list):
            waiting.extend((name, item) for item in reversed(value))
        elif isinstance(value, dict):
            if "totalCost" in value or "cpuCost" in value:
                yield str(value.get("name") or name or "(unnamed)"), value
            else:
                waiting.extend((str(key), item) for key, item in reversed(value.items()))


def _tell_total(name: str, allocation: dict[str, Any], subject: Labels, builder: RunBuilder) -> None:
    total = read_cost(allocation.get("totalCost"))
    parts = [read_cost(allocation[key]) for key in (*_COSTS, *_ADJUSTMENTS) if key in allocation]
    numbers = [part for part in parts if isinstance(part, float)]
    if not isinstance(total, float) or len(numbers) < 2 or len(numbers) < len(parts):
        return
    summed = sum(numbers)
    if abs(summed - total) > max(_LEAST, TOLERANCE_SHARE * abs(total)):
        builder.notice(
            "parts-do-not-add-up",
            f"{name}: the parts sum to {summed:.4f}, totalCost is {total:.4f}",
            Weight.ERROR,
        )


def _tell_idle(name: str, allocation: dict[str, Any], builder: RunBuilder) -> None:
    if name.startswith("__idle__") or name.endswith("/__idle__"):
        total = read_cost(allocation.get("totalCost"))
        builder.notice("idle-cost", f"{name} costs {total}: capacity that nobody asked for", Weight.INFO)
    hours, cost = read_cost(allocation.get("gpuHours")), read_cost(allocation.get("gpuCost"))
    if isinstance(hours, float) and hours > 0 and cost == 0.0:
        builder.notice("gpu-without-cost", f"{name} used {hours:g} GPU-hours at no cost: the GPU has no price")
