"""Simulating: files, a trace and seeds → what the next weeks of a cluster may look like."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.app.replicating import Request, Result, Show, Task, replicate
from clusterwright.app.simulated_jobs import Habits, Stream, interval, jobs_of_trace, with_declared_queues
from clusterwright.app.simulated_paths import check_paths, expand_nodes
from clusterwright.app.simulated_sites import DEFAULT_FAILURES, Site, site_of
from clusterwright.app.simulated_workloads import jobs_of_workloads
from clusterwright.app.trace_reading import TraceRequest, find_zone, read_trace
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.figures import Figure, Origin, leaf
from clusterwright.model.documents import Document
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.sources import Source
from clusterwright.queueing.state import State
from clusterwright.report.replications import Calibration, NeverFits, Replication, Simulated, calibrate
from clusterwright.simulate.calibrating import Tolerance
from clusterwright.simulate.jobs import Jobs, Kind
from clusterwright.simulate.scenarios import Scenario
from clusterwright.simulate.streams import Streams
from clusterwright.traces.fits import Fit
from clusterwright.traces.fitting import fit_trace
from clusterwright.traces.imports import Imported
from clusterwright.traces.sampling import sample

#: Days that are simulated where neither a trace nor the user says how many.
DEFAULT_DAYS: Final = 30.0
#: How far a replayed quantile of waits may be from the real one, as a share of it.
TOLERANCE: Final = Tolerance().share
_UNCOMPARED: Final = "no job has a recorded start, so nothing holds the replayed waits to real ones"
_DAY_S: Final = 86400.0
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


@dataclass(frozen=True, eq=False)
class Future:
    """One thing to simulate, with everything but its seeds.

    Args:
        stream: jobs of every replication, or, with `fit`, of the first.
        fit: each replication draws its own jobs from it.
    """

    label: str
    site: Site
    scenario: Scenario
    stream: Stream
    days: float
    habits: Habits
    source: str
    figures: tuple[Figure, ...]
    never_fit: tuple[NeverFits, ...]
    fit: Fit | None = None


def simulate_request(asked: SimulationRequest, stop: Request, show: Show | None = None) -> list[Simulated]:
    """Simulate what was asked for: one result, or none when it was stopped before there was any.

    Raises:
        InvalidInput: for anything wrong in it.
    """
    workshop = Workshop(asked)
    return run_futures(asked, [workshop.build(asked.overrides)], workshop, stop, show)


class Workshop:
    """Builds futures from one request: the trace is read, and fitted, once.

    Attributes:
        asked: the request.
        base: the architecture as the files have it.
    """

    def __init__(self, asked: SimulationRequest) -> None:
        _check(asked)
        self.asked = asked
        self._catalogue = load_catalogue(asked.catalogues)
        self.base = self._load(())
        found = None if asked.trace is None else read_trace(asked.trace)
        self._found = found
        self._fit = None if found is None or asked.trace is None or not asked.draw else self._fitted(found, asked.trace)

    @property
    def has_waits(self) -> bool:
        """Whether the jobs are a trace's own, with real waits to compare with."""
        found = self._found
        return found is not None and self._fit is None and bool((~np.isnan(found.trace.wait_s)).any())

    def build(self, overrides: Sequence[str], label: str = "", failures: str | None = None) -> Future:
        """The future of the architecture with some values written over."""
        check_paths(self.base, overrides)
        expanded = expand_nodes(self.base, overrides)
        document = self._load(expanded) if expanded else self.base
        asked = self.asked
        site = site_of(document, self._catalogue, failures or asked.failures)
        habits = (
            Habits(asked.queues) if asked.checkpoint_s is None else Habits(asked.queues, interval(asked.checkpoint_s))
        )
        stream, days = self._stream(site, habits)
        rejected = 0 if self._found is None else self._found.counts.rejected_rows
        if rejected:
            told = "rejected as no job, or an impossible one; cw trace inspect shows them"
            stream = replace(stream, left_out={**stream.left_out, told: rejected})
        scenario = Scenario(
            site.nodes, stream.jobs, site.levels, site.tree, site.policy, faults=site.faults, spares=site.spares,
            spare_level=site.levels[-1] if site.levels else "", node_loss=site.node_loss, until_s=days * _DAY_S,
            prices=site.prices, currency=site.currency,
        )  # fmt: skip
        jobs, never = split_never_fit(scenario)
        kept = replace(stream, jobs=jobs.jobs, real_wait_ms=stream.real_wait_ms[jobs.chosen])
        source = "the declared workloads" if asked.trace is None else _trace_name(asked.trace, drawn=asked.draw)
        return Future(
            label, site, replace(scenario, jobs=kept.jobs), kept, days, habits, source,
            (*site.figures, *self._job_figures()), never, self._fit,
        )  # fmt: skip

    def draw(self, future: Future, seed: int) -> Stream:
        """The jobs of one seed: the same for futures that differ in something else."""
        assert future.fit is not None
        trace = sample(future.fit, Streams(seed).of("arrivals"), future.days)
        return jobs_of_trace(trace, future.site, future.habits)

    def _stream(self, site: Site, habits: Habits) -> tuple[Stream, float]:
        asked, found = self.asked, self._found
        if found is None:
            days = DEFAULT_DAYS if asked.days is None else asked.days
            return jobs_of_workloads(site, days * _DAY_S), days
        if self._fit is not None:
            days = DEFAULT_DAYS if asked.days is None else asked.days
            trace = sample(self._fit, Streams(asked.seed).of("arrivals"), days)
            return jobs_of_trace(trace, site, habits), days
        stream = jobs_of_trace(found.trace, site, habits, None if asked.days is None else asked.days * _DAY_S)
        window = stream.window_s / _DAY_S
        if asked.days is not None and asked.days > window + 1e-9:
            raise InvalidInput(
                f"--days is {asked.days:g}, the trace holds {window:.3g} days; --draw draws more jobs like its own"
            )
        return stream, max(window, 1 / 1440) if asked.days is None else asked.days

    def _fitted(self, found: Imported, request: TraceRequest) -> Fit:
        zone = find_zone(request.zone or found.zone) if request.zone or found.zone else UTC
        site = site_of(self.base, self._catalogue, self.asked.failures)
        trace = with_declared_queues(found.trace, site, Habits(self.asked.queues))
        return fit_trace(trace, zone, source=_trace_name(request), dated=found.dated)

    def _job_figures(self) -> tuple[Figure, ...]:
        if self.asked.trace is None:
            return ()
        if self.asked.checkpoint_s is not None:
            basis = "--checkpoint: jobs of the trace save their work this often, at no cost"
            return (leaf("jobs.checkpoint", self.asked.checkpoint_s / 60, "min", Origin.DECLARED, basis),)
        basis = "jobs of the trace never save their work, so a lost node loses all of it; no batch system records it"
        return (leaf("jobs.saved", 0.0, "share", Origin.ASSUMED, basis),)

    def _load(self, overrides: Sequence[str]) -> Document:
        if self.asked.files:
            return load_document(self.asked.files, overrides)
        return parse_architecture(Source("--nodes", bare_file(self.asked.nodes)), overrides=overrides)


def run_futures(
    asked: SimulationRequest, futures: Sequence[Future], workshop: Workshop, stop: Request, show: Show | None = None
) -> list[Simulated]:
    """Simulate every future with every seed, in one set of processes; futures that were not reached are left out."""
    processes = asked.processes or os.cpu_count() or 1
    count = len(futures) * asked.seeds
    results = iter(replicate(_tasks(asked, futures, workshop), count, processes, stop, show))
    found = []
    for future in futures:
        mine = list(islice(results, asked.seeds))
        if mine:
            found.append(_simulated(asked, future, mine))
    return found


def _tasks(asked: SimulationRequest, futures: Sequence[Future], workshop: Workshop) -> Iterator[Task]:
    for number, future in enumerate(futures):
        for seed in range(asked.seed, asked.seed + asked.seeds):
            first = seed == asked.seed
            scenario, real = future.scenario, future.stream.real_wait_ms
            if future.fit is not None and not first:
                drawn = workshop.draw(future, seed)
                split, _ = split_never_fit(replace(scenario, jobs=drawn.jobs))
                scenario, real = replace(scenario, jobs=split.jobs), drawn.real_wait_ms[split.chosen]
            yield Task(
                scenario, seed, real, future.site.domains if asked.picture and first else None, future.days * _DAY_S,
                asked.events if first and number == 0 else None,
            )  # fmt: skip


def _simulated(asked: SimulationRequest, future: Future, results: Sequence[Result]) -> Simulated:
    site = future.site
    replications = tuple(r.replication for r in results)
    replayed = asked.trace is not None and not asked.draw
    compared = any(r.compared for r in replications)
    notes = site.notes if compared or not replayed else (*site.notes, _UNCOMPARED)
    return Simulated(
        name=site.name, label=future.label, pools=tuple((p.name, len(p.nodes), p.gpus_per_node) for p in site.pools),
        source=future.source, jobs=len(future.scenario.jobs), days=future.days, seed=asked.seed, seeds=asked.seeds,
        replayed=replayed, replications=replications,
        left_out=future.stream.left_out, never_fit=future.never_fit, remarks=(*notes, *future.stream.remarks),
        figures=tuple(sorted(future.figures, key=lambda f: (f.origin, f.name))), limits=site.limits,
        currency=site.currency, calibration=_calibration(asked, replications),
        picture=next((r.picture for r in results if r.picture is not None), None),
    )  # fmt: skip


def _calibration(asked: SimulationRequest, replications: Sequence[Replication]) -> Calibration | None:
    whole = [r for r in replications if not r.partial]
    return calibrate(whole, Tolerance(asked.tolerance))


@dataclass(frozen=True, eq=False)
class Split:
    """Jobs that may fit, with a mask of them among all."""

    jobs: Jobs
    chosen: NDArray[np.bool_]


def split_never_fit(scenario: Scenario) -> tuple[Split, tuple[NeverFits, ...]]:
    """The jobs without those that could not even start on an empty cluster, and those by kind."""
    state = State(scenario.nodes, levels=scenario.levels, tree=scenario.tree, policy=scenario.policy)
    jobs = scenario.jobs
    why = [_why_never(state, kind) for kind in jobs.kinds]
    if not any(why):
        return Split(jobs, np.ones(len(jobs), dtype=np.bool_)), ()
    never = np.array([bool(reason) for reason in why])[jobs.kind]
    found: dict[tuple[int, str, str], NeverFits] = {}
    for place in np.flatnonzero(never).tolist():
        kind, reason = jobs.kinds[jobs.kind[place]], why[jobs.kind[place]]
        key = (kind.demand.least_gpus, kind.queue, reason)
        known = found.get(key)
        found[key] = (
            NeverFits(1, kind.demand.least_gpus, kind.queue, jobs.name(place), reason)
            if known is None
            else replace(known, jobs=known.jobs + 1)
        )
    kept = ~never
    left = replace(
        jobs, submit_ms=jobs.submit_ms[kept], work_ms=jobs.work_ms[kept], limit_ms=jobs.limit_ms[kept],
        kind=jobs.kind[kept], fate=jobs.fate[kept],
        names=tuple(n for n, k in zip(jobs.names, kept.tolist(), strict=True) if k) if jobs.names else (),
    )  # fmt: skip
    return Split(left, kept), tuple(sorted(found.values(), key=lambda f: (-f.jobs, f.gpus)))


def _why_never(state: State, kind: Kind) -> str:
    """Why a kind of job can never start, "" when it can."""
    demand = kind.demand
    flavors = [f for f in (demand.flavors or state.cluster.flavors) if f in state.cluster.floors]
    fitting = [f for f in flavors if state.cluster.could_ever(demand, f)]
    if not fitting:
        largest = max(int(state.cluster.floors[f].total.sum()) for f in flavors) if flavors else 0
        return f"no pool has room for it; the largest has {largest} GPUs"
    if not state.tree.queues:
        return ""
    most = max(state.usage.potential(kind.queue, f) if state.usage.named(kind.queue, f) else 0.0 for f in fitting)
    return "" if most >= demand.least_gpus else f"queue {kind.queue} may use {most:g} GPUs at most"


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


def _check(asked: SimulationRequest) -> None:
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
    if asked.draw and asked.trace is None:
        problems.append("--draw draws jobs like those of a trace; give --trace")
    if asked.nodes and asked.trace is None:
        problems.append("--nodes has no workloads of its own; give --trace, such as a dump of sacct")
    if asked.events is not None and asked.events.exists() and not asked.force:
        problems.append(f"{asked.events} exists; --force replaces it")
    if problems:
        raise InvalidInput(*problems)


def _trace_name(request: TraceRequest, *, drawn: bool = False) -> str:
    first = "standard input" if request.paths[0] == "-" else request.paths[0]
    more = len(request.paths) - 1
    return f"{'jobs drawn like those of ' if drawn else ''}{first}{f' and {more} more' if more else ''}"
