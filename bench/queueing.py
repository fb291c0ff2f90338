"""How fast the queue decides, each case in a process of its own; times are CPU seconds, targets are floors.

    python bench/queueing.py                   every case; the largest takes minutes
    python bench/queueing.py easy gang         these alone
    python bench/queueing.py --profile easy    and the ten functions with the most time of their own

Philly cases need the public trace beside the clone. Synthetic jobs are drawn with fixed seeds: sizes as the Philly
trace has them, with gangs of up to 64 nodes added, run times lognormal with a mean of 2 h and a median of 20 min,
arrivals Poisson. Nodes fail 6.5 times in 1,000 node-days (RSC-1: Kokolis et al., arXiv:2410.21680) and are
back after 8 h in the mean.
"""

from __future__ import annotations

import cProfile
import pstats
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from driving import NODE_GPUS, drive, philly, pool, requests

from clusterwright.app.collecting import rare_collections
from clusterwright.model.jobs import JobId
from clusterwright.queueing.blockers import why
from clusterwright.queueing.clusters import Cluster, NoFit
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.nodes import NodeInfo
from clusterwright.queueing.policies import Backfill, Policy
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.requests import Demand, Request, Shape, TopologyWish
from clusterwright.queueing.state import State
from clusterwright.simulate.durations import exponential, lognormal
from clusterwright.simulate.failing import Cause
from clusterwright.simulate.jobs import NONE_MS, Jobs, Kind
from clusterwright.simulate.loop import simulate
from clusterwright.simulate.repairs import Care
from clusterwright.simulate.scenarios import Faults, Scenario

LEVELS = ("block", "rack")
RACKS_OF_BLOCK, NODES_OF_RACK = 16, 16
FLAVOR = "gpu"
#: (tasks, GPUs of one, weight): Philly's sizes, then gangs that it has few of.
SIZES = (
    (1, 1, 0.86), (1, 2, 0.03), (1, 4, 0.03), (1, 8, 0.05), (2, 8, 0.015), (4, 8, 0.008), (8, 8, 0.004),
    (16, 8, 0.002), (64, 8, 0.001),
)  # fmt: skip
MEAN_S, MEDIAN_S = 7200.0, 1200.0


def nodes(count: int) -> list[NodeInfo]:
    """Nodes of 8 GPUs in racks of 16 and blocks of 256."""
    racks = range(-(-count // NODES_OF_RACK))
    paths = [(f"b{rack // RACKS_OF_BLOCK:03d}", f"r{rack:05d}") for rack in racks]
    return [NodeInfo(f"n{i:05d}", FLAVOR, NODE_GPUS, paths[i // NODES_OF_RACK]) for i in range(count)]


def tree(queues: int, gpus: int) -> QueueTree:
    """Queues with equal guarantees in groups of ten, which lend to each other."""
    quota = {FLAVOR: Quota(gpus // queues)}
    groups = [Queue(f"g{g:03d}", "all") for g in range(-(-queues // 10))]
    leaves = [Queue(f"q{q:04d}", f"g{q // 10:03d}", quota) for q in range(queues)]
    return QueueTree((Queue("all"), *groups, *leaves))


def workload(count: int, gpus: int, load: float, queues: int, *, wishes: bool, limits: bool) -> Jobs:
    """So many jobs at a load of the cluster, spread over queues; wide gangs prefer one rack or block where `wishes`."""
    rng = np.random.Generator(np.random.PCG64(5))
    weights = np.array([w for _, _, w in SIZES])
    weights /= weights.sum()
    kinds = []
    for queue in range(queues):
        for tasks, each, _ in SIZES:
            level = "rack" if tasks <= NODES_OF_RACK else "block"
            wish = TopologyWish(level, required=tasks <= 2) if wishes and tasks > 1 else None
            kinds.append(Kind(Demand((Shape(tasks, each),), topology=wish), f"q{queue:04d}" if queues > 1 else "all"))
    sizes = rng.choice(len(SIZES), size=count, p=weights)
    work_s = lognormal(MEAN_S, MEDIAN_S).draw_many(rng, count)
    mean_gpus = float(sum(w * t * g for (t, g, _), w in zip(SIZES, weights, strict=True)))
    gap_s = mean_gpus * MEAN_S / (gpus * load)
    work_ms = np.maximum(1, (work_s * 1000).astype(np.int64))
    limit_ms = work_ms * rng.choice([1, 2, 5], size=count) if limits else np.full(count, NONE_MS, dtype=np.int64)
    submit_ms = np.cumsum(rng.exponential(gap_s * 1000, count)).astype(np.int64)
    return Jobs(
        submit_ms=submit_ms - submit_ms[0],
        work_ms=work_ms,
        limit_ms=limit_ms,
        kind=(rng.integers(0, queues, count) * len(SIZES) + sizes).astype(np.int32),
        fate=np.zeros(count, dtype=np.uint8),
        kinds=tuple(kinds),
    )


def faults() -> Faults:
    return Faults((Cause("node failure", 6.5),), care=Care(repair=exponential(8 * 3600.0)))


# -- cases: each returns what it measured ---------------------------------------------------------------------------


def fifo() -> tuple[float, str]:
    """The whole Philly trace, strict FIFO, on as many GPUs as the site had."""
    return _philly(philly(), 311, strict=True)


def fifo_full() -> tuple[float, str]:
    """The same on 96 nodes, where a third of the jobs wait."""
    return _philly(philly(), 96, strict=True)


def easy() -> tuple[float, str]:
    """20,000 jobs of the trace, twice as fast, with EASY backfill on 72 nodes: most wait."""
    return _philly(philly(20_000, 20_000, times_faster=2.0), 72, easy=True)


def _philly(jobs: Sequence, count: int, **options: bool) -> tuple[float, str]:
    done = drive(pool(count, **options), requests(jobs), [job.run_s for job in jobs])
    waits = [done.starts[job.id] - job.submit_s for job in jobs]
    waited = sum(wait > 0 for wait in waits) / len(waits)
    told = f"{len(jobs):,} jobs, {waited:.0%} waited, mean {statistics.fmean(waits) / 60:,.0f} min"
    return len(jobs) / done.cpu_s, f"{told}, at most {done.most_waiting:,} at once"


def failures() -> tuple[float, str]:
    """4,096 nodes, 32,768 GPUs, 200,000 jobs at 90 %, nodes fail: through the simulator."""
    count = 200_000
    jobs = workload(count, 4096 * NODE_GPUS, 0.9, 1, wishes=False, limits=False)
    return _simulated(Scenario(tuple(nodes(4096)), jobs, LEVELS, faults=faults()))


def million() -> tuple[float, str]:
    """12,500 nodes, 100,000 GPUs, 1,000,000 jobs at 90 % in 100 queues with quotas, topology, failures: minutes."""
    jobs = workload(1_000_000, 100_000, 0.9, 100, wishes=True, limits=False)
    rate, told = _simulated(Scenario(tuple(nodes(12_500)), jobs, LEVELS, tree(100, 100_000), faults=faults()))
    return 1_000_000 / rate / 60, told


def million_tenth() -> tuple[float, str]:
    """The same with 100,000 jobs; a quick look."""
    jobs = workload(100_000, 100_000, 0.9, 100, wishes=True, limits=False)
    rate, told = _simulated(Scenario(tuple(nodes(12_500)), jobs, LEVELS, tree(100, 100_000), faults=faults()))
    return 1_000_000 / rate / 60, told


def _simulated(scenario: Scenario) -> tuple[float, str]:
    scenario = replace(scenario, until_s=float(scenario.jobs.submit_ms[-1]) / 1000)
    begin = time.process_time()
    with rare_collections():
        outcome = simulate(scenario, seed=1)
    cpu_s = time.process_time() - begin
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    told = f"{outcome.ended_s / 3600:.0f} h until the last job came, {outcome.cycles:,} cycles"
    return len(scenario.jobs) / cpu_s, f"{told}, {outcome.failures:,} failures, {peak_gib:.2f} GiB at most"


def crowded(queues: int = 1000, waiting: int = 50_000, count: int = 1250, policy: Policy | None = None) -> State:
    """A full cluster with so many jobs waiting in so many queues, single GPUs and whole nodes and gangs."""
    rng = np.random.Generator(np.random.PCG64(3))
    state = State(nodes(count), levels=LEVELS, tree=tree(queues, count * NODE_GPUS), policy=policy)
    demands = [Demand((Shape(t, g),)) for t, g, _ in SIZES[:7]]
    weights = np.array([w for _, _, w in SIZES[:7]]) / sum(w for _, _, w in SIZES[:7])
    total, number = count * NODE_GPUS, 0
    running_gpus = 0
    while running_gpus < 1.5 * total or number < waiting:
        demand = demands[rng.choice(len(demands), p=weights)]
        request = Request(
            JobId(str(number)),
            demand,
            float(number),
            f"q{rng.integers(queues):04d}",
            0,
            float(rng.integers(600, 90_000)),
        )
        state.submit(request)
        running_gpus += demand.most_gpus
        number += 1
    run_cycle(state, float(number))
    while len(state.waiting) < waiting:
        demand = demands[rng.choice(len(demands), p=weights)]
        state.submit(
            Request(
                JobId(str(number)),
                demand,
                float(number),
                f"q{rng.integers(queues):04d}",
                0,
                float(rng.integers(600, 90_000)),
            )
        )
        number += 1
    run_cycle(state, float(number))
    return state


def admissions() -> tuple[float, str]:
    """1,000 queues, 50,000 pending jobs on a full cluster of 10,000 GPUs: a job ends, a cycle, again."""
    state = crowded()
    return _admitted(state, 2000)


def admissions_easy() -> tuple[float, str]:
    """The same with EASY backfill: every end is earlier than promised, so every cycle promises anew."""
    state = crowded(policy=Policy(backfill=Backfill.EASY))
    return _admitted(state, 100)


def _admitted(state: State, ends: int) -> tuple[float, str]:
    rng = np.random.Generator(np.random.PCG64(9))
    waiting, started, now_s = len(state.waiting), 0, 1e6
    begin = time.process_time()
    for _ in range(ends):
        running = list(state.running)
        now_s += 1.0
        paused = time.process_time()
        job = running[rng.integers(len(running))]
        begin += time.process_time() - paused
        state.release(job, now_s)
        started += len(run_cycle(state, now_s).starts)
    cpu_s = time.process_time() - begin
    told = f"{len(state.lines):,} queues, {waiting:,} waiting, {ends:,} cycles, {started:,} admitted"
    return started / cpu_s, told


def gang() -> tuple[float, str]:
    """A gang on 100,000 GPUs that are 70 % in use: median over sizes and wishes, found and not found."""
    rng = np.random.Generator(np.random.PCG64(4))
    cluster = Cluster(nodes(12_500), LEVELS)
    one = [Demand((Shape(1, g),)) for g in (1, 2, 4, 8)]
    used = 0
    while used < 70_000:
        demand = one[rng.choice(4, p=[0.3, 0.2, 0.2, 0.3])]
        found = cluster.find(demand, FLAVOR)
        cluster.take(found, demand)
        used += demand.most_gpus
    wishes = (None, TopologyWish("rack"), TopologyWish("block"), TopologyWish("block", required=False))
    times, fitted, asked = [], 0, 0
    for tasks in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
        for wish in wishes:
            demand = Demand((Shape(tasks, NODE_GPUS),), topology=wish)
            for _ in range(5):
                begin = time.perf_counter()
                found = cluster.find(demand, FLAVOR)
                times.append(1000 * (time.perf_counter() - begin))
                asked += 1
                fitted += not isinstance(found, NoFit)
    return statistics.median(times), f"{fitted} of {asked} fitted, 95 % within {np.percentile(times, 95):.2f} ms"


def blockers() -> tuple[float, str]:
    """`why` of a waiting job, 100,000 GPUs, 1,000 queues, 50,000 pending: the median of 60 jobs."""
    state = crowded(count=12_500)
    times, kinds = [], set()
    for job in list(state.waiting)[:: max(1, len(state.waiting) // 60)]:
        begin = time.perf_counter()
        said = why(job, state, 1e6)
        times.append(1000 * (time.perf_counter() - begin))
        kinds |= {b.kind.value for b in said}
    return statistics.median(
        times
    ), f"worst {max(times):.1f} ms; {len(state.waiting):,} waiting; {', '.join(sorted(kinds))}"


#: Name → (the case, what its number is, the target, whether more is better).
CASES: dict[str, tuple[Callable[[], tuple[float, str]], str, float, bool]] = {
    "fifo": (fifo, "jobs/s", 20_000, True),
    "fifo-full": (fifo_full, "jobs/s", 20_000, True),
    "easy": (easy, "jobs/s", 5_000, True),
    "failures": (failures, "jobs/s", 10_000, True),
    "million": (million, "min/million", 10, False),
    "million-tenth": (million_tenth, "min/million", 10, False),
    "admissions": (admissions, "admissions/s", 500, True),
    "admissions-easy": (admissions_easy, "admissions/s", 500, True),
    "gang": (gang, "ms", 10, False),
    "why": (blockers, "ms", 100, False),
}
#: Not part of a full run: a quick look at a longer case.
QUICK = {"million-tenth"}


def run(name: str) -> bool:
    case, unit, target, more = CASES[name]
    value, told = case()
    held = value >= target if more else value <= target
    sign = "≥" if more else "≤"
    print(
        f"{name:<16} {value:>10,.1f} {unit:<13} {sign} {target:>7,.0f} {'held' if held else 'MISSED':<7} {told}",
        flush=True,
    )
    return held


def profile(name: str) -> None:
    case = CASES[name][0]
    profiler = cProfile.Profile()
    profiler.runcall(case)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(10)


def main(arguments: Sequence[str]) -> None:
    names = [a for a in arguments if not a.startswith("--")] or [n for n in CASES if n not in QUICK]
    unknown = [n for n in names if n not in CASES]
    if unknown:
        raise SystemExit(f"no case {', '.join(unknown)}; cases: {', '.join(CASES)}")
    if "--profile" in arguments:
        for name in names:
            profile(name)
    elif "--here" in arguments:
        raise SystemExit(0 if all(list(map(run, names))) else 1)
    else:
        results = [subprocess.run([sys.executable, __file__, "--here", n], check=False).returncode for n in names]
        raise SystemExit(max(results))


if __name__ == "__main__":
    main(sys.argv[1:])
