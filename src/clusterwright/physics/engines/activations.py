"""GiB that a forward pass, the sampler and captured graphs take beside weights and cache.

The forward peak of 16-bit inference is what one layer holds at once for every token of the batch: residual and normed
hidden state, and the widest of attention, MLP and routed experts. Layers do not add up: their buffers are reused.

Sources: vLLM `gpu_model_runner.profile_run` (forward with max_num_batched_tokens, then sampler with max_num_seqs),
`fused_moe.fused_experts_impl` (intermediate caches), `mla/common` (workspace for earlier context).
"""

from __future__ import annotations

import math
from typing import Final

from clusterwright.model.decoders import Attention, CompressedAttention, Decoder, Experts, LatentAttention, Layer, Mlp
from clusterwright.physics.engines.results import GIB
from clusterwright.physics.layouts import Layout

#: Tokens of earlier context that MLA expands at once in chunked prefill (vLLM `MLACommonMetadataBuilder`).
_MLA_WORKSPACE_TOKENS: Final = 64 * 1024
#: Tokens that fused experts take at once (vLLM `VLLM_FUSED_MOE_CHUNK_SIZE`, 0.12 and later).
_MOE_CHUNK_TOKENS: Final = 16 * 1024


def forward_gib(decoder: Decoder, layout: Layout, batched_tokens: int) -> float:
    """Peak of one forward pass of `batched_tokens` in 16 bit."""
    most = max(_layer_elements(layer, decoder.hidden, layout, batched_tokens) for layer, _ in decoder.groups)
    residual = 2 * decoder.hidden * batched_tokens
    return 2 * (residual + most) / GIB + _mla_workspace_gib(decoder, layout)


def _layer_elements(layer: Layer, hidden: int, layout: Layout, tokens: int) -> float:
    return max(tokens * _mixer_width(layer, layout), _feed_elements(layer, hidden, layout, tokens))


def _mixer_width(layer: Layer, layout: Layout) -> float:
    tp = layout.attention_tp
    match layer.mixer:
        case Attention(heads=heads, kv_heads=kv, key_dim=key, value_dim=value):
            return math.ceil(heads / tp) * 2 * key + max(1, math.ceil(kv / tp)) * (key + value)
        case LatentAttention(heads=heads, nope_dim=nope, rope_dim=rope, value_dim=value, kv_rank=rank):
            return math.ceil(heads / tp) * (2 * (nope + rope) + 2 * value) + rank + rope
        case CompressedAttention(heads=heads, head_dim=dim):
            return math.ceil(heads / tp) * 2 * dim
        case _:
            return 0.0


def _feed_elements(layer: Layer, hidden: int, layout: Layout, tokens: int) -> float:
    feed = layer.feed
    if isinstance(feed, Mlp):
        return tokens * feed.matrices * feed.width / layout.tp
    if not isinstance(feed, Experts):
        return 0.0
    ranks = max(1, layout.tp * layout.dp // layout.ep)
    width = feed.width / ranks
    chunk = min(tokens, _MOE_CHUNK_TOKENS) * feed.active
    routed = chunk * (max(2 * width, feed.hidden) + width)
    return routed + tokens * (hidden + feed.matrices * feed.shared_width / layout.tp)


def _mla_workspace_gib(decoder: Decoder, layout: Layout) -> float:
    found = [
        m.kv_rank + m.rope_dim + math.ceil(m.heads / layout.attention_tp) * (m.nope_dim + m.value_dim)
        for layer, _ in decoder.groups
        if isinstance(m := layer.mixer, LatentAttention) and m.index is None
    ]
    return 2 * _MLA_WORKSPACE_TOKENS * max(found, default=0) / GIB


def sampler_gib(sequences: int, vocabulary: int, copies: float) -> float:
    """Peak of sampling for so many sequences: `copies` of the fp32 logits over the whole vocabulary, on every rank."""
    return copies * sequences * vocabulary * 4 / GIB


def captured_sizes(largest: int) -> int:
    """Batch sizes that vLLM captures up to `largest`: 1, 2, 4, then every 8 to 256, every 16 beyond."""
    small = sum(1 for size in (1, 2, 4) if size <= largest)
    return small + min(largest, 255) // 8 + max(0, (largest - 256) // 16 + 1 if largest >= 256 else 0)


def graphs_gib(decoder: Decoder, layout: Layout, graphs: int, mib_per_graph_layer: float) -> float:
    """Captured graphs of one stage: so much for every graph and layer."""
    return graphs * math.ceil(len(decoder.layers) / layout.pp) * mib_per_graph_layer / 1024
