"""Layouts that a service could have on its pool: cost against time per token, the best ones, and why not the others.

Every layout is judged by the search at the declared load, lengths and targets; the planned one among them. What is
shown is a comparison of layouts with each other; the plan's own figures carry the derivations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.figures import Figure
from clusterwright.model.decoders import Decoder
from clusterwright.model.documents import Document
from clusterwright.model.workloads import Serve, Target, Workload
from clusterwright.plan.engines import VERSIONS, engine_layout, read_engine
from clusterwright.plan.results import Plan, PoolPlan, ServicePlan, WorkloadPlan
from clusterwright.plan.searching.calibrated import calibrated
from clusterwright.plan.searching.questions import Lengths, Pool, ServingQuestion
from clusterwright.plan.searching.serving import ServingRow, search_serving

Level = Literal["ttft_p99", "ttft_p95", "ttft_p50", "ttft"]
#: Targets of the first token by the quantile that they name, strictest first.
_TTFT: tuple[tuple[Level, float | None], ...] = (
    ("ttft_p99", 0.99), ("ttft_p95", 0.95), ("ttft_p50", 0.5), ("ttft", None),
)  # fmt: skip
_TPOT = ("tpot_p99", "tpot_p95", "tpot_p50", "tpot")


@dataclass(frozen=True, slots=True)
class Point:
    """One possible layout.

    Args:
        layout: in the engine's terms. gpus: of all replicas; replicas: with those that may be lost.
        cost: in the front's unit. tpot_s, ttft_s: at the declared load.
        on_front: no other layout is at least as good in cost and time per token and better in one.
        best: the search's choice. planned: the layout of the plan.
    """

    layout: str
    replicas: int
    gpus: int
    cost: float
    tpot_s: float
    ttft_s: float
    on_front: bool
    best: bool
    planned: bool


@dataclass(frozen=True, slots=True)
class Lost:
    """A layout that people try first and that is not the best, with the reason in numbers."""

    name: str
    layout: str
    reason: str


@dataclass(frozen=True, slots=True)
class Front:
    """The layouts of one service.

    Args:
        unit: of the costs: money, or GPU-hours where no price is known, per million output tokens.
        points: possible layouts, cheapest first. tried: layouts that were judged.
        losers: popular layouts. planned_reason: what is said of the planned layout.
        tpot_target_s: None without one.
        calibrated_on: where the engine's constants come from.
    """

    workload: str
    unit: str
    points: tuple[Point, ...]
    tried: int
    losers: tuple[Lost, ...]
    planned_reason: str
    tpot_target_s: float | None
    calibrated_on: str


def find_fronts(document: Document, catalogue: Catalogue, plan: Plan) -> tuple[Front, ...]:
    """Fronts of the services whose model, engine and GPU are known."""
    found = []
    for planned in plan.workloads:
        workload = document.architecture.workloads[planned.name]
        pool = next((p for p in plan.pools if p.name == planned.pool), None)
        if workload.serve is None or pool is None:
            continue
        front = _front(workload, workload.serve, planned, pool, document, catalogue, plan)
        if front is not None:
            found.append(front)
    return tuple(found)


def _front(
    workload: Workload,
    serve: Serve,
    planned: WorkloadPlan,
    on: PoolPlan,
    document: Document,
    catalogue: Catalogue,
    plan: Plan,
) -> Front | None:
    decoder, gpu = catalogue.find_decoder(workload.model), catalogue.find_gpu(on.gpu) if on.gpu else None
    engine = read_engine(serve.engine)
    if decoder is None or gpu is None or engine.name not in VERSIONS or serve.speculation is not None:
        return None
    spares = document.architecture.pools[on.name].spares
    pool = Pool(gpu, on.gpus_per_node, on.domain_gpus, max(len(on.nodes) - spares, 0), _value(plan, on, "nic_rate"))
    pool = _priced(pool, plan, on)
    service = planned.service
    reused = service.prefix_reuse.value if isinstance(service, ServicePlan) and service.prefix_reuse else 0.0
    question = _question(decoder, pool, workload, serve, engine.name, engine.planned, reused)
    constants, source = calibrated(question, catalogue.calibrations())
    try:
        search = search_serving(question, constants)
    except KeyError:  # a format that the GPU has no unit for
        return None
    rows = search.table()
    fronted = {row.layout for row in search.pareto("gpu_h_per_mtok", "tpot_s")}
    own = engine_layout(engine.name, planned.layout) if planned.layout is not None else None
    best = rows[0].layout if rows else None
    points = tuple(
        _point(row, pool, row.layout in fronted, best=row.layout == best, planned=row.layout == own) for row in rows
    )
    verdict = None if own is None else search.why_not(own)
    if verdict is not None and verdict.row is not None and not any(point.planned for point in points):
        points += (_point(verdict.row, pool, False, best=False, planned=True),)
    return Front(
        planned.name,
        f"{pool.currency}/Mtok output" if pool.price_per_gpu_h is not None else "GPU-h/Mtok output",
        tuple(sorted(points, key=lambda point: (point.cost, point.tpot_s))),
        len(search.judged.reason),
        tuple(Lost(lost.name, str(lost.layout), lost.text) for lost in search.losers()),
        "" if verdict is None else verdict.text,
        question.tpot_s,
        source.name if source is not None else "",
    )


def _point(row: ServingRow, pool: Pool, on_front: bool, *, best: bool, planned: bool) -> Point:
    priced = row.cost_per_mtok_output
    cost = row.gpu_h_per_mtok if priced is None else priced
    return Point(str(row.layout), row.replicas, row.gpus, cost, row.tpot_s, row.ttft_s, on_front, best, planned)


def _priced(pool: Pool, plan: Plan, on: PoolPlan) -> Pool:
    """The pool with its declared price per GPU-hour, where it has one."""
    price = plan.figures.get(f"pools.{on.name}.price")
    if not isinstance(price, Figure) or not price.unit.endswith("/GPU-h"):
        return pool
    return replace(pool, price_per_gpu_h=price.value, currency=price.unit.removesuffix("/GPU-h"))


def _value(plan: Plan, on: PoolPlan, name: str) -> float | None:
    figure = plan.figures.get(f"pools.{on.name}.{name}")
    return None if figure is None else figure.value


def _question(
    decoder: Decoder,
    pool: Pool,
    workload: Workload,
    serve: Serve,
    engine: str,
    version: tuple[int, int],
    reused: float,
) -> ServingQuestion:
    target = workload.target or Target()
    ttft, quantile = next(
        ((limit.value, level) for name, level in _TTFT if (limit := getattr(target, name)) is not None), (None, None)
    )
    tpot = next((limit.value for name in _TPOT if (limit := getattr(target, name)) is not None), None)
    return ServingQuestion(
        decoder,
        pool,
        Lengths(
            serve.input.value,
            serve.output.value,
            serve.in_p95.value if serve.in_p95 else None,
            serve.out_p95.value if serve.out_p95 else None,
            reused,
            serve.lengths.prompts if serve.lengths else (),
        ),
        engine=engine,
        version=version,
        weights=_format(decoder, serve.precision),
        kv_format=serve.kv_precision or "auto",
        rate=serve.rate.value,
        ttft_s=ttft,
        tpot_s=tpot,
        quantile=quantile,
        survive_nodes=int(target.survive.value) if target.survive else 0,
        max_model_len=int(serve.max_model_len.value) if serve.max_model_len else None,
        memory_share=serve.memory_share.value if serve.memory_share else None,
    )


def _format(decoder: Decoder, precision: str) -> str | None:
    """The format to serve linear layers in; None where the checkpoint has it already or it is a 16-bit one."""
    stored = {part.stored for part, _ in decoder.parts(towers=False)}
    return None if precision in ("bf16", "fp16", "fp32") or precision in stored else precision
