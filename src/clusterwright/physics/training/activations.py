"""Activations that one layer keeps for its backward pass, counted from what the layer is made of.

A GPT layer (hidden h, four times as wide inside, dropout masks) keeps 34·h B per token, 5·a·s more when attention
stores its scores; tensor ranks divide 24 of the 34 and all scores, sequence parallel ranks all of it ("Reducing
Activation Recomputation in Large Transformer Models", arXiv:2205.05198, equations 1, 2, 4 and table 2). The same count
is made here for every mixer and feed-forward block: 2 B per saved element, 1 B where a product reads an fp8 copy.

torchtitan's selective recomputation keeps every other matrix product and the output of attention (torchtitan
`models/llama3/parallelize.py`, per-op policy).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from clusterwright.model.decoders import (
    Attention,
    CompressedAttention,
    Experts,
    Index,
    LatentAttention,
    Layer,
    Mixer,
    Mlp,
    StateMixer,
)
from clusterwright.physics.training.recipes import Recipe

#: B of a saved element, of a dropout mask's element, of a statistic (fp32).
ELEMENT: Final = 2.0
MASK: Final = 1.0
STATISTIC: Final = 4.0


@dataclass(frozen=True, slots=True)
class Kept:
    """B per token that a layer keeps, by how they divide.

    Args:
        copied: on every tensor rank unless the sequence is split too.
        divided: over tensor ranks.
        per_kv_head, kv_heads: keys and values, over tensor ranks up to the number of KV heads.
        scores: per token and token of the sequence; 0 with flash attention.
        routed: at the width of tokens sent to experts; routed_inner: inside experts, which expert tensor ranks divide.
        entry: of `copied`, the layer's input alone (what full recomputation keeps).
        gradients: B per token of gradients that the backward pass of the widest product holds, over tensor ranks.
    """

    copied: float = 0.0
    divided: float = 0.0
    per_kv_head: float = 0.0
    kv_heads: int = 1
    scores: float = 0.0
    routed: float = 0.0
    routed_inner: float = 0.0
    entry: float = 0.0
    gradients: float = 0.0

    def at(self, tp: Any, etp: Any, recipe: Recipe, context: Any) -> Any:
        """B per token on one tensor rank; sizes may be arrays.

        Args:
            context: tokens of the sequence that one rank's queries see.
        """
        split = tp if recipe.sequence_parallel else 1.0
        kv = self.per_kv_head * _ceil_share(self.kv_heads, tp)
        experts = (self.routed * etp + self.routed_inner) * recipe.expert_imbalance / split
        return self.copied / split + (self.divided + self.scores * context) / tp + kv + experts

    def entry_at(self, tp: Any, recipe: Recipe) -> Any:
        """B per token of the layer's input on one tensor rank."""
        return self.entry / (tp if recipe.sequence_parallel else 1.0)


def kept(layer: Layer, hidden: int, recipe: Recipe, *, everything: bool = False) -> Kept:
    """What a layer keeps under a recipe (under `full`: what one layer holds while it is computed again).

    Args:
        everything: ignore selective recomputation.
    """
    dropped = () if everything or recipe.recompute != "selective" else recipe.modules
    if recipe.framework == "torchtitan" and recipe.recompute == "selective" and not everything:
        return _every_other(layer, hidden, recipe)
    read = 1.0 if recipe.low_precision else ELEMENT
    mixer = _mixer(layer.mixer, layer, hidden, recipe, dropped, read)
    feed = _feed(layer.feed, hidden, recipe, dropped, read)
    return Kept(
        copied=mixer.copied + feed.copied + _streamed(layer, hidden),
        divided=mixer.divided + feed.divided,
        per_kv_head=mixer.per_kv_head,
        kv_heads=mixer.kv_heads,
        scores=mixer.scores,
        routed=feed.routed,
        routed_inner=feed.routed_inner,
        entry=ELEMENT * hidden * layer.streams,
        gradients=max(mixer.gradients, feed.gradients),
    )


def _streamed(layer: Layer, hidden: int) -> float:
    """Under hyper-connections every block keeps all streams before it and their mix, of which `_block` counts one plane
    (mHC, arXiv:2512.24880, section 4.3.2, where nothing is recomputed).
    """
    blocks = (layer.mixer is not None) + (layer.feed is not None)
    return ELEMENT * hidden * layer.streams * blocks if layer.streams > 1 else 0.0


def _block(hidden: int, recipe: Recipe, dropped: tuple[str, ...], read: float) -> float:
    """Input of the norm, what the first product reads, and the mask of the output."""
    normed = 0.0 if "layernorm" in dropped else read * hidden
    return ELEMENT * hidden + normed + (MASK * hidden if recipe.dropout else 0.0)


def _mixer(
    mixer: Mixer | None, layer: Layer, hidden: int, recipe: Recipe, dropped: tuple[str, ...], read: float
) -> Kept:
    if mixer is None:
        return Kept()
    block = _block(hidden, recipe, dropped, read)
    if isinstance(mixer, Attention):
        return _attention(mixer, block, recipe, dropped)
    if isinstance(mixer, LatentAttention):
        return _latent(mixer, block, dropped)
    if isinstance(mixer, CompressedAttention):
        return _compressed(mixer, block)
    return _state(mixer, layer, hidden, block)


def _attention(mixer: Attention, block: float, recipe: Recipe, dropped: tuple[str, ...]) -> Kept:
    """Queries, output with its statistic; keys and values by KV head; scores, their mask and what is left of them."""
    value = mixer.value_dim or mixer.key_dim
    stored = not recipe.flash and "core_attn" not in dropped
    dense = 2 * ELEMENT + MASK if recipe.dropout else 2 * ELEMENT
    width = mixer.heads * mixer.key_dim
    return Kept(
        copied=block + _indexed(mixer.index),
        divided=mixer.heads * (ELEMENT * (mixer.key_dim + value) + (STATISTIC if recipe.flash else 0.0)),
        per_kv_head=ELEMENT * (mixer.key_dim + mixer.value_dim),
        kv_heads=mixer.kv_heads,
        scores=dense * mixer.heads if stored else 0.0,
        gradients=ELEMENT * 3 * width,
    )


def _latent(mixer: LatentAttention, block: float, dropped: tuple[str, ...]) -> Kept:
    """Compressed vectors before and after their norms on every rank; full queries, keys, values and output divided."""
    ranks = 2 * (mixer.q_rank or 0) + 2 * mixer.kv_rank + mixer.rope_dim
    key = mixer.nope_dim + mixer.rope_dim
    full = 0.0 if "mla_up_proj" in dropped else 2 * key + mixer.value_dim
    return Kept(
        copied=block + ELEMENT * ranks + _indexed(mixer.index),
        divided=mixer.heads * (ELEMENT * (full + mixer.value_dim) + STATISTIC),
        gradients=ELEMENT * mixer.heads * (2 * key + mixer.value_dim),
    )


def _indexed(index: Index | None) -> float:
    """Queries and key of an indexer, and the scores of what it chose."""
    return ELEMENT * (index.heads + 1) * index.dim + STATISTIC * index.top_k if index else 0.0


def _compressed(mixer: CompressedAttention, block: float) -> Kept:
    entries = mixer.head_dim * (1 + (2 / mixer.ratio if mixer.ratio else 0.0))
    return Kept(
        copied=block + ELEMENT * entries + _indexed(mixer.index),
        divided=mixer.heads * (ELEMENT * 2 * mixer.head_dim + STATISTIC),
        gradients=ELEMENT * mixer.heads * mixer.head_dim * 2,
    )


def _state(mixer: StateMixer, layer: Layer, hidden: int, block: float) -> Kept:
    """Outputs of the input products before and after convolution or gate: their widths add up to parameters ÷ hidden.

    Chunked kernels keep one state per chunk of 128 tokens as well (Mamba-2, arXiv:2405.21060, section 6).
    """
    width = sum(p.parameters for p in layer.parts if p.role == "state") / hidden
    chunk_states = STATISTIC * mixer.state_elements / 128
    return Kept(copied=block, divided=2 * ELEMENT * width + chunk_states, gradients=ELEMENT * width)


def _feed(feed: Mlp | Experts | None, hidden: int, recipe: Recipe, dropped: tuple[str, ...], read: float) -> Kept:
    if feed is None:
        return Kept()
    block = _block(hidden, recipe, dropped, read)
    if isinstance(feed, Mlp):
        if "mlp" in dropped:
            return Kept(copied=block, gradients=_wide(feed, recipe))
        return Kept(copied=block, divided=_inner(feed.width, feed.matrices, read), gradients=_wide(feed, recipe))
    shared = 0.0 if "mlp" in dropped else _inner(feed.shared_width, feed.matrices, read)
    routing = STATISTIC * feed.experts
    if "moe" in dropped:
        return Kept(copied=block + routing, divided=shared, gradients=_wide(feed, recipe))
    acted = 0.0 if "moe_act" in dropped else read * feed.width
    return Kept(
        copied=block + routing,
        divided=shared,
        routed=feed.active * read * feed.hidden,
        routed_inner=feed.active * (ELEMENT * (feed.matrices - 1) * feed.width + acted),
        gradients=_wide(feed, recipe),
    )


def _inner(width: int, matrices: int, read: float) -> float:
    """Outputs of the first products, and what the last one reads."""
    return ELEMENT * (matrices - 1) * width + read * width


def _wide(feed: Mlp | Experts, recipe: Recipe) -> float:
    """Gradients of what a feed-forward block holds inside while it runs backward: of experts, those that the first
    products give with those that they get, or tokens on both sides of their way back.
    """
    inner = 1 if recipe.in_place else feed.matrices
    if isinstance(feed, Mlp):
        return ELEMENT * inner * feed.width
    routed = max((feed.matrices - 1) * feed.width + feed.hidden, inner * feed.width, 2 * feed.hidden)
    return ELEMENT * (feed.active * routed + inner * feed.shared_width)


def _every_other(layer: Layer, hidden: int, recipe: Recipe) -> Kept:
    """Every other product's output, attention's output, and the layer's input."""
    mixer, feed = layer.mixer, layer.feed
    copied, divided, routed, kv, heads, gradients = ELEMENT * hidden, 0.0, 0.0, 0.0, 1, 0.0
    half = ELEMENT / 2
    if isinstance(mixer, Attention):
        divided += mixer.heads * (half * mixer.key_dim + ELEMENT * (mixer.value_dim or mixer.key_dim) + STATISTIC)
        kv, heads, copied = half * (mixer.key_dim + mixer.value_dim), mixer.kv_heads, copied + half * hidden
        gradients = ELEMENT * 3 * mixer.heads * mixer.key_dim
    elif mixer is not None:
        divided += half * sum(p.active for p in layer.parts if p.role in ("attention", "state")) / hidden
    if isinstance(feed, Mlp):
        divided, copied = divided + half * (feed.matrices - 1) * feed.width, copied + half * hidden
    elif isinstance(feed, Experts):
        divided += half * (feed.matrices - 1) * feed.shared_width
        routed = feed.active * ELEMENT * ((feed.matrices - 1) * feed.width + feed.hidden)
    if feed is not None:
        gradients = max(gradients, _wide(feed, recipe))
    return Kept(
        copied=copied, divided=divided, per_kv_head=kv, kv_heads=heads, routed_inner=routed,
        entry=ELEMENT * hidden, gradients=gradients,
    )  # fmt: skip


def _ceil_share(blocks: int, ranks: Any) -> Any:
    """Blocks on the fullest rank; a block is never cut."""
    return -(-blocks // ranks)
