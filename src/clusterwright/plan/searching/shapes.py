"""What of a model decides whether a layout is possible: heads, widths, experts, layers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from clusterwright.model.decoders import (
    Attention,
    CompressedAttention,
    Decoder,
    Experts,
    LatentAttention,
    Mlp,
    Part,
    StateMixer,
)

#: B of one scale.
_SCALE_BYTES: Final = (4, 2, 1)
#: Sides of blocks in use; other counts of scales are those of rows or matrices.
_SIDES: Final = (32, 64, 128)
#: Blocks at the edges are not full: how far the binary logarithm of the side may be off a whole number.
_ROUNDING: Final = 0.1


@dataclass(frozen=True, slots=True)
class Shape:
    """Numbers that parallel sizes must divide; 0 where the model has none of the kind.

    Args:
        heads: greatest common divisor of query heads over the layers. kv_heads: different counts of KV heads.
        state_heads: greatest common divisor of heads of recurrent states.
        widths: greatest common divisor of dense and shared feed-forward widths; expert_width of routed experts.
        block: side of the square blocks that share a scale (DeepSeek's fp8), which no rank may cut; 0 without.
        latent: every attention layer keeps one compressed vector that tensor ranks cannot divide.
    """

    layers: int
    heads: int
    kv_heads: tuple[int, ...]
    state_heads: int
    widths: int
    experts: int
    expert_width: int
    block: int
    latent: bool


def shape_of(decoder: Decoder) -> Shape:
    """The numbers of a decoder."""
    mixers = [layer.mixer for layer, _ in decoder.groups]
    feeds = [layer.feed for layer, _ in decoder.groups]
    attention = [m for m in mixers if isinstance(m, Attention | LatentAttention | CompressedAttention)]
    routed = [f for f in feeds if isinstance(f, Experts)]
    dense = [f.width for f in feeds if isinstance(f, Mlp)] + [f.shared_width for f in routed]
    return Shape(
        layers=len(decoder.layers),
        heads=_common(m.heads for m in attention),
        kv_heads=tuple(sorted({m.kv_heads for m in attention if isinstance(m, Attention)})),
        state_heads=_common(m.heads for m in mixers if isinstance(m, StateMixer)),
        widths=_common(dense),
        experts=_common(f.experts for f in routed),
        expert_width=_common(f.width for f in routed),
        block=max((_block(part) for part, _ in decoder.parts(towers=False)), default=0),
        latent=bool(attention) and not any(isinstance(m, Attention) for m in attention),
    )


def _block(part: Part) -> int:
    """Side of a part's square blocks, found from its scales: fp32, bf16 or 8-bit exponents, whichever fits a side."""
    if part.stored != "fp8" or not part.scale_bytes:
        return 0
    for size in _SCALE_BYTES:
        power = math.log2(part.parameters * size / part.scale_bytes) / 2
        if abs(power - round(power)) < _ROUNDING and (1 << max(round(power), 0)) in _SIDES:
            return 1 << round(power)
    return 0


def _common(counts: Iterable[int]) -> int:
    return math.gcd(*counts)
