"""Requests that arrive at a rate: the rate that one replica of each layout carries within targets, and what it meets.

Prompts are served one after another by the prefill side of a replica: M/G/1, mean wait by Pollaczek–Khinchine from the
lengths' own moments, tail P(W > x) = ρ·exp(−ρ·x/E[W]) (Kingman's exponential tail, exact for M/M/1). TTFT adds the
request's own prefill, which depends on its length; the two are independent. Sequences that decode are Poisson around
their mean (M/G/∞, Little's law); TPOT at a percentile is the step at that many sequences, an upper estimate because a
request averages over its own decode. They are the free variable: n = rate · out · step(n) ÷ (1 − rate · felt) gives the
rate of every n without search. Targets hold for the wanted share of requests, means where no quantile is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Final

import numpy as np

from clusterwright.physics.serving.constants import columns_of
from clusterwright.physics.serving.steps import (
    pass_floor,
    prefill_terms,
    sequence_costs,
    step_terms,
    total,
)
from clusterwright.plan.searching.columns import Bools, Floats, Ints
from clusterwright.plan.searching.halving import at_once, halved
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.sizing import left_of, replicas_for, replicas_in_pool, sized
from clusterwright.plan.searching.workers import Workers, chunk_tokens, output_tokens, prompt_lengths, spread

#: Sequences at which an idle replica is asked.
_IDLE: Final = 1e-6
#: Largest share of its time that prefill may take where no target of the first token limits it.
BUSIEST: Final = 0.9


@dataclass(frozen=True)
class Met:
    """What requests meet with so many sequences that decode, (n,) columns; `ttft_s`, `tpot_s` at the quantile."""

    rate: Floats
    busy: Floats
    wait_s: Floats
    always_s: Floats
    ttft_mean_s: Floats
    tpot_mean_s: Floats
    tpot_s: Floats


class OpenLoop:
    """Workers under arrivals."""

    def __init__(self, held: Workers) -> None:
        question = held.question
        self._held, self._question = held, question
        self._constants = columns_of(held.constants)
        lengths, output = prompt_lengths(question), output_tokens(question)
        self._output, columns = output, held.columns
        self._ones = np.ones(len(held.wide))
        points = np.array(lengths.points)
        self._own, floor = self._prompts(points, question.lengths.reused_share)
        floor = np.minimum(floor, self._own)
        c = held.constants
        self._felt = (c.mixing * (self._own - floor) + c.alone * floor).mean(axis=1) / columns.groups
        service = self._own / (columns.groups * columns.stages)[:, None]
        self._service, self._square = service.mean(axis=1), (service**2).mean(axis=1)
        self._costs = sequence_costs(columns, spread(lengths.mean + output / 2, self._ones))
        room = columns.groups * columns.cache_tokens / (lengths.mean + c.reserve * output)
        self.most = np.minimum(room, held.running.astype(np.float64))

    def _prompts(self, points: Floats, reused: float) -> tuple[Floats, Floats]:
        """(prefill of every point, what of it does not depend on its tokens), (n, points) s."""
        n, k = len(self._ones), len(points)
        columns = self._held.columns.take(np.repeat(np.arange(n), k))
        tokens, chunk = np.tile(points, n), np.full(n * k, chunk_tokens(self._question))
        own = total(prefill_terms(columns, self._constants, tokens, tokens * reused, chunk, columns.groups))
        floor = pass_floor(columns, self._constants, tokens * (1 - reused), chunk, columns.groups)
        return own.reshape(n, k), floor.reshape(n, k)

    def at(self, running: Floats) -> Met:
        """What requests meet with (n,) sequences that decode."""
        share = self._question.late
        if share is None:
            base = late = self._step(running)
        else:
            later = running + NormalDist().inv_cdf(share) * np.sqrt(running)
            base, late = np.split(self._twice._step(np.concatenate([running, later])), 2)
        rate = running / (self._output * base + running * self._felt)
        left = 1 - rate * self._felt
        return self.arriving(rate, base / left, late / left)

    def arriving(self, rate: Floats, step_s: Floats, late_s: Floats, handover_s: Floats | float = 0.0) -> Met:
        """What requests meet at a rate beside decode steps of that mean and that quantile."""
        busy = rate * self._service
        wait = np.where(busy < 1, rate * self._square / (2 * np.maximum(1 - busy, 1e-12)), np.inf)
        always = self._held.constants.first_ms * 1e-3 + handover_s + 0.5 * step_s
        return Met(rate, busy, wait, always, always + wait + self._own.mean(axis=1), step_s, late_s)

    def ttft_s(self, met: Met) -> Floats:
        """Time to the first token at the quantile."""
        level = self._question.quantile
        if level is None:
            return met.ttft_mean_s
        keeps_up = met.busy < 1
        wait = np.where(keeps_up, met.wait_s, 0.0)
        low, high = met.always_s.copy(), met.always_s + self._own.max(axis=1) + 60 * wait + 1e-9
        high = halved(low, high, lambda seconds: ~(self._share(met, seconds) >= level), self._levels)[1]
        return np.where(keeps_up, high, np.inf)

    def _share(self, met: Met, seconds: Floats | float) -> Floats:
        """Share of requests with their first token within `seconds`, (n,) or any number of those."""
        left = np.asarray(seconds - met.always_s)[..., None] - self._own
        tail = met.busy[:, None] * np.exp(-(met.busy / np.maximum(met.wait_s, 1e-300))[:, None] * np.maximum(left, 0))
        return np.asarray(np.where(left >= 0, 1 - tail, 0.0).mean(axis=-1))

    def first_in_time(self, met: Met) -> Bools:
        """Whether the target of the first token holds."""
        wanted, level = self._question.ttft_s, self._question.quantile
        if wanted is None:
            return np.asarray(met.busy <= BUSIEST)
        if level is None:
            return np.asarray((met.busy < 1) & (met.ttft_mean_s <= wanted))
        return np.asarray((met.busy < 1) & (self._share(met, wanted) >= level))

    def holds(self, running: Floats) -> Bools:
        """Whether both targets hold with so many sequences."""
        met = self.at(running)
        wanted = self._question.tpot_s
        return self.first_in_time(met) & (wanted is None or met.tpot_s <= wanted)

    def running_at(self, rate: Floats) -> Floats:
        """Sequences that decode at a rate below what the replica carries."""
        return self._last(lambda loop, n: np.asarray(loop.at(n).rate <= np.tile(rate, len(n) // len(rate))))

    def largest(self) -> Floats:
        """Most sequences that decode within both targets and the cache; not positive where even one misses them."""
        return np.where(self.holds(self._ones * _IDLE), self._last(lambda loop, n: loop.holds(n)), 0.0)

    def largest_arriving(self, step_s: float, handover_s: Floats) -> Floats:
        """Highest rate of workers that only prefill, with decode steps of `step_s` elsewhere; 0 where none holds."""
        given = spread(step_s, self._ones), np.asarray(handover_s)

        def good(loop: OpenLoop, rate: Floats) -> Bools:
            step, handover = (np.tile(value, len(rate) // len(value)) for value in given)
            return loop.first_in_time(loop.arriving(rate, step, step, handover))

        return np.where(good(self, self._ones * _IDLE), self._last(good, 1 / self._service), 0.0)

    def _last(self, good: Callable[[OpenLoop, Floats], Bools], most: Floats | None = None) -> Floats:
        """Largest value up to `most` that is good, where every smaller one is.

        Args:
            good: by a loop whose workers are these once or several times over, and a value of each.
            most: what the caches hold where it is not said.
        """
        top = self.most if most is None else most
        several = self._several(2**self._levels - 1)

        def above(values: Floats) -> Bools:
            return good(several, values.ravel()).reshape(values.shape)

        return np.where(good(self, top), top, halved(np.zeros_like(top), top, above, self._levels)[0])

    @property
    def _levels(self) -> int:
        return at_once(self._own.size)

    @cached_property
    def _twice(self) -> OpenLoop:
        return self._several(2)

    def _several(self, times: int) -> OpenLoop:
        """The same workers that many times over, one whole set after the other."""
        rows = np.tile(np.arange(len(self._ones)), times)
        more = copy(self)
        more.__dict__.pop("_twice", None)
        more._held = replace(self._held, columns=self._held.columns.take(rows))
        more._costs = type(self._costs)(*(cost[rows] for cost in self._costs))
        for name in ("_ones", "_own", "_felt", "_service", "_square", "most"):
            setattr(more, name, getattr(self, name)[rows])
        return more

    def _step(self, running: Floats) -> Floats:
        columns = self._held.columns
        width = self._ones * self._held.width
        terms = step_terms(columns, self._constants, running / columns.groups, self._costs, width)
        return total(terms) / self._held.kept


class DecodeLoop(OpenLoop):
    """Workers that only decode: no prompt holds a step up, and no first token is theirs."""

    def __init__(self, held: Workers) -> None:
        super().__init__(held)
        self._felt = np.zeros_like(self._ones)

    def first_in_time(self, met: Met) -> Bools:
        """Nothing of it is theirs."""
        return np.ones(len(met.rate), dtype=np.bool_)


def operate(held: Workers) -> tuple[dict[str, Floats], Ints]:
    """Rate, latencies, replicas, GPUs of every worker, and the reason of those that miss a target.

    Latencies are those at the load, shared evenly among the replicas that are needed, or that declared losses leave.
    """
    question, loop = held.question, OpenLoop(held)
    idle = loop.at(np.full(len(held.wide), _IDLE))
    largest = loop.largest()
    possible = largest > 0
    carried = loop.at(np.maximum(largest, _IDLE)).rate
    needed, rate = np.ones(len(held.wide)), carried
    if question.rate is not None:
        needed = np.where(possible, replicas_for(question.rate, carried), 1.0)
        if question.goal == "latency" and question.pool.nodes is not None and not question.spread:
            needed = np.maximum(needed, replicas_in_pool(question, held.wide))
        left = needed if question.replicas is None else np.maximum(left_of(question, needed, held.wide), 1.0)
        rate = np.minimum(question.rate / left, carried)
    met = loop.at(np.maximum(loop.running_at(rate), _IDLE))
    served = rate * needed if question.rate is None else np.full(len(needed), question.rate)
    found = {
        "concurrency": rate * (met.ttft_mean_s + output_tokens(question) * met.tpot_mean_s),
        "ttft_s": loop.ttft_s(met),
        "tpot_s": met.tpot_s,
        "requests_s": carried,
        "first_ttft_s": loop.ttft_s(idle),
        "first_tpot_s": idle.tpot_s,
    } | sized(question, needed, served, held.wide)
    missed = np.where(loop.first_in_time(idle), int(Reason.TPOT), int(Reason.TTFT))
    few = possible & (needed > left_of(question, needed, held.wide))
    return found, np.where(few, int(Reason.LOAD), np.where(possible, int(Reason.NONE), missed))
