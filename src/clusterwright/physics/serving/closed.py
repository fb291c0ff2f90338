"""A fixed number of requests in flight: TTFT and TPOT at a concurrency, aggregated and disaggregated.

Closed loop, as benchmarks run it: each client sends its next request when the last has ended. With running sequences
n of C requests, Little's law gives n·(TTFT + out·TPOT) = C·out·TPOT, solved by bisection on n. What does not fit the
cache waits for a place.

Aggregated: during one request's life each of the n − 1 others brings one prefill. A share `bunching` of them lies
before its first token, the rest among its decode steps. There `mixing` of the products is felt and `alone` of what a
pass costs whatever it holds: engines put chunks of prompts and decode tokens into one pass (Sarathi-Serve, OSDI 2024;
vLLM's scheduler and TensorRT-LLM's in-flight batching do; SGLang runs prefills first, several prompts in one pass).
Whatever the shares, a group takes one prompt after another: in the life of a request all of them are prefilled, so
TTFT + out·TPOT ≥ C·t_prefill, which counts where outputs are short; stages do not shorten it, as they do not shorten
what decode steps feel of a prompt.

Disaggregated: prompts queue at the prefill workers, the cache is handed over, the decode workers hold the sequences.
Prompts that wait share passes as far as these have room (vLLM max_num_batched_tokens, SGLang chunked-prefill-size,
TensorRT-LLM max_num_tokens: prompts are packed up to it). Attention groups of a worker share its experts only while
they prefill at the same time, which they do as much as the worker is busy.
When prompts arrive faster than prefill workers take them, the loop itself holds them back: TTFT ≥ C·t_prefill ÷ workers
− out·TPOT; when decode workers have no place, TTFT ≥ (C ÷ places − 1)·out·TPOT. The tighter limit counts, not both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from clusterwright.physics.serving.constants import Array, ConstantColumns, Rows
from clusterwright.physics.serving.sides import SideColumns
from clusterwright.physics.serving.steps import (
    CHUNK_TOKENS,
    Terms,
    pass_floor,
    prefill_terms,
    sequence_costs,
    step_terms,
    total,
)

#: Halvings of the interval of running sequences.
_HALVINGS: Final = 18
#: Sequences from which the interval starts; it is halved in logarithms, so the precision is relative.
_FEWEST: Final = 1e-4


@dataclass(frozen=True)
class Load:
    """Requests as columns, each of shape (rows,).

    Args:
        concurrency: requests in flight, over all workers.
        prompt, output: mean tokens; `cached` of the prompt need no prefill.
        width: tokens of a decode step per sequence (drafts and the token they follow), of which `accepted` are kept.
        chunk: most prompt tokens of one pass.
    """

    concurrency: Array
    prompt: Array
    output: Array
    cached: Array
    width: Array
    accepted: Array
    chunk: Array

    def take(self, rows: Rows) -> Load:
        """The chosen rows."""
        return Load(**{name: value[rows] for name, value in vars(self).items()})


def load(concurrency: Array, prompt: Array, output: Array, **other: float) -> Load:
    """A load without prefix reuse and speculation unless given; scalars spread over the rows."""
    fixed = {"cached": 0.0, "width": 1.0, "accepted": 1.0, "chunk": CHUNK_TOKENS} | other
    shape = np.broadcast(concurrency, prompt, output).shape or (1,)
    spread = {k: np.broadcast_to(np.asarray(v, dtype=np.float64), shape) for k, v in fixed.items()}
    main = (np.broadcast_to(np.asarray(v, dtype=np.float64), shape) for v in (concurrency, prompt, output))
    return Load(*main, **spread)


@dataclass(frozen=True)
class Latencies:
    """What a load meets, columns of shape (rows,): s by term, and sequences that decode at a time over all workers."""

    ttft: Terms
    tpot: Terms
    running: Array

    @property
    def ttft_s(self) -> Array:
        """Time to the first token."""
        return total(self.ttft)

    @property
    def tpot_s(self) -> Array:
        """Time per output token after the first."""
        return total(self.tpot)

    def requests_s(self, load: Load) -> Array:
        """Requests completed per second over all workers, by Little's law."""
        return load.concurrency / (self.ttft_s + load.output * self.tpot_s)


def aggregated(side: SideColumns, held: ConstantColumns, work: Load) -> Latencies:
    """TTFT and TPOT of one worker that prefills and decodes."""
    each = work.concurrency / side.groups
    room = np.maximum(side.cache_tokens / (work.prompt + held.reserve * work.output), 1.0)
    busy = np.clip(work.concurrency, 1, side.groups)
    own = prefill_terms(side, held, work.prompt, work.cached, work.chunk, busy)
    prompt = total(own)
    floor = np.minimum(pass_floor(side, held, work.prompt - work.cached, work.chunk, busy), prompt)
    among = held.mixing * (prompt - floor) + held.alone * floor
    felt, line = (1 - held.bunching) * among, each * among
    costs = sequence_costs(side, work.prompt + work.output / 2)

    def tpot(running: Array) -> Terms:
        terms = step_terms(side, held, running, costs, work.width)
        terms = {name: value / work.accepted for name, value in terms.items()}
        terms["prompts of others"] = felt * np.maximum(running - 1, 0) / work.output
        return terms

    def ttft(running: Array, step: Array) -> Terms:
        terms = dict(own)
        together = np.minimum(each, room)
        terms["other prompts"] = prompt * held.bunching * np.maximum(together - 1, 0)
        terms["running step"] = 0.5 * step
        terms["waiting for cache"] = np.maximum(each / room - 1, 0) * (prompt + work.output * step)
        terms["first"] = held.first_ms * 1e-3 + np.zeros_like(step)
        return terms

    running = _running(each, np.minimum(each, room), work.output, tpot, ttft)
    steps = tpot(running)
    decode = work.output * total(steps)
    first = ttft(running, total(steps))
    first["other prompts"] = first["other prompts"] + np.maximum(line - decode - total(first), 0)
    return Latencies(first, steps, np.minimum(running, each * decode / (total(first) + decode)) * side.groups)


@dataclass(frozen=True)
class Workers:
    """Counts of prefill and decode workers, shape (rows,), and s to hand one token's cache over between GPUs."""

    prefill: Array
    decode: Array
    token_s: Array


def disaggregated(
    first: SideColumns, second: SideColumns, held: ConstantColumns, workers: Workers, work: Load
) -> Latencies:
    """TTFT and TPOT of prefill workers `first` that hand over to decode workers `second`."""
    groups = second.groups * workers.decode
    each = work.concurrency / groups
    room = np.maximum(second.cache_tokens / (work.prompt + held.reserve * work.output), 1.0)
    lines = first.groups * workers.prefill * first.stages
    costs = sequence_costs(second, work.prompt + work.output / 2)
    decode = total(step_terms(second, held, np.minimum(each, room), costs, work.width)) / work.accepted * work.output
    busy = _busy_groups(first, held, work, work.concurrency / lines, decode)
    busy = np.minimum(busy, np.maximum(work.concurrency / workers.prefill, 1))
    own = prefill_terms(first, held, work.prompt, work.cached, work.chunk, busy)
    prompt = total(own)
    queue = np.maximum(work.concurrency / lines, 1.0)
    packed = total(prefill_terms(first, held, work.prompt, work.cached, work.chunk, busy, queue))

    def tpot(running: Array) -> Terms:
        terms = step_terms(second, held, running, costs, work.width)
        return {name: value / work.accepted for name, value in terms.items()}

    def ttft(running: Array, step: Array) -> Terms:
        terms = dict(own)
        together = np.maximum(work.concurrency / lines - 1, 0)
        behind = packed * held.bunching * together
        held_back = work.concurrency * packed / lines - work.output * step
        terms["other prompts"] = np.maximum(behind, held_back - prompt)
        terms["handover"] = held.handover_ms * 1e-3 + work.prompt * workers.token_s / held.link_share
        terms["first"] = held.first_ms * 1e-3 + step
        terms["waiting for cache"] = np.maximum((each / room - 1) * work.output * step - total(terms), 0)
        return terms

    running = _running(each, np.minimum(each, room), work.output, tpot, ttft)
    steps = tpot(running)
    return Latencies(ttft(running, total(steps)), steps, running * groups)


def _busy_groups(side: SideColumns, held: ConstantColumns, work: Load, each: Array, decode: Array) -> Array:
    """Attention groups of a prefill worker that work at a time: 1, and the others as often as they have a prompt.

    Args:
        each: requests in flight of one group; `decode` s that one of them decodes.
    """
    alone = total(prefill_terms(side, held, work.prompt, work.cached, work.chunk, np.ones_like(each)))
    used = np.clip(each * alone / (alone + decode), 0, 1)
    return np.asarray(1 + used * (side.groups - 1))


def _running(each: Array, most: Array, output: Array, tpot, ttft) -> Array:  # type: ignore[no-untyped-def]
    """Sequences of a group that decode at a time: n·(TTFT + out·TPOT(n)) = each·out·TPOT(n), at most `most`.

    One that decodes alone feels no prompts of others, so few tokens may have a solution below one and another far above
    it; the first counts.
    """
    low, high = np.full_like(each, _FEWEST), most.astype(np.float64)
    middle = np.minimum(1.0, high)
    for _ in range(_HALVINGS):
        step = total(tpot(middle))
        decode = output * step
        over = middle * (total(ttft(middle, step)) + decode) > each * decode
        low, high = np.where(over, low, middle), np.where(over, middle, high)
        middle = np.sqrt(low * high)
    return high
