"""What to simulate, as a value, checked as far as it can be before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clusterwright.app.simulated_sites import DEFAULT_FAILURES
from clusterwright.app.simulated_speeds import EQUAL, Speeds
from clusterwright.app.trace_reading import TraceRequest
from clusterwright.lib.errors import InvalidInput
from clusterwright.simulate.calibrating import Tolerance

#: How far a replayed quantile of waits may be from the real one, as a share of it.
TOLERANCE: Final = Tolerance().share
_MOST_SEEDS: Final = 10_000
_MOST_DAYS: Final = 36_525


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """What to simulate.

    Args:
        files: of the architecture; none with `nodes`.
        nodes: `16x8` in place of an architecture: nodes × GPUs of each.
        trace: whose jobs come; None are the declared workloads.
        days: that are simulated; None is the window of the trace, else `DEFAULT_DAYS`.
        draw: whether jobs are drawn from distributions fitted to the trace, in place of the trace's own.
        seeds, seed: replications, with seeds from `seed` on.
        processes: at the same time; None is one for each processor.
        failures: of the catalogue, or `none`.
        checkpoint_s: interval at which jobs of a trace save their work; None is never.
        queues: queue of the trace → declared queue.
        overrides: `path=value`.
        warm_up_s: that comes before anything counts; None is 0 for a replay, and for drawn jobs until the cluster would
            be filled without a queue (`fill_time_s`), in whole days.
        since, until: part of the trace, as `moment_s` reads them; "" is all of it.
        speeds: of jobs on the pools.
        gpus_only: whether CPU and memory of jobs are left out of account.
        events: file for the log of the first replication.
    """

    files: Sequence[str] = ()
    nodes: str = ""
    trace: TraceRequest | None = None
    days: float | None = None
    draw: bool = False
    seeds: int = 5
    seed: int = 0
    processes: int | None = None
    failures: str = DEFAULT_FAILURES
    checkpoint_s: float | None = None
    queues: dict[str, str] = field(default_factory=dict)
    overrides: Sequence[str] = ()
    catalogues: Sequence[str] = ()
    tolerance: float = TOLERANCE
    events: Path | None = None
    force: bool = False
    picture: bool = False
    warm_up_s: float | None = None
    since: str = ""
    until: str = ""
    speeds: Speeds = EQUAL
    gpus_only: bool = False


def bare_file(nodes: str) -> str:
    """An architecture of nothing but equal nodes, from `16x8`.

    Raises:
        InvalidInput: when it is not so.
    """
    count, cross, gpus = nodes.lower().partition("x")
    if (
        not (cross and count.isdecimal() and gpus.isdecimal())
        or not 0 < int(count) <= 100_000
        or not 0 < int(gpus) <= 128
    ):
        raise InvalidInput(f"--nodes is '{nodes}', must be nodes x GPUs of each, such as 16x8")
    last = f"{int(count):0{len(count)}d}"
    hosts = f"node-[{1:0{len(last)}d}-{last}]" if int(count) > 1 else "node-1"
    return (
        f"apiVersion: clusterwright/v1alpha1\ncluster: {int(count)} nodes with {int(gpus)} GPUs\n"
        f'pools:\n  gpu:\n    nodes: "{hosts}"\n    hardware: {{gpus: {int(gpus)}}}\n'
        "scheduling: {engine: slurm, backfill: easy}\n"
    )


def check_request(asked: SimulationRequest) -> None:
    """Refuse what contradicts itself, before anything is read.

    Raises:
        InvalidInput: with everything that is wrong.
    """
    problems = []
    if not asked.files and not asked.nodes:
        problems.append("name an architecture file, or --nodes such as 16x8")
    if asked.files and asked.nodes:
        problems.append("--nodes stands in place of an architecture file; give one of them")
    if asked.days is not None and not 0 < asked.days <= _MOST_DAYS:
        problems.append(f"--days is {asked.days:g}, must be more than 0 and at most {_MOST_DAYS:,}")
    if not 1 <= asked.seeds <= _MOST_SEEDS:
        problems.append(f"--seeds is {asked.seeds}, must be from 1 to {_MOST_SEEDS:,}")
    if asked.seed < 0:
        problems.append(f"--seed is {asked.seed}, must be 0 or more")
    if asked.processes is not None and asked.processes < 1:
        problems.append(f"--jobs is {asked.processes}, must be 1 or more")
    if not 0 <= asked.tolerance < float("inf"):
        problems.append(f"--tolerance is {asked.tolerance:g}, a share of the real wait of 0 or more")
    if asked.trace is None and (asked.since or asked.until or asked.warm_up_s is not None):
        problems.append("--since, --until and --warm-up are about a trace; declared workloads all begin at once")
    if asked.days is not None and asked.until and not asked.draw:
        problems.append("--until says where the trace ends; leave out --days, or --until")
    if asked.draw and asked.trace is None:
        problems.append("--draw draws jobs like those of a trace; give --trace")
    if asked.nodes and asked.trace is None:
        problems.append("--nodes has no workloads of its own; give --trace, such as a dump of sacct")
    if asked.events is not None and asked.events.exists() and not asked.force:
        problems.append(f"{asked.events} exists; --force replaces it")
    if problems:
        raise InvalidInput(*problems)
