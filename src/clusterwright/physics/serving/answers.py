"""One replica in plain values: its TTFT and TPOT over concurrency, and the concurrency that targets allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from clusterwright.physics.serving.closed import Latencies, Load, Workers, aggregated, disaggregated, load
from clusterwright.physics.serving.constants import Array, Constants, columns_of
from clusterwright.physics.serving.sides import Side, stack


@dataclass(frozen=True, slots=True)
class Setting:
    """A replica and what it is asked.

    Args:
        decode: the worker that decodes (and prefills where `first` is None).
        first: prefill worker; counts of both; token_s seconds to hand one token's cache over.
        cached: prompt tokens that need no prefill. width, accepted: of speculation, see `closed.Load`.
    """

    decode: Side
    constants: Constants
    prompt: float
    output: float
    first: Side | None = None
    prefill_workers: int = 1
    decode_workers: int = 1
    token_s: float = 0.0
    cached: float = 0.0
    width: float = 1.0
    accepted: float = 1.0


def curve(setting: Setting, concurrency: Array) -> tuple[Array, Array, Array]:
    """(TTFT s, TPOT s, requests per s) at each concurrency, shape (n,)."""
    found = latencies(setting, np.asarray(concurrency, dtype=np.float64))
    return found.ttft_s, found.tpot_s, concurrency / (found.ttft_s + setting.output * found.tpot_s)


def latencies(setting: Setting, concurrency: Array) -> Latencies:
    """TTFT and TPOT by term at each concurrency, shape (n,)."""
    work: Load = load(
        concurrency,
        np.full_like(concurrency, setting.prompt),
        np.full_like(concurrency, setting.output),
        cached=setting.cached,
        width=setting.width,
        accepted=setting.accepted,
    )
    held, rows = columns_of(setting.constants), len(concurrency)
    second = stack([setting.decode] * rows)
    if setting.first is None:
        return aggregated(second, held, work)
    workers = Workers(
        np.full(rows, float(setting.prefill_workers)),
        np.full(rows, float(setting.decode_workers)),
        np.full(rows, setting.token_s),
    )
    return disaggregated(stack([setting.first] * rows), second, held, workers, work)


def largest_concurrency(setting: Setting, ttft_s: float, tpot_s: float, most: int = 65536) -> int:
    """Most requests in flight with both means within the targets; 0 where not even one is.

    TTFT and TPOT rise with concurrency, so the last that holds is found by halving.
    """

    def holds(concurrency: int) -> bool:
        found = latencies(setting, np.array([float(concurrency)]))
        return bool(found.ttft_s[0] <= ttft_s and found.tpot_s[0] <= tpot_s)

    return _last(holds, most)


def _last(holds: Callable[[int], bool], most: int) -> int:
    if not holds(1):
        return 0
    low, high = 1, 2
    while high <= most and holds(high):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
