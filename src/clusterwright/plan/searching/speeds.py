"""TTFT and TPOT of many layouts at many concurrencies, and the largest concurrency within targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clusterwright.model.decoders import Decoder
from clusterwright.physics.engines.settings import cache_format
from clusterwright.physics.layouts import Layout
from clusterwright.physics.loading import QUANTISATIONS
from clusterwright.physics.serving.closed import aggregated, load
from clusterwright.physics.serving.constants import Constants, columns_of
from clusterwright.physics.serving.sides import SideColumns, side, stack
from clusterwright.physics.serving.steps import CHUNK_TOKENS, prefill_terms, total
from clusterwright.physics.serving.traffic import BYTES, Traffic, traffic
from clusterwright.plan.searching.columns import Bools, Floats, Ints
from clusterwright.plan.searching.machines import device
from clusterwright.plan.searching.objectives import request_at
from clusterwright.plan.searching.questions import ServingQuestion


@dataclass(frozen=True)
class Speeds:
    """Latencies of rows at a concurrency each, columns of one shape: s, and requests per second of one replica."""

    ttft_s: Floats
    tpot_s: Floats
    requests_s: Floats

    def meet(self, question: ServingQuestion) -> Bools:
        """Whether both targets are met."""
        first = np.inf if question.ttft_s is None else question.ttft_s
        each = np.inf if question.tpot_s is None else question.tpot_s
        return np.asarray((self.ttft_s <= first) & (self.tpot_s <= each))


def served_traffic(question: ServingQuestion, decoder: Decoder) -> Traffic:
    """What serving the model moves; `decoder` as it is stored when served.

    Raises:
        KeyError: if the GPU has no unit for products of the weights' format.
    """
    form = cache_format(decoder, question.kv_format, "fp8_ds_mla" if question.engine == "vllm" else "bf16")
    cache = "fp8" if form.startswith("fp8") else form
    moved = traffic(decoder, cache=cache if cache in BYTES else "bf16")
    gpu = device(question.pool)
    for weight in (*moved.weights, *moved.experts):
        gpu.rate(weight.format)
    return moved


def worker_columns(
    question: ServingQuestion, moved: Traffic, layouts: Sequence[Layout], cache_tokens: Sequence[float]
) -> SideColumns:
    """Workers of these layouts with the tokens that one group's cache holds.

    A cache that ranks share by position (decode context parallel) is read as if each rank had all of it: what that
    saves is kept against the exchange of partial results, which has not been measured.
    """
    gpu = device(question.pool)
    return stack([side(moved, layout, gpu, cache_tokens=t) for layout, t in zip(layouts, cache_tokens, strict=True)])


def speeds(question: ServingQuestion, workers: SideColumns, constants: Constants, concurrency: Floats) -> Speeds:
    """Latencies of (n,) workers at (n,) requests in flight each.

    The time to first token is that of a prompt at the wanted quantile of lengths among prompts of mean length.
    """
    lengths, held = question.lengths, columns_of(constants)
    prompt, output = (np.full_like(concurrency, each) for each in (lengths.mean_in, max(lengths.mean_out, 1.0)))
    work = load(concurrency, prompt, output, cached=lengths.reused_share * lengths.mean_in)
    found = aggregated(workers, held, work)
    long = request_at(lengths.mean_in, lengths.p95_in, question.quantile)
    longer = np.zeros_like(concurrency)
    if long > lengths.mean_in:
        busy, chunk = np.clip(concurrency, 1, workers.groups), np.full_like(concurrency, CHUNK_TOKENS)
        alone = [
            total(prefill_terms(workers, held, np.full_like(concurrency, each), reused, chunk, busy))
            for each in (long, lengths.mean_in)
            for reused in (np.full_like(concurrency, lengths.reused_share * each),)
        ]
        longer = alone[0] - alone[1]
    return Speeds(found.ttft_s + longer, found.tpot_s, found.requests_s(work))


def speeds_on_ladder(
    question: ServingQuestion, workers: SideColumns, constants: Constants, steps: Ints, most: Ints
) -> Speeds:
    """Latencies of n workers at each of k concurrencies, (n, k); beyond `most` of a worker they are those at `most`."""
    n, k = len(most), len(steps)
    rows = np.repeat(np.arange(n), k)
    tried = np.minimum(np.tile(steps, n), most[rows]).astype(np.float64)
    found = speeds(question, workers.take(rows), constants, tried)
    return Speeds(found.ttft_s.reshape(n, k), found.tpot_s.reshape(n, k), found.requests_s.reshape(n, k))


def largest_within(
    question: ServingQuestion, workers: SideColumns, constants: Constants, low: Ints, high: Ints
) -> Ints:
    """Largest whole concurrency from `low`, which meets the targets, to below `high`, which does not; (n,) each."""
    low, high = low.copy(), high.copy()
    while np.any(high - low > 1):
        middle = (low + high) // 2
        good = speeds(question, workers, constants, np.maximum(middle, 1).astype(np.float64)).meet(question)
        open_ = high - low > 1
        low, high = np.where(open_ & good, middle, low), np.where(open_ & ~good, middle, high)
    return low


def known_format(name: str | None) -> bool:
    """Whether weights can be asked for in this format; None is as stored."""
    return name is None or name in QUANTISATIONS
