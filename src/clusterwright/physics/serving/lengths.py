"""Declared lengths of prompts and outputs: a log-normal by mean and 95th percentile, or a trace's own values.

Lengths of requests in production are right-skewed; a log-normal through mean and p95 is what can be declared (public
traces: Azure LLM inference 2023, Patel et al., ISCA 2024, figure 3). With mean m and p95 q, σ solves
ln(q/m) = 1.645·σ − σ²/2, μ = ln m − σ²/2. A ratio q/m above e^(1.645²/2) = 3.87 has no log-normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from clusterwright.physics.serving.constants import Array

_Z95: Final = NormalDist().inv_cdf(0.95)
#: Largest p95 ÷ mean that a log-normal can have.
LARGEST_RATIO: Final = math.exp(_Z95**2 / 2)
#: Quantiles of `points`, at the middles of equal shares.
_POINTS: Final = 64


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of one side.

    Args:
        mean: of all requests.
        points: values of equal weight that stand for the distribution, ascending; one value where all are equal.
    """

    mean: float
    points: tuple[float, ...]

    def quantile(self, level: float) -> float:
        """Tokens that a share `level` of requests does not exceed."""
        middles = (np.arange(len(self.points)) + 0.5) / len(self.points)
        return float(np.interp(level, middles, self.points))

    def moment(self, power: float) -> float:
        """Mean of tokens to a power."""
        return float(np.mean(np.array(self.points) ** power))


def fixed(tokens: float) -> Lengths:
    """Every request alike."""
    return Lengths(tokens, (tokens,))


def lognormal(mean: float, p95: float) -> Lengths:
    """Log-normal with this mean and 95th percentile.

    Raises:
        ValueError: p95 is below the mean or beyond LARGEST_RATIO times it.
    """
    if p95 == mean:
        return fixed(mean)
    if not 1 < p95 / mean <= LARGEST_RATIO:
        raise ValueError(
            f"p95 of {p95:g} with mean {mean:g}: a log-normal needs 1 to {LARGEST_RATIO:.2f} times the mean"
        )
    sigma = _Z95 - math.sqrt(_Z95**2 - 2 * math.log(p95 / mean))
    mu = math.log(mean) - sigma**2 / 2
    normal = NormalDist()
    points = np.array([math.exp(mu + sigma * normal.inv_cdf((i + 0.5) / _POINTS)) for i in range(_POINTS)])
    return Lengths(mean, tuple((points * (mean / points.mean())).tolist()))


def observed(tokens: Sequence[float] | Array) -> Lengths:
    """A trace's own values, at equal shares of its requests.

    Raises:
        ValueError: there is none.
    """
    values = np.asarray(tokens, dtype=np.float64)
    if not values.size:
        raise ValueError("a trace without requests")
    levels = (np.arange(_POINTS) + 0.5) / _POINTS
    return Lengths(float(values.mean()), tuple(np.quantile(values, levels).tolist()))
