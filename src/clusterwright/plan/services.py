"""Inference workloads: load, latency, replicas, and what losses leave of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from clusterwright.catalogue.calibrations import closest, outside
from clusterwright.lib.figures import Figure
from clusterwright.lib.quantities import Quantity
from clusterwright.model.calibrations import Calibration
from clusterwright.model.decoders import Decoder
from clusterwright.model.hardware import Gpu
from clusterwright.model.workloads import Serve, Target, Workload
from clusterwright.physics.engines.settings import cache_format
from clusterwright.physics.layouts import Layout as EngineLayout
from clusterwright.physics.serving.constants import NAMES, Constants, named
from clusterwright.physics.serving.lengths import LARGEST_RATIO
from clusterwright.physics.serving.sides import COMPUTE, Device
from clusterwright.physics.serving.traffic import BYTES, traffic
from clusterwright.plan.choosing import Kind
from clusterwright.plan.collectives import fabric_rate, nic_rate
from clusterwright.plan.engines import Engine, engine_layout, read_engine
from clusterwright.plan.fitting.bands import time_bands
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel, served_in
from clusterwright.plan.prefix_reuse import plan_reuse
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.searching.machines import device
from clusterwright.plan.searching.memories import keeps_every_token
from clusterwright.plan.searching.sizing import replicas_with_losses
from clusterwright.plan.serving_loops import IDLE, Case, Loop, Numbers, Targets, loop_of
from clusterwright.plan.serving_memory import lengths
from clusterwright.plan.sites import Site
from clusterwright.plan.speculation import plan_kept, read_drafting
from clusterwright.plan.training_steps import pool_of

#: Constants that only serving in two parts, or a fixed number of requests in flight, takes.
_ELSEWHERE: Final = ("handover_ms", "bunching")
#: Constants of mixtures of experts, and of several ranks.
_OF_EXPERTS: Final = ("expert_share", "expert_math_share", "expert_layer_us")
_OF_RANKS: Final = ("link_share", "collective_us")
_UNITS: Final = {"us": "µs", "ms": "ms"}
#: Terms of a step in words.
_STEP: Final = {
    "weights": "larger of reading the weights and their products",
    "experts": "larger of reading the experts that the batch uses and their products",
    "kv cache": "larger of reading the cache of the batch and its attention",
    "collectives": "latency and bytes of exchanges among ranks",
    "layers": "what each layer takes beside its products",
    "step": "scheduling, sampling, output",
    "sequences": "what each running sequence takes",
    "prompts of others": "what prompts of new requests take from the step",
}


@dataclass(frozen=True, slots=True)
class Load:
    """A service's declared load and targets with the figures of one replica's speed.

    Args:
        build: makes a replica from the values of `inputs`.
        output: mean output tokens of a request.
        first, step: (label, target in s) or None.
        band: factors on times that the calibration was off on rows held out, by `ttft` and `tpot`; absent: unknown.
        said: what the constants were validated on, in words.
        handover: ms that handing a cache over takes beside its bytes; of workers that only decode.
    """

    build: Callable[..., Loop]
    inputs: tuple[Figure, ...]
    rate: Figure
    prompt: Figure
    output: Figure
    first: tuple[str, Figure] | None
    step: tuple[str, Figure] | None
    bands: dict[str, tuple[float, float]]
    said: str
    handover: Figure | None = None

    @property
    def replica(self) -> Loop:
        """The replica at the figures' own values."""
        return self.build(*(f.value for f in self.inputs))


def compute_rate(gpu: Gpu, precision: str) -> tuple[str, Quantity] | None:
    """(format, dense peak) in which products of weights in `precision` run on this GPU."""
    for name in COMPUTE[precision]:
        rate = gpu.dense.of(name)  # type: ignore[arg-type]  # COMPUTE holds catalogue formats only
        if rate is not None:
            return name, rate
    return None


def quantile_of(label: str) -> float | None:
    """0.95 of `ttft_p95`, None of `ttft` (a mean)."""
    _, _, number = label.partition("_p")
    return int(number) / 100 if number else None


def target_of(target: object, what: str) -> tuple[str, object] | None:
    """(label, declared value) of the strictest percentile that a target states for `ttft` or `tpot`."""
    for label in (f"{what}_p99", f"{what}_p95", f"{what}_p50", what):
        value = getattr(target, label, None)
        if value is not None:
            return label, value
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
    *,
    decodes: bool = False,
) -> Load | Unplanned:
    """Everything that a replica's speed follows from, or why it cannot be estimated.

    Args:
        decodes: it only decodes what others prefilled.
    """
    subject, gpu = f"{prefix}.replica_rate", site.gpu
    if gpu is None:
        return Unplanned(subject, "the GPU is unknown")
    if layout.cp > 1:
        return sheet.miss(subject, "the speed of context-parallel inference is not modelled")
    if memory.max_concurrency is None or memory.sequences is None or not memory.fits:
        return Unplanned(subject, "the replica does not fit its GPUs")
    path, engine = f"workloads.{name}.serve", read_engine(serve.engine)
    served = served_in(sheet, f"{path}.precision", model, serve.precision)
    form = cache_format(served.decoder, serve.kv_precision or "auto", engine.name, engine.planned)
    cache = "fp8" if form.startswith("fp8") else form
    moved = traffic(served.decoder, cache=cache if cache in BYTES else "bf16")
    network = _network(sheet, site, layout)
    if isinstance(network, Unplanned):
        return Unplanned(subject, network.reason, network.missing)
    pool = pool_of(site, gpu, network.value if network else None)
    machine = device(pool)
    formats = {w.format for w in (*moved.weights, *moved.experts)} | {"bf16"}
    lacking = sorted(f for f in formats if not any(n in machine.flops_s for n in COMPUTE[f]))
    if lacking:
        return sheet.miss(subject, f"the catalogue gives no {' or '.join(lacking)} rate of {gpu.name}")
    first, step = read_targets(sheet, name, workload.target)
    inner = engine_layout(engine.name, layout)
    targets = Targets(
        first[1].value if first else None,
        quantile_of(first[0]) if first else None,
        step[1].value if step else None,
        quantile_of(step[0]) if step else None,
    )
    points, chunk = serve.lengths.prompts if serve.lengths else (), serve.max_num_batched_tokens
    groups = inner.dp * inner.attention_dp
    drafting = read_drafting(sheet.catalogue, serve, served.decoder, engine, layout) if serve.speculation else None
    if isinstance(drafting, str):
        return Unplanned(subject, drafting)
    drafter = traffic(drafting.drafter, cache=cache if cache in BYTES else "bf16") if drafting else None
    drafted = drafting.tokens if drafting else 0
    case = Case(served.decoder, moved, inner, pool, machine, targets, groups, points, chunk, drafter, drafted, decodes)
    known = _calibration(sheet, engine, gpu)
    constants = named(known.constants) if known else Constants()
    used = _used(model, inner.gpus)
    held = {n: _constant(sheet, engine, gpu, known, n, getattr(constants, n)) for n in used}
    rates = _rates(sheet, gpu, machine, formats, network, inner)
    mean_in, mean_out = lengths(sheet, path, serve)
    late = _late(sheet, path, serve, mean_in)
    reused = plan_reuse(sheet, name, prefix, serve, memory.kv_tokens)
    kept = plan_kept(sheet, name, prefix, serve)
    each = [served.each["dense"], served.each["experts"]]
    weights = dict.fromkeys(f for f in each if f.value)
    fixed = {
        "prompt": mean_in,
        "output": mean_out,
        "places": _places(sheet, prefix, served.decoder, memory, mean_in, mean_out),
        "running": memory.sequences,
        **({"late": late} if late and not points else {}),
        **({"reused": reused} if reused else {}),
        **({"kept": kept} if kept else {}),
        **(
            {"cache": memory.kv_bytes_per_token}
            if memory.kv_bytes_per_token and memory.kv_bytes_per_token.value
            else {}
        ),
        **({"first": first[1]} if first else {}),
        **({"step": step[1]} if step else {}),
    }
    names = (*held, *rates, *(f"weights.{i}" for i, _ in enumerate(weights)), *fixed)
    inputs = (*held.values(), *(f for f, _ in rates.values()), *weights, *fixed.values())
    base = {n: f.value for n, f in zip(names, inputs, strict=True)}

    made: dict[Numbers, Loop] = {}

    def build(*values: float) -> Loop:
        v = dict(zip(names, values, strict=False))
        factors = [v[n] / base[n] for n in names if n.startswith("weights.")]
        numbers = Numbers(
            constants=tuple(v.get(n, getattr(constants, n)) for n in NAMES),
            rates=tuple((n, v[n] * factor) for n, (_, factor) in rates.items()),
            weights=max(factors, key=lambda f: abs(f - 1), default=1.0),
            cache=v["cache"] / base["cache"] if "cache" in v and base["cache"] else 1.0,
            prompt=v["prompt"],
            late=v.get("late", 0.0),
            reused=min(v.get("reused", 0.0), 1.0),
            kept=v.get("kept", 1.0),
            output=max(v["output"], 1.0),
            places=v["places"],
            running=v["running"] * case.groups,
            first_s=v.get("first"),
            step_s=v.get("step"),
        )
        if numbers not in made:
            made[numbers] = loop_of(case, numbers)
        return made[numbers]

    rate = sheet.declared(f"{path}.rate", serve.rate, "req/s")
    bands, said = _error(known, served.decoder.name)
    _extrapolates(sheet, name, known, serve, inner.gpus)
    handover = _constant(sheet, engine, gpu, known, "handover_ms", constants.handover_ms) if decodes else None
    return Load(build, inputs, rate, mean_in, mean_out, first, step, {} if drafting else bands, said, handover)


def _places(
    sheet: Sheet, prefix: str, decoder: Decoder, memory: MemoryPlan, mean_in: Figure, mean_out: Figure
) -> Figure:
    """Sequences of mean length that the caches hold: by tokens, where every layer keeps all of them."""
    assert memory.max_concurrency is not None
    if memory.kv_tokens is None or not keeps_every_token(decoder):
        return memory.max_concurrency
    return sheet.derive(
        f"{prefix}.places",
        "sequences",
        "tokens that the caches hold ÷ mean input + mean output",
        lambda t, i, o: t / (i + o),
        memory.kv_tokens,
        mean_in,
        mean_out,
    )


def _network(sheet: Sheet, site: Site, layout: Layout) -> Figure | Unplanned | None:
    """GB/s per GPU between nodes; None where the replica stays in one domain."""
    if layout.gpus <= max(site.gpus_per_node, site.domain_gpus):
        return None
    rate = nic_rate(sheet, site)
    return rate if isinstance(rate, Unplanned) else fabric_rate(sheet, site, rate)[0]


def _calibration(sheet: Sheet, engine: Engine, gpu: Gpu) -> Calibration | None:
    version = "" if engine.version is None else ".".join(str(part) for part in engine.version)
    return closest(sheet.catalogue.calibrations(), engine.name, version, gpu.name)


def _used(model: PlannedModel, ranks: int) -> tuple[str, ...]:
    left = set(_ELSEWHERE)
    left |= set() if model.is_moe else set(_OF_EXPERTS)
    left |= set() if ranks > 1 else set(_OF_RANKS)
    return tuple(n for n in NAMES if n not in left)


def _constant(sheet: Sheet, engine: Engine, gpu: Gpu, known: Calibration | None, name: str, value: float) -> Figure:
    unit = _UNITS.get(name.rpartition("_")[2], "share")
    if known is None:
        reason = f"no calibration of {engine.name}; public microbenchmarks of comparable GPUs"
        return sheet.assumed(f"serving.{engine.name}.{name}", value, unit, reason)
    basis = f"fitted {known.date} to {known.fit.rows} runs ({known.source})"
    if known.gpu is None:
        return sheet.assumed(f"serving.{engine.name}.{gpu.name}.{name}", value, unit, f"of other GPUs: {basis}")
    return sheet.constant(f"calibration.{known.name}.{name}", value, unit, basis)


def _rates(
    sheet: Sheet,
    gpu: Gpu,
    machine: Device,
    formats: set[str],
    network: Figure | None,
    layout: EngineLayout,
) -> dict[str, tuple[Figure, float]]:
    """Rates of the GPU as (figure, factor to the estimator's unit)."""
    found = {"memory": (sheet.published(gpu, "bandwidth", gpu.bandwidth, "GB/s"), 1e9)}
    for form in sorted(formats):
        rate = compute_rate(gpu, form)
        if rate is not None:
            found[rate[0]] = (sheet.published(gpu, f"dense_{rate[0]}", rate[1], "TFLOP/s"), 1e12)
    link = machine.link_bytes_s
    if layout.gpus > 1 and link > 1.0:
        found["link"] = (sheet.published(gpu, "link", link / 1e9, "GB/s", "one direction, inside its domain"), 1e9)
    if machine.domain < layout.tp * layout.dp <= machine.node:
        found["pcie"] = (sheet.published(gpu, "pcie", machine.node_bytes_s / 1e9, "GB/s", "one direction"), 1e9)
    if network is not None:
        found["nic"] = (network, 1e9)
    return found


def _late(sheet: Sheet, path: str, serve: Serve, mean: Figure) -> Figure | None:
    """95th percentile of prompts as far as a log-normal can have it, None where it is not above the mean."""
    if serve.in_p95 is None or serve.in_p95.value <= mean.value:
        return None
    stated = sheet.declared(f"{path}.in_p95", serve.in_p95, "tokens")
    if stated.value / mean.value < LARGEST_RATIO:
        return stated
    most = LARGEST_RATIO * (1 - 1e-9)
    return sheet.derive(
        f"{path}.in_p95_used", "tokens", f"at most {LARGEST_RATIO:.2f} × the mean: the widest log-normal",
        lambda p, m: min(p, m * most), stated, mean,
    )  # fmt: skip


def _error(known: Calibration | None, model: str) -> tuple[dict[str, tuple[float, float]], str]:
    """Bands by `ttft` and `tpot`, and in words what they come from."""
    if known is None or known.gpu is None:
        return {}, "not validated on this GPU"
    bands = time_bands(known.fit, model)
    if bands is not None and bands.ttft is not None and bands.tpot is not None:
        held = f"nine of ten measurements between, of {bands.ttft.rows} held out: {bands.ttft.of}"
        ends = {"ttft": bands.ttft, "tpot": bands.tpot}
        return {n: (round(b.low, 2), round(b.high, 2)) for n, b in ends.items()}, f"constants {known.name}, {held}"
    found = {}
    for what, error in (("ttft", known.fit.ttft_error), ("tpot", known.fit.tpot_error)):
        if error is not None:
            found[what] = (round(1 / (1 + error), 2), round(1 + error, 2))
    errors = " and ".join(f"{(b[1] - 1) * 100:.0f} % for {n.upper()}" for n, b in found.items())
    return found, f"constants {known.name}, mean error {errors} on runs held out ({known.fit.held_out})"


def _extrapolates(sheet: Sheet, name: str, known: Calibration | None, serve: Serve, gpus: int) -> None:
    if known is None:
        return
    beyond = outside(known, prompt=serve.input.value, output=serve.output.value, gpus=gpus)
    if beyond:
        sheet.limit(f"the speed of {name} lies outside what its constants were fitted on: {', '.join(beyond)}")


def replica_rate(sheet: Sheet, prefix: str, path: str, serve: Serve, load: Load, nodes: int) -> Figure:
    """req/s that one replica carries within the targets: measured, declared, else estimated from its largest batch."""
    name = f"{prefix}.{'estimated_' if serve.replica_rate else ''}replica_rate"
    batch = _largest_batch(sheet, prefix, load)
    step = _step(sheet, prefix, load, batch)
    _prefill(sheet, prefix, load)
    band = load.bands.get("tpot")
    estimate = sheet.derive(
        name,
        "req/s",
        f"sequences that decode ÷ (output tokens × step), Little's law; {load.said}",
        lambda b, s, o: b / (o * s / 1e3) if b and s else 0.0,
        batch,
        step,
        load.output,
        band=(round(1 / band[1], 2), round(1 / band[0], 2)) if band else None,
    )
    stated = sheet.maybe(f"{path}.replica_rate", serve.replica_rate, "req/s")
    return sheet.picked(Kind.RATE, f"{prefix}.replica_rate", stated, estimate, nodes=nodes)


def _largest_batch(sheet: Sheet, prefix: str, load: Load) -> Figure:
    """Most sequences that decode within targets, cache and engine limit; its formula names which of them binds."""
    labels = [g[0] for g in (load.first, load.step) if g]
    stop = _binding(load, load.replica, load.replica.sequences)
    return sheet.derive(
        f"{prefix}.batch",
        "requests",
        f"largest that keeps {', '.join([*labels, 'cache and engine limit'])}; {stop} binds",
        lambda *v: load.build(*v).sequences,
        *load.inputs,
    )


def binding(load: Load, batch: Figure) -> str:
    """What keeps a replica at this batch from carrying more: a latency target, or cache and engine."""
    return _binding(load, load.replica, batch.value)


def _binding(load: Load, replica: Loop, batch: float) -> str:
    if batch < replica.room * 0.999:
        met = replica.met(max(batch, IDLE) * 1.002)
        if load.step and float(met.tpot_s[0]) > load.step[1].value:
            return load.step[0]
        if load.first and not bool(replica.first_in_time(met)[0]):
            return load.first[0]
        if not load.first:
            return "prefill, at nine tenths of its time,"
    return "the cache or the engine's limit"


def why_unreachable(load: Load) -> str:
    """What a request misses that is alone on a replica, with its estimates."""
    replica = load.replica
    met = replica.met(IDLE)
    missed = []
    if load.first and not bool(replica.first_in_time(met)[0]):
        missed.append(f"{load.first[0]} {load.first[1]} (alone {replica.first_s(IDLE):.3g} s)")
    if load.step and float(met.tpot_s[0]) > load.step[1].value:
        missed.append(f"{load.step[0]} {load.step[1]} (alone {float(met.tpot_s[0]):.3g} s)")
    return " and ".join(missed)


def _step(sheet: Sheet, prefix: str, load: Load, batch: Figure) -> Figure:
    """ms of a step at this batch as the sum of its terms."""
    base = load.replica.terms(batch.value)

    def part(term: str) -> Figure:
        return sheet.derive(
            f"{prefix}.step_{term.replace(' ', '_')}",
            "ms",
            f"{_STEP[term]} (physics/serving/steps.py)",
            lambda b, *v: load.build(*v).terms(b)[term] * 1e3,
            batch,
            *load.inputs,
        )

    parts = [part(term) for term in _STEP if base.get(term)]
    return sheet.derive(f"{prefix}.step", "ms", "mean step at this batch: sum of its terms", lambda *p: sum(p), *parts)


def _prefill(sheet: Sheet, prefix: str, load: Load) -> Figure:
    """s of a prompt of mean length."""
    mean = load.prompt.value
    terms = {n: v for n, v in load.replica.prefill(mean).items() if v}
    said = ", ".join(f"{name} {value * 1e3:.3g} ms" for name, value in terms.items())
    cached = sheet.figures.get(f"{prefix}.prefix_reuse")
    found = f", {cached} of it found in the cache of prefixes" if cached else ""
    return sheet.derive(
        f"{prefix}.prefill",
        "s",
        f"a prompt of mean length alone{found}: {said} (physics/serving/steps.py)",
        lambda t, *v: sum(load.build(*v).prefill(t).values()),
        load.prompt,
        *load.inputs,
    )


def at_load(sheet: Sheet, prefix: str, load: Load, replicas: Figure, nodes: int) -> tuple[Figure, Figure, Figure]:
    """TTFT (s), TPOT (ms), each at its target's percentile or in the mean, and requests in flight per replica."""
    first_label = load.first[0] if load.first else "mean"
    step_label = load.step[0] if load.step else "mean"

    def state(*values: float) -> tuple[Loop, float, float]:
        replica, rate = load.build(*values[:-2]), values[-2] / values[-1]
        return replica, replica.decoding_at(rate), rate

    def first(*values: float) -> float:
        replica, running, _ = state(*values)
        return replica.first_s(running)

    def step(*values: float) -> float:
        replica, running, _ = state(*values)
        return float(replica.met(running).tpot_s[0]) * 1e3

    def flying(*values: float) -> float:
        replica, running, rate = state(*values)
        met = replica.met(running)
        return rate * float(met.ttft_mean_s[0]) + running

    inputs = (*load.inputs, load.rate, replicas)
    ttft = sheet.derive(
        f"{prefix}.ttft",
        "s",
        f"wait as M/G/1 + own prefill + half a step ({first_label}); {load.said}",
        first,
        *inputs,
        band=load.bands.get("ttft"),
    )
    tpot = sheet.derive(
        f"{prefix}.tpot",
        "ms",
        f"step with so many sequences ({step_label}: Poisson around their mean, an upper estimate); {load.said}",
        step,
        *inputs,
        band=load.bands.get("tpot"),
    )
    return (
        sheet.picked(Kind.TIME, f"{prefix}.ttft", ttft, nodes=nodes),
        sheet.picked(Kind.TIME, f"{prefix}.tpot", tpot, nodes=nodes),
        sheet.derive(f"{prefix}.in_flight", "requests", "rate × residence (Little's law)", flying, *inputs),
    )


def replicas_for_failures(needed: int, nodes: int, per_node: int, nodes_per_replica: int, lost: int) -> int | None:
    """Smallest number of evenly spread replicas of which `needed` survive the loss of any `lost` nodes.

    Args:
        per_node: replicas that fit a node, 0 when a replica spans nodes.

    Returns:
        None when the nodes do not hold that many.
    """
    if lost >= nodes:
        return None
    most = per_node * nodes if per_node else nodes // nodes_per_replica
    count = float(replicas_with_losses(needed, nodes, lost)) if per_node else needed + lost
    return int(count) if count <= most else None
