"""Jobs that no node and no quota would ever hold, told apart before anything is simulated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.app.simulated_capacity import CPU, MEMORY
from clusterwright.queueing.state import State
from clusterwright.report.replications import NeverFits
from clusterwright.simulate.jobs import NONE_MS, Jobs, Kind
from clusterwright.simulate.scenarios import Scenario

_HOUR_MS: Final = 3_600_000
_UNITS: Final = {CPU: "cores", MEMORY: "GiB"}


@dataclass(frozen=True, eq=False)
class Split:
    """Jobs that may fit, with a mask of them among all."""

    jobs: Jobs
    chosen: NDArray[np.bool_]


def split_never_fit(scenario: Scenario) -> tuple[Split, tuple[NeverFits, ...]]:
    """The jobs without those that could not even start on an empty cluster, and those by kind."""
    state = State(scenario.nodes, levels=scenario.levels, tree=scenario.tree, policy=scenario.policy)
    jobs = scenario.jobs
    reasons = [_why_never(state, kind) for kind in jobs.kinds]
    never = np.array([bool(reason) for reason in reasons], dtype=np.bool_)[jobs.kind]
    overdrawn = _overdrawn(scenario) if scenario.budgets else {}
    never[list(overdrawn)] = True
    if not never.any():
        return Split(jobs, ~never), ()
    found: dict[tuple[int, str, str], NeverFits] = {}
    for place in np.flatnonzero(never).tolist():
        kind = jobs.kinds[jobs.kind[place]]
        reason = reasons[jobs.kind[place]] or overdrawn[place]
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
        bare = replace(demand, groups=tuple(replace(g, resources=()) for g in demand.groups))
        if any(state.cluster.could_ever(bare, f) for f in flavors):
            needs = ", ".join(f"{amount:g} {_UNITS[name]}" for name, amount in demand.groups[0].resources)
            return f"no pool has the CPU cores or memory; a task on a node needs {needs}"
        largest = max(int(state.cluster.floors[f].total.sum()) for f in flavors) if flavors else 0
        return f"no pool has room for it; the largest has {largest} GPUs"
    if not state.tree.queues:
        return ""
    most = max(state.usage.potential(kind.queue, f) if state.usage.named(kind.queue, f) else 0.0 for f in fitting)
    return "" if most >= demand.least_gpus else f"queue {kind.queue} may use {most:g} GPUs at most"


def _overdrawn(scenario: Scenario) -> dict[int, str]:
    """Jobs that a budget without renewal never admits, with the reason; a renewed one depends on when they ask."""
    jobs, found = scenario.jobs, dict[int, str]()
    for place, kind in enumerate(jobs.kinds):
        for queue in _upwards(scenario, kind.queue):
            budget = scenario.budgets.get(queue)
            if budget is None or budget.every_s is not None or not kind.demand.most_gpus:
                continue
            mine = jobs.kind == place
            most_ms = budget.gpu_hours / kind.demand.most_gpus * _HOUR_MS
            reason = f"the budget of queue {queue} is {budget.gpu_hours:g} GPU-hours in all; its time limit plans more"
            found |= dict.fromkeys(np.flatnonzero(mine & (jobs.limit_ms > most_ms)).tolist(), reason)
            if budget.until_s is None:
                reason = f"the budget of queue {queue} has no end, and it has no time limit"
                found |= dict.fromkeys(np.flatnonzero(mine & (jobs.limit_ms == NONE_MS)).tolist(), reason)
    return found


def _upwards(scenario: Scenario, queue: str) -> Iterator[str]:
    at = scenario.tree.by_name.get(queue)
    while at is not None:
        yield at.name
        at = None if at.parent is None else scenario.tree.by_name[at.parent]
