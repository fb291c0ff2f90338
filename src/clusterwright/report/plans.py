"""A plan as text on one screen, as the derivation of one figure, and as plain values for JSON."""

from __future__ import annotations

import dataclasses
import math
import shlex
import textwrap
from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final

from clusterwright.lib.figures import Figure, Origin, explain_lines, format_amount, format_band
from clusterwright.physics.engines.results import Change
from clusterwright.physics.sensitivities import Swing
from clusterwright.plan.ages import Aged
from clusterwright.plan.results import (
    AlternativeCost,
    CheckpointPlan,
    CollectivePlan,
    EconomicsPlan,
    LoadCurve,
    MarketCost,
    MemoryPlan,
    PayloadPlan,
    Plan,
    ServicePlan,
    SparesPlan,
    SplitPlan,
    TrainingPlan,
    UnitCost,
    Unplanned,
    WorkersPlan,
    WorkloadPlan,
)
from clusterwright.report.plan_layouts import layout_lines

#: Origin → the mark behind a number.
MARKS: Final[dict[Origin, str]] = {
    Origin.ASSUMED: "ᵃ",
    Origin.REHEARSED: "ʳ",
    Origin.CATALOGUE: "ᶜ",
    Origin.DECLARED: "ᵈ",
    Origin.MEASURED: "ᵐ",
}
_LABEL: Final = 12
_WIDTH: Final = 120
_LEAST_WIDTH: Final = 60
_ASSUMPTIONS: Final = 6
#: Inputs of a unit cost that are shown with how far they move it.
_SWINGS: Final = 3
_LEVELS: Final = {"gpu": "one GPU", "node": "one node", "nodes": "several nodes"}
_TIMES: Final = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("days", 86400.0))


def render_plan(plan: Plan, width: int = _WIDTH, aged: tuple[Aged, ...] = (), *, layouts: bool = False) -> str:
    """The plan for people: what does not hold first, then each workload, network, cost, gaps, assumptions.

    Args:
        width: columns of the terminal; less than 60 counts as 60.
        aged: inputs that outlived their shelf life on the day of the plan.
        layouts: whether every possible layout and every reason is shown.
    """
    blocks = [[_headline(plan)], _misfits(plan)]
    blocks += [_workload(w, plan, layouts) for w in plan.workloads]
    blocks += [_cluster(plan), _economics(plan), _unplanned(plan), _limits(plan), _aged(aged), _assumptions(plan)]
    blocks.append([_legend()])
    columns = max(_LEAST_WIDTH, width)
    return "\n\n".join("\n".join(_wrapped(line, columns) for line in b) for b in blocks if b)


def _wrapped(line: str, width: int) -> str:
    """A line folded under its text; a word longer than the line keeps its length."""
    if len(line) <= width:
        return line
    indent = " " * (_LABEL + 2) if line.startswith(" ") else "  "
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


#: Words that the plan prints → last parts of the names of the figures that they stand for.
ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "busbw": ("bound", "reference"),
    "kv": ("kv_pool", "kv_tokens", "kv_per_token", "cache"),
    "load": ("replica_rate", "rate"),
    "latency": ("ttft", "tpot"),
    "loss": ("capacity_after_1_lost",),
    "month": ("total", "compute"),
    "useful": ("utilisation", "implied_utilisation", "useful_gpu_hour"),
    "speed": ("tokens_per_s", "network_time"),
    "failures": ("mttf", "goodput"),
    "memory": ("memory.total", "memory.usable"),
    "payload": ("required_rate", "payload_rate"),
    "cold start": ("cold_start", "cold_start_cached"),
    "checkpoint": ("checkpoint_plan.size", "checkpoint_plan.stall", "checkpoint_plan.best"),
    "capacity": ("gpu_months", "useful_per_gpu_month"),
    "unit cost": ("unit_cost", "unit_cost_at_load"),
    "placement": ("nodes",),
    "even": ("break_even",),
    "step": ("step_time", "service.step"),
    "network": ("network_time", "nic_rate", "node_rate"),
}
_NEAREST: Final = 6


def figure_names(plan: Plan, *, computed: bool = False) -> tuple[str, ...]:
    """Names that `--explain` knows, without those of choices that were not taken; only of computed figures if asked."""
    names = (n for n, f in plan.figures.items() if ".choices." not in n and not (computed and f.is_leaf))
    return tuple(sorted(names))


def find_figure(plan: Plan, name: str) -> Figure | tuple[str, ...]:
    """The figure of that name or unique ending; else the few names most likely meant, nearest first."""
    if name in plan.figures:
        return plan.figures[name]
    names = figure_names(plan)
    ending = _ending(names, name)
    words = [n for meant in ALIASES.get(name.lower().replace("_", " "), ()) for n in _ending(names, meant)]
    if len({id(plan.figures[n]) for n in ending}) == 1 and not (words and plan.figures[ending[0]].is_leaf):
        return plan.figures[ending[0]]
    near = [*words, *ending]
    near += [n for n in names if name and name.lower() in n.lower()]
    last = {n.rpartition(".")[2]: n for n in names}
    near += [last[n] for n in get_close_matches(name.rpartition(".")[2], last, n=3, cutoff=0.6)]
    near += get_close_matches(name, names, n=5, cutoff=0.6)
    return tuple(dict.fromkeys(near))[:_NEAREST]


def _ending(names: tuple[str, ...], name: str) -> list[str]:
    return [n for n in names if n == name or n.endswith("." + name)]


def render_derivation(figure: Figure) -> str:
    """The tree of a figure: every number with unit, origin, source or formula, band; leaves by effect after it."""
    lines = explain_lines(figure)
    if figure.is_leaf:
        return "\n".join(lines)
    if any(not i.is_leaf for i in figure.inputs):
        told = "; ".join(f"{i.name.rpartition('.')[2]} {i}" for i in figure.inputs)
        lines.insert(1, f"  from {told}")
    moved = [(leaf, effect) for leaf, effect in figure.effects if effect >= 1e-3]
    lines += ["", "changes most with (for a 10 % change of each):"] if moved else []
    width = max((len(leaf.name) for leaf, _ in moved), default=0)
    lines += [f"  {leaf.name:{width}}  {_percent(effect):>7}  [{leaf.origin.word}]" for leaf, effect in moved[:10]]
    return "\n".join(lines)


def derivation_values(figure: Figure) -> dict[str, Any]:
    """The tree of a figure as plain values; a computed figure that occurs again stands there without its inputs."""
    seen = set[str]()

    def tree(node: Figure) -> dict[str, Any]:
        values: dict[str, Any] = {"name": node.name} | _full(node)
        again = node.name in seen and not node.is_leaf
        seen.add(node.name)
        values["inputs"] = [] if again else [tree(i) for i in node.inputs]
        return values | ({"see_above": True} if again else {})

    effects = [
        {"name": leaf.name, "origin": leaf.origin.word, "effect": _number(effect)}
        for leaf, effect in ([] if figure.is_leaf else figure.effects)
        if effect >= 1e-3
    ]
    return tree(figure) | {"changes_with_10_percent": effects}


def plan_values(plan: Plan) -> dict[str, Any]:
    """The plan as plain values. Figures stand in `figures` in full; elsewhere as name, value, unit, origin."""
    values: dict[str, Any] = _plain(plan)
    values["fits"] = plan.fits
    values["figures"] = {name: _full(figure) for name, figure in plan.figures.items()}
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, Figure):
        return {"name": value.name, "value": _number(value.value), "unit": value.unit, "origin": value.origin.word}
    if isinstance(value, Unplanned):
        return {"unplanned": value.subject, "reason": value.reason, "missing": list(value.missing)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        plain = {f.name: _plain(getattr(value, f.name)) for f in fields if f.name != "figures"}
        return plain | {"swings": _plain(value.swings)} if isinstance(value, UnitCost) else plain
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value.value if isinstance(value, Enum) else _number(value) if isinstance(value, float) else value


def _full(figure: Figure) -> dict[str, Any]:
    return {
        "value": _number(figure.value),
        "unit": figure.unit,
        "origin": figure.origin.word,
        "basis": figure.basis,
        "inputs": [i.name for i in figure.inputs],
        "band": list(figure.band) if figure.band else None,
    }


def _number(value: float) -> float | str:
    """JSON has no infinity: it is written as text."""
    return value if math.isfinite(value) else ("infinite" if value > 0 else "-infinite")


def show(figure: Figure) -> str:
    """A number with unit and origin mark, three significant digits, seconds in the unit people say."""
    value, unit = figure.value, figure.unit
    if unit == "s" and math.isfinite(value) and value >= 120:
        unit, scale = next((u, s) for u, s in reversed(_TIMES) if value >= 2 * s)
        value /= scale
    elif unit == "s" and 0 < value < 0.1:
        value, unit = value * 1000, "ms"
    if unit == "share" and 0.99 < value < 1:
        return f"{value * 100:.2f} %" + MARKS[figure.origin]  # 99.96 % is not all of it
    return format_amount(_rounded(value), unit) + MARKS[figure.origin]


def _rounded(value: float) -> float:
    """Three significant digits, whole numbers from 100 on."""
    if not math.isfinite(value) or value == 0:
        return value
    return float(round(value)) if abs(value) >= 100 else float(f"{value:.3g}")


def _percent(share: float) -> str:
    return "∞" if math.isinf(share) else f"{share * 100:.3g} %"


def _line(label: str, text: str) -> str:
    return f"  {label:{_LABEL}}{text}"


def _headline(plan: Plan) -> str:
    said = []
    if plan.misfits:
        said.append(f"{len(plan.misfits)} {'thing does' if len(plan.misfits) == 1 else 'things do'} not hold")
    if plan.unplanned:
        said.append(f"{len(plan.unplanned)} {'part' if len(plan.unplanned) == 1 else 'parts'} could not be planned")
    return f"{plan.cluster}: {', '.join(said) or 'everything planned holds'}"


def _misfits(plan: Plan) -> list[str]:
    return (
        ["does not hold"] + [f"  ✕ {m.subject}: {m.message} ({m.path})" for m in plan.misfits] if plan.misfits else []
    )


def _workload(workload: WorkloadPlan, plan: Plan, layouts: bool) -> list[str]:
    lines = [f"{workload.name}: {workload.kind} of {workload.model}"]
    lines += _layout(workload, layouts) + _memory(workload.memory)
    if isinstance(workload.service, ServicePlan):
        lines += _service(workload.service)
    elif isinstance(workload.service, Unplanned):
        lines.append(_line("load", f"not planned: {workload.service.reason}"))
    if isinstance(workload.training, TrainingPlan):
        lines += _training(workload.training)
    lines += _payload(workload.payload) + _checkpoint(workload.checkpoint)
    if workload.capacity is not None and not isinstance(workload.capacity, Unplanned):
        capacity = workload.capacity
        lines.append(
            _line(
                "capacity",
                f"{show(capacity.gpu_months)} paid for {show(capacity.target_work)}, "
                f"of which one makes {show(capacity.useful_per_gpu_month).replace('/GPU-month', '')}",
            )
        )
    return lines + _unit_cost(workload.name, plan)


def _layout(workload: WorkloadPlan, full: bool) -> list[str]:
    said = layout_lines(workload.layouts, full=full) if workload.layouts is not None else []
    searched = [_line("layouts" if not i else "", text) for i, text in enumerate(said)]
    if workload.layout is None:
        return [_line("placement", "not planned"), *searched]
    by_node: dict[str, int] = {}
    for part in workload.placement:
        by_node[part.node] = by_node.get(part.node, 0) + len(part.gpus)
    shown = [f"{node} ({gpus} GPU{'s' * (gpus != 1)})" for node, gpus in list(by_node.items())[:3]]
    if len(by_node) > 3:
        shown.append(f"{len(by_node) - 3} more node{'s' * (len(by_node) != 4)}")
    count = f"{workload.replicas_placed} of {workload.replicas_wanted} placed"
    if not workload.replicas_placed and workload.chosen is not None and not workload.chosen.feasible:
        count += ", since it cannot run so"
    where = f" on {', '.join(shown)}" if shown else ""
    lines = [_line("placement", f"{workload.layout}{where}; {count}")]
    chosen = workload.chosen
    if chosen is not None:
        lines.append(_line("", f"{chosen.reason}; {chosen.failure_domain}"))
    others = [f"{c.layout} in {_LEVELS[c.level]}: {c.reason}" for c in workload.choices if not c.chosen]
    return lines + ([_line("", "; ".join(others))] if others else []) + searched


def _memory(memory: MemoryPlan | Unplanned) -> list[str]:
    if isinstance(memory, Unplanned):
        return [_line("memory", f"not planned: {memory.reason}")]
    parts = " + ".join(f"{label} {show(figure)}" for label, figure in memory.parts)
    verdict = "" if memory.fits else "DOES NOT FIT: "
    lines = [
        _line("memory", f"{verdict}{show(memory.total)} of {show(memory.usable)} usable per GPU ({memory.method})")
    ]
    lines.append(_line("", parts))
    if memory.max_concurrency is not None and memory.kv_tokens is not None:
        room = f"cache of {show(memory.kv_tokens)} holds {show(memory.max_concurrency)} of mean length"
        if memory.max_context is not None:
            room += f", one sequence of up to {show(memory.max_context)}"
        lines.append(_line("", room))
    lines += [_line("", note) for note in (*memory.why, *memory.notes)]
    fitting = [c for c in memory.changes if c.fits][:3]
    if fitting:
        lines.append(_line("", "would fit with " + "; or ".join(_change(c) for c in fitting)))
    elif memory.changes:
        lines.append(_line("", f"no single change makes it fit; {memory.changes[0].what} helps most"))
    if memory.flags:
        lines.append(_line("run as", shlex.join(memory.flags)))
    return lines + [f"{'':{_LABEL + 2}}  {line}" for line in memory.extra_config.splitlines()]


def _change(change: Change) -> str:
    more = f" ({change.extra_gpus} more GPU{'s' * (change.extra_gpus != 1)})" if change.extra_gpus else ""
    return f"{change.what}{more}" + (f": {change.kv_tokens:,} tokens" if change.kv_tokens else "")


def _band(figure: Figure) -> str:
    return f" ({format_band(figure.band)})" if figure.band else ""


def _split(split: SplitPlan) -> list[str]:
    """Prefill and decode workers, what hands over, what all cost."""
    said = [_half("prefill", split.prefill), _half("decode", split.decode)]
    if not isinstance(split.prefill.memory, Unplanned) and split.prefill.memory.flags:
        said.insert(1, _line("", f"run as {shlex.join(split.prefill.memory.flags)}"))
    money = "" if split.per_h is None else f"; {show(split.per_h)}"
    money += "" if split.per_mtok is None else f", {show(split.per_mtok)} of output at this load"
    return [*said, _line("handover", f"{show(split.handover)} of a mean prompt's cache; {split.gpus} GPUs{money}")]


def _half(name: str, half: WorkersPlan) -> str:
    count = f"{half.wanted} worker{'s' * (half.wanted != 1)} of {half.layout}"
    carried = f"each carries {show(half.rate)}{_band(half.rate)}"
    return _line(name, f"{count}, {carried}; {half.needed} for the load, {half.placed} placed")


def _service(service: ServicePlan) -> list[str]:
    if isinstance(service.replica_rate, Unplanned):
        lines = [_line("load", f"{show(service.rate)}; rate of a replica not planned: {service.replica_rate.reason}")]
    elif service.unreachable:
        lines = [_line("load", f"{show(service.rate)}; at no rate does one replica meet its latency targets")]
    else:
        rate = service.replica_rate
        count = service.replicas_for_load
        need = f"; {count} {'carries' if count == 1 else 'carry'} the load" if count is not None else ""
        more = service.replicas_for_failures
        if more is not None and more != service.replicas_for_load:
            need += f", {more} with the declared losses"
        binds = f", {service.binds} binds" if service.binds else ""
        lines = [_line("load", f"{show(service.rate)}; one replica carries {show(rate)}{_band(rate)}{binds}{need}")]
    if service.split is not None:
        lines = [_line("load", show(service.rate)), *_split(service.split)] if not service.unreachable else lines
    if service.kept_tokens is not None:
        lines.append(_line("", f"speculation: a step of one sequence keeps {show(service.kept_tokens)}"))
    if service.prefix_reuse is not None:
        lines.append(_line("", f"{show(service.prefix_reuse)} of prompt tokens are found in the cache of prefixes"))
    if service.costs is not None:
        hour, tokens = service.costs
        lines.append(_line("", f"its replicas cost {show(hour)}, {show(tokens)} at the declared rate"))
    lines += [_line("latency" if not i else "", text) for i, text in enumerate(_latency(service))]
    if service.curve is not None:
        lines += [_line("in flight" if not i else "", text) for i, text in enumerate(curve_lines(service.curve))]
    return lines + [_line("loss", loss.reason) for loss in service.losses]


#: Points of a curve that text shows.
_FEW_POINTS: Final = 4


def curve_lines(curve: LoadCurve) -> list[str]:
    """A few points of latency against concurrency, the largest within the targets among them."""
    every = curve.points
    step = max(1, math.ceil((len(every) - 1) / (_FEW_POINTS - 1)))
    shown = [p for i, p in enumerate(every) if i % step == 0 or p is every[-1] or p.concurrency == curve.within]
    said = [
        f"{p.concurrency:>6,.0f}  TTFT {_time(p.ttft_s):>7}  TPOT {_time(p.tpot_s):>7}  {p.requests_s:>6.3g} req/s"
        + ("  last within the targets" if p.concurrency == curve.within else "")
        for p in shown
    ]
    none = ["one alone misses the targets in the mean"] if curve.within == 0 else []
    return [*none, *said, "means with so many requests in flight, as benchmarks measure"]


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _latency(service: ServicePlan) -> list[str]:
    """What each latency is of all requests, and what it says about its target."""
    lines = []
    if service.ttft is not None:
        said = f"TTFT {service.ttft_is} {show(service.ttft)}{_band(service.ttft) or ' (not validated)'}"
        if service.ttft_target is not None:
            missed = "" if service.ttft_met else " MISSED"
            said += f" of {show(service.ttft_target[1])} ({service.ttft_target[0]}){missed}"
        lines.append(said)
    if service.tpot is not None:
        said = f"TPOT {service.tpot_is} {show(service.tpot)}{_band(service.tpot) or ' (not validated)'}"
        if service.tpot_target is not None:
            missed = "" if service.tpot_met else " MISSED"
            said += f" of {show(service.tpot_target[1])} ({service.tpot_target[0]}){missed}"
        lines.append(said)
    return lines


def _training(training: TrainingPlan) -> list[str]:
    if isinstance(training.tokens_per_s, Unplanned):
        lines = [_line("speed", f"not planned: {training.tokens_per_s.reason}")]
    else:
        step = f", {show(training.step_time)} a step" if training.step_time else ""
        if training.step_time and training.network_time:
            step += f" (the network needs {show(training.network_time)} of it at least)"
        most = "at most " if training.upper_limit else ""
        lines = [_line("speed", f"{most}{show(training.tokens_per_s)}{_band(training.tokens_per_s)}{step}")]
    if training.time_to_target is not None:
        limit = f" of {show(training.deadline)}" if training.deadline else ""
        lines[-1] += f"; target in {show(training.time_to_target)}{limit}"
    if training.mttf is not None:
        share = f", {show(training.goodput)} of time is productive" if training.goodput else ""
        lines.append(_line("failures", f"one in {show(training.mttf)}{_band(training.mttf)}{share}"))
    return lines + [_line("loss", loss.reason) for loss in training.losses]


def _payload(payload: PayloadPlan | Unplanned | None) -> list[str]:
    if payload is None:
        return []
    if isinstance(payload, Unplanned):
        return [_line("payload", f"not planned: {payload.reason}")]
    shown = [k for k in payload.links if k.kind in ("source", "network", "cache") or not k.enough]
    links = ", ".join(f"{k.words} {show(k.rate)}{'' if k.enough else ' TOO SLOW'}" for k in shown)
    lines = [
        _line(
            "payload",
            f"{show(payload.required_rate)} needed ({payload.readers.value:.0f}{MARKS[payload.readers.origin]} × "
            f"{show(payload.size)} in {show(payload.within)}); {links or 'no link known'}",
        )
    ]
    if payload.cold_start is not None:
        limit = f" of {show(payload.target)}" if payload.target else ""
        cached = f", {show(payload.cold_start_cached)} from the cache" if payload.cold_start_cached else ""
        binds = f", bound by the {payload.binding.words}" if payload.binding else ""
        reference = f" ({payload.node_class} by NVIDIA's reference node)" if payload.node_class else ""
        band = _band(payload.cold_start)
        lines.append(
            _line("cold start", f"{show(payload.cold_start)}{band} from the source{limit}{cached}{binds}{reference}")
        )
        way = [f"{k.words} {show(k.time)}" for k in payload.links if k.kind != "cache"]
        lines.append(_line("", f"{', '.join(way)}, each alone; process and engine start {show(payload.startup)} more"))
    return lines


def _checkpoint(checkpoint: CheckpointPlan | Unplanned | None) -> list[str]:
    if checkpoint is None:
        return []
    if isinstance(checkpoint, Unplanned):
        return [_line("checkpoint", f"not planned: {checkpoint.reason}")]
    parts = [f"{show(checkpoint.size)} every {show(checkpoint.every)}, {checkpoint.mode}"]
    for label, figure, limit in (
        ("write", checkpoint.write_time, None),
        ("stall", checkpoint.stall, checkpoint.stall_within),
        ("restore", checkpoint.restore, checkpoint.restore_within),
        ("loses at most", checkpoint.lost_work, checkpoint.lost_work_target),
    ):
        if figure is not None:
            parts.append(f"{label} {show(figure)}" + (f" of {show(limit)}" if limit else ""))
    lines = [_line("checkpoint", ", ".join(parts))]
    if checkpoint.best is not None and checkpoint.waste is not None and checkpoint.best_waste is not None:
        best = f"{show(checkpoint.best)} would be the best interval (Daly): {show(checkpoint.best_waste)} of time lost"
        lines.append(_line("", f"{best}, {show(checkpoint.waste)} as declared"))
    if checkpoint.ettr is not None and checkpoint.ettr_exact is not None:
        shares = (
            f"{show(checkpoint.ettr)} by the published formula (ETTR), {show(checkpoint.ettr_exact)} of the process"
        )
        lines.append(_line("", f"productive as declared: {shares}"))
    return lines


def _unit_cost(name: str, plan: Plan) -> list[str]:
    if not isinstance(plan.economics, EconomicsPlan):
        return []
    for unit in plan.economics.units:
        if isinstance(unit, UnitCost) and unit.workload == name:
            return [_line("unit cost" if not i else "", text) for i, text in enumerate(_cost_of(unit))]
        if isinstance(unit, Unplanned) and unit.subject == f"workloads.{name}.unit_cost":
            return [_line("unit cost", f"not planned: {unit.reason}")]
    return []


def _cost_of(unit: UnitCost) -> list[str]:
    """Here at both useful shares, then the alternatives at the share that makes ours dearer."""
    ours = f"{show(unit.at_declared)} per {unit.denominator}"
    against = "compared"
    if unit.at_load is not None:
        ours += f" at the declared useful share, {show(unit.at_load)} at the useful share of the declared load"
        dearer = "useful share of the declared load" if unit.unit_cost is unit.at_load else "declared useful share"
        against = f"compared at the {dearer}" + (f" ({show(unit.share)})" if unit.share else "")
    parts = []
    for other in unit.alternatives:
        if isinstance(other.unit_cost, Unplanned):
            parts.append(f"{other.name}: {other.unit_cost.reason}")
        else:
            parts.append(f"{other.name} {show(other.unit_cost)}{_even(other)}")
    lines = [ours, f"{against}: {'; '.join(parts)}"] if parts else [ours]
    if unit.market:
        lines.append(f"at published prices, compute alone: {'; '.join(_market(m) for m in unit.market)}")
    swings = [_swing(s, unit.unit_cost) for s in unit.swings[:_SWINGS]]
    return [*lines, f"moved most by: {'; '.join(swings)}"] if swings else lines


def _even(other: AlternativeCost) -> str:
    """At which useful share, price and volume both cost the same, and of when the price is."""
    point, said = other.break_even, list[str]()
    if point is not None:
        said.append(f"even at {show(point)} useful time" if point.value <= 1 else "ours never costs less")
    if other.even_price is not None and other.even_volume is not None:
        reached = point is not None and point.value <= 1
        said.append(
            f"at {show(other.even_price)} there" + (f" or from {show(other.even_volume)} on" if reached else "")
        )
    if other.dated:
        said.append("price undated" if other.dated == "undated" else f"price of {other.dated}")
    return f" ({', '.join(said)})" if said else ""


def _market(market: MarketCost) -> str:
    band, middle = market.unit_cost.band, market.unit_cost
    ends = ""
    if band is not None and band[0] != band[1]:
        ends = " (" + " to ".join(format_amount(_rounded(middle.value * b), middle.unit) for b in band) + ")"
    return f"{market.kind} {show(middle)}{ends}, prices of {market.dated}"


def _swing(swing: Swing, figure: Figure) -> str:
    """`serve.rate: $0.65 to $0.80/Mtok`, smaller first."""
    low, high = sorted((swing.low, swing.high))
    return f"{swing.name} {format_amount(low, figure.unit)} to {format_amount(high, figure.unit)}"


def _cluster(plan: Plan) -> list[str]:
    lines = [
        _line(
            f"pool {p.name}",
            f"{p.used} of {p.gpus} GPUs taken ({len(p.nodes)} × {p.gpus_per_node} {p.gpu or 'unknown GPU'})",
        )
        for p in plan.pools
    ]
    lines += [_spares(p.name, p.spares) for p in plan.pools if p.spares is not None]
    if plan.payload_rate is not None and len(plan.workloads) > 1:
        lines.append(_line("payload", f"{show(plan.payload_rate)} when every workload loads at once"))
    groups: dict[tuple[str, int], list[CollectivePlan]] = {}
    for collective in plan.network.collectives:
        groups.setdefault((collective.pool, collective.nodes), []).append(collective)
    for (pool, nodes), found in groups.items():
        shown = [c for c in found if c.operation in ("all-reduce", "all-to-all")]
        said = ", ".join(
            f"{c.operation} {_at_most(c.bound)}, reference {show(c.reference)}"
            + (f", {show(c.expected)}{_band(c.expected)} expected of 1 GiB" if c.expected else "")
            for c in shown
        )
        lines.append(_line("busbw", f"{nodes} node{'s' * (nodes != 1)} of {pool}: {said}"))
    return ["cluster", *lines] if lines else []


def _spares(pool: str, spares: SparesPlan) -> str:
    needed = ", ".join(f"{figure.value:g}{MARKS[figure.origin]} at {target:.1%}" for target, figure in spares.needed)
    said = f"{pool} keeps {spares.declared}; needed with a node back after {show(spares.repair)}: {needed}"
    return _line("spares", f"{said} (failures apart from each other)")


def _at_most(bound: Figure) -> str:
    return f"≤ {show(bound)}" if math.isfinite(bound.value) else "without bound"


def _economics(plan: Plan) -> list[str]:
    money = plan.economics
    if isinstance(money, Unplanned):
        known = plan.compute_month
        compute = [_line("compute", f"{show(known)} for the pools with GPUs")] if known is not None else []
        return ["cost", *compute, _line("", f"{'the rest ' if compute else ''}not planned: {money.reason}")]
    parts = " + ".join(f"{label} {show(figure).replace('/month', '')}" for label, figure in money.lines if figure.value)
    lines = ["cost", _line("month", f"{show(money.total)} = {parts}")]
    implied = money.implied_utilisation
    use = f"{show(money.utilisation)} of paid GPU time"
    use += f"; the declared load alone uses {show(implied)}" if implied else ""
    lines.append(_line("useful", f"{use}; a useful GPU-hour costs {show(money.useful_gpu_hour)}"))
    return lines + [_line("note", note) for note in money.notes]


def _unplanned(plan: Plan) -> list[str]:
    if not plan.unplanned:
        return []
    lines = ["could not be planned"]
    for gap in plan.unplanned:
        state = f" (state {', '.join(gap.missing)})" if gap.missing else ""
        lines.append(f"  ○ {gap.subject}: {gap.reason}{state}")
    return lines


def _limits(plan: Plan) -> list[str]:
    return ["not modelled", *(f"  {text}" for text in plan.limits)] if plan.limits else []


def _aged(aged: tuple[Aged, ...]) -> list[str]:
    lines = [f"  {a.name}: {a.days} days old ({a.dated}), a {a.kind} is good for {a.life}: {a.reason}" for a in aged]
    return ["older than its shelf life", *lines] if lines else []


def _assumptions(plan: Plan) -> list[str]:
    if not plan.assumptions:
        return []
    lines = ["assumed, by effect (10 % more or less changes what follows by)"]
    for a in plan.assumptions[:_ASSUMPTIONS]:
        lines.append(f"  {_percent(a.effect):>7}  {a.leaf.name} = {show(a.leaf)} on {a.on}: {a.leaf.basis}")
    rest = len(plan.assumptions) - _ASSUMPTIONS
    return lines + ([f"  and {rest} more (--format json)"] if rest > 0 else [])


def _legend() -> str:
    marks = " ".join(f"{mark} {origin.word}" for origin, mark in sorted(MARKS.items()))
    return f"{marks}; a computed number carries the weakest mark among what carries it. --explain NAME shows any tree."
