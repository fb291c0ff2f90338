"""Inference workloads: load, latency, replicas, and what losses leave of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.lib.quantities import Quantity
from clusterwright.model.hardware import Gpu
from clusterwright.model.workloads import Serve, Target, Workload
from clusterwright.physics.collective_fits import FIT_SOURCE, find_terms
from clusterwright.physics.latencies import (
    BAND,
    BANDWIDTH_SHARE,
    MATMUL_SHARE,
    MATMUL_SOURCE,
    PREFILL_SHARE,
    VALIDATED,
)
from clusterwright.plan.choosing import Kind
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel, served_in
from clusterwright.plan.replica_speeds import Replica, ReplicaShape, quantile_of, target_of
from clusterwright.plan.results import Layout, MemoryPlan, Unplanned
from clusterwright.plan.serving_memory import lengths
from clusterwright.plan.sites import Site

#: Weight format → formats in which its matrix products may run, best first.
_COMPUTE: dict[str, tuple[str, ...]] = {
    "fp32": ("fp32",),
    "bf16": ("bf16",),
    "fp16": ("fp16", "bf16"),
    "fp8": ("fp8", "bf16"),
    "int8": ("int8", "bf16"),
    "nvfp4": ("fp4", "bf16"),
    "mxfp4": ("bf16",),
    "int4": ("bf16", "fp16"),
}


@dataclass(frozen=True, slots=True)
class Load:
    """A service's declared load and targets with the figures of one replica's speed.

    Args:
        build: makes a Replica from the values of `inputs`.
        output: mean output tokens of a request.
        first, step: (label, target in s) or None.
    """

    build: Callable[..., Replica]
    inputs: tuple[Figure, ...]
    rate: Figure
    output: Figure
    first: tuple[str, Figure] | None
    step: tuple[str, Figure] | None


def compute_rate(gpu: Gpu, precision: str) -> tuple[str, Quantity] | None:
    """(format, dense peak) in which products of weights in `precision` run on this GPU."""
    for name in _COMPUTE[precision]:
        rate = gpu.dense.of(name)  # type: ignore[arg-type]  # _COMPUTE holds catalogue formats only
        if rate is not None:
            return name, rate
    return None


def read_targets(
    sheet: Sheet, name: str, target: Target | None
) -> tuple[tuple[str, Figure] | None, tuple[str, Figure] | None]:
    """TTFT and TPOT targets, strictest percentile of each, in s."""

    def one(what: str) -> tuple[str, Figure] | None:
        found = target_of(target, what)
        if found is None or not isinstance(found[1], Quantity):
            return None
        return found[0], sheet.declared(f"workloads.{name}.target.{found[0]}", found[1], "s")

    return one("ttft"), one("tpot")


def read_load(
    sheet: Sheet,
    name: str,
    workload: Workload,
    serve: Serve,
    model: PlannedModel,
    site: Site,
    layout: Layout,
    memory: MemoryPlan,
    prefix: str,
) -> Load | Unplanned:
    """Everything that a replica's speed follows from, or why it cannot be estimated."""
    subject, gpu = f"{prefix}.replica_rate", site.gpu
    if gpu is None:
        return Unplanned(subject, "the GPU is unknown")
    if not model.is_plain:
        return sheet.miss(subject, f"the speed of {model.entry.attention} attention is not modelled")
    if layout.pp > 1 or layout.cp > 1:
        return sheet.miss(subject, "the speed of pipelined or context-parallel inference is not modelled")
    if memory.kv_tokens is None or memory.kv_bytes_per_token is None or not memory.fits:
        return Unplanned(subject, "the replica does not fit its GPUs")
    if layout.tp > 1 and find_terms(gpu.name, "all-reduce", layout.tp) is None:
        return sheet.miss(subject, f"no measured all-reduce of {gpu.name}; tensor parallelism over it is not timed")
    peak = compute_rate(gpu, serve.precision)
    if peak is None:
        return sheet.miss(subject, f"the catalogue gives no {serve.precision} rate of {gpu.name}")
    first, step = read_targets(sheet, name, workload.target)
    path = f"workloads.{name}.serve"
    mean_in, mean_out = lengths(sheet, path, serve)
    late = sheet.declared(f"{path}.in_p95", serve.in_p95, "tokens") if serve.in_p95 else mean_in
    most = sheet.derive(
        f"{prefix}.most_in_flight",
        "requests",
        "smaller of the cache's sequences of mean length and the engine's limit per attention copy",
        lambda c, s: min(c, s * layout.dp),
        *_limits(memory),
    )
    inputs = (
        *_read_weights(sheet, prefix, path, serve, model, layout),
        memory.kv_bytes_per_token,
        model.multiplied,
        sheet.published(gpu, "bandwidth", gpu.bandwidth, "GB/s"),
        sheet.assumed("roofline.bandwidth_share", BANDWIDTH_SHARE, "share", "achieved in decode; uncalibrated"),
        sheet.published(gpu, f"dense_{peak[0]}", peak[1], "TFLOP/s"),
        _matmul_share(sheet, gpu),
        sheet.assumed("roofline.prefill_share", PREFILL_SHARE, "share", "of peak in prefill; uncalibrated"),
        *_reduce(sheet, gpu, layout.tp),
        mean_in,
        mean_out,
        late,
        most,
    )
    rate = sheet.declared(f"{path}.rate", serve.rate, "req/s")
    return Load(_builder(model, layout), inputs, rate, mean_out, first, step)


def _limits(memory: MemoryPlan) -> tuple[Figure, Figure]:
    if memory.max_concurrency is None or memory.sequences is None:
        raise ValueError("an inference replica has a cache")
    return memory.max_concurrency, memory.sequences


def _read_weights(
    sheet: Sheet, prefix: str, path: str, serve: Serve, model: PlannedModel, layout: Layout
) -> tuple[Figure, Figure]:
    """GB that a GPU reads per step: everything but the input table and experts; all experts it holds."""
    form = served_in(sheet, f"{path}.precision", model, serve.precision).each
    tied = model.entry.tied_embeddings
    dense = sheet.derive(
        f"{prefix}.read_dense",
        "GB",
        f"dense layers and head ÷ TP{layout.tp}, norms; the input table is not read whole",
        lambda d, r, v, b: (d / layout.tp * b + (r + v * (1 if tied else 0.5) / layout.tp) * max(2.0, b)) / 1e9,
        model.dense,
        model.replicated,
        model.vocabulary,
        form["dense"],
    )
    spread = max(layout.tp, layout.ep, layout.gpus if layout.dp > 1 else 1)
    experts = sheet.derive(
        f"{prefix}.read_experts",
        "GB",
        f"routed experts ÷ {spread}, if all were used",
        lambda e, b: e / spread * b / 1e9,
        model.experts,
        form["experts"],
    )
    return dense, experts


def _matmul_share(sheet: Sheet, gpu: Gpu) -> Figure:
    known = MATMUL_SHARE.get(gpu.name)
    if known is not None:
        return sheet.constant(f"matmul_share.{gpu.name}", known, "share", MATMUL_SOURCE)
    return sheet.assumed(
        f"matmul_share.{gpu.name}", 0.80, "share", f"no published matmul benchmark of {gpu.name} at hand; that of H100"
    )


def _reduce(sheet: Sheet, gpu: Gpu, ranks: int) -> tuple[Figure, Figure, Figure]:
    fit = find_terms(gpu.name, "all-reduce", ranks) if ranks > 1 else None
    terms = (fit.latency_us, fit.bandwidth_gbytes_s, fit.root_us) if fit else (0.0, 1.0, 0.0)
    source = f"{FIT_SOURCE}, {ranks} GPUs" if fit else "not used: one GPU reduces nothing"
    name = f"all_reduce.{gpu.name}.{ranks}_gpus"
    return (
        sheet.constant(f"{name}.latency", terms[0], "µs", source),
        sheet.constant(f"{name}.bandwidth", terms[1], "GB/s", source),
        sheet.constant(f"{name}.root", terms[2], "µs/√B", source),
    )


def _builder(model: PlannedModel, layout: Layout) -> Callable[..., Replica]:
    moe, entry = model.entry.moe, model.entry
    shape = ReplicaShape(
        layout.tp,
        layout.dp,
        layout.gpus,
        entry.layers,
        entry.hidden,
        entry.heads,
        model.head_dim,
        moe.experts if moe else 0,
        moe.active if moe else 0,
    )

    def build(
        dense_gb: float,
        experts_gb: float,
        kv_kib: float,
        multiplied: float,
        bandwidth_gb_s: float,
        bandwidth_share: float,
        peak_tflops: float,
        *rest: float,
    ) -> Replica:
        return Replica(
            shape,
            dense_gb * 1e9,
            experts_gb * 1e9,
            kv_kib * 1024,
            multiplied,
            bandwidth_gb_s * 1e9,
            bandwidth_share,
            peak_tflops * 1e12,
            *rest,
        )

    return build


def replica_rate(sheet: Sheet, prefix: str, path: str, serve: Serve, load: Load, nodes: int) -> Figure:
    """req/s that one replica carries within the targets: measured, declared, else estimated from its largest batch."""
    name = f"{prefix}.{'estimated_' if serve.replica_rate else ''}replica_rate"
    batch = _largest_batch(sheet, prefix, load)
    step, prefill = _step(sheet, prefix, load, batch)
    estimate = sheet.derive(
        name,
        "req/s",
        f"batch ÷ (prefill + (1 + output tokens) × step), Little's law; decode validated on {VALIDATED}; "
        "waiting prompts as M/M/1 are not validated",
        lambda b, f, s, o: b / (f + (1 + o) * s / 1e3) if b else 0.0,
        batch,
        prefill,
        step,
        load.output,
        band=(round(1 / BAND[1], 2), round(1 / BAND[0], 2)),
    )
    stated = sheet.maybe(f"{path}.replica_rate", serve.replica_rate, "req/s")
    return sheet.picked(Kind.RATE, f"{prefix}.replica_rate", stated, estimate, nodes=nodes)


def _goals(load: Load) -> tuple[Figure, ...]:
    return tuple(g[1] for g in (load.step, load.first) if g)


def _largest_batch(sheet: Sheet, prefix: str, load: Load) -> Figure:
    """Most requests in flight within targets, cache and engine limit; its formula names which of them binds."""
    quantile = quantile_of(load.first[0]) if load.first else None
    count = len(load.inputs)

    def split(values: tuple[float, ...]) -> tuple[Replica, float, float]:
        limits = list(values[count:])
        step = limits.pop(0) if load.step else math.inf
        return load.build(*values[:count]), step, limits.pop(0) if load.first else math.inf

    def largest(*values: float) -> float:
        replica, step, first = split(values)
        return replica.largest_batch(step, first, quantile)

    inputs = (*load.inputs, *_goals(load))
    replica, step, first = split(tuple(f.value for f in inputs))
    found = replica.largest_batch(step, first, quantile)
    labels = [g[0] for g in (load.first, load.step) if g]
    stop = _binding(load, replica, found, step, first, quantile)
    return sheet.derive(
        f"{prefix}.batch",
        "requests",
        f"largest that keeps {', '.join([*labels, 'cache and engine limit'])}; {stop} binds"
        + ("; the mean step stands for its percentile" if load.step and quantile_of(load.step[0]) else ""),
        largest,
        *inputs,
    )


def binding(load: Load, batch: Figure) -> str:
    """What keeps a replica at this batch from carrying more: a latency target, or cache and engine."""
    replica = load.build(*(f.value for f in load.inputs))
    step = load.step[1].value if load.step else math.inf
    first = load.first[1].value if load.first else math.inf
    return _binding(load, replica, batch.value, step, first, quantile_of(load.first[0]) if load.first else None)


def why_unreachable(load: Load) -> str:
    """What a request misses that is alone on a replica, with its estimates."""
    replica = load.build(*(f.value for f in load.inputs))
    missed = [] if replica.most >= 1 else ["the cache holds no request of mean length"]
    if load.first:
        first = replica.first_token_s(1, quantile_of(load.first[0]))
        missed += [f"{load.first[0]} {load.first[1]} (alone {first:.3g} s)"] if first > load.first[1].value else []
    if load.step:
        step = replica.step_s(1)
        missed += [f"{load.step[0]} {load.step[1]} (alone {step:.3g} s)"] if step > load.step[1].value else []
    return " and ".join(missed)


def _binding(load: Load, replica: Replica, batch: float, step: float, first: float, quantile: float | None) -> str:
    if batch >= replica.most:
        return "the cache or the engine's limit"
    more = max(1.0, batch * 1.001)
    if load.step and replica.step_s(more) > step:
        return load.step[0]
    if load.first and replica.first_token_s(more, quantile) > first:
        return load.first[0]
    return "the cache or the engine's limit"


def _step(sheet: Sheet, prefix: str, load: Load, batch: Figure) -> tuple[Figure, Figure]:
    """(ms of a step at this batch as the sum of its parts, s of a mean prompt)."""

    def part(name: str, formula: str, value: Callable[[Replica, float], float]) -> Figure:
        return sheet.derive(
            f"{prefix}.step_{name}",
            "ms",
            formula,
            lambda b, *v: value(load.build(*v), b) * 1e3,
            batch,
            *load.inputs,
        )

    parts = (
        part("memory", "bytes that a GPU reads ÷ (achieved share × bandwidth)", lambda r, b: r.memory_s(b)),
        part("compute", "FLOP of the batch on a GPU ÷ (matmul share × peak)", lambda r, b: r.compute_s(b)),
        part("all_reduces", "two all-reduces of the batch per layer", lambda r, b: r.reduces_s(b)),
        part("overhead", "75 µs per layer + 0.3 ms", lambda r, _: r.overhead_s),
        part("prefills", "batch × prefill ÷ output tokens: prompts of new requests", lambda r, b: r.prefills_s(b)),
    )
    step = sheet.derive(
        f"{prefix}.step",
        "ms",
        "larger of memory and compute + all-reduces + overhead + prefills",
        lambda m, c, a, o, p: max(m, c) + a + o + p,
        *parts,
    )
    prefill = sheet.derive(
        f"{prefix}.prefill",
        "s",
        "FLOP of a mean prompt ÷ (GPUs × prefill share × peak) + its all-reduces",
        lambda *v: load.build(*v).prefill_time_s,
        *load.inputs,
    )
    return step, prefill


def at_load(sheet: Sheet, prefix: str, load: Load, replicas: Figure, nodes: int) -> tuple[Figure, Figure, Figure]:
    """TTFT (s, at the target's percentile), TPOT (ms, mean) and requests in flight, load spread over `replicas`."""
    quantile = quantile_of(load.first[0]) if load.first else None
    label = load.first[0] if load.first else "mean"
    count = len(load.inputs)

    def batch(*values: float) -> tuple[Replica, float]:
        replica = load.build(*values[:count])
        return replica, replica.batch_at(values[count] / values[count + 1])

    def first(*values: float) -> float:
        replica, b = batch(*values)
        return replica.first_token_s(b, quantile)

    def step(*values: float) -> float:
        replica, b = batch(*values)
        return replica.step_s(b) * 1e3

    inputs = (*load.inputs, load.rate, replicas)
    ttft = sheet.derive(
        f"{prefix}.ttft",
        "s",
        f"wait + prefill + one step ({label}: waiting prompts as M/M/1); not validated",
        first,
        *inputs,
    )
    tpot = sheet.derive(
        f"{prefix}.tpot",
        "ms",
        f"roofline of a decode step with prefills between (mean); validated on {VALIDATED}",
        step,
        *inputs,
        band=BAND,
    )
    return (
        sheet.picked(Kind.TIME, f"{prefix}.ttft", ttft, nodes=nodes),
        sheet.picked(Kind.TIME, f"{prefix}.tpot", tpot, nodes=nodes),
        sheet.derive(
            f"{prefix}.in_flight", "requests", "rate × residence (Little's law)", lambda *v: batch(*v)[1], *inputs
        ),
    )


def replicas_for_failures(needed: int, nodes: int, per_node: int, nodes_per_replica: int, lost: int) -> int | None:
    """Smallest number of evenly spread replicas of which `needed` survive the loss of any `lost` nodes.

    Args:
        per_node: replicas that fit a node, 0 when a replica spans nodes.

    Returns:
        None when the nodes do not hold that many.
    """
    most = per_node * nodes if per_node else nodes // nodes_per_replica
    for count in range(needed, most + 1):
        hit = lost * math.ceil(count / nodes) if per_node else lost
        if count - hit >= needed:
            return count
    return None
