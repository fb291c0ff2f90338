"""How far figures may be off, and what they were held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from clusterwright.catalogue.calibrations import outside
from clusterwright.model.calibrations import Calibration

#: Mean error of a roofline whose constants nobody fitted (validation of 2026-11-30, planning.md).
UNCALIBRATED: Final = 0.42


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

    def times(self, factor: float) -> Band:
        """The band in another unit."""
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return Band(self.value * factor, low, high)

    def plus(self, more: float) -> Band:
        """The band with a number added."""
        low, high = (None if end is None else end + more for end in (self.low, self.high))
        return Band(self.value + more, low, high)


@dataclass(frozen=True)
class SpeedBasis:
    """What the times of an engine on a GPU rest on.

    Args:
        ttft_error, tpot_error: mean |predicted ÷ measured − 1| of runs held out.
        own_gpu: whether any of them ran on this GPU.
        basis: in words. beyond: what lies outside the runs, in words.
        date: of the calibration, ISO; None without one.
    """

    ttft_error: float
    tpot_error: float
    own_gpu: bool
    basis: str
    beyond: tuple[str, ...] = ()
    date: str | None = None


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
        wider: calibration of the engine on all GPUs, whose error counts where it is larger and no model of this
            family was among the runs.
        values: of the question by the names of the calibration's spans.
    """
    if found is None:
        basis = f"nobody measured {engine} on {gpu}: constants are round numbers of public microbenchmarks"
        return SpeedBasis(UNCALIBRATED, UNCALIBRATED, False, basis)
    fit, own = found.fit, found.gpu == gpu
    models = ", ".join(fit.models[:4]) + (" …" if len(fit.models) > 4 else "")
    basis = (
        f"{fit.rows} published runs of {engine} on {gpu if own else 'other GPUs'} ({models}); errors of runs held out"
    )
    errors = [_known(fit.ttft_error), _known(fit.tpot_error)]
    if not own:
        basis += f"; none ran on {gpu}"
    if not any(_family(name) in model.lower() for name in fit.models):
        basis += "; none was of this model's family"
        if wider is not None:
            errors = [max(errors[0], _known(wider.fit.ttft_error)), max(errors[1], _known(wider.fit.tpot_error))]
    return SpeedBasis(errors[0], errors[1], own, basis, outside(found, **values), found.date.isoformat())


def _family(name: str) -> str:
    """`Llama 70B` → llama, `DeepSeek-V3` → deepseek-v3: how ids of the family are spelt."""
    return name.lower().split()[0]


def _known(error: float | None) -> float:
    return UNCALIBRATED if error is None else error
