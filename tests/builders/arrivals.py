"""Requests that arrive at a rate, written out one by one: what `plan.searching.open_loop` must agree with.

Prompts are served one after another by the prefill side of a replica: M/G/1, mean wait by Pollaczek–Khinchine from the
lengths' own moments, tail P(W > x) = ρ·exp(−ρ·x/E[W]) (Kingman's exponential tail, exact for M/M/1). TTFT adds the
request's own prefill, which depends on its length; the two are independent. Sequences that decode are Poisson around
their mean (M/G/∞, Little's law); TPOT at a percentile is the step at that many sequences, an upper estimate because a
request averages over its own decode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from clusterwright.physics.serving.constants import Array, Constants, columns_of
from clusterwright.physics.serving.lengths import Lengths
from clusterwright.physics.serving.sides import Side, SideColumns, stack
from clusterwright.physics.serving.steps import (
    CHUNK_TOKENS,
    pass_floor,
    prefill_terms,
    sequence_costs,
    step_terms,
    total,
)

_HALVINGS: Final = 48


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests of one kind.

    Args:
        prompt, output: lengths. reused: share of prompt tokens that need no prefill.
    """

    prompt: Lengths
    output: Lengths
    reused: float = 0.0


@dataclass(frozen=True, slots=True)
class Met:
    """What requests meet at a rate; infinite where a replica cannot keep up.

    Args:
        busy: share of time that the prefill side works, ρ.
        running: sequences that decode at a time, mean.
    """

    busy: float
    running: float
    ttft_mean_s: float
    ttft_s: float
    tpot_mean_s: float
    tpot_s: float


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica: prefill and decode on the same worker, or `decode` workers fed by `first`.

    Args:
        first: prefill worker where they are apart, `prefill_workers` of them.
    """

    decode: Side
    constants: Constants
    first: Side | None = None
    prefill_workers: int = 1
    decode_workers: int = 1

    def prompts_s(self, stream: Stream) -> Array:
        """Seconds of the prefill of each point of the prompt lengths."""
        side, held = self._first, columns_of(self.constants)
        lengths = np.array(stream.prompt.points)
        chunk, groups = np.full_like(lengths, CHUNK_TOKENS), np.broadcast_to(side.groups, lengths.shape)
        return total(prefill_terms(side, held, lengths, lengths * stream.reused, chunk, groups))

    @property
    def _first(self) -> SideColumns:
        return stack([self.first or self.decode])

    @property
    def lines(self) -> float:
        """Prompts that are worked on at the same time."""
        side = self.first or self.decode
        return side.groups * side.stages * (self.prefill_workers if self.first else 1)

    def step_s(self, running: float, stream: Stream) -> float:
        """Seconds of a decode step with `running` sequences over all decode workers, without prompts beside it."""
        side, held = stack([self.decode]), columns_of(self.constants)
        costs = sequence_costs(side, np.array([stream.prompt.mean + stream.output.mean / 2]))
        each = np.array([running / (self.decode.groups * self.decode_workers)])
        return float(total(step_terms(side, held, each, costs, np.ones(1)))[0])

    def felt_s(self, stream: Stream) -> float:
        """Seconds by which one prompt holds up the decode steps of its group; 0 where prefill is apart."""
        if self.first is not None:
            return 0.0
        held, side = columns_of(self.constants), self._first
        lengths = np.array(stream.prompt.points)
        prompts = self.prompts_s(stream)
        chunk, groups = np.full_like(lengths, CHUNK_TOKENS), np.broadcast_to(side.groups, lengths.shape)
        floor = np.minimum(pass_floor(side, held, lengths * (1 - stream.reused), chunk, groups), prompts)
        c = self.constants
        return float((c.mixing * (prompts - floor) + c.alone * floor).mean())

    def room(self, stream: Stream) -> float:
        """Sequences that the caches of all decode workers hold."""
        groups = self.decode.groups * self.decode_workers
        return groups * self.decode.cache_tokens / (stream.prompt.mean + self.constants.reserve * stream.output.mean)


def meet(replica: Replica, stream: Stream, rate: float, level: float = 0.95) -> Met:
    """TTFT and TPOT of one replica at `rate` requests per second; `ttft_s` and `tpot_s` are of share `level`."""
    prompts = replica.prompts_s(stream)
    service = prompts / replica.lines
    busy = rate * float(service.mean())
    if busy >= 1:
        return Met(busy, math.inf, math.inf, math.inf, math.inf, math.inf)
    running, mean_step = _running(replica, stream, rate)
    if running > replica.room(stream):
        return Met(busy, running, math.inf, math.inf, mean_step, math.inf)
    c = replica.constants
    always = (c.first_ms + (c.handover_ms if replica.first else 0.0)) * 1e-3 + 0.5 * mean_step
    wait = rate * float((service**2).mean()) / (2 * (1 - busy)) if rate > 0 else 0.0
    high = running + NormalDist().inv_cdf(level) * math.sqrt(running)
    late = _step(replica, stream, rate, high)
    return Met(
        busy,
        running,
        always + wait + float(prompts.mean()),
        always + _quantile(prompts, busy, wait, level),
        mean_step,
        late,
    )


def _step(replica: Replica, stream: Stream, rate: float, running: float) -> float:
    """Step with what prompts take from it: they use a share rate × felt ÷ groups of each group's time."""
    taken = rate * replica.felt_s(stream) / (replica.decode.groups * replica.decode_workers)
    return replica.step_s(running, stream) / (1 - taken) if taken < 1 else math.inf


def _running(replica: Replica, stream: Stream, rate: float) -> tuple[float, float]:
    """Sequences that decode, n = rate·out·step(n), and that step; infinite where no n carries the rate."""
    low, high = 0.0, 1.0
    while high < rate * stream.output.mean * _step(replica, stream, rate, high):
        high *= 2
        if high > 1e6:
            return math.inf, math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle < rate * stream.output.mean * _step(replica, stream, rate, middle):
            low = middle
        else:
            high = middle
    return high, _step(replica, stream, rate, high)


def _quantile(own: Array, busy: float, wait: float, level: float) -> float:
    """Quantile of own prefill plus wait, where a share 1 − ρ waits not at all and the rest exponentially."""

    def within(seconds: float) -> float:
        left = seconds - own
        if wait <= 0:
            return float((left >= 0).mean())
        return float(np.where(left >= 0, 1 - busy * np.exp(-busy * np.maximum(left, 0) / wait), 0.0).mean())

    low, high = 0.0, float(own.max()) + 1e-9
    while within(high) < level:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if within(middle) >= level else (middle, high)
    return high


def carried(replica: Replica, stream: Stream, ttft_s: float, tpot_s: float, level: float = 0.95) -> float:
    """Most requests per second of one replica with share `level` within both targets; 0 where none is."""

    def holds(rate: float) -> bool:
        met = meet(replica, stream, rate, level)
        return met.ttft_s <= ttft_s and met.tpot_s <= tpot_s

    high = replica.lines / float(replica.prompts_s(stream).mean())
    low = 0.0
    if not holds(high * 1e-6):
        return 0.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def replicas(
    replica: Replica, stream: Stream, rate: float, ttft_s: float, tpot_s: float, level: float = 0.95
) -> int | None:
    """Replicas that carry `rate` with share `level` within both targets; None where one request alone misses them."""
    each = carried(replica, stream, ttft_s, tpot_s, level)
    return math.ceil(rate / each - 1e-9) if each > 0 else None
