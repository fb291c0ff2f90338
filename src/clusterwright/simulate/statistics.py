"""Replications as one answer: means with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_ROUNDS: Final = 200
_TERMS: Final = 400


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over replications.

    Args:
        half_width: of the confidence interval; None with one replication, of which nothing is known about the spread.
        replications: in which the measure had a value.
    """

    mean: float
    half_width: float | None
    replications: int
    confidence: float = 0.95

    @property
    def low(self) -> float | None:
        """Lower end of the interval."""
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        """Upper end of the interval."""
        return None if self.half_width is None else self.mean + self.half_width


def mean_of(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """The mean of independent values with Student's confidence interval; None without values.

    Raises:
        ValueError: if the confidence is not between 0 and 1.
    """
    if not values:
        return None
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Interval(mean, None, 1, confidence)
    variance = math.fsum((v - mean) ** 2 for v in values) / (count - 1)
    return Interval(mean, student_t(confidence, count - 1) * math.sqrt(variance / count), count, confidence)


def student_t(confidence: float, freedom: int) -> float:
    """The t for which a Student variable of that freedom is within ±t with this probability.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.1 and 26.5.8 (the two-sided probability is
    1 − I_x(ν/2, 1/2) at x = ν ÷ (ν + t²)); solved by bisection.

    Raises:
        ValueError: if the confidence is not between 0 and 1, or the freedom below 1.
    """
    if not 0 < confidence < 1 or freedom < 1:
        raise ValueError("a confidence is between 0 and 1, and the degrees of freedom are at least 1")
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
        if high - low <= 1e-12 * high:
            break
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    return 1.0 - _beta_share(freedom / 2, 0.5, freedom / (freedom + t * t))


def _beta_share(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b), by its continued fraction (Abramowitz and Stegun, 26.5.8)."""
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta_share(b, a, 1.0 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    return front * _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """1 ÷ (1 + d1 ÷ (1 + d2 ÷ …)), from the last of many terms back to the first."""
    value = 1.0
    for n in range(_TERMS, 0, -1):
        m = n // 2
        if n % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1.0 + term / value
    return 1.0 / value
