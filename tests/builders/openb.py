"""The openb trace of Alibaba (v2023), and the published runs of the simulator of its paper on it.

A published run is known by its seed: the simulator draws from Go's math/rand, so the order in which its tasks arrive
and the names that it gives to nodes, by which ties are broken, can be repeated exactly.

Source: Weng et al., USENIX ATC 2023; hkust-adsl/kubernetes-scheduler-simulator, pkg/simulator/core.go and simulator.go
(SortClusterPods, TunePodsByNodeTotalResource, syncClusterResourceList), experiments/analysis/expected_results.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np

from builders.go_random import GoRandom
from clusterwright.queueing.fractions import MILLI, Ask, Floats, Ints, NodeSpec

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
OPENB = TRACES / "alibaba-gpu-v2023-openb"
EXPECTED = TRACES / "openb-expected"

LOAD = 1.3
"""GPUs that arrive, over those of the cluster (the simulator's tuning ratio in all published runs)."""

SEEDS = range(42, 52)
PERCENTS = range(131)
WORKLOADS = ("default", "cpu100", "gpushare100", "gpuspec33", "multigpu50")
PUBLISHED_AS = {
    "random": "01-Random",
    "dot-product": "02-DotProd",
    "gpu-clustering": "03-GpuClustering",
    "gpu-packing": "04-GpuPacking",
    "best-fit": "05-BestFit",
    "fgd": "06-FGD",
}

WATCHES = 10
"""Draws between the tasks and the nodes: kube-scheduler 1.20 begins to watch ten kinds of objects then, and client-go
draws the timeout of each watch from the same generator (tools/cache/reflector.go)."""


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def openb_nodes() -> tuple[NodeSpec, ...]:
    """The nodes with GPUs, by name."""
    nodes = [
        NodeSpec(row["sn"], int(row["gpu"]), int(row["cpu_milli"]), int(row["memory_mib"]), row["model"])
        for row in rows_of(OPENB / "openb_node_list_gpu_node.csv")
    ]
    return tuple(sorted(nodes, key=lambda node: node.name))


@cache
def openb_asks(workload: str) -> tuple[Ask, ...]:
    """What the tasks of a workload ask for, by name of the task."""
    rows = rows_of(OPENB / f"openb_pod_list_{workload}.csv")
    return tuple(
        Ask(
            int(row["cpu_milli"]),
            int(row["num_gpu"]),
            int(row["gpu_milli"]),
            int(row["memory_mib"]),
            tuple(row["gpu_spec"].split("|")) if row.get("gpu_spec") else (),
        )
        for row in sorted(rows, key=lambda row: row["name"])
    )


def published(quantity: str, workload: str, policy: str) -> dict[int, Floats]:
    """Percent of the cluster's GPUs at each percent arrived, by seed; `quantity` is `allo` or `frag`."""
    return {
        int(row["seed"]): np.array([float(row[str(percent)] or "nan") for percent in PERCENTS])
        for row in rows_of(EXPECTED / f"analysis_{quantity}_discrete.csv")
        if row["workload"] == f"openb_pod_list_{workload}" and row["sc_policy"] == PUBLISHED_AS[policy]
    }


@cache
def published_run(workload: str, seed: int) -> tuple[Ints, tuple[NodeSpec, ...]]:
    """Arrivals (indexes of the asks) and nodes in the order of their names in one published run."""
    asks, nodes = openb_asks(workload), openb_nodes()
    random = GoRandom(seed)
    random.skip(1)  # written to the log
    arrivals = list(range(len(asks)))
    random.shuffle(arrivals)
    target = LOAD * MILLI * sum(node.gpus for node in nodes)
    total = sum(ask.total_milli for ask in asks)
    if total > target:
        while total > target:
            total -= asks[arrivals.pop(random.intn(len(arrivals)))].total_milli
    else:
        drawn = random.intn(len(asks))
        while total + asks[drawn].gpu_milli <= target:
            total += asks[drawn].total_milli
            arrivals.append(drawn)
            drawn = random.intn(len(asks))
    random.skip(WATCHES)
    named = sorted(zip(random.perm(len(nodes)), nodes, strict=True), key=lambda pair: pair[0])
    return np.array(arrivals), tuple(node for _, node in named)
