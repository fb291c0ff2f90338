"""Functions that the fits need: gamma, digamma, incomplete gamma, normal distribution.

Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.3.5, 6.3.18, 6.4.12 (digamma, trigamma), 6.5.29
(series) and 6.5.31 (continued fraction, evaluated by Lentz's method; Press et al., Numerical Recipes, 6.2).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from clusterwright.traces.tables import Floats

_ROUNDS: Final = 400
_CLOSE: Final = 1e-12
_TINY: Final = 1e-300
#: From here on the asymptotic series of digamma and trigamma are exact to 1e-12.
_LARGE: Final = 10.0


def digamma(x: float) -> float:
    """ψ(x) for x > 0."""
    shift = 0.0
    while x < _LARGE:
        shift -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return shift + math.log(x) - 0.5 / x - series


def trigamma(x: float) -> float:
    """ψ′(x) for x > 0."""
    shift = 0.0
    while x < _LARGE:
        shift += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    return shift + 1.0 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))


def lower_gamma(shape: float, x: Floats) -> Floats:
    """Regularised lower incomplete gamma function P(shape, x), the CDF of Gamma(shape, 1), for x ≥ 0."""
    found = np.zeros_like(x)
    small = (x > 0) & (x < shape + 1.0)
    found[small] = _series(shape, x[small])
    large = x >= shape + 1.0
    found[large] = 1.0 - _fraction(shape, x[large])
    return found


def normal_cdf(z: Floats) -> Floats:
    """Φ(z)."""
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in z.tolist()])


def _front(shape: float, x: Floats) -> Floats:
    return np.asarray(np.exp(shape * np.log(x) - x - math.lgamma(shape)))


def _series(shape: float, x: Floats) -> Floats:
    term = np.full_like(x, 1.0 / shape)
    total = term.copy()
    for n in range(1, _ROUNDS):
        term = term * x / (shape + n)
        total += term
        if not np.any(term > total * _CLOSE):
            break
    return total * _front(shape, x)


def _fraction(shape: float, x: Floats) -> Floats:
    b = x + 1.0 - shape
    c = np.full_like(x, 1.0 / _TINY)
    d = 1.0 / b
    h = d.copy()
    for n in range(1, _ROUNDS):
        a = -n * (n - shape)
        b = b + 2.0
        d = a * d + b
        d = 1.0 / np.where(np.abs(d) < _TINY, _TINY, d)
        c = b + a / c
        c = np.where(np.abs(c) < _TINY, _TINY, c)
        step = d * c
        h = h * step
        if not np.any(np.abs(step - 1.0) > _CLOSE):
            break
    return h * _front(shape, x)
