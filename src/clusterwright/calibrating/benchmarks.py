"""Runs of serving benchmarks, as readers give them, → measurements; what an output does not tell is declared.

A benchmark's client knows lengths, concurrency and times; engine version, GPU, layout and formats belong to the server,
so they come from `Declared`. Runs at an arrival rate without a cap on concurrency, with failed requests, or without a
mean or median of TPOT are left out with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clusterwright.calibrating.measurements import Left, Measured, Measurement, Worker
from clusterwright.calibrating.tables import ENGINES
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Run
from clusterwright.physics.layouts import Layout


@dataclass(frozen=True, slots=True)
class Declared:
    """What a benchmark's output does not tell about the server.

    Args:
        model: overrides what the output says, which is often a local path.
        width, accepted: of speculation, tokens computed and kept per step.
    """

    engine: str = ""
    version: str = ""
    model: str = ""
    gpu: str = ""
    weights: str | None = None
    cache: str = "bf16"
    layout: Layout = field(default_factory=Layout)
    width: float = 1.0
    accepted: float = 1.0


def read_runs(runs: Iterable[tuple[str, Run]], declared: Declared) -> Measured:
    """Measurements of (name, run) pairs."""
    rows: list[Measurement] = []
    left: list[Left] = []
    for name, run in runs:
        try:
            rows.append(_measurement(name, run, declared))
        except ValueError as problem:
            left.append(Left(name, str(problem)))
    return Measured(tuple(rows), tuple(left))


def _measurement(name: str, run: Run, declared: Declared) -> Measurement:
    found = {o.name: o.value for o in run.observations if not o.subject}
    failed = found.get("requests_failed")
    if isinstance(failed, float | int) and failed > 0:
        raise ValueError(f"{failed:g} requests failed; latencies are of the others")
    engine = ENGINES.get((declared.engine or _text(run, "engine")).lower())
    if engine is None:
        raise ValueError("the engine is not told: --engine")
    if not declared.gpu:
        raise ValueError("the GPU is not told: --gpu")
    model = declared.model or _text(run, "model")
    if not model:
        raise ValueError("the model is not told: --model")
    concurrency = _plain(run.condition("concurrency"))
    if not concurrency:
        raise ValueError("not run at a fixed concurrency")
    lengths = {side: _plain(run.condition(f"{side}_tokens")) for side in ("input", "output")}
    if not all(lengths.values()):
        raise ValueError("prompt and output lengths are not told")
    times = {what: _seconds(found, what) for what in ("ttft", "tpot")}
    if times["ttft"] is None and times["tpot"] is None:
        raise ValueError("neither a mean nor a median of TTFT or TPOT")
    return Measurement(
        id=name,
        engine=engine,
        version=declared.version,
        model=model,
        gpu=declared.gpu,
        weights=declared.weights,
        cache=declared.cache,
        prompt=lengths["input"] or 0.0,
        output=lengths["output"] or 0.0,
        concurrency=concurrency,
        decode=Worker(declared.layout),
        prefill=None,
        ttft_s=times["ttft"],
        tpot_s=times["tpot"],
        width=declared.width,
        accepted=declared.accepted,
    )


def _text(run: Run, name: str) -> str:
    value = run.condition(name)
    return value if isinstance(value, str) else ""


def _plain(value: object) -> float | None:
    if isinstance(value, Quantity):
        return value.value
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _seconds(found: Mapping[str, object], what: str) -> float | None:
    """Mean, else median, in s."""
    for statistic in ("mean", "p50"):
        value = found.get(f"{what}_{statistic}")
        if isinstance(value, Quantity) and value.to("s") > 0:
            return value.to("s")
    return None
