"""Declared workloads as jobs: every replica of a service and every training, from the beginning on."""

from __future__ import annotations

from typing import Final

import numpy as np

from clusterwright.app.simulated_jobs import Stream
from clusterwright.app.simulated_sites import Site
from clusterwright.app.simulated_speeds import Paces
from clusterwright.judging.expecting import ExpectedJob, expect_jobs
from clusterwright.ledger.lines import to_ms
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.figures import Figure
from clusterwright.model.jobs import DEFAULT_QUEUE
from clusterwright.plan.results.payloads import PayloadPlan
from clusterwright.plan.results.plans import WorkloadPlan
from clusterwright.plan.results.trainings import CheckpointPlan, TrainingPlan
from clusterwright.queueing.requests import Demand, Shape
from clusterwright.simulate.attempts import ALWAYS, NEVER, Checkpoints, plan_checkpoints
from clusterwright.simulate.jobs import NONE_MS, Kind, SimJob, list_jobs

#: Work of a job that has no end of its own: twice the time that is simulated.
_ENDLESS: Final = 2.0


def jobs_of_workloads(site: Site, until_s: float, paces: Paces) -> Stream:
    """The declared workloads as the plan shapes them. Services, and trainings without a target, run to the end.

    Raises:
        InvalidInput: when none is declared, or the plan has no shape for any.
    """
    architecture, plan = site.document.architecture, site.plan
    expected = expect_jobs(architecture, plan)
    if not expected.jobs:
        why = "; ".join(f"{m.workload}: {m.reason}" for m in expected.missing) or "no workload is declared"
        raise InvalidInput(f"there is nothing to simulate: {why}; give --trace FILE, such as a dump of sacct")
    remarks = [f"{m.workload} is not simulated: {m.reason}" for m in expected.missing]
    jobs = []
    for job in expected.jobs:
        planned = plan.workload(job.workload)
        assert planned is not None
        kind = _kind(site, job, planned, paces)
        seconds, said = _work(planned, until_s)
        if said and said not in remarks:
            remarks.append(said)
        jobs.append(SimJob(0.0, seconds, kind, name=job.name))
    listed = list_jobs(jobs)
    none = np.full(len(listed), NONE_MS, dtype=np.int64)
    return Stream(listed, none, remarks=tuple(remarks), figures=paces.figures)


def _kind(site: Site, job: ExpectedJob, planned: WorkloadPlan, paces: Paces) -> Kind:
    workload = site.document.architecture.workloads[job.workload]
    pool = job.tasks[0].pool
    parts = site.slices.get(pool, 1)
    sizes = [task.gpus * parts for task in job.tasks]
    least = workload.train.min_gpus if workload.train is not None else None
    groups = tuple(
        Shape(sizes.count(size), size, f"of-{size}", _fewest(sizes.count(size), size, least and least * parts))
        for size in dict.fromkeys(sizes)
    )
    serving = planned.kind == "inference"
    precision = "fp8" if workload.train is not None and workload.train.precision == "fp8" else "bf16"
    start_s = _start_s(planned)
    return Kind(
        Demand(groups, (pool,)),
        job.queue or DEFAULT_QUEUE,
        team=job.workload,
        priority=job.priority,
        checkpoints=_checkpoints(planned),
        starting_ms=to_ms(start_s),
        restart_ms=to_ms(_restart_s(planned, start_s)),
        retries=site.retries,
        backoff_ms=to_ms(site.backoff_s),
        speeds=paces.of(pool, (pool,), serving=serving, precision=precision),
    )


def _fewest(count: int, size: int, least_gpus: int | None) -> int | None:
    return None if least_gpus is None else min(count, -(-least_gpus // size))


def _start_s(planned: WorkloadPlan) -> float:
    payload = planned.payload
    found = payload.cold_start if isinstance(payload, PayloadPlan) else None
    return found.value if found is not None else 0.0


def _restart_s(planned: WorkloadPlan, start_s: float) -> float:
    checkpoint = planned.checkpoint
    restore = checkpoint.restore if isinstance(checkpoint, CheckpointPlan) else None
    return start_s if restore is None else max(start_s, restore.value)


def _checkpoints(planned: WorkloadPlan) -> Checkpoints:
    if planned.kind == "inference":
        return ALWAYS
    found = planned.checkpoint
    if not isinstance(found, CheckpointPlan):
        return NEVER
    stall_s = _value(found.stall)
    write_s = _value(found.write_time) if found.mode == "async" else 0.0
    saved = plan_checkpoints(found.every.value, stall_s)
    return Checkpoints(saved.interval_ms, saved.stall_ms, to_ms(write_s))


def _value(figure: Figure | None) -> float:
    return 0.0 if figure is None else figure.value


def _work(planned: WorkloadPlan, until_s: float) -> tuple[float, str]:
    """Seconds at work, and what was taken in place of what is not known."""
    endless_s = _ENDLESS * until_s
    training = planned.training
    if planned.kind == "inference":
        return endless_s, ""
    hours = training.time_to_target if isinstance(training, TrainingPlan) else None
    goodput = training.goodput if isinstance(training, TrainingPlan) else None
    if hours is None or goodput is None:
        return endless_s, f"{planned.name} has no target or no known speed, it trains to the end"
    return hours.value * goodput.value * 3600.0, ""
