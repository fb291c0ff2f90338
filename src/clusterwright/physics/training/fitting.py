"""Constants of the step-time model from measured runs: damped least squares on log step time, with priors.

Errors count by Huber's loss, so that a run with a known defect does not move the constants; a prior of a given width
around a physical guess keeps constants that the runs do not determine where they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clusterwright.model.decoders import Decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.amounts import amounts
from clusterwright.physics.training.calibration import Calibration
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.speed import TERMS, beyond, repeated
from clusterwright.physics.training.systems import System

#: Physical guess and width (of its logarithm) of every base constant: achieved shares of 55, 50 and 80 %, passes of a
#: fused layer, tens of launches of 10 µs, exchange three fifths hidden (of
#: tensor exchange the narrower, for more than all of it cannot show).
GUESSES: Final[dict[str, tuple[float, float]]] = {
    "products": (1.5, 0.3), "experts": (1.8, 0.3), "attention": (1.2, 0.15), "scan": (1.5, 0.4), "passes": (4.0, 0.7),
    "launch_s": (3e-4, 1.0), "tensor": (0.5, 0.35), "exchange": (0.8, 0.7), "overlapped": (0.5, 0.7),
    "gradients": (0.6, 0.7), "eager": (1.5, 0.4),
}  # fmt: skip
_OPTIMIZER: Final = 1.5
_SYSTEM_WIDTH, _HOST_WIDTH, _FORMAT_WIDTH, _SOFTWARE_WIDTH = 0.3, 0.4, 0.4, 0.2
#: System, format and release that the others are relative to.
REFERENCE: Final = ("DGX-GB200", "fp8", "26.06")
#: Error from which Huber's loss grows linearly; standard deviation of log step time that priors are weighed against.
_HUBER, _NOISE = 0.10, 0.12
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """One run with its measured seconds per step."""

    decoder: Decoder
    layout: Layout
    recipe: Recipe
    system: System
    release: str
    step_s: float


@dataclass(frozen=True)
class _Table:
    """Ideal times of all runs as arrays, and which constants touch which run."""

    terms: dict[str, Array]
    step: dict[str, Array]
    bubble: Array
    virtual: Array
    moe: Array
    eager: Array
    log_measured: Array
    names: tuple[str, ...]
    guess: Array
    width: Array
    member: dict[str, Array]


def fit_constants(runs: Sequence[Measured], fitted_on: str, date: str) -> Calibration:
    """A calibration of measured runs.

    Raises:
        ValueError: without runs.
    """
    if not runs:
        raise ValueError("no run to fit constants on")
    table = _table(runs)
    x = _minimise(table)
    found = dict(zip(table.names, np.exp(x), strict=True))
    error = np.abs(np.expm1(table.log_measured - _log_predicted(table, x)))

    def named(prefix: str) -> dict[str, float]:
        own = {k.removeprefix(prefix): float(v) for k, v in found.items() if k.startswith(prefix)}
        known = prefix == "software:" and any(run.release == REFERENCE[2] for run in runs)
        return own | ({REFERENCE[2]: 1.0} if known else {})

    base = {name: float(found[name]) for name in GUESSES} | {"optimizer": _OPTIMIZER}
    return Calibration(
        base, named("compute:"), named("host:"), named("formats:"), named("software:"), fitted_on, date,
        (float(error.mean()), float(np.median(error))),
    )  # fmt: skip


def _table(runs: Sequence[Measured]) -> _Table:
    rows = [_amounts(run) for run in runs]
    again = [repeated(run.recipe, len(run.decoder.layers), run.layout.pp) for run in runs]
    terms = {
        k: np.array([float(r[0][k]) * (1 + float(a.get(k, 0.0))) for r, a in zip(rows, again, strict=True)])
        for k in rows[0][0]
    }
    step = {k: np.array([float(r[1][k]) for r in rows]) for k in rows[0][1]}
    pp, vp = (np.array([float(getattr(run.layout, k)) for run in runs]) for k in ("pp", "vp"))
    member: dict[str, Array] = {}
    widths: dict[str, tuple[float, float]] = dict(GUESSES)
    for prefix, width, keys, skipped in (
        ("compute:", _SYSTEM_WIDTH, [r.system.name for r in runs], REFERENCE[0]),
        ("host:", _HOST_WIDTH, [_host(r.system.name) for r in runs], ""),
        ("formats:", _FORMAT_WIDTH, [r.recipe.precision for r in runs], REFERENCE[1]),
        ("software:", _SOFTWARE_WIDTH, [r.release for r in runs], REFERENCE[2]),
    ):
        for key in sorted(set(keys) - {skipped, ""}):
            member[prefix + key] = np.array([k == key for k in keys])
            widths[prefix + key] = (1.0, width)
    names = tuple(widths)
    return _Table(
        terms=terms,
        step=step,
        bubble=1 + (pp - 1) / (vp * step["micro-batches"]),
        virtual=vp,
        eager=np.array([r.decoder.is_moe and not r.recipe.graphs for r in runs]),
        moe=np.array([r.decoder.is_moe for r in runs]),
        log_measured=np.log([r.step_s for r in runs]),
        names=names,
        guess=np.log([widths[n][0] for n in names]),
        width=np.array([widths[n][1] for n in names]),
        member=member,
    )


def _host(system: str) -> str:
    return "" if system.startswith("DGX-GB") else system


def _amounts(run: Measured) -> tuple[dict[str, Any], dict[str, Any]]:
    sizes = {k: float(getattr(run.layout, k)) for k in ("tp", "pp", "cp", "dp", "vp", "ep", "etp")}
    return amounts(run.decoder, sizes, run.recipe, run.system)


def _log_predicted(table: _Table, x: Array) -> Array:
    value = dict(zip(table.names, np.exp(x), strict=True))
    product = {p: np.ones(len(table.moe)) for p in ("compute:", "host:", "formats:", "software:")}
    for name, rows in table.member.items():
        prefix = name[: name.index(":") + 1]
        product[prefix] = np.where(rows, value[name], product[prefix])
    compute, host, form = product["compute:"], product["host:"], product["formats:"]
    software = np.where(table.moe, product["software:"], 1.0)
    factors = {
        "dense products": value["products"] * compute * form,
        "expert products": value["experts"] * compute * form,
        "attention": value["attention"] * compute,
        "state scan": value["scan"] * compute,
        "elementwise passes": value["passes"] * software,
        "launches": value["launch_s"] * host * software * np.where(table.eager, value["eager"], 1.0),
        "tensor exchange": value["tensor"],
        "context exchange": value["tensor"],
        "expert exchange": np.where(table.virtual > 1, value["overlapped"], value["exchange"]) * software,
    }
    layers: Array = np.zeros(len(table.moe))
    for name in TERMS:
        if name in factors:
            layers = layers + factors[name] * table.terms[name]
    head = value["products"] * compute * table.terms["head"]
    between = np.where(table.virtual > 1, value["overlapped"] * software, 1.0) * table.terms["stage exchange"]
    busy = table.step["fullest stage"] * layers + beyond(head, layers, table.step) + between
    step = value["gradients"] * table.step["gradients and weights"] + _OPTIMIZER * table.step["optimizer"]
    result: Array = np.log(busy * table.step["micro-batches"] * table.bubble + step + table.step["host transfers"])
    return result


def _minimise(table: _Table) -> Array:
    """Levenberg–Marquardt with iterated Huber weights; derivatives by forward differences."""
    x, damping, step = table.guess.copy(), 1e-2, 1e-4
    prior = _NOISE / table.width
    best = _loss(table, x)
    for _ in range(60):
        residual = _log_predicted(table, x) - table.log_measured
        slopes = np.stack(
            [
                (_log_predicted(table, x + step * unit) - table.log_measured - residual) / step
                for unit in np.eye(len(x))
            ],
            axis=1,
        )
        weight = 1 / np.maximum(1, np.abs(residual) / _HUBER)
        normal = (slopes * weight[:, None]).T @ slopes + np.diag(prior**2)
        gradient = (slopes * weight[:, None]).T @ residual + prior**2 * (x - table.guess)
        moved = x - np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
        loss = _loss(table, moved)
        if loss >= best:
            damping *= 4
            continue
        done = best - loss < 1e-7
        x, best, damping = moved, loss, max(damping / 3, 1e-6)
        if done:
            break
    return x


def _loss(table: _Table, x: Array) -> float:
    residual = np.abs(_log_predicted(table, x) - table.log_measured)
    huber = np.where(residual < _HUBER, residual**2 / 2, _HUBER * (residual - _HUBER / 2))
    prior = (_NOISE * (x - table.guess) / table.width) ** 2 / 2
    return float(huber.sum() + prior.sum())
