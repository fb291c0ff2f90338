"""One replica under arrivals, built from plain numbers that a plan keeps as figures.

The formulas are the search's over one row: a plan and the search that chose its layout say the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Final, ParamSpec, TypeVar

import numpy as np

from clusterwright.model.decoders import Decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.answers import Setting
from clusterwright.physics.serving.constants import NAMES, Constants
from clusterwright.physics.serving.sides import Device, Side, side, stack
from clusterwright.physics.serving.steps import prefill_terms, step_terms
from clusterwright.physics.serving.traffic import Traffic
from clusterwright.physics.speculations import drafted_side
from clusterwright.plan.searching.columns import Bools, Floats
from clusterwright.plan.searching.open_loop import Met, OpenLoop
from clusterwright.plan.searching.questions import Lengths, Pool, ServingQuestion
from clusterwright.plan.searching.workers import Workers, chunk_tokens

#: Sequences at which an idle replica is asked.
IDLE: Final = 1e-6
#: Points that a search asks at once, and how often it narrows: 32⁶ parts of the interval, as fine as the search's own.
ROWS: Final = 32
_ROUNDS: Final = 6
_GRID: Final = np.arange(1, ROWS + 1) / ROWS


@dataclass(frozen=True)
class Targets:
    """Seconds until the first token and per later token, and the share of requests that must meet each; None: mean."""

    first_s: float | None = None
    first_share: float | None = None
    step_s: float | None = None
    step_share: float | None = None


P = ParamSpec("P")
R = TypeVar("R")


def _quiet(function: Callable[P, R]) -> Callable[P, R]:
    """The function without warnings: a load that no replica takes gives infinities, which figures carry."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return called


class Loop(OpenLoop):
    """A replica under arrivals.

    Its rows are all alike: searches ask ROWS points at once.
    """

    def __init__(self, held: Workers, worker: Side) -> None:
        self.worker = worker
        self._decoding: dict[float, float] = {}
        self._terms: dict[float, dict[str, float]] = {}
        super().__init__(held)

    @_quiet
    def at(self, running: Floats) -> Met:
        """What requests meet with so many sequences that decode."""
        return super().at(running)

    @_quiet
    def first_in_time(self, met: Met) -> Bools:
        """Whether the target of the first token holds."""
        return super().first_in_time(met)

    @_quiet
    def met(self, running: float) -> Met:
        """What requests meet with so many sequences that decode, the same in every row."""
        return self.at(self._ones * max(running, IDLE))

    @cached_property
    def setting(self) -> Setting:
        """The replica with as many requests in flight as there are clients, as benchmarks ask it."""
        lengths, held = self._question.lengths, self._held
        return Setting(
            decode=self.worker,
            constants=held.constants,
            prompt=lengths.mean_in,
            output=self._output,
            cached=lengths.mean_in * lengths.reused_share,
            width=held.width,
            accepted=held.kept,
        )

    @cached_property
    def room(self) -> float:
        """Sequences that cache and engine hold."""
        return float(self.most[0])

    @cached_property
    @_quiet
    def sequences(self) -> float:
        """Most sequences that decode within both targets and the cache; 0 where even one request alone misses them."""
        if not bool(self.holds(self._ones * IDLE)[0]):
            return 0.0
        return _last(self.holds, self.room)

    @_quiet
    def decoding_at(self, rate: float) -> float:
        """Sequences that decode at a rate; all that fit where the rate is more than is carried."""
        if rate not in self._decoding:
            self._decoding[rate] = _last(lambda n: np.asarray(self.at(n).rate <= rate), self.room)
        return self._decoding[rate]

    def first_s(self, running: float) -> float:
        """Seconds until the first token at its share of requests, with so many sequences that decode."""
        return self._first(self.met(running))

    @_quiet
    def first_handed(self, rate: float, step_s: float, handover_s: float) -> float:
        """The same of a worker that only prefills at a rate, with decode steps of `step_s` elsewhere."""
        return self._first(self.arriving(rate * self._ones, step_s * self._ones, step_s * self._ones, handover_s))

    @cached_property
    def _handed(self) -> dict[tuple[float, float], float]:
        return {}

    @_quiet
    def prefilled(self, step_s: float, handover_s: float) -> float:
        """Most requests per second of a worker that only prefills within the target of the first token; 0: none."""
        key = (step_s, handover_s)
        if key not in self._handed:
            step = step_s * self._ones

            def good(rate: Floats) -> Bools:
                return self.first_in_time(self.arriving(rate, step, step, handover_s))

            able = bool(good(self._ones * IDLE)[0])
            self._handed[key] = _last(good, float(1 / self._service[0])) if able else 0.0
        return self._handed[key]

    @_quiet
    def _first(self, met: Met) -> float:
        level = self._question.quantile
        if level is None:
            return float(met.ttft_mean_s[0])
        if met.busy[0] >= 1:
            return math.inf
        least = float(met.always_s[0])
        wide = float(self._own[0].max()) + 60 * float(met.wait_s[0]) + 1e-9
        return least + _last(lambda t: self._share(met, least + t) < level, wide)

    @_quiet
    def terms(self, running: float) -> dict[str, float]:
        """Seconds of a decode step by term, prompts of others included, for each token that it keeps."""
        if running not in self._terms:
            columns, rows = self._held.columns, self._ones * max(running, IDLE)
            width, kept = self._ones * self._held.width, self._held.kept
            found = step_terms(columns, self._constants, rows / columns.groups, self._costs, width)
            found["prompts of others"] = (self.at(rows).tpot_mean_s - self._step(rows)) * kept
            self._terms[running] = {name: float(value[0]) / kept for name, value in found.items()}
        return self._terms[running]

    @_quiet
    def prefill(self, tokens: float) -> dict[str, float]:
        """Seconds of the prefill of one prompt by term."""
        columns, ones = self._held.columns, self._ones
        cached = tokens * self._question.lengths.reused_share * ones
        chunk = chunk_tokens(self._question) * ones
        found = prefill_terms(columns, self._constants, tokens * ones, cached, chunk, columns.groups)
        return {name: float(np.broadcast_to(value, ones.shape)[0]) for name, value in found.items()}


class DecodingLoop(Loop):
    """A worker that only decodes: no prompt holds a step up, and no first token is its own."""

    def __init__(self, held: Workers, worker: Side) -> None:
        super().__init__(held, worker)
        self._felt = np.zeros_like(self._ones)

    def first_in_time(self, met: Met) -> Bools:
        """Nothing of it is theirs."""
        return np.ones(len(met.rate), dtype=np.bool_)


def _last(good: Callable[[Floats], Bools], most: float) -> float:
    """Largest value up to `most` that is good, where every smaller one is."""
    low, high = 0.0, most
    for _ in range(_ROUNDS):
        points = low + (high - low) * _GRID
        holds = np.asarray(good(points))
        count = int(np.argmin(holds)) if not holds.all() else len(points)
        if count == len(points):
            return high if high == most else low
        low, high = (float(points[count - 1]) if count else low), float(points[count])
    return low


@dataclass(frozen=True)
class Case:
    """What of a replica is never estimated.

    Args:
        groups: attention groups of the replica.
        prompts: tokens that stand for equal shares of the requests; empty where mean and percentile are all that is
            known.
        chunk: most prompt tokens of one pass, None: the engine's.
        decodes: the replica only decodes what others prefilled.
        drafter: one pass of what drafts, `drafted` tokens a step; None without speculation.
    """

    decoder: Decoder
    traffic: Traffic
    layout: Layout
    pool: Pool
    device: Device
    targets: Targets
    groups: int
    prompts: tuple[float, ...] = ()
    chunk: int | None = None
    drafter: Traffic | None = None
    drafted: int = 0
    decodes: bool = False


@dataclass(frozen=True)
class Numbers:
    """Inputs of a replica as numbers.

    Args:
        constants: of the engine. rates: format → FLOP/s, and `memory`, `link`, `nic` B/s.
        weights, cache: factors on the bytes of weights and of cached entries.
        prompt, late, output: tokens of a mean prompt, of the 95th percentile (0: all alike), of a mean answer.
        reused: share of prompt tokens that need no prefill. kept: tokens that a step of one sequence keeps.
        places: sequences of mean length that all caches hold. running: that the engine runs at a time.
    """

    constants: tuple[float, ...]
    rates: tuple[tuple[str, float], ...]
    weights: float
    cache: float
    prompt: float
    late: float
    reused: float
    kept: float
    output: float
    places: float
    running: float
    first_s: float | None
    step_s: float | None


@_quiet
def loop_of(case: Case, numbers: Numbers) -> Loop:
    """The replica of these numbers."""
    rates = dict(numbers.rates)
    device = replace(
        case.device,
        bandwidth_bytes_s=rates["memory"],
        link_bytes_s=rates.get("link", case.device.link_bytes_s),
        nic_bytes_s=rates.get("nic", case.device.nic_bytes_s),
        node_bytes_s=rates.get("pcie", case.device.node_bytes_s),
        flops_s=dict(case.device.flops_s) | {k: v for k, v in rates.items() if k in case.device.flops_s},
    )
    mean = numbers.prompt + numbers.output
    room = numbers.places * mean / case.groups
    worker = side(case.traffic, case.layout, device, cache_tokens=room)
    worker = _scaled(worker, numbers.weights, numbers.cache)
    if case.drafter is not None:
        worker = drafted_side(worker, side(case.drafter, case.layout, device, cache_tokens=room), case.drafted)
    held = Workers(
        question=ServingQuestion(
            decoder=case.decoder,
            pool=case.pool,
            lengths=Lengths(
                numbers.prompt,
                numbers.output,
                numbers.late or None,
                reused_share=numbers.reused,
                prompts=_scaled_to(case.prompts, numbers.prompt),
            ),
            ttft_s=numbers.first_s,
            tpot_s=numbers.step_s,
            quantile=case.targets.first_share,
            step_quantile=case.targets.step_share,
            max_num_batched_tokens=case.chunk,
        ),
        constants=Constants(**dict(zip(NAMES, numbers.constants, strict=True))),
        columns=stack([worker] * ROWS),
        wide=np.full(ROWS, case.layout.gpus),
        places=np.full(ROWS, numbers.places),
        running=np.full(ROWS, round(numbers.running)),
        width=case.drafted + 1.0,
        kept=numbers.kept,
    )
    return DecodingLoop(held, worker) if case.decodes else Loop(held, worker)


def _scaled_to(points: tuple[float, ...], mean: float) -> tuple[float, ...]:
    """The points with this mean."""
    return tuple(p * mean * len(points) / sum(points) for p in points)


def _scaled(worker: Side, weights: float, cache: float) -> Side:
    """The worker with factors on the bytes that it reads."""
    if (weights, cache) == (1.0, 1.0):
        return worker
    return replace(
        worker,
        dense_read=worker.dense_read * weights,
        expert_read=worker.expert_read * weights,
        piece_read=tuple(p * cache for p in worker.piece_read),
    )
