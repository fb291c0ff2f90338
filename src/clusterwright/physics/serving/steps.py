"""Terms of one decode step and of one prefill, over columns of settings.

Step: max(weights read, products) + max(experts read, products) + max(cache read, attention) + collectives + layers +
step + sequences. Among n tokens a layer reads 1 − (1 − k/E)^n of its experts. A step is replayed as a graph, a prefill
is launched kernel by kernel; both run the layers in turn, so their parts add up instead of hiding each other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from clusterwright.physics.serving.constants import Array, ConstantColumns
from clusterwright.physics.serving.sides import SideColumns

Terms = dict[str, Array]
#: Tokens of a prompt that an engine takes in one pass unless told otherwise: SGLang --chunked-prefill-size on 80 GB
#: cards and more, vLLM's max_num_batched_tokens for its server on them, TensorRT-LLM's max_num_tokens.
CHUNK_TOKENS: Final = 8192.0


class SequenceCosts(NamedTuple):
    """Seconds at peak that one sequence adds to a step: to read its cache, to compute its attention; shape (rows,)."""

    cache: Array
    attention: Array


def sequence_costs(side: SideColumns, context: Array) -> SequenceCosts:
    """What a sequence of `context` cached tokens costs in each step, shape (rows,)."""
    seen = np.minimum(context[:, None], side.piece_limit)
    return SequenceCosts((side.piece_read * seen).sum(-1) + side.state_read, (side.piece_decode * seen).sum(-1))


def step_terms(side: SideColumns, held: ConstantColumns, running: Array, costs: SequenceCosts, width: Array) -> Terms:
    """Seconds of one decode step by term.

    Args:
        running: sequences of one attention group, shape (rows,); `costs` of each.
        width: tokens per sequence and step, 1 without speculation.
    """
    one = np.maximum(running / side.stages, 1e-9)
    tokens = one * width
    everyone = tokens * side.groups
    unique = used_share(side.chosen, side.experts, everyone)
    return {
        "weights": np.maximum(side.dense_read / held.weight_share, side.dense_math * tokens / held.math_share),
        "experts": np.maximum(
            side.expert_read * unique / held.expert_share, side.expert_math * everyone / held.expert_math_share
        ),
        "kv cache": one * np.maximum(costs.cache / held.cache_share, costs.attention * width / held.math_share),
        "collectives": _collectives(side, held, tokens),
        "layers": side.layers * held.layer_us * 1e-6 + side.expert_layers * held.expert_layer_us * 1e-6,
        "step": held.step_ms * 1e-3 + np.zeros_like(one),
        "sequences": running * held.sequence_us * 1e-6,
    }


def prefill_terms(
    side: SideColumns,
    held: ConstantColumns,
    prompt: Array,
    cached: Array,
    chunk: Array,
    busy: Array,
    together: Array | float = 1.0,
) -> Terms:
    """Seconds of the prefill of one prompt in its attention group by term.

    Args:
        prompt: tokens, of which the first `cached` are taken from a cache of prefixes.
        chunk: most tokens of one pass.
        busy: attention groups that prefill at the same time and share the experts, 1 to `side.groups`.
        together: prompts that wait for the group at a time; as many as a pass has room for share it, and what it costs
            whatever it holds.
    """
    new = np.maximum(prompt - cached, 1.0)
    passes = np.ceil(new / chunk) / np.clip(chunk / new, 1.0, together)
    each = new / passes
    unique = used_share(side.chosen, side.experts, each * busy)
    limit = side.piece_limit
    pairs = _pairs(prompt[:, None], limit) - _pairs(cached[:, None], limit)
    products = np.maximum(side.dense_read / held.weight_share * passes, side.dense_math * new / held.math_share)
    experts = np.maximum(
        side.expert_read * unique / held.expert_share * passes, side.expert_math * new * busy / held.expert_math_share
    )
    return {
        "weights": products,
        "experts": experts,
        "attention": (side.piece_prefill * pairs).sum(-1) / held.attention_share,
        "collectives": passes * _collectives(side, held, each),
        "layers": passes * side.layers * held.prefill_layer_us * 1e-6,
        "step": passes * held.step_ms * 1e-3,
    }


def pass_floor(side: SideColumns, held: ConstantColumns, new: Array, chunk: Array, busy: Array) -> Array:
    """Seconds of a prefill's passes that its tokens do not take: weights read beyond what products hide, launches,
    scheduling.

    Prompts and decode tokens that share a pass share them. A read that products hide is none of them: were it, a faster
    memory would leave a prompt that takes as long as before with less to share.
    """
    passes = np.ceil(np.maximum(new, 1.0) / chunk)
    each = new / passes
    unique = used_share(side.chosen, side.experts, each * busy)
    dense = side.dense_read / held.weight_share - side.dense_math * each / held.math_share
    experts = side.expert_read * unique / held.expert_share - side.expert_math * each * busy / held.expert_math_share
    read = np.maximum(dense, 0.0) + np.maximum(experts, 0.0)
    return np.asarray(passes * (read + side.layers * held.prefill_layer_us * 1e-6 + held.step_ms * 1e-3))


def used_share(chosen: Array, experts: Array, tokens: Array) -> Array:
    """Share of a layer's experts that at least one of `tokens` chooses, 1 − (1 − k/E)^n, each token on its own."""
    return -np.expm1(tokens * np.log1p(-np.minimum(chosen / experts, 1 - 1e-12)))


def _pairs(tokens: Array, limit: Array) -> Array:
    """(query, key) pairs of causal attention within `limit` tokens."""
    inside = np.minimum(tokens, limit)
    return 0.5 * inside**2 + inside * (tokens - inside)


def _collectives(side: SideColumns, held: ConstantColumns, tokens: Array) -> Array:
    latency = (side.reduces + side.exchanges) * held.collective_us * 1e-6
    return latency + (side.reduce_s + side.exchange_s) * tokens / held.link_share


def total(terms: Terms) -> Array:
    """Sum of terms, in their order."""
    values = list(terms.values())
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result
