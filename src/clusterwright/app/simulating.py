"""Simulating: files, a trace and seeds → what the next weeks of a cluster may look like."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from itertools import islice
from typing import Final

import numpy as np

from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.app.replicating import Request, Result, Show, Task, replicate
from clusterwright.app.simulated_capacity import Host, host_of
from clusterwright.app.simulated_jobs import Habits, Stream, interval, jobs_of_trace, with_declared_queues
from clusterwright.app.simulated_misfits import split_never_fit
from clusterwright.app.simulated_paths import check_paths, expand_nodes
from clusterwright.app.simulated_sites import Site, budgets_from, site_of
from clusterwright.app.simulated_speeds import Paces
from clusterwright.app.simulated_windows import Cut, cut_trace, fill_time_s, moment_s, whole, whole_days_s
from clusterwright.app.simulated_workloads import jobs_of_workloads
from clusterwright.app.simulation_requests import SimulationRequest, bare_file, check_request
from clusterwright.app.trace_reading import TraceRequest, find_zone, read_trace
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.figures import Figure, Origin, leaf
from clusterwright.lib.scales import DAY_S
from clusterwright.model.documents import Document
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.sources import Source
from clusterwright.queueing.nodes import NodeInfo
from clusterwright.report.replications import Calibration, NeverFits, Replication, Simulated, calibrate
from clusterwright.simulate.attempts import NEVER
from clusterwright.simulate.calibrating import Tolerance
from clusterwright.simulate.scenarios import Scenario
from clusterwright.simulate.streams import Streams
from clusterwright.traces.fits import Fit
from clusterwright.traces.fitting import fit_trace
from clusterwright.traces.imports import Imported
from clusterwright.traces.sampling import sample
from clusterwright.traces.shaping import shape_jobs

#: Days that are simulated where neither a trace nor the user says how many.
DEFAULT_DAYS: Final = 30.0
_UNCOMPARED: Final = "no job has a recorded start, so nothing holds the replayed waits to real ones"


@dataclass(frozen=True, eq=False)
class Future:
    """One thing to simulate, with everything but its seeds.

    Args:
        stream: jobs of every replication, or, with `fit`, of the first.
        fit: each replication draws its own jobs from it.
        days: that count, after `warm_up_s`.
    """

    label: str
    site: Site
    scenario: Scenario
    stream: Stream
    days: float
    warm_up_s: float
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
        check_request(asked)
        self.asked = asked
        self._catalogue = load_catalogue(asked.catalogues)
        self.base = self._load(())
        found = None if asked.trace is None else read_trace(asked.trace)
        self._found = found
        self._cut = None if found is None or asked.trace is None else self._window(found, asked.trace)
        self._measured_on, self._host = self._measured()
        self._fit = None if found is None or asked.trace is None or not asked.draw else self._fitted(found, asked.trace)

    @property
    def has_waits(self) -> bool:
        """Whether the jobs are a trace's own, with real waits to compare with."""
        return self._cut is not None and self._fit is None and bool((~np.isnan(self._cut.trace.wait_s)).any())

    def build(self, overrides: Sequence[str], label: str = "", failures: str | None = None) -> Future:
        """The future of the architecture with some values written over."""
        asked = self.asked
        site = site_of(self._document(overrides), self._catalogue, failures or asked.failures)
        saves = NEVER if asked.checkpoint_s is None else interval(asked.checkpoint_s)
        habits = Habits(asked.queues, saves, None if asked.gpus_only else self._host)
        days, warm_up_s, lead_s = self._span()
        stream = self._stream(site, habits, lead_s + warm_up_s + days * DAY_S)
        dated = self._found is not None and self._found.dated and self._fit is None
        budgets, said = budgets_from(site, stream.jobs.origin_s if dated else None)
        stream = replace(stream, remarks=(*stream.remarks, *said))
        rejected = 0 if self._found is None else self._found.counts.rejected_rows
        if rejected:
            told = "rejected as no job, or an impossible one; cw trace inspect shows them"
            stream = replace(stream, left_out={**stream.left_out, told: rejected})
        begin_s = lead_s + warm_up_s
        scenario = Scenario(
            _equipped(site, stream), stream.jobs, site.levels, site.tree, site.policy, faults=site.faults,
            spares=site.spares, spare_level=site.levels[-1] if site.levels else "", node_loss=site.node_loss,
            budgets=budgets, counted_from_s=begin_s, until_s=begin_s + days * DAY_S,
            prices=site.prices, currency=site.currency,
        )  # fmt: skip
        jobs, never = split_never_fit(scenario)
        kept = replace(stream, jobs=jobs.jobs, real_wait_ms=stream.real_wait_ms[jobs.chosen])
        source = "the declared workloads" if asked.trace is None else _trace_name(asked.trace, drawn=asked.draw)
        return Future(
            label, site, replace(scenario, jobs=kept.jobs), kept, days, warm_up_s, habits, source,
            (*site.figures, *self._job_figures(warm_up_s), *stream.figures), never, self._fit,
        )  # fmt: skip

    def draw(self, future: Future, seed: int) -> Stream:
        """The jobs of one seed: the same for futures that differ in something else."""
        assert future.fit is not None
        trace = sample(future.fit, Streams(seed).of("arrivals"), future.days + future.warm_up_s / DAY_S)
        return jobs_of_trace(trace, future.site, future.habits, self._paces(future.site), 0.0)

    def _document(self, overrides: Sequence[str]) -> Document:
        check_paths(self.base, overrides)
        return self._load(expand_nodes(self.base, overrides)) if overrides else self.base

    def _paces(self, site: Site) -> Paces:
        paces = Paces(site, self._catalogue, self.asked.speeds, self._measured_on)
        words = () if self._cut is None else self._cut.trace.flavor.words
        paces.check([word for several in words for word in several.split("|")])
        return paces

    def _span(self) -> tuple[float, float, float]:
        """Days that count, seconds of warm-up before them, seconds before that in which what ran already is placed."""
        asked, cut = self.asked, self._cut
        if cut is None:
            return DEFAULT_DAYS if asked.days is None else asked.days, 0.0, 0.0
        if self._fit is not None:
            filled_s = whole_days_s(fill_time_s(cut.trace)) if asked.warm_up_s is None else asked.warm_up_s
            return DEFAULT_DAYS if asked.days is None else asked.days, filled_s, 0.0
        warm_up_s, window = asked.warm_up_s or 0.0, max(cut.window_s / DAY_S, 1 / 1440)
        left = window - warm_up_s / DAY_S
        if left <= 0:
            raise InvalidInput(f"--warm-up is as long as the {window:.3g} days of the trace; nothing is left to count")
        if asked.days is not None and asked.days > left + 1e-9:
            after = f" after --warm-up {left:.3g}" if warm_up_s else ""
            raise InvalidInput(
                f"--days is {asked.days:g}, the trace holds {window:.3g} days{after}; --draw draws more jobs like its "
                "own"
            )
        return left if asked.days is None else asked.days, warm_up_s, cut.lead_s

    def _stream(self, site: Site, habits: Habits, until_s: float) -> Stream:
        asked, cut, paces = self.asked, self._cut, self._paces(site)
        if cut is None:
            return jobs_of_workloads(site, until_s, paces)
        if self._fit is not None:
            trace = sample(self._fit, Streams(asked.seed).of("arrivals"), until_s / DAY_S)
            return jobs_of_trace(trace, site, habits, paces, 0.0)
        found = jobs_of_trace(cut.trace, site, habits, paces, cut.origin_s, None if asked.days is None else until_s)
        return replace(found, remarks=(*cut.remarks, *found.remarks))

    def _window(self, found: Imported, request: TraceRequest) -> Cut:
        asked = self.asked
        if not (asked.since or asked.until):
            return whole(found.trace)
        zone = _zone(found, request)
        since_s, until_s = (
            moment_s(option, text, found.trace, zone, dated=found.dated)
            for option, text in (("--since", asked.since), ("--until", asked.until))
        )
        cut = cut_trace(found.trace, since_s, until_s)
        if not asked.draw:
            return cut
        inside = cut.trace.submit_s >= cut.origin_s + cut.lead_s
        return replace(cut, trace=cut.trace.take(inside), remarks=())

    def _measured(self) -> tuple[str, Host | None]:
        """GPU on which jobs that record none were measured, and how their CPU and memory are read: as it is."""
        site = site_of(self._document(self.asked.overrides), self._catalogue, self.asked.failures)
        gpus = {pool.gpu for pool in site.pools}
        only = gpus.pop() if len(gpus) == 1 else ""
        if self._cut is None:
            return only, None
        trace = self._cut.trace
        tasks, _ = shape_jobs(trace, max(pool.gpus_per_node for pool in site.pools))
        return only, host_of(trace, tasks, site.resources)

    def _fitted(self, found: Imported, request: TraceRequest) -> Fit:
        site = site_of(self.base, self._catalogue, self.asked.failures)
        assert self._cut is not None
        trace = with_declared_queues(self._cut.trace, site, Habits(self.asked.queues))
        return fit_trace(trace, _zone(found, request), source=_trace_name(request), dated=found.dated)

    def _job_figures(self, warm_up_s: float) -> tuple[Figure, ...]:
        if self.asked.trace is None:
            return ()
        return (self._saved(), *self._warmed(warm_up_s))

    def _warmed(self, warm_up_s: float) -> tuple[Figure, ...]:
        if self.asked.warm_up_s is not None:
            said = "--warm-up: jobs that came before are not in the statistics, and the ledger begins then"
            return (leaf("jobs.warm_up", warm_up_s / 3600, "h", Origin.DECLARED, said),)
        if self._fit is not None:
            basis = (
                "until an empty cluster without a queue holds 99 % of the GPUs that it holds in the long run, in whole "
                "days (M/G/∞, from the run times of the trace); a queue takes longer: --warm-up"
            )
            return (leaf("jobs.warm_up", warm_up_s / 3600, "h", Origin.ASSUMED, basis),)
        if self._cut is not None and self._cut.lead_s:
            return ()
        basis = "the cluster is empty at the beginning, so the first hours wait less than real ones did: --warm-up"
        return (leaf("jobs.warm_up", 0.0, "h", Origin.ASSUMED, basis),)

    def _saved(self) -> Figure:
        if self.asked.checkpoint_s is not None:
            basis = "--checkpoint: jobs of the trace save their work this often, at no cost"
            return leaf("jobs.checkpoint", self.asked.checkpoint_s / 60, "min", Origin.DECLARED, basis)
        basis = "jobs of the trace never save their work, so a lost node loses all of it; no batch system records it"
        return leaf("jobs.saved", 0.0, "share", Origin.ASSUMED, basis)

    def _load(self, overrides: Sequence[str]) -> Document:
        if self.asked.files:
            return load_document(self.asked.files, overrides)
        return parse_architecture(Source("--nodes", bare_file(self.asked.nodes)), overrides=overrides)


def _equipped(site: Site, stream: Stream) -> tuple[NodeInfo, ...]:
    """The nodes, with CPU and memory where jobs ask for some."""
    if all(kind.demand.plain for kind in stream.jobs.kinds):
        return site.nodes
    return tuple(replace(node, resources=site.resources[node.flavor]) for node in site.nodes)


def _zone(found: Imported, request: TraceRequest) -> tzinfo:
    return find_zone(request.zone or found.zone) if request.zone or found.zone else UTC


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
                scenario, seed, real, future.site.domains if asked.picture and first else None, scenario.until_s or 0.0,
                asked.events if first and number == 0 else None,
            )  # fmt: skip


def _simulated(asked: SimulationRequest, future: Future, results: Sequence[Result]) -> Simulated:
    site = future.site
    replications = tuple(r.replication for r in results)
    replayed = asked.trace is not None and not asked.draw
    compared = any(r.compared for r in replications)
    notes = site.notes if compared or not replayed else (*site.notes, _UNCOMPARED)
    if future.warm_up_s and asked.picture:
        notes = (*notes, "the picture of nodes over time begins with the warm-up")
    return Simulated(
        name=site.name, label=future.label, pools=tuple((p.name, len(p.nodes), site.units(p)) for p in site.pools),
        source=future.source, jobs=len(future.scenario.jobs), days=future.days,
        warm_up_s=future.warm_up_s, seed=asked.seed, seeds=asked.seeds,
        replayed=replayed, replications=replications,
        left_out=future.stream.left_out, never_fit=future.never_fit, remarks=(*notes, *future.stream.remarks),
        figures=tuple(sorted(future.figures, key=lambda f: (f.origin, f.name))), limits=site.limits,
        currency=site.currency, calibration=_calibration(asked, replications),
        picture=next((r.picture for r in results if r.picture is not None), None),
    )  # fmt: skip


def _calibration(asked: SimulationRequest, replications: Sequence[Replication]) -> Calibration | None:
    whole = [r for r in replications if not r.partial]
    return calibrate(whole, Tolerance(asked.tolerance))


def _trace_name(request: TraceRequest, *, drawn: bool = False) -> str:
    first = "standard input" if request.paths[0] == "-" else request.paths[0]
    more = len(request.paths) - 1
    return f"{'jobs drawn like those of ' if drawn else ''}{first}{f' and {more} more' if more else ''}"
