"""How far figures may be off, and what they were held to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from clusterwright.catalogue.calibrations import outside
from clusterwright.model.calibrations import Calibration, Factors, FitSet, TimeBands

#: Mean error of a roofline whose constants nobody fitted (validation of 2026-11-30, planning.md).
UNCALIBRATED: Final = 0.42
#: What a calibration of this kind says of measurements beside their mean error.
NINE_OF_TEN: Final = "nine of ten measurements"


@dataclass(frozen=True)
class Band:
    """A figure with the range that it may lie in, in the unit of the figure; None where there is no such end."""

    value: float
    low: float | None
    high: float | None

    @classmethod
    def around(cls, value: float, error: float) -> Band:
        """A factor of 1 + error both ways."""
        return cls(value, value / (1 + error), value * (1 + error))

    @classmethod
    def within(cls, value: float, ends: tuple[float, float]) -> Band:
        """Between two factors on the figure."""
        return cls(value, value * ends[0], value * ends[1])

    def times(self, factor: float) -> Band:
        """The band in another unit."""
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return Band(self.value * factor, low, high)

    def plus(self, more: float) -> Band:
        """The band with a number added."""
        low, high = (None if end is None else end + more for end in (self.low, self.high))
        return Band(self.value + more, low, high)


def _both_ways(error: float) -> tuple[float, float]:
    return 1 / (1 + error), 1 + error


_BOTH_WAYS: Final = _both_ways(UNCALIBRATED)


@dataclass(frozen=True)
class SpeedBasis:
    """What the times of an engine on a GPU rest on.

    Args:
        ttft_error, tpot_error: mean |predicted ÷ measured − 1| of runs held out.
        ttft, tpot: factors on the estimates between which measurements lie: nine of ten of those runs, where `held`
            says which and how many; without them the mean error both ways.
        basis: in words. beyond: what lies outside the runs, in words.
        date: of the calibration, ISO; None without one.
    """

    ttft_error: float
    tpot_error: float
    basis: str
    beyond: tuple[str, ...] = ()
    date: str | None = None
    ttft: tuple[float, float] = field(default=_BOTH_WAYS)
    tpot: tuple[float, float] = field(default=_BOTH_WAYS)
    held: str = ""

    @property
    def said(self) -> str:
        """The bands in words."""
        first, each = (f"×{low:.2f} to ×{high:.2f}" for low, high in (self.ttft, self.tpot))
        if self.held:
            return f"{NINE_OF_TEN} at {first} the TTFT estimated and {each} the TPOT ({self.held})"
        return f"mean error {self.ttft_error:.0%} of TTFT, {self.tpot_error:.0%} of TPOT"


def speed_basis(
    found: Calibration | None,
    wider: Calibration | None,
    engine: str,
    gpu: str,
    model: str,
    values: Mapping[str, float],
) -> SpeedBasis:
    """The basis of a calibration.

    Args:
        wider: calibration of the engine on all GPUs, whose error counts where it is larger, and whose bands where the
            other has none, when no model of this family was among the runs.
        values: of the question by the names of the calibration's spans.
    """
    if found is None:
        basis = f"nobody measured {engine} on {gpu}: constants are round numbers of public microbenchmarks"
        return SpeedBasis(UNCALIBRATED, UNCALIBRATED, basis)
    fit, own = found.fit, found.gpu == gpu
    models = ", ".join(fit.models[:4]) + (" …" if len(fit.models) > 4 else "")
    basis = (
        f"{fit.rows} published runs of {engine}{_releases(found)} on {gpu if own else 'other GPUs'} ({models});"
        " errors of runs held out"
    )
    errors = [_known(fit.ttft_error), _known(fit.tpot_error)]
    if not own:
        basis += f"; none ran on {gpu}"
    bands = time_bands(fit, model)
    if not _has_family(fit, model):
        basis += "; none was of this model's family"
        if wider is not None:
            errors = [max(errors[0], _known(wider.fit.ttft_error)), max(errors[1], _known(wider.fit.tpot_error))]
            bands = bands or time_bands(wider.fit, model)
    ttft, tpot = (None, None) if bands is None else (bands.ttft, bands.tpot)
    return SpeedBasis(
        errors[0],
        errors[1],
        basis,
        outside(found, **values),
        found.date.isoformat(),
        _ends(ttft, errors[0]),
        _ends(tpot, errors[1]),
        "" if ttft is None or tpot is None else f"{max(ttft.rows, tpot.rows)} held out of {ttft.of}",
    )


def _releases(found: Calibration) -> str:
    """Releases that the runs were of, oldest and newest; "" where rows do not tell.

    Those of TensorRT-LLM name releases of Dynamo's container beside the engine's.
    """
    if found.engine == "tensorrt-llm":
        return ""
    numbers = {(int(m[1]), int(m[2])) for text in found.versions if (m := re.match(r"(\d+)\.(\d+)", text))}
    ends = [f"{major}.{minor}" for major, minor in (min(numbers), max(numbers))] if numbers else []
    return f" {' to '.join(dict.fromkeys(ends))}" if ends else ""


def time_bands(fit: FitSet, model: str) -> TimeBands | None:
    """Bands of an aggregated replica: those of a new model where none of its family was among the runs."""
    return fit.band("fitted" if _has_family(fit, model) else "new")


def _has_family(fit: FitSet, model: str) -> bool:
    return any(_family(name) in model.lower() for name in fit.models)


def _ends(factors: Factors | None, error: float) -> tuple[float, float]:
    """The factors, else the mean error both ways; an end never leaves the estimate itself outside."""
    return _both_ways(error) if factors is None else (min(factors.low, 1.0), max(factors.high, 1.0))


def _family(name: str) -> str:
    """`Llama 70B` → llama, `DeepSeek-V3` → deepseek-v3: how ids of the family are spelt."""
    return name.lower().split()[0]


def _known(error: float | None) -> float:
    return UNCALIBRATED if error is None else error
