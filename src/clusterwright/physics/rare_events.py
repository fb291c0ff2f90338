"""What a number of events in some hours says about their rate: exact bounds of a Poisson process.

Source: F. Garwood, "Fiducial Limits for the Poisson Distribution", Biometrika 28 (1936) 437-442; for no event the bound
is -ln(1 - confidence) / exposure, at 95 % close to 3 / exposure: J. A. Hanley, A. Lippman-Hand, "If Nothing Goes Wrong,
Is Everything All Right?", JAMA 249 (1983) 1743-1745 (the rule of three).
"""

from __future__ import annotations

import math


def upper_rate(events: int, exposure: float, confidence: float = 0.95) -> float:
    """Largest rate (events per unit of exposure) that is not ruled out, one-sided.

    Args:
        events: seen, at least 0.
        exposure: such as GPU-hours, above 0.

    Returns:
        The rate at which so few events or fewer have the probability 1 - confidence.
    """
    if events < 0 or not exposure > 0 or not 0 < confidence < 1:
        raise ValueError("events at least 0, exposure above 0, confidence between 0 and 1")
    low, high = 0.0, events + 10.0 + 10.0 * math.sqrt(events + 1.0) - math.log1p(-confidence)
    for _ in range(200):
        middle = (low + high) / 2
        if _at_most(events, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high / exposure


def exposure_for(rate: float, confidence: float = 0.95) -> float:
    """Exposure without any event that shows a rate of at most `rate`, one-sided."""
    if not rate > 0:
        raise ValueError("a rate of nothing can never be shown")
    return -math.log1p(-confidence) / rate


def _at_most(events: int, mean: float) -> float:
    """Probability of at most so many events."""
    if mean == 0:
        return 1.0
    log_terms = [k * math.log(mean) - mean - math.lgamma(k + 1) for k in range(events + 1)]
    largest = max(log_terms)
    return min(1.0, math.exp(largest) * math.fsum(math.exp(t - largest) for t in log_terms))
