"""Time of a collective inside one scale-up domain, and its bus bandwidth.

t(µs) = α + S·f/(B·10³) + c·√S: a latency, the bytes at a bus bandwidth, and a term between both for the messages in
the middle. S is the buffer as nccl-tests counts it (of all-gather and reduce-scatter the whole, of all-to-all what one
rank sends), f the bus factor, B in GB/s. Where short messages take another protocol, they have three terms of their
own; a long message never takes less than the longest short one.

Source: bus factors as in nccl-tests doc/PERFORMANCE.md. The terms by system are in `collective_fits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterwright.physics.ceilings import Collective

if TYPE_CHECKING:  # most commands time single sizes, and importing numpy would be most of their start
    from typing import TypeVar

    import numpy as np
    from numpy.typing import NDArray

    Bytes = TypeVar("Bytes", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class CollectiveTerms:
    """Terms of one operation over one number of ranks: α in µs, B in GB/s of bus bandwidth, c in µs per √byte.

    Args:
        short: the same of messages below `short_below_bytes`, None where one protocol serves all.
    """

    latency_us: float
    bandwidth_gbytes_s: float
    root_us: float
    short: CollectiveTerms | None = None
    short_below_bytes: float = 0.0

    @property
    def empty_us(self) -> float:
        """µs of a message without bytes."""
        return self.latency_us if self.short is None else self.short.latency_us


def bus_factor(operation: Collective, ranks: float) -> float:
    """Bytes that cross a rank's link per byte of the buffer: 2(n−1)/n for all-reduce, else (n−1)/n."""
    return (2 if operation == "all-reduce" else 1) * (ranks - 1) / ranks


def collective_us(operation: Collective, size_bytes: Bytes, ranks: float, terms: CollectiveTerms) -> Bytes:
    """µs of one collective of `size_bytes` over `ranks` GPUs of one domain; 0 for one rank.

    Args:
        size_bytes: a number, or an array of any shape; the result has its shape.
    """
    if ranks <= 1:
        return size_bytes * 0.0
    factor = bus_factor(operation, ranks)
    time = _three_terms_us(size_bytes, factor, terms)
    if terms.short is None:
        return time
    least = _three_terms_us(terms.short_below_bytes, factor, terms.short)
    long = least * (time < least) + time * (time >= least)
    below = size_bytes < terms.short_below_bytes
    return below * _three_terms_us(size_bytes, factor, terms.short) + (1 - below) * long


def _three_terms_us(size_bytes: Bytes, factor: float, terms: CollectiveTerms) -> Bytes:
    time: Bytes = (
        size_bytes * (factor / (terms.bandwidth_gbytes_s * 1e3)) + terms.latency_us + size_bytes**0.5 * terms.root_us
    )
    return time


def bus_bandwidth_gbytes_s(
    size_bytes: float, time_us: float, ranks: float, operation: Collective = "all-reduce"
) -> float:
    """Bus bandwidth as nccl-tests defines it: size ÷ time × bus factor."""
    return size_bytes / (time_us * 1e3) * bus_factor(operation, ranks)
