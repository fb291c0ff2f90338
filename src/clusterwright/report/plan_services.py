"""A service in lines of the plan: memory, load, latency, curve, losses; prefill and decode apart."""

from __future__ import annotations

import math
import shlex
from typing import Final

from clusterwright.physics.engines.results import Change
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import LoadCurve, ServicePlan, SplitPlan, WorkersPlan
from clusterwright.report.plan_words import LABEL, band_words, line, show


def memory_lines(memory: MemoryPlan | Unplanned) -> list[str]:
    """The bar of the fullest GPU, what its cache holds, what would fit, the command line."""
    if isinstance(memory, Unplanned):
        return [line("memory", f"not planned: {memory.reason}")]
    parts = " + ".join(f"{label} {show(figure)}" for label, figure in memory.parts)
    verdict = "" if memory.fits else "DOES NOT FIT: "
    lines = [line("memory", f"{verdict}{show(memory.total)} of {show(memory.usable)} usable per GPU ({memory.method})")]
    lines.append(line("", parts))
    if memory.max_concurrency is not None and memory.kv_tokens is not None:
        room = f"cache of {show(memory.kv_tokens)} holds {show(memory.max_concurrency)} of mean length"
        if memory.max_context is not None:
            room += f", one sequence of up to {show(memory.max_context)}"
        lines.append(line("", room))
    lines += [line("", note) for note in (*memory.why, *memory.notes)]
    fitting = [c for c in memory.changes if c.fits][:3]
    if fitting:
        lines.append(line("", "would fit with " + "; or ".join(_change(c) for c in fitting)))
    elif memory.changes:
        lines.append(line("", f"no single change makes it fit; {memory.changes[0].what} helps most"))
    if memory.flags:
        lines.append(line("run as", shlex.join(memory.flags)))
    lines += [f"{'':{LABEL + 2}}  {text}" for text in memory.extra_config.splitlines()]
    return lines + [line("", text) for text in memory.besides]


def _change(change: Change) -> str:
    more = f" ({change.extra_gpus} more GPU{'s' * (change.extra_gpus != 1)})" if change.extra_gpus else ""
    return f"{change.what}{more}" + (f": {change.kv_tokens:,} tokens" if change.kv_tokens else "")


def _split(split: SplitPlan) -> list[str]:
    """Prefill and decode workers, what hands over, what all cost."""
    said = [_half("prefill", split.prefill), _half("decode", split.decode)]
    memory = split.prefill.memory
    if not isinstance(memory, Unplanned) and memory.flags:
        said[1:1] = [line("", text) for text in (f"run as {shlex.join(memory.flags)}", *memory.besides)]
    money = "" if split.per_h is None else f"; {show(split.per_h)}"
    money += "" if split.per_mtok is None else f", {show(split.per_mtok)} of output at this load"
    return [*said, line("handover", f"{show(split.handover)} of a mean prompt's cache; {split.gpus} GPUs{money}")]


def _half(name: str, half: WorkersPlan) -> str:
    count = f"{half.wanted} worker{'s' * (half.wanted != 1)} of {half.layout}"
    carried = f"each carries {show(half.rate)}{band_words(half.rate)}"
    return line(name, f"{count}, {carried}; {half.needed} for the load, {half.placed} placed")


def service_lines(service: ServicePlan) -> list[str]:
    """Load, rate of a replica, replicas, cost, latency against targets, losses."""
    if isinstance(service.replica_rate, Unplanned):
        lines = [line("load", f"{show(service.rate)}; rate of a replica not planned: {service.replica_rate.reason}")]
    elif service.unreachable:
        lines = [line("load", f"{show(service.rate)}; at no rate does one replica meet its latency targets")]
    else:
        rate = service.replica_rate
        count = service.replicas_for_load
        need = f"; {count} {'carries' if count == 1 else 'carry'} the load" if count is not None else ""
        more = service.replicas_for_failures
        if more is not None and more != service.replicas_for_load:
            need += f", {more} with the declared losses"
        binds = f", {service.binds} binds" if service.binds else ""
        lines = [line("load", f"{show(service.rate)}; one replica carries {show(rate)}{band_words(rate)}{binds}{need}")]
    if service.split is not None:
        lines = [line("load", show(service.rate)), *_split(service.split)] if not service.unreachable else lines
    if service.kept_tokens is not None:
        lines.append(line("", f"speculation: a step of one sequence keeps {show(service.kept_tokens)}"))
    if service.prefix_reuse is not None:
        lines.append(line("", f"{show(service.prefix_reuse)} of prompt tokens are found in the cache of prefixes"))
    if service.costs is not None:
        hour, tokens = service.costs
        lines.append(line("", f"its replicas cost {show(hour)}, {show(tokens)} at the declared rate"))
    lines += [line("latency" if not i else "", text) for i, text in enumerate(_latency(service))]
    if service.curve is not None:
        lines += [line("in flight" if not i else "", text) for i, text in enumerate(curve_lines(service.curve))]
    return lines + [line("loss", loss.reason) for loss in service.losses]


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
        said = f"TTFT {service.ttft_is} {show(service.ttft)}{band_words(service.ttft) or ' (not validated)'}"
        if service.ttft_target is not None:
            missed = "" if service.ttft_met else " MISSED"
            said += f" of {show(service.ttft_target[1])} ({service.ttft_target[0]}){missed}"
        lines.append(said)
    if service.tpot is not None:
        said = f"TPOT {service.tpot_is} {show(service.tpot)}{band_words(service.tpot) or ' (not validated)'}"
        if service.tpot_target is not None:
            missed = "" if service.tpot_met else " MISSED"
            said += f" of {show(service.tpot_target[1])} ({service.tpot_target[0]}){missed}"
        lines.append(said)
    return lines
