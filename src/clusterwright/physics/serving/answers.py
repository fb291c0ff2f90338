"""One setting in plain values: TTFT and TPOT with their terms, and the concurrency that targets allow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from clusterwright.physics.serving.closed import Latencies, Load, Workers, aggregated, disaggregated, load
from clusterwright.physics.serving.constants import Array, Constants, columns_of
from clusterwright.physics.serving.sides import Side, stack
from clusterwright.physics.serving.steps import Terms


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds by term in the order of the formulas; `seconds` is their math.fsum."""

    terms: tuple[tuple[str, float], ...]

    @property
    def seconds(self) -> float:
        """Sum of the terms."""
        return math.fsum(value for _, value in self.terms)


@dataclass(frozen=True, slots=True)
class Answer:
    """What requests meet at a concurrency.

    Args:
        concurrency: requests in flight over all workers; `running` of them decode.
    """

    concurrency: float
    running: float
    ttft: Timed
    tpot: Timed
    output: float

    @property
    def request_s(self) -> float:
        """Seconds from arrival to the last token."""
        return self.ttft.seconds + self.output * self.tpot.seconds

    @property
    def requests_s(self) -> float:
        """Requests completed per second, by Little's law."""
        return self.concurrency / self.request_s

    @property
    def output_tokens_s(self) -> float:
        """Output tokens per second over all requests."""
        return self.requests_s * self.output


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


def answer(setting: Setting, concurrency: float) -> Answer:
    """TTFT and TPOT of a setting at `concurrency` requests in flight."""
    found = _latencies(setting, np.array([float(concurrency)]))
    return Answer(concurrency, float(found.running[0]), _timed(found.ttft), _timed(found.tpot), setting.output)


def _timed(terms: Terms) -> Timed:
    return Timed(tuple((name, float(value[0])) for name, value in terms.items()))


def _latencies(setting: Setting, concurrency: Array) -> Latencies:
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


def curve(setting: Setting, concurrency: Array) -> tuple[Array, Array, Array]:
    """(TTFT s, TPOT s, requests per s) at each concurrency, shape (n,)."""
    found = _latencies(setting, np.asarray(concurrency, dtype=np.float64))
    return found.ttft_s, found.tpot_s, concurrency / (found.ttft_s + setting.output * found.tpot_s)


def largest_concurrency(setting: Setting, ttft_s: float, tpot_s: float, most: int = 65536) -> int:
    """Most requests in flight with both means within the targets; 0 where not even one is.

    TTFT and TPOT rise with concurrency, so the last that holds is found by halving.
    """

    def holds(concurrency: int) -> bool:
        found = answer(setting, concurrency)
        return found.ttft.seconds <= ttft_s and found.tpot.seconds <= tpot_s

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
