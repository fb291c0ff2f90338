"""Parameters of a decoder on one GPU, by pipeline stage and by the ranks that divide their states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from clusterwright.model.decoders import (
    Attention,
    CompressedAttention,
    Decoder,
    Experts,
    LatentAttention,
    Layer,
    Mlp,
    Part,
)


@dataclass(frozen=True, slots=True)
class Portion:
    """Parameters by how they divide: over tensor ranks, not at all, over KV heads, over expert ranks."""

    tp: float = 0.0
    copied: float = 0.0
    kv: tuple[tuple[int, float], ...] = ()
    experts: float = 0.0

    def dense_at(self, tp: Any) -> Any:
        """Parameters outside experts on one tensor rank (a number or an array)."""
        heads = sum((count * -(-copies // np.minimum(tp, copies)) / copies for copies, count in self.kv), 0.0)
        return self.tp / tp + self.copied + heads

    def experts_at(self, ranks: Any) -> Any:
        """Parameters of experts on one of `ranks` expert ranks."""
        return self.experts / ranks


def portion(parts: tuple[Part, ...]) -> Portion:
    """Parts added up by their split."""
    kv: dict[int, float] = {}
    total = {"tp": 0.0, "none": 0.0, "experts": 0.0}
    for part in parts:
        if part.split == "kv":
            kv[part.copies] = kv.get(part.copies, 0.0) + part.parameters
        else:
            total[part.split] += part.parameters
    return Portion(total["tp"], total["none"], tuple(sorted(kv.items())), total["experts"])


@dataclass(frozen=True)
class Tables:
    """What a decoder has outside its layers: on the first stage, on the last; the embedding of `first` apart."""

    first: Portion
    last: Portion
    embedding: Portion


def tables(decoder: Decoder) -> Tables:
    """Embedding and towers go first, head and norm last."""
    first = tuple(p for p in decoder.tables if p.role not in ("head", "norm")) + decoder.towers
    last = tuple(p for p in decoder.tables if p.role in ("head", "norm"))
    embedding = tuple(p for p in decoder.tables if p.role == "embedding")
    return Tables(portion(first), portion(last), portion(embedding))


def stage_portions(
    decoder: Decoder, counts: np.ndarray[Any, Any], stage: int, drafts: bool = False
) -> list[tuple[float, Portion]]:
    """(how often, portion) of everything on a stage: its layers, draft layers on the last, tables."""
    pp = len(counts)
    held = [(float(n), portion(layer.parts)) for n, (layer, _) in zip(counts[stage], decoder.groups, strict=True) if n]
    drafted = [portion(layer.parts) for layer in decoder.drafts] if drafts and stage == pp - 1 else []
    return held + [(1.0, part) for part in drafted + table_portions(decoder, pp, stage, drafts)]


def table_portions(decoder: Decoder, pp: int, stage: int, drafts: bool = False) -> list[Portion]:
    """What a stage has outside its layers; the last one of a pipeline copies an embedding that is tied to the head, or
    that draft layers read (Megatron-Core "Multi-Token Prediction").
    """
    outside, found = tables(decoder), list[Portion]()
    if stage == 0:
        found.append(outside.first)
    if stage == pp - 1:
        found.append(outside.last)
        if pp > 1 and (decoder.tied or (drafts and decoder.drafts)):
            found.append(outside.embedding)
    return found


def expert_ranks(tp: Any, ep: Any, etp: Any) -> Any:
    """Ranks that divide a layer's experts: expert ranks, else tensor ranks."""
    return np.where(ep * etp > 1, ep * etp, tp)


def adapter_parameters(layer: Layer, hidden: int, rank: int) -> int:
    """Parameters of LoRA adapters on the linear layers of attention and of dense or shared feed-forward blocks.

    Source: LoRA, arXiv:2106.09685, section 4.1: rank · (inputs + outputs) per matrix.
    """
    return rank * sum(width for width in _ends(layer, hidden))


def trained_parameters(decoder: Decoder, adapter_rank: int | None) -> int:
    """Parameters that an optimizer moves: all of them, or those of the adapters."""
    if adapter_rank is None:
        return decoder.parameters
    return sum(adapter_parameters(layer, decoder.hidden, adapter_rank) for layer in decoder.layers)


def _ends(layer: Layer, hidden: int) -> list[int]:
    mixer, feed = layer.mixer, layer.feed
    ends: list[int] = []
    if isinstance(mixer, Attention):
        value = mixer.value_dim or mixer.key_dim
        ends += [hidden + mixer.heads * mixer.key_dim, hidden + mixer.kv_heads * mixer.key_dim]
        ends += [hidden + mixer.kv_heads * mixer.value_dim] if mixer.value_dim else []
        ends += [mixer.heads * value + hidden]
    elif isinstance(mixer, LatentAttention):
        query = mixer.heads * (mixer.nope_dim + mixer.rope_dim)
        ends += [hidden + mixer.q_rank, mixer.q_rank + query] if mixer.q_rank else [hidden + query]
        ends += [hidden + mixer.kv_rank + mixer.rope_dim]
        ends += [
            mixer.kv_rank + mixer.heads * (mixer.nope_dim + mixer.value_dim),
            mixer.heads * mixer.value_dim + hidden,
        ]
    elif isinstance(mixer, CompressedAttention):
        ends += [hidden + mixer.heads * mixer.head_dim, hidden + mixer.head_dim, mixer.heads * mixer.head_dim + hidden]
    if isinstance(feed, Mlp):
        ends += [hidden + feed.width] * feed.matrices
    elif isinstance(feed, Experts) and feed.shared_width:
        ends += [hidden + feed.shared_width] * feed.matrices
    return ends
