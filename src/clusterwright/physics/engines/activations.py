"""GiB that a forward pass, the sampler and captured graphs take beside weights and cache.

The forward peak of 16-bit inference is what one layer holds at once for every token of the batch: residual and normed
hidden state, and the widest of attention, MLP and routed experts. Layers do not add up: their buffers are reused.

Sources: vLLM `gpu_model_runner.profile_run` (forward with max_num_batched_tokens, then sampler with max_num_seqs),
`fused_moe.fused_experts_impl` (intermediate caches), `mla/common` (workspace for earlier context).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clusterwright.lib.scales import GIB
from clusterwright.model.decoders import Attention, CompressedAttention, Decoder, Experts, LatentAttention, Layer, Mlp
from clusterwright.physics.layouts import Layout

#: Tokens of earlier context that MLA expands at once in chunked prefill (vLLM `MLACommonMetadataBuilder`).
_MLA_WORKSPACE_TOKENS: Final = 64 * 1024
#: Tokens that fused experts take at once (vLLM `VLLM_FUSED_MOE_CHUNK_SIZE`, 0.12 and later).
_MOE_CHUNK_TOKENS: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class ForwardWidths:
    """What one token of a batch takes in a forward pass: elements per token of the widest of each kind of buffer.

    Args:
        residual: residual and normed hidden state.
        dense: of attention, or of a dense MLP.
        routed: of routed experts, for the tokens that they take at once. beside: of their output and shared experts.
        workspace_gib: whatever the batch (MLA's expanded earlier context).
    """

    residual: float
    dense: float
    routed: float
    beside: float
    workspace_gib: float


def forward_widths(decoder: Decoder, layout: Layout, residuals: float = 2.0) -> ForwardWidths:
    """Widths of a model on one rank.

    Args:
        residuals: hidden states held at once: residual and normed one, and what a runtime copies besides.
    """
    layers = [layer for layer, _ in decoder.groups]
    mixers = max(_mixer_width(layer, layout) for layer in layers)
    dense = max((f.matrices * f.width / layout.tp for x in layers if isinstance(f := x.feed, Mlp)), default=0.0)
    routed = [_routed_widths(f, decoder.hidden, layout) for x in layers if isinstance(f := x.feed, Experts)]
    chunk, beside = max(routed, default=(0.0, 0.0))
    return ForwardWidths(
        residuals * decoder.hidden, max(mixers, dense), chunk, beside, _mla_workspace_gib(decoder, layout)
    )


def forward_gib(decoder: Decoder, layout: Layout, batched_tokens: int, residuals: float = 2.0) -> float:
    """Peak of one forward pass of `batched_tokens` in 16 bit."""
    return float(peak_gib(forward_widths(decoder, layout, residuals), batched_tokens))


def peak_gib(widths: ForwardWidths, tokens: Any) -> Any:
    """Peak of a forward pass; `tokens` is a number or an array, and so is the result."""
    routed = np.minimum(tokens, _MOE_CHUNK_TOKENS) * widths.routed + tokens * widths.beside
    return 2 * (widths.residual * tokens + np.maximum(widths.dense * tokens, routed)) / GIB + widths.workspace_gib


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


def _routed_widths(feed: Experts, hidden: int, layout: Layout) -> tuple[float, float]:
    width = feed.width / max(1, layout.tp * layout.dp // layout.ep)
    chunk = feed.active * (max(2 * width, feed.hidden) + width)
    return chunk, hidden + feed.matrices * feed.shared_width / layout.tp


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


def captured_sizes(largest: Any) -> Any:
    """Batch sizes that vLLM captures up to `largest`: 1, 2, 4, then every 8 to 256, every 16 beyond.

    Takes a number or an array, and returns the same.
    """
    small = np.add(largest >= 1, np.add(largest >= 2, largest >= 4, dtype=np.int64), dtype=np.int64)
    return small + np.minimum(largest, 255) // 8 + np.where(largest >= 256, (largest - 256) // 16 + 1, 0)


def graphs_gib(decoder: Decoder, layout: Layout, graphs: Any, mib_per_graph_layer: float) -> Any:
    """Captured graphs of one stage: so much for every graph and layer; `graphs` may be an array."""
    return graphs * math.ceil(len(decoder.layers) / layout.pp) * mib_per_graph_layer / 1024
