"""Distributions of run times, fitted by maximum likelihood, and how far each is from the data.

Jobs that still ran are right-censored: every observation has the weight of its step in the Kaplan–Meier estimate, so
that long jobs are not underrated. The distance is that of Kolmogorov and Smirnov, the largest difference of the CDFs.

Source: Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, JASA 1958; Stute, Consistent Estimation
under Random Censorship, J. Multivariate Analysis 1993; Minka, Estimating a Gamma Distribution, 2002.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from clusterwright.traces.special import digamma, lower_gamma, normal_cdf, trigamma
from clusterwright.traces.tables import Floats, Mask

#: Probabilities at which an empirical distribution is kept: finer towards both ends.
PROBABILITIES: Final = tuple(
    sorted({*(k / 100 for k in range(101)), *(k / 1000 for k in (1, 2, 5, 992, 995, 998, 999)), 0.9995})
)
#: A parametric fit farther from the data than this is not proposed in place of the data itself. A choice: at 0.05 no
#: probability is off by more than five points.
FAR: Final = 0.05
#: Fewest observations of a class of its own; below, every quantile is a guess.
FEWEST: Final = 30
_POINTS: Final = 20_000
_ROUNDS: Final = 100


@dataclass(frozen=True, slots=True)
class Fitted:
    """One distribution of positive numbers, such as run times in s.

    Args:
        family: `exponential` (mean), `lognormal` (mu, sigma of the logarithm), `gamma` (shape, scale), `weibull`
            (shape, scale) or `empirical`.
        parameters: in that order; of an empirical one the values at `PROBABILITIES`, the last of which is such that
            the mean is that of the data.
        distance: Kolmogorov–Smirnov, 0 to 1; of an empirical one what its quantiles lose.
    """

    family: str
    parameters: tuple[float, ...]
    distance: float

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """(count,) numbers."""
        match self.family:
            case "exponential":
                return rng.exponential(self.parameters[0], count)
            case "lognormal":
                return rng.lognormal(self.parameters[0], self.parameters[1], count)
            case "gamma":
                return rng.gamma(self.parameters[0], self.parameters[1], count)
            case "weibull":
                return self.parameters[1] * rng.weibull(self.parameters[0], count)
        return np.interp(rng.random(count), PROBABILITIES, self.parameters)

    def cdf(self, x: Floats) -> Floats:
        """Probability of at most x, for x > 0."""
        match self.family:
            case "exponential":
                return np.asarray(1.0 - np.exp(-x / self.parameters[0]))
            case "lognormal":
                return normal_cdf((np.log(x) - self.parameters[0]) / self.parameters[1])
            case "gamma":
                return lower_gamma(self.parameters[0], x / self.parameters[1])
            case "weibull":
                return np.asarray(1.0 - np.exp(-((x / self.parameters[1]) ** self.parameters[0])))
        return _empirical_cdf(np.array(self.parameters), x)

    def quantile(self, probability: float) -> float:
        """The number that is exceeded with 1 − probability, to 1e-9 of itself, for probabilities inside (0, 1)."""
        if self.family == "empirical":
            return float(np.interp(probability, PROBABILITIES, self.parameters))
        low, high = 1e-12, 1e15
        while high > low * (1 + 1e-9):
            middle = math.sqrt(low * high)
            if float(self.cdf(np.array([middle]))[0]) < probability:
                low = middle
            else:
                high = middle
        return high

    @property
    def mean(self) -> float:
        """Expected value."""
        match self.family:
            case "exponential":
                return self.parameters[0]
            case "lognormal":
                return math.exp(self.parameters[0] + self.parameters[1] ** 2 / 2)
            case "gamma":
                return self.parameters[0] * self.parameters[1]
            case "weibull":
                return self.parameters[1] * math.gamma(1 + 1 / self.parameters[0])
        return _empirical_mean(self.parameters)


@dataclass(frozen=True, slots=True)
class Sample:
    """Observations in ascending order.

    Args:
        values: (n,) float64, positive.
        weights: (n,) float64, sum 1.
    """

    values: Floats
    weights: Floats


def weigh(values: Floats, censored: Mask) -> Sample:
    """Observed values with their Kaplan–Meier weights; what is beyond the largest one counts to it (Efron 1967)."""
    order = np.lexsort((censored, values))  # at equal values observations come first
    sorted_values, observed = values[order], ~censored[order]
    at_risk = np.arange(len(values), 0, -1, dtype=np.float64)
    survival = np.cumprod(np.where(observed, 1.0 - 1.0 / at_risk, 1.0))
    weights = np.diff(np.concatenate(([1.0], survival))) * -1.0
    kept = weights[observed]
    kept[-1] += 1.0 - kept.sum()
    return Sample(sorted_values[observed], kept)


def fit_all(sample: Sample) -> tuple[Fitted, ...]:
    """Every family, the nearest first; families that the data cannot be fitted by are left out."""
    found = [fitted for fit in _FITS for fitted in [fit(sample)] if fitted is not None]
    return tuple(sorted(found, key=lambda fitted: fitted.distance))


def choose(fits: tuple[Fitted, ...]) -> Fitted:
    """The exponential one if it is near enough, else the nearest with two parameters if that is, else the empirical."""
    parametric = [fitted for fitted in fits if fitted.family != "empirical" and fitted.distance <= FAR]
    if parametric:
        return next((fitted for fitted in parametric if fitted.family == "exponential"), parametric[0])
    return next(fitted for fitted in fits if fitted.family == "empirical")


def distance(cdf: Callable[[Floats], Floats], sample: Sample) -> float:
    """Largest difference between a CDF and the data, at no more than 20,000 values spread evenly over them."""
    high = np.cumsum(sample.weights)
    low = high - sample.weights
    places = np.unique(np.linspace(0, len(sample.values) - 1, min(len(sample.values), _POINTS)).astype(np.int64))
    values = sample.values[places]
    # Equal values are one step of the data: its foot is at the first of them, its top at the last.
    foot = low[np.searchsorted(sample.values, values, side="left")]
    top = high[np.searchsorted(sample.values, values, side="right") - 1]
    model = cdf(values)
    return float(max(np.max(np.abs(top - model)), np.max(np.abs(model - foot))))


def _exponential(sample: Sample) -> Fitted | None:
    return _measured("exponential", (float(np.dot(sample.weights, sample.values)),), sample)


def _lognormal(sample: Sample) -> Fitted | None:
    logs = np.log(sample.values)
    mu = float(np.dot(sample.weights, logs))
    sigma = math.sqrt(float(np.dot(sample.weights, (logs - mu) ** 2)))
    return _measured("lognormal", (mu, sigma), sample) if sigma > 0 else None


def _gamma(sample: Sample) -> Fitted | None:
    mean = float(np.dot(sample.weights, sample.values))
    spread = math.log(mean) - float(np.dot(sample.weights, np.log(sample.values)))
    if spread <= 1e-9:
        return None
    shape = (3 - spread + math.sqrt((spread - 3) ** 2 + 24 * spread)) / (12 * spread)
    for _ in range(_ROUNDS):
        step = (math.log(shape) - digamma(shape) - spread) / (1 / shape - trigamma(shape))
        shape = max(shape - step, shape / 2)
        if abs(step) < 1e-10 * shape:
            break
    return _measured("gamma", (shape, mean / shape), sample)


def _weibull(sample: Sample) -> Fitted | None:
    largest = float(sample.values[-1])
    scaled, logs = sample.values / largest, np.log(sample.values / largest)
    mean_log = float(np.dot(sample.weights, logs))
    deviation = math.sqrt(max(float(np.dot(sample.weights, (logs - mean_log) ** 2)), 0.0))
    if deviation <= 1e-9:
        return None
    shape = math.pi / math.sqrt(6.0) / deviation
    for _ in range(_ROUNDS):
        powers = sample.weights * scaled**shape
        total, first = float(powers.sum()), float(np.dot(powers, logs))
        value = first / total - 1 / shape - mean_log
        slope = float(np.dot(powers, logs**2)) / total - (first / total) ** 2 + 1 / shape**2
        step = value / slope
        shape = max(shape - step, shape / 2)
        if abs(step) < 1e-10 * shape:
            break
    scale = largest * float(np.dot(sample.weights, scaled**shape)) ** (1 / shape)
    return _measured("weibull", (shape, scale), sample)


def _empirical(sample: Sample) -> Fitted | None:
    top = np.cumsum(sample.weights)
    places = np.minimum(np.searchsorted(top, np.array(PROBABILITIES) - 1e-12), len(sample.values) - 1)
    values = sample.values[places].tolist()
    missing = float(np.dot(sample.weights, sample.values)) - _empirical_mean(values)
    last = PROBABILITIES[-1] - PROBABILITIES[-2]
    values[-1] = max(values[-1] + 2 * missing / last, values[-2])
    return _measured("empirical", tuple(values), sample)


def _measured(family: str, parameters: tuple[float, ...], sample: Sample) -> Fitted:
    fitted = Fitted(family, parameters, 0.0)
    return Fitted(family, parameters, distance(fitted.cdf, sample))


def _empirical_mean(values: Sequence[float]) -> float:
    knots = np.array(values)
    return float(np.dot(np.diff(PROBABILITIES), (knots[1:] + knots[:-1]) / 2))


def _empirical_cdf(values: Floats, x: Floats) -> Floats:
    """Where several probabilities have one value, the CDF jumps there to the highest of them."""
    last = np.flatnonzero(np.append(np.diff(values) > 0, True))
    return np.asarray(np.interp(x, values[last], np.array(PROBABILITIES)[last]))


_FITS: Final = (_exponential, _lognormal, _gamma, _weibull, _empirical)
