"""Queueing by hand: a sanity check beside a simulation, never in place of one.

Sources: Erlang 1917 (M/M/c); Allen, "Probability, Statistics, and Queueing Theory", 2nd ed. 1990, section 5.3
(Allen-Cunneen approximation of G/G/c).
"""

from __future__ import annotations

import math


def erlang_c(servers: int, load: float) -> float:
    """Probability that an arrival waits in M/M/c.

    Args:
        load: per server, 0 ≤ ρ < 1; 1 is returned from ρ = 1 on.
    """
    if load >= 1:
        return 1.0
    offered = servers * load
    blocking = 1.0  # Erlang B by its stable recursion
    for n in range(1, servers + 1):
        blocking = offered * blocking / (n + offered * blocking)
    return blocking / (1 - load * (1 - blocking))


def mean_wait_s(
    servers: int, load: float, service_s: float, arrival_cv2: float = 1.0, service_cv2: float = 1.0
) -> float:
    """Mean waiting time in G/G/c (Allen-Cunneen); exact for M/M/c with both squared variations 1."""
    if load >= 1:
        return math.inf
    return erlang_c(servers, load) * service_s / (servers * (1 - load)) * (arrival_cv2 + service_cv2) / 2
