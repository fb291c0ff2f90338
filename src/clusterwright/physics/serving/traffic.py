"""What serving one token moves and multiplies, from a Decoder: weights, cache and attention, before any layout.

Cache entries are kept as pieces (bytes and FLOP per cached token, tokens that are read at most), so that full,
windowed, chunked, compressed and sparse attention are the same sum: piece × min(context, limit). Sparse attention (DSA)
reads its index keys for every cached token and the cache for `top_k` of them (DeepSeek-V3.2-Exp technical report,
section 2). MLA decodes on the compressed vector (absorbed weights) and prefills with whole heads (DeepSeek-V2,
section 2.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from clusterwright.model.decoders import (
    Attention,
    CompressedAttention,
    Decoder,
    Experts,
    LatentAttention,
    Layer,
    Mixer,
    Part,
    StateMixer,
    stored_bytes,
)

#: B per parameter of a format as served, block scales included.
BYTES: Final[Mapping[str, float]] = {
    "int64": 8.0,
    "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "nvfp4": 0.5625, "mxfp4": 0.53125, "int4": 0.515625,
}  # fmt: skip
#: Roles whose parameters follow the served weight format; tables, norms, routers and mixers' small parts keep theirs.
_LINEAR: Final = frozenset({"attention", "mlp", "shared", "experts", "state"})
#: Of them, those that 4-bit checkpoints of NVIDIA's and OpenAI's recipes leave in bf16 (hf_quant_config.json, ignore).
_KEPT_BY_FP4: Final = frozenset({"attention", "state"})
#: B of one index key: 128 fp8 elements and a scale of 4 B (vLLM and SGLang DSA cache layout).
_INDEX_BYTES: Final = 132.0
#: B per element of a recurrent state (fp32) and of a convolution's (bf16).
_STATE_BYTES, _CONV_BYTES = 4.0, 2.0


@dataclass(frozen=True, slots=True)
class Weight:
    """Weights of one role: B in all, parameters one token meets, how they split, and the format they multiply in."""

    bytes: float
    active: float
    split: str
    copies: int
    format: str


@dataclass(frozen=True, slots=True)
class Piece:
    """Cache of some layers: per cached token B and FLOP of decode and of prefill; `limit` tokens are read at most.

    Args:
        split: kv (over tensor ranks up to `heads`) or none (whole on each rank).
        heads: KV heads that may be divided; query heads divide FLOP over all ranks.
    """

    bytes: float
    decode_flop: float
    prefill_flop: float
    limit: float
    split: str
    heads: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """One model as served.

    Args:
        weights: everything read per step but experts and the input table.
        experts: routed experts of all layers; `expert_count` of a layer, `expert_active` used per token.
        expert_layers: layers with routed experts.
        state_bytes: recurrent states of one sequence, read and written each step.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    vocab: int
    max_context: int
    weights: tuple[Weight, ...]
    experts: tuple[Weight, ...]
    expert_count: int
    expert_active: int
    expert_layers: int
    pieces: tuple[Piece, ...]
    state_bytes: float
    state_heads: int


def traffic(decoder: Decoder, *, weights: str | None = None, cache: str = "bf16") -> Traffic:
    """What serving `decoder` moves and multiplies.

    Args:
        weights: format that the linear layers are served in; None: as the checkpoint stores them.
        cache: format of keys and values.
    """
    used = [(part, n) for part, n in decoder.parts(towers=False) if part.active or part.role == "head"]
    dense = [_weight(part, n, weights) for part, n in used if part.role != "experts"]
    if decoder.tied:
        table = decoder.vocab * decoder.hidden
        dense.append(Weight(table * 2.0, table, "tp", 1, "bf16"))
    feeds = [(layer.feed, n) for layer, n in decoder.groups if isinstance(layer.feed, Experts)]
    states = [(layer.mixer, n) for layer, n in decoder.groups if isinstance(layer.mixer, StateMixer)]
    return Traffic(
        name=decoder.name,
        layers=len(decoder.layers),
        hidden=decoder.hidden,
        heads=max((layer.mixer.heads for layer, _ in decoder.groups if layer.mixer is not None), default=1),
        vocab=decoder.vocab,
        max_context=decoder.max_context,
        weights=_folded(dense),
        experts=_folded([_weight(part, n, weights) for part, n in used if part.role == "experts"]),
        expert_count=max((feed.experts for feed, _ in feeds), default=0),
        expert_active=max((feed.active for feed, _ in feeds), default=0),
        expert_layers=sum(n for _, n in feeds),
        pieces=_folded_pieces([piece for layer, n in decoder.groups for piece in _pieces(layer, n, BYTES[cache])]),
        state_bytes=sum(n * (m.state_elements * _STATE_BYTES + m.conv_elements * _CONV_BYTES) for m, n in states),
        state_heads=max((m.heads for m, _ in states), default=1),
    )


def _weight(part: Part, count: int, served: str | None) -> Weight:
    form = _served_format(part, served)
    size = float(stored_bytes(part)) if form == part.stored else part.parameters * BYTES[form]
    return Weight(size * count, float(part.active * count), part.split, part.copies, form)


def _served_format(part: Part, served: str | None) -> str:
    """Format of a part as served: what the checkpoint has narrower stays, what recipes keep wide stays wide."""
    if served is None or part.role not in _LINEAR or BYTES[part.stored] <= BYTES[served]:
        return part.stored
    if BYTES[served] < 1 and part.role in _KEPT_BY_FP4:
        return part.stored
    return served


def _folded(weights: list[Weight]) -> tuple[Weight, ...]:
    """Weights of the same split, copies and format added up."""
    sums: dict[tuple[str, int, str], tuple[float, float]] = {}
    for w in weights:
        size, active = sums.get((w.split, w.copies, w.format), (0.0, 0.0))
        sums[w.split, w.copies, w.format] = size + w.bytes, active + w.active
    return tuple(Weight(size, active, *key) for key, (size, active) in sums.items())


def _folded_pieces(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Pieces of the same limit and split added up."""
    sums: dict[tuple[float, str, int], tuple[float, float, float]] = {}
    for p in pieces:
        key = (p.limit, p.split, p.heads)
        held = sums.get(key, (0.0, 0.0, 0.0))
        sums[key] = held[0] + p.bytes, held[1] + p.decode_flop, held[2] + p.prefill_flop
    return tuple(Piece(*values, *key) for key, values in sums.items())


def _pieces(layer: Layer, count: int, element: float) -> Iterator[Piece]:
    """Pieces of `count` equal layers; `element` B per cached number."""
    mixer: Mixer | None = layer.mixer
    if isinstance(mixer, Attention):
        width = mixer.key_dim + mixer.value_dim
        flop = 2.0 * mixer.heads * (mixer.key_dim + (mixer.value_dim or mixer.key_dim))
        size = mixer.kv_heads * width * element
        limit = float(mixer.window or mixer.chunk or math.inf)
        yield Piece(size * count, flop * count, flop * count, limit, "kv", mixer.kv_heads)
    elif isinstance(mixer, LatentAttention):
        size = (mixer.kv_rank + mixer.rope_dim) * element
        decode = 2.0 * mixer.heads * (2 * mixer.kv_rank + mixer.rope_dim)
        prefill = 2.0 * mixer.heads * (mixer.nope_dim + mixer.rope_dim + mixer.value_dim)
        index = mixer.index
        limit = math.inf if index is None else float(index.top_k)
        yield Piece(size * count, decode * count, prefill * count, limit, "none", mixer.heads)
        if index is not None and index.owns_cache:
            score = 2.0 * index.heads * index.dim
            yield Piece(_INDEX_BYTES * count, score * count, score * count, math.inf, "none", 1)
    elif isinstance(mixer, CompressedAttention):
        size, flop = mixer.head_dim * element, 4.0 * mixer.heads * mixer.head_dim
        yield Piece(size * count, flop * count, flop * count, float(mixer.window), "none", mixer.heads)
        if mixer.ratio:
            few = 1.0 / mixer.ratio
            limit = math.inf if mixer.index is None else float(mixer.index.top_k * mixer.ratio)
            yield Piece(size * count * few, flop * count * few, flop * count * few, limit, "none", mixer.heads)
            if mixer.index is not None and mixer.index.owns_cache:
                score = 2.0 * mixer.index.heads * mixer.index.dim * few
                yield Piece(_INDEX_BYTES * count * few, score * count, score * count, math.inf, "none", 1)
