"""The allocation study: policies on the openb trace beside what the paper's simulator published, over many seeds.

Arrivals and names of nodes are drawn by ourselves, not with the published seeds (tests/traces_public repeats those one
by one), so the two means differ by chance: the last column is their difference over its standard error, seldom above 2.
Figures are percent of the cluster's GPUs, allocated and fragmented, once so many percent of them have been asked for.

    python bench/allocation.py                        best fit and FGD, all workloads, ten seeds: some minutes
    python bench/allocation.py --policies all --seeds 20 --workloads default
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from builders.openb import (
    EXPECTED,
    LOAD,
    OPENB,
    PERCENTS,
    PUBLISHED_AS,
    WORKLOADS,
    openb_asks,
    openb_nodes,
    published,
)
from clusterwright.queueing.filling import by_arrived, draw_arrivals, fill
from clusterwright.queueing.fractions import MILLI, Floats, lay_out
from clusterwright.queueing.fragmenting import typical_tasks
from clusterwright.queueing.policies import NodeTie
from clusterwright.queueing.preferring import POLICIES

SHOWN = (50, 90, 100, 130)
HEAD = (
    f"{'workload':12} {'policy':15} {'figure':10} {'at %':>4} {'ours':>7} {'published':>9} {'points':>7} {'errors':>6}"
)


def run(workload: str, policy: str, seed: int) -> tuple[Floats, Floats]:
    """Allocated and fragmented percent by percent arrived."""
    rng = np.random.default_rng(seed)
    nodes = [openb_nodes()[i] for i in rng.permutation(len(openb_nodes()))]
    asks = openb_asks(workload)
    arrivals = draw_arrivals(asks, MILLI * sum(node.gpus for node in nodes), LOAD, rng)
    rows = lay_out(nodes, NodeTie.DECLARED)
    filling = fill(rows, asks, arrivals, POLICIES[policy], typical_tasks(asks), rng)
    return by_arrived(filling, filling.allocated_milli, PERCENTS), by_arrived(
        filling, filling.fragmented_milli, PERCENTS
    )


def compare(workload: str, policy: str, seeds: int) -> float:
    """Print a policy's rows and return the largest difference of allocation, in points."""
    begin = time.process_time()
    runs = [run(workload, policy, seed) for seed in range(seeds)]
    each = (time.process_time() - begin) / seeds
    worst = 0.0
    for which, (quantity, figure) in enumerate((("allo", "allocated"), ("frag", "fragmented"))):
        ours = np.array([curves[which] for curves in runs])
        theirs = np.array(list(published(quantity, workload, policy).values()))
        for percent in SHOWN:
            points = ours[:, percent].mean() - theirs[:, percent].mean()
            errors = points / standard_error(ours[:, percent], theirs[:, percent])
            worst = max(worst, abs(points)) if figure == "allocated" else worst
            print(
                f"{workload:12} {policy:15} {figure:10} {percent:4} {ours[:, percent].mean():7.2f} "
                f"{theirs[:, percent].mean():9.2f} {points:+7.2f} {errors:+6.1f}"
            )
    print(f"{workload:12} {policy:15} {each:.1f} CPU seconds per filling", flush=True)
    return worst


def standard_error(*samples: Floats) -> float:
    return math.sqrt(sum(sample.var(ddof=1) / len(sample) for sample in samples))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Allocation policies on the openb trace beside the published runs.")
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    parser.add_argument("--policies", nargs="+", default=["best-fit", "fgd"], choices=[*PUBLISHED_AS, "all"])
    parser.add_argument("--seeds", type=int, default=10, help="of ours, at least 2 (published: 10)")
    options = parser.parse_args(arguments)
    if not (OPENB.exists() and EXPECTED.exists()):
        print(f"the public openb trace and its published results are not there: {OPENB}, {EXPECTED}", file=sys.stderr)
        return 1
    policies = list(PUBLISHED_AS) if "all" in options.policies else options.policies
    print(HEAD)
    worst = max(compare(w, p, max(2, options.seeds)) for w in options.workloads for p in policies)
    print(f"largest difference of allocation: {worst:.2f} points")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
