"""FLOP that training one token takes, by where it is spent.

Forward and backward pass: 6 per parameter that the token is multiplied with; attention 3·H·(key + value widths)·s
under a causal mask (6·H·hd·s where they are equal), the mean of what a query sees where a window or chunk cuts it; 21
per element of a recurrent state. Recomputation does not count. Agrees with the TFLOP/s that NVIDIA publishes beside
tokens/s (`tools/validation/training_throughput.py`).

Sources: PaLM, arXiv:2204.02311, appendix B; Megatron-LM `training.py`, `num_floating_point_operations` (latent
attention, 7 FLOP per state element forward, one more layer and head per multi-token prediction depth).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Final

from clusterwright.model.decoders import (
    Attention,
    CompressedAttention,
    Decoder,
    Index,
    LatentAttention,
    Layer,
    Mixer,
    StateMixer,
)
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.shares import trained_parameters

#: Forward and backward FLOP per forward FLOP; forward FLOP per state element.
PASSES: Final = 3.0
SCAN: Final = 7.0
#: FLOP of a product with frozen weights ÷ those of one whose weights are trained: no gradient of the weights.
FROZEN: Final = 2 / 3
#: Roles outside `dense`: counted elsewhere, or not by the convention of published figures (norms, routers).
_UNCOUNTED: Final = ("experts", "head", "embedding", "norm", "router")


@dataclass(frozen=True, slots=True)
class Work:
    """FLOP per token, forward and backward.

    Args:
        dense: products outside experts; experts; head: output table, which stays 16 bit.
        attention: scores and values; scan: recurrent states.
        scores: exponentials of one forward pass (no FLOP).
    """

    dense: float = 0.0
    experts: float = 0.0
    head: float = 0.0
    attention: float = 0.0
    scan: float = 0.0
    scores: float = 0.0

    @property
    def total(self) -> float:
        """All FLOP of a token."""
        return self.dense + self.experts + self.head + self.attention + self.scan

    def __add__(self, other: Work) -> Work:
        return Work(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def times(self, factor: float) -> Work:
        """The same work `factor` times."""
        return Work(*(getattr(self, f.name) * factor for f in fields(self)))


def training_work(decoder: Decoder, sequence: int, *, drafts: bool = False, frozen: bool = False) -> Work:
    """FLOP per token of a decoder.

    Args:
        drafts: multi-token-prediction layers are trained too, each with the head once more.
        frozen: weights stay as they are, adapters are trained: products have no weight gradients, a third of their FLOP
            (as NVIDIA counts LoRA runs: 278 GFLOP a token of Llama 3 70B, 4 per parameter, attention left out).
    """
    head = decoder.vocab * decoder.hidden * 2 * PASSES
    total = Work(head=head * (1 + (len(decoder.drafts) if drafts else 0)))
    for layer, count in decoder.groups:
        total += layer_work(layer, sequence).times(count)
    extra: Iterable[Layer] = decoder.drafts if drafts else ()
    for layer in extra:
        total += layer_work(layer, sequence)
    if frozen:
        dense, experts, head = (FROZEN * value for value in (total.dense, total.experts, total.head))
        total = replace(total, dense=dense, experts=experts, head=head)
    return total


def work_of(decoder: Decoder, recipe: Recipe) -> Work:
    """FLOP per token of a recipe; adapters are trained beside frozen weights."""
    frozen = recipe.adapter_rank is not None
    work = training_work(decoder, recipe.sequence, drafts=recipe.drafts, frozen=frozen)
    adapters = trained_parameters(decoder, recipe.adapter_rank) if frozen else 0
    return replace(work, dense=work.dense + 2 * PASSES * adapters)


def layer_work(layer: Layer, sequence: int) -> Work:
    """FLOP per token of one layer."""
    experts = sum(p.active for p in layer.parts if p.role == "experts")
    dense = sum(p.active for p in layer.parts if p.role not in _UNCOUNTED)
    scan = SCAN * PASSES * layer.mixer.state_elements if isinstance(layer.mixer, StateMixer) else 0.0
    return Work(
        dense=2 * PASSES * dense,
        experts=2 * PASSES * experts,
        attention=2 * PASSES * _attention(layer.mixer, sequence),
        scan=scan,
        scores=_scores(layer.mixer, sequence),
    )


def seen(sequence: float, window: float | None = None) -> float:
    """Mean tokens that a query sees under a causal mask: s/2, less with a window W < s: W − W²/(2s)."""
    if window is None or window >= sequence:
        return sequence / 2
    return window - window * window / (2 * sequence)


def _attention(mixer: Mixer | None, sequence: int) -> float:
    """Forward multiply-adds of attention per token."""
    if isinstance(mixer, Attention):
        view, searched = _viewed(mixer, sequence)
        return mixer.heads * (mixer.key_dim + (mixer.value_dim or mixer.key_dim)) * view + searched
    if isinstance(mixer, LatentAttention):
        key = mixer.nope_dim + mixer.rope_dim
        view, searched = _searched(mixer.index, sequence)
        return mixer.heads * (key + mixer.value_dim) * view + searched
    if isinstance(mixer, CompressedAttention):
        entries = sequence / mixer.ratio if mixer.ratio else 0.0
        view, searched = _searched(mixer.index, entries)
        view = view if mixer.ratio else 0.0
        return 2 * mixer.heads * mixer.head_dim * (view + seen(sequence, mixer.window)) + searched
    return 0.0


def _viewed(mixer: Attention, sequence: int) -> tuple[float, float]:
    """(tokens attended to, multiply-adds of the indexer)."""
    if mixer.index is not None:
        return _searched(mixer.index, sequence)
    if mixer.chunk and mixer.chunk < sequence:
        return seen(mixer.chunk), 0.0
    return seen(sequence, mixer.window), 0.0


def _searched(index: Index | None, entries: float) -> tuple[float, float]:
    """(entries attended to, multiply-adds of the indexer)."""
    if index is None:
        return entries / 2, 0.0
    return seen(entries, index.top_k), index.heads * index.dim * entries / 2


def _scores(mixer: Mixer | None, sequence: int) -> float:
    """Scores of one token over all heads."""
    if isinstance(mixer, Attention):
        return mixer.heads * _viewed(mixer, sequence)[0]
    if isinstance(mixer, LatentAttention):
        return mixer.heads * _searched(mixer.index, sequence)[0]
    if isinstance(mixer, CompressedAttention):
        return _attention(mixer, sequence) / (2 * mixer.head_dim)
    return 0.0
