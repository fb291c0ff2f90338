"""Moving bytes from storage to workers; bytes, seconds, bytes per second.

Source: definitions; sharing of a switch's uplinks as its oversubscription.
"""

from __future__ import annotations

import math


def required_rate(size_bytes: float, readers: float, within_s: float) -> float:
    """B/s that lets all concurrent readers have their bytes in the allowed time."""
    return size_bytes * readers / within_s


def network_rate(port_bits_s: float, ports: float, nodes: float, oversubscription: float = 1.0) -> float:
    """B/s that `nodes` nodes receive together through their ports behind an oversubscribed fabric."""
    return port_bits_s / 8 * ports * nodes / oversubscription


def transfer_s(size_bytes: float, readers: float, rate_bytes_s: float) -> float:
    """Seconds until all readers have their bytes; infinite without a rate."""
    return size_bytes * readers / rate_bytes_s if rate_bytes_s else math.inf
