"""The numbers and words of a plan that two designs are compared by, one row each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.figures import Figure, Origin, derive, leaf
from clusterwright.model.documents import Document
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.money import CapacityPlan, EconomicsPlan, UnitCost
from clusterwright.plan.results.payloads import PayloadPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import CheckpointPlan, TrainingPlan

Better = Literal["less", "more", ""]
#: (subject, label) of a row.
Key = tuple[str, str]
#: (label, value, better) before what was not planned is left out.
_Rows = list[tuple[str, Figure | str | Unplanned | None, Better]]
#: What the subject of a row is called that is no workload's.
CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Headline:
    """One row of one plan.

    Args:
        key: workload or cluster, and what it is.
        value: a figure, or words.
        better: which direction is the better one, "" where neither is.
    """

    key: Key
    value: Figure | str
    better: Better = ""


def headlines_of(document: Document, catalogue: Catalogue, plan: Plan) -> tuple[Headline, ...]:
    """Rows of a plan in the order in which they are shown; what was not planned has none."""
    rows = [row for workload in plan.workloads for row in _workload(workload, plan)]
    return (*rows, *_cluster(document, catalogue, plan))


def _workload(workload: WorkloadPlan, plan: Plan) -> Iterator[Headline]:
    rows: _Rows = [*_placement(workload), *_memory(workload.memory)]
    if isinstance(workload.service, ServicePlan):
        rows += _service(workload.service)
    if isinstance(workload.training, TrainingPlan):
        rows += _training(workload.training)
    if isinstance(workload.payload, PayloadPlan):
        rows.append(("cold start", workload.payload.cold_start, "less"))
    if isinstance(workload.checkpoint, CheckpointPlan):
        rows += [
            ("checkpoint stall", workload.checkpoint.stall, "less"),
            ("restore", workload.checkpoint.restore, "less"),
        ]
    if isinstance(workload.capacity, CapacityPlan):
        rows.append(("paid GPU-months", workload.capacity.gpu_months, "less"))
    if isinstance(plan.economics, EconomicsPlan):
        units = [u for u in plan.economics.units if isinstance(u, UnitCost) and u.workload == workload.name]
        rows += [("unit cost", unit.unit_cost, "less") for unit in units]
    for label, value, better in rows:
        if value is not None and not isinstance(value, Unplanned):
            yield Headline((workload.name, label), value, better)


def _placement(workload: WorkloadPlan) -> _Rows:
    chosen = workload.chosen
    name, counted = workload.name, f"GPUs of {workload.replicas_placed} placed"
    taken = float(sum(len(part.gpus) for part in workload.placement))
    rows: _Rows = [
        ("layout", workload.layout_words or None, ""),
        ("failure domain", None if chosen is None else chosen.failure_domain, ""),
    ]
    if workload.kind == "inference":
        placed = leaf(f"workloads.{name}.placed", workload.replicas_placed, "replicas", Origin.DECLARED, "placed")
        rows.append(("replicas", placed, ""))
    rows.append(("GPUs taken", leaf(f"workloads.{name}.gpus", taken, "GPUs", Origin.DECLARED, counted), "less"))
    return rows


def _memory(memory: MemoryPlan | Unplanned) -> _Rows:
    if isinstance(memory, Unplanned):
        return []
    return [
        ("memory", "fits" if memory.fits else "does not fit", ""),
        ("memory per GPU", memory.total, "less"),
        ("of which usable", memory.usable, "more"),
        ("cache of a replica", memory.kv_tokens, "more"),
        ("requests of mean length", memory.max_concurrency, "more"),
        ("longest sequence", memory.max_context, "more"),
    ]


def _service(service: ServicePlan) -> _Rows:
    one = "replica" if service.split is None else "decode worker"
    rows: _Rows = [(f"rate of a {one}", service.replica_rate, "more")]
    carries, survives = service.replicas_for_load, service.replicas_for_failures
    if isinstance(service.replica_rate, Figure) and carries is not None:
        rows.append((f"{one}s for the load", _replicas(service, service.replica_rate, carries, "carry it"), "less"))
        if survives is not None:
            needed = _replicas(service, service.replica_rate, survives, "carry it after the declared losses")
            rows.append((f"{one}s with losses", needed, "less"))
    return [*rows, (f"TTFT {service.ttft_is}", service.ttft, "less"), ("TPOT", service.tpot, "less")]


def _replicas(service: ServicePlan, each: Figure, count: int, words: str) -> Figure:
    """A number of replicas that moves with the rate of one as far as the load needs more or fewer of them."""
    more = count - _ceiling(service.rate.value, each.value)

    def needed(load: float, rate: float) -> float:
        return _ceiling(load, rate) + more

    unit = "replicas" if service.split is None else "workers"
    return derive(f"{each.name}.{words}", unit, f"{unit} that {words}", needed, service.rate, each)


def _ceiling(load: float, rate: float) -> float:
    return float(math.ceil(load / rate)) if rate > 0 else math.inf


def _training(training: TrainingPlan) -> _Rows:
    return [
        ("tokens per second", training.tokens_per_s, "more"),
        ("step", training.step_time, "less"),
        ("goodput", training.goodput, "more"),
        ("time to target", training.time_to_target, "less"),
    ]


def _cluster(document: Document, catalogue: Catalogue, plan: Plan) -> Iterator[Headline]:
    gpus = float(sum(pool.gpus for pool in plan.pools))
    yield Headline((CLUSTER, "GPUs"), leaf("cluster.gpus", gpus, "GPUs", Origin.DECLARED, "of all pools"), "less")
    power = power_kw(document, catalogue)
    if power is not None:
        yield Headline((CLUSTER, "power"), power, "less")
    if isinstance(plan.economics, EconomicsPlan):
        yield Headline((CLUSTER, "cost of a month"), plan.economics.total, "less")
    elif plan.compute_month is not None:
        yield Headline((CLUSTER, "compute of a month"), plan.compute_month, "less")


def power_kw(document: Document, catalogue: Catalogue) -> Figure | None:
    """Power of all nodes of worker pools, as declared, else as the shape's entry says; None where one is unknown."""
    parts = []
    for name, pool in document.architecture.pools.items():
        if pool.role != "worker":
            continue
        shape = catalogue.find_shape(pool.shape) if pool.shape else None
        declared = pool.hardware.power if pool.hardware else None
        if declared is not None:
            path = f"pools.{name}.hardware.power"
            each = leaf(path, declared.to("kW"), "kW", Origin.DECLARED, str(document.places.of(path)))
        elif shape is not None and shape.power is not None:
            each = leaf(f"catalogue.{shape.name}.power", shape.power.to("kW"), "kW", Origin.CATALOGUE, shape.basis)
        else:
            return None
        count = len(pool.nodes)
        parts.append(derive(f"pools.{name}.power", "kW", f"power of a node × {count}", lambda p, n=count: p * n, each))
    if not parts:
        return None
    return derive("cluster.power", "kW", "sum over worker pools", lambda *p: sum(p), *parts)
