"""A fixed number of requests in flight: the most that one replica takes within targets, as benchmarks count them.

Targets are means over requests, the first token's that of a prompt at the wanted quantile of lengths among prompts of
mean length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clusterwright.physics.serving.closed import aggregated, load
from clusterwright.physics.serving.constants import columns_of
from clusterwright.physics.serving.sides import SideColumns
from clusterwright.physics.serving.steps import prefill_terms, total
from clusterwright.plan.searching.columns import Bools, Floats, Ints
from clusterwright.plan.searching.questions import ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.sizing import replicas_for, replicas_in_pool, sized
from clusterwright.plan.searching.workers import Workers, chunk_tokens, output_tokens, prompt_lengths, spread


@dataclass(frozen=True)
class Speeds:
    """Latencies at a concurrency each, columns of one shape: s, and requests per second of one replica."""

    ttft_s: Floats
    tpot_s: Floats
    requests_s: Floats

    def meet(self, question: ServingQuestion) -> Bools:
        """Whether both targets are met."""
        first = np.inf if question.ttft_s is None else question.ttft_s
        each = np.inf if question.tpot_s is None else question.tpot_s
        return np.asarray((self.ttft_s <= first) & (self.tpot_s <= each))


def ladder(most: int) -> Ints:
    """Whole numbers from 1 to `most`, four to an octave."""
    steps = np.round(2.0 ** (np.arange(4 * max(most, 1).bit_length() + 1) / 4)).astype(np.int64)
    return np.array(sorted({*steps[steps <= most].tolist(), max(most, 1)}), dtype=np.int64)


def speeds(held: Workers, columns: SideColumns, concurrency: Floats) -> Speeds:
    """Latencies of (n,) workers at (n,) requests in flight each."""
    lengths, constants = held.question.lengths, columns_of(held.constants)
    output = spread(output_tokens(held.question), concurrency)
    reused = lengths.reused_share
    chunk, mean_in = chunk_tokens(held.question), spread(lengths.mean_in, concurrency)
    work = load(concurrency, mean_in, output, cached=reused * lengths.mean_in, chunk=chunk)
    found = aggregated(columns, constants, work)
    quantile = held.question.quantile
    long = lengths.mean_in if quantile is None else prompt_lengths(held.question).quantile(quantile)
    longer = np.zeros_like(concurrency)
    if long > lengths.mean_in:
        busy, most = np.clip(concurrency, 1, columns.groups), spread(chunk, concurrency)
        own, mean = (
            total(prefill_terms(columns, constants, prompt, reused * prompt, most, busy))
            for prompt in (spread(long, concurrency), mean_in)
        )
        longer = own - mean
    return Speeds(found.ttft_s + longer, found.tpot_s, found.requests_s(work))


def operate(held: Workers) -> tuple[dict[str, Floats], Ints]:
    """Concurrency, latencies, replicas, GPUs of every worker, and the reason of those that miss a target."""
    question = held.question
    most = np.maximum(np.minimum(np.floor(held.places), held.running), 1).astype(np.int64)
    steps = ladder(int(most.max()))
    tried = np.minimum(steps[None, :], most[:, None])
    on_ladder = _on_ladder(held, tried)
    met = on_ladder.meet(question)
    needed_at = _needed(question, tried)
    concurrency = _largest(held, tried, met)
    if question.goal == "latency" and (question.pool.nodes is not None or question.concurrency is None):
        allowed = met & (needed_at <= replicas_in_pool(question, held.wide)[:, None])
        fewest = tried[np.arange(len(most)), np.argmax(allowed, axis=1)]
        concurrency = np.where(allowed.any(axis=1), fewest, concurrency)
    at = _at(held, concurrency, tried, on_ladder)
    needed = _needed(question, concurrency)
    served = at.requests_s * needed
    if question.concurrency is not None:
        served = at.requests_s / concurrency * question.concurrency
    found = {
        "concurrency": concurrency.astype(np.float64),
        "ttft_s": at.ttft_s,
        "tpot_s": at.tpot_s,
        "requests_s": at.requests_s,
        "first_ttft_s": on_ladder.ttft_s[:, 0],
        "first_tpot_s": on_ladder.tpot_s[:, 0],
    } | sized(question, needed, served, held.wide)
    late = on_ladder.ttft_s[:, 0] > (np.inf if question.ttft_s is None else question.ttft_s)
    missed = np.where(late, int(Reason.TTFT), int(Reason.TPOT))
    return found, np.where(met.any(axis=1), int(Reason.NONE), missed)


def _at(held: Workers, concurrency: Ints, tried: Ints, on_ladder: Speeds) -> Speeds:
    """Latencies at n concurrencies: from the ladder where all are on it, as without targets."""
    there = tried == concurrency[:, None]
    if not there.any(axis=1).all():
        return speeds(held, held.columns, concurrency.astype(np.float64))
    found = np.arange(len(tried)), np.argmax(there, axis=1)
    return Speeds(on_ladder.ttft_s[found], on_ladder.tpot_s[found], on_ladder.requests_s[found])


def _needed(question: ServingQuestion, concurrency: Ints) -> Floats:
    if question.concurrency is None:
        return np.ones(concurrency.shape)
    return replicas_for(question.concurrency, concurrency)


def _on_ladder(held: Workers, tried: Ints) -> Speeds:
    """Latencies of n workers at k concurrencies, (n, k)."""
    n, k = tried.shape
    columns = held.columns.take(np.repeat(np.arange(n), k))
    found = speeds(held, columns, tried.ravel().astype(np.float64))
    return Speeds(found.ttft_s.reshape(n, k), found.tpot_s.reshape(n, k), found.requests_s.reshape(n, k))


def _largest(held: Workers, tried: Ints, met: Bools) -> Ints:
    """Largest whole concurrency within the targets, between the last step of the ladder that holds and the next."""
    rows, last = np.arange(len(tried)), met.shape[1] - 1
    best = last - np.argmax(met[:, ::-1], axis=1)
    low = tried[rows, best]
    after = tried[rows, np.minimum(best + 1, last)]
    high = np.where(met.any(axis=1), np.maximum(after, low + 1), low + 1)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        good = speeds(held, held.columns, np.maximum(middle, 1).astype(np.float64)).meet(held.question)
        open_ = high - low > 1
        low, high = np.where(open_ & good, middle, low), np.where(open_ & ~good, middle, high)
    return np.asarray(low)
