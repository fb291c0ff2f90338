"""One simulated future → its figures: waits and slowdowns by group, ledger, ETTR, fairness, cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, to_ms
from clusterwright.ledger.ratios import fairness
from clusterwright.report.replications import CURVE, FIELDS, LEVELS, Compared, Group, Replication
from clusterwright.simulate.jobs import NONE_MS, Jobs
from clusterwright.simulate.loop import Outcome
from clusterwright.simulate.outcomes import cost, deliveries, ettr, slowdowns
from clusterwright.simulate.tallies import Fared, Results

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_WORDS = {fared: fared.name.lower().replace("_", " ") for fared in Fared}
_LEVELS = tuple(LEVELS.values())


def sum_up(outcome: Outcome, failures: Mapping[str, int], real_wait_ms: NDArray[np.int64] | None = None) -> Replication:
    """The figures of an outcome.

    Args:
        failures: counted by cause.
        real_wait_ms: (jobs,) int64 as recorded, `NONE_MS` where not.

    Jobs that were submitted before counting began (`Scenario.counted_from_s`) are in none of them, but for what the
    installed GPUs yielded for their cost: that is by the end of jobs, because what began before and ended within stands
    for what begins within and ends later.
    """
    scenario, results = outcome.scenario, outcome.results
    jobs = scenario.jobs
    wait_s = first_waits_s(jobs, results, outcome.ended_s)
    slow = slowdowns(outcome)
    counted = scenario.counted
    came = counted & (results.fared != Fared.NOT_SUBMITTED)
    fields = FIELDS if any(k.team != k.queue for k in jobs.kinds) else FIELDS[:-1]
    groups = [_group(f, n, mask & came, jobs, results, wait_s, slow) for f, n, mask in _groups(jobs) if f in fields]
    won = (results.fared == Fared.SUCCEEDED) & (results.end_ms >= to_ms(scenario.counted_from_s))
    work_gpu_ms = int((jobs.work_ms[won] * jobs.gpus[won].astype(np.int64)).sum())
    known = counted & ~np.isnan(slow)
    means = [float(slow[m].mean()) for f, _, mask in _groups(jobs) if f == "queue" and (m := mask & known).any()]
    return Replication(
        seed=outcome.seed,
        simulated_s=outcome.ended_s,
        partial=outcome.partial,
        groups=tuple(g for g in groups if g.jobs),
        lines=outcome.lines,
        fared={_WORDS[f]: n for f in Fared if (n := int((results.fared[counted] == f).sum()))},
        failures=dict(sorted(failures.items(), key=lambda f: (-f[1], f[0]))),
        preemptions=outcome.preemptions,
        requeued=int((results.attempts[counted] > 1).sum()),
        ettr=ettr(outcome),
        ettr_saved=ettr(outcome, saved_only=True),
        fairness=fairness(*deliveries(outcome)),
        spread=max(means) / min(means) if len(means) > 1 else None,
        succeeded=int(won.sum()),
        succeeded_gpu_h=work_gpu_ms / GPU_MS_PER_GPU_H,
        cost=cost(outcome) if scenario.prices else None,
        compared=tuple(_compare(jobs, came, wait_s, real_wait_ms)) if real_wait_ms is not None else (),
    )


def first_waits_s(jobs: Jobs, results: Results, ended_s: float) -> Floats:
    """Seconds from submission to the first start; of who has not started, until the end; NaN for who did not come."""
    started = results.start_ms != NONE_MS
    until_ms = np.where(started, results.start_ms, round(ended_s * 1000))
    waits = (until_ms - jobs.submit_ms) / 1000
    return np.where(results.fared == Fared.NOT_SUBMITTED, np.nan, waits)


def _groups(jobs: Jobs) -> Iterator[tuple[str, str, Mask]]:
    """(field, name, jobs) of every group; sizes from the smallest, queues and teams by their jobs."""
    yield "all", "", np.ones(len(jobs), dtype=np.bool_)
    columns = {
        "size": [k.size for k in jobs.kinds],
        "queue": [k.queue for k in jobs.kinds],
        "team": [k.team for k in jobs.kinds],
    }
    sizes = [k.demand.most_gpus for k in jobs.kinds]
    for field in FIELDS[1:]:
        names = list(dict.fromkeys(columns[field]))
        if field == "team" and names == [""]:
            continue
        of = np.array([names.index(name) for name in columns[field]], dtype=np.intp)[jobs.kind]
        counts = np.bincount(of, minlength=len(names))
        smallest = {name: min(s for s, c in zip(sizes, columns[field], strict=True) if c == name) for name in names}
        rank = {n: smallest[n] if field == "size" else -int(counts[place]) for place, n in enumerate(names)}
        for name in sorted(names, key=lambda n: (rank[n], n)):
            yield field, name, of == names.index(name)


def _group(field: str, name: str, mask: Mask, jobs: Jobs, results: Results, wait_s: Floats, slow: Floats) -> Group:
    fared = results.fared[mask]
    waits, slowdowns = wait_s[mask], slow[mask & ~np.isnan(slow)]
    return Group(
        field=field,
        name=name,
        jobs=int(mask.sum()),
        gpus=int(jobs.gpus[mask].sum()),
        succeeded=int((fared == Fared.SUCCEEDED).sum()),
        unfinished=int(np.isin(fared, (Fared.WAITING, Fared.RUNNING)).sum()),
        waiting=int((results.start_ms[mask] == NONE_MS).sum()),
        wait_s=_quantiles(waits, _LEVELS),
        slowdown=_quantiles(slowdowns, _LEVELS),
        curve_s=_quantiles(waits, CURVE) if field in ("all", "size") else (),
    )


def _quantiles(values: Floats, levels: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(np.quantile(values, levels).tolist()) if len(values) else ()


def _compare(jobs: Jobs, came: Mask, wait_s: Floats, real_wait_ms: NDArray[np.int64]) -> Iterator[Compared]:
    known = came & (real_wait_ms != NONE_MS)
    for field, name, mask in _groups(jobs):
        chosen = mask & known
        if field == "queue" or not chosen.any():
            continue
        real = _quantiles(real_wait_ms[chosen] / 1000, (0.5, 0.9))
        mine = _quantiles(wait_s[chosen], (0.5, 0.9))
        yield Compared(field, name, int(chosen.sum()), (real[0], real[1]), (mine[0], mine[1]))
