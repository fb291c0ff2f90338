"""How long something takes: a mean and a form, drawn from a generator.

Repair times of large systems are close to lognormal, times between failures to Weibull with a falling hazard
(B. Schroeder, G. A. Gibson, "A Large-Scale Study of Failures in High-Performance Computing Systems", IEEE TDSC 7(4),
2010, 337-350): both have heavier tails than an exponential of the same mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray


class Form(StrEnum):
    """The distribution of a duration."""

    FIXED = "fixed"
    EXPONENTIAL = "exponential"
    LOGNORMAL = "lognormal"
    WEIBULL = "weibull"


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration of known mean.

    Args:
        shape: of LOGNORMAL the standard deviation of the logarithm, of WEIBULL its k; not used otherwise.

    Raises:
        ValueError: if the mean is negative or not finite, or a shape is not above 0.
    """

    mean_s: float
    form: Form = Form.FIXED
    shape: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.mean_s < math.inf:
            raise ValueError(f"a duration has a finite mean of at least 0 s, not {self.mean_s}")
        if not 0 < self.shape < math.inf:
            raise ValueError(f"the shape of a duration is above 0, not {self.shape}")

    def draw(self, generator: Generator) -> float:
        """One duration, s. A fixed one takes no random number."""
        return self.mean_s if self.form is Form.FIXED else float(self.draw_many(generator, 1)[0])

    def draw_many(self, generator: Generator, count: int) -> NDArray[np.float64]:
        """Independent durations, (count,) float64 s."""
        if self.form is Form.EXPONENTIAL:
            return generator.exponential(self.mean_s, count)
        if self.form is Form.LOGNORMAL:
            return self.mean_s * np.exp(self.shape * generator.standard_normal(count) - self.shape**2 / 2)
        if self.form is Form.WEIBULL:
            return weibull_scale_s(self.mean_s, self.shape) * generator.weibull(self.shape, count)
        return np.full(count, self.mean_s)


#: No time at all.
NOTHING: Final = Duration(0.0)


def exponential(mean_s: float) -> Duration:
    """An exponential duration."""
    return Duration(mean_s, Form.EXPONENTIAL)


def lognormal(mean_s: float, median_s: float) -> Duration:
    """A lognormal duration of that mean and median.

    Raises:
        ValueError: if the median is not above 0 and below the mean.
    """
    if not 0 < median_s < mean_s:
        raise ValueError("the median of a lognormal duration is above 0 and below its mean")
    return Duration(mean_s, Form.LOGNORMAL, math.sqrt(2 * math.log(mean_s / median_s)))


def weibull(mean_s: float, shape: float) -> Duration:
    """A Weibull duration; its hazard falls with age where the shape is below 1."""
    return Duration(mean_s, Form.WEIBULL, shape)


def weibull_scale_s(mean_s: float, shape: float) -> float:
    """Scale of the Weibull distribution of that mean."""
    return mean_s / math.gamma(1 + 1 / shape)
