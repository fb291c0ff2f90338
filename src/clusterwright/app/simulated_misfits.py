"""Jobs that no node and no quota would ever hold, told apart before anything is simulated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clusterwright.queueing.state import State
from clusterwright.report.replications import NeverFits
from clusterwright.simulate.jobs import Jobs, Kind
from clusterwright.simulate.scenarios import Scenario


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
