"""Cost exports of OpenCost and Kubecost: allocations, assets, node prices, their CSV and their metrics.

Observed (subject allocation, window): `cost_total`, `cost_cpu`, `cost_gpu`, `cost_ram`, `cost_pv`, `cost_network`,
`cost_load_balancer`, `cost_shared`, `cost_external`, `gpu_hours`, `cpu_core_hours`, `ram_gib_hours`, `efficiency`;
(subject node): `price_per_hour`, `cpu_price_per_hour`, `ram_price_per_gib_hour`, `gpu_price_per_hour`, `cpus`, `gpus`,
`memory_total`, `parts_per_hour` (the parts recomputed). The exports name no currency: amounts are plain numbers in the
currency that the server was set up with.

Source: opencost core/pkg/opencost/allocation_json.go, pkg/costmodel (CostData, csv_export.go, metrics.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.documents import find_json, load_json
from clusterwright.readers.others import cost_allocations, cost_nodes, cost_tables
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

_ALLOCATION: Final = ('"cpuCost"', '"ramCost"', '"totalCost"', '"gpuCost"')
_NODE: Final = ('"hourlyCost"', '"CPUHourlyCost"', '"RAMGBHourlyCost"', '"gpuCost"', '"baseCPUPrice"')
_METRICS: Final = ("node_cpu_hourly_cost", "node_ram_hourly_cost", "node_gpu_hourly_cost", "node_total_hourly_cost")


def recognise(head: Head) -> int:
    """By field names that only these exports have."""
    text = head.text
    if text.lstrip().startswith(("{", "[")):
        found = max(sum(name in text for name in _ALLOCATION), sum(name in text for name in _NODE))
        return 92 if found >= 3 else 75 if found == 2 else 0
    if cost_tables.is_header(text.lstrip().split("\n", 1)[0]):
        return 90
    if cost_tables.SERIES.search(text):
        return 80
    return 40 if sum(name in text for name in _METRICS) > 1 else 0


def read(source: Source) -> Sequence[Run]:
    """The costs of one export."""
    text = source.text()
    if text.lstrip().startswith(("{", "[")):
        place = find_json(text) or (0, len(text))
        document = load_json(text[place[0] :], first_line=text.count("\n", 0, place[0]) + 1)
        builder = _read_json(document.value)
        for duplicate in document.duplicates[:20]:
            builder.notice(
                "duplicate-key", f"the key {duplicate.key!r} stands {len(duplicate.values)} times; the first counts"
            )
    elif cost_tables.is_header(text.lstrip().split("\n", 1)[0]):
        builder = RunBuilder("opencost", "csv export")
        cost_tables.read_csv(text, builder)
    elif cost_tables.SERIES.search(text):
        builder = RunBuilder("opencost", "metrics")
        cost_tables.read_series(text, builder)
    else:
        raise Refused(
            "prices in prose beside names of metrics: neither an export nor metrics; fetch /allocation or /assets "
            "as JSON, or "
            "the metrics node_gpu_hourly_cost{...} as the exporter prints them",
            1,
            text.strip()[:120],
        )
    if builder.bare and not builder.rejected:
        raise Refused("holds no cost")
    builder.notice(
        "currency-not-printed",
        "the export names no currency; amounts are in the one that the server was set up with",
    )
    return [builder.build()]


def _read_json(value: object) -> RunBuilder:
    if isinstance(value, dict) and isinstance(value.get("code"), int) and value["code"] != 200:
        raise Refused(f"the server answered {value['code']}", found=str(value.get("message") or "")[:120])
    data = value.get("data") if isinstance(value, dict) and "data" in value else value
    nodes = cost_nodes.find_nodes(data)
    if nodes:
        builder = RunBuilder("opencost", "costDataModel")
        cost_nodes.report_nodes(nodes, builder)
        return builder
    builder = RunBuilder("opencost", "allocation")
    cost_allocations.report_allocations(data, builder)
    return builder


READERS: Final[tuple[Reader, ...]] = (
    Reader("cost-exports", "OpenCost and Kubecost exports (JSON, CSV, metrics)", recognise, read),
)
