"""Costs as text: the CSV that OpenCost exports, and its metrics as Prometheus prints them."""

from __future__ import annotations

import csv
import re
from typing import Final

from clusterwright.model.observations import Labels, NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import read_number

SERIES: Final = re.compile(r"^(?:node|kubecost_node|pv|kubecost_load_balancer)\w{0,40}_cost\{", re.MULTILINE)
_SERIES: Final = re.compile(
    r"(?P<name>[a-z]\w{1,80})\{(?P<labels>(?:[^\"{}]|\"(?:[^\"\\]|\\.)*\"){0,4000})\}\s+(?P<value>\S{1,64})(?:\s+\d+)?\s*"
)
_LABEL: Final = re.compile(r'([A-Za-z_]\w{0,80})="((?:[^"\\]|\\.)*)"')
_KEPT: Final = frozenset({"node", "instance", "instance_type", "region", "provider_id", "arch", "persistentvolume"})
_PRICES: Final = {
    "node_cpu_hourly_cost": "cpu_price_per_hour",
    "node_ram_hourly_cost": "ram_price_per_gib_hour",
    "node_gpu_hourly_cost": "gpu_price_per_hour",
    "node_total_hourly_cost": "price_per_hour",
    "kubecost_node_is_spot": "is_spot",
    "node_gpu_count": "gpus",
}
_COLUMNS: Final = {
    "cpucost": "cost_cpu", "ramcost": "cost_ram", "gpucost": "cost_gpu", "networkcost": "cost_network",
    "pvcost": "cost_pv", "totalcost": "cost_total", "sharedcost": "cost_shared",
    "loadbalancercost": "cost_load_balancer",
    "externalcost": "cost_external", "gpus": "gpus", "gpuhours": "gpu_hours",
    "cpucorehours": "cpu_core_hours", "totalefficiency": "efficiency",
}  # fmt: skip
_NAMES: Final = frozenset(
    {"name", "date", "namespace", "controllerkind", "controllername", "pod", "container", "cluster", "node",
     "window.start", "window.end"}
)  # fmt: skip


def _plain(cell: str) -> str:
    return re.sub(r"[\s_]+", "", cell.strip().lower())


def is_header(line: str) -> bool:
    """Whether a line is the header of a cost CSV."""
    cells = {_plain(cell) for cell in line[:4000].split(",")}
    return len(cells & {"cpucost", "ramcost", "gpucost", "totalcost"}) > 1 and bool(cells & _NAMES)


def read_csv(text: str, builder: RunBuilder) -> None:
    """Observe every row by the names of its columns."""
    lines = text.lstrip().split("\n")
    try:
        header = [_plain(cell) for cell in next(csv.reader(lines[:1]))]
    except (csv.Error, StopIteration):
        raise Refused("the header is no CSV", 1, lines[0]) from None
    twice = {name for name in header if name and header.count(name) > 1}
    if twice:
        raise Refused(f"columns stand twice: {', '.join(sorted(twice))}", 1, lines[0])
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        try:
            cells = next(csv.reader([line]), [])
        except csv.Error as error:
            builder.reject(number, line, f"no CSV: {error}")
            continue
        if len(cells) != len(header):
            builder.reject(number, line, f"{len(cells)} fields under {len(header)} columns")
            continue
        row = dict(zip(header, cells, strict=True))
        subject: Labels = tuple((name, row[name]) for name in header if name in _NAMES and row[name])
        for column, label in _COLUMNS.items():
            if column in row:
                builder.observe(label, read_number(row[column]), subject, number)
    if "gpucost" not in header:
        builder.notice("no-gpu-column", "the export has no column of GPU cost", Weight.INFO)


def read_series(text: str, builder: RunBuilder) -> None:
    """Observe node prices; a series that stands twice is counted once."""
    seen: dict[tuple[str, Labels], str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _SERIES.fullmatch(line) if len(line) < 8000 else None
        if match is None:
            if line.startswith(tuple(_PRICES)):
                builder.reject(number, line, "a torn series")
            continue
        if match["name"] not in _PRICES:
            continue
        subject: Labels = tuple(pair for pair in _LABEL.findall(match["labels"]) if pair[0] in _KEPT)
        key = match["name"], subject
        if key in seen:
            said = "the same value" if seen[key] == match["value"] else f"{seen[key]} and {match['value']}"
            builder.notice("series-twice", f"{match['name']} stands twice for one node, with {said}", line=number)
            continue
        seen[key] = match["value"]
        value = read_number(match["value"])
        builder.observe(_PRICES[match["name"]], value, subject, number)
        if match["name"] == "node_gpu_hourly_cost" and not isinstance(value, NoValue) and value == 0:
            builder.notice("gpu-without-cost", "a node's GPU price is 0: it has none, or nobody priced it", Weight.INFO)
