"""Decoder-only transformers with softmax attention: one builder, what families add as data.

Sources: `modeling_llama.py`, `modeling_qwen2.py`, `modeling_qwen3.py`, `modeling_qwen3_moe.py`, `modeling_mixtral.py`,
`modeling_gpt_oss.py` of huggingface/transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from clusterwright.model.decoders import Attention, Experts, Mlp
from clusterwright.model.huggingface.attentions import PLAIN, Extras, grouped
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import SIMPLE, Routing, dense, mixture
from clusterwright.model.huggingface.models import (
    context_of,
    head_dim_of,
    heads_of,
    hidden_of,
    kv_heads_of,
    layers_of,
    norms,
    tables_of,
    vocab_of,
)
from clusterwright.model.huggingface.patterns import windows_of
from clusterwright.model.huggingface.weights import Block, Blueprint, Weights


@dataclass(frozen=True, slots=True)
class Style:
    """What a family's layers have beside the matrices that all have.

    Args:
        extras: of attention.
        norms: over the hidden width in each layer.
        norm_bias, mlp_bias, head_bias: which linear layers and norms have one.
        routing: of mixtures of experts.
        tied: whether the head shares the embedding where the config does not say.
        final_norm: whether the last norm has a weight.
        scale_bytes: B of one scale of an 8-bit block in this publisher's checkpoints.
    """

    extras: Extras = PLAIN
    norms: int = 2
    norm_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    routing: Routing = SIMPLE
    tied: bool = False
    final_norm: bool = True
    scale_bytes: int = 4


def block_of(hidden: int, mixer: Attention, feed: Mlp | Experts, style: Style) -> Block:
    """One layer: attention, a feed-forward block, norms."""
    weights: Weights = grouped(hidden, mixer, style.extras)
    if isinstance(feed, Mlp):
        weights += dense(hidden, feed, bias=style.mlp_bias)
    else:
        weights += mixture(hidden, feed, style.routing)
    return Block(mixer, feed, weights + norms(hidden, style.norms, bias=style.norm_bias))


def transformer(
    config: Config,
    style: Style,
    mixers: Sequence[Attention],
    feeds: Sequence[Mlp | Experts],
    drafts: tuple[Block, ...] = (),
    towers: Weights = (),
    extra_tables: Weights = (),
) -> Blueprint:
    """A model of such layers, one mixer and one feed-forward block each."""
    hidden = hidden_of(config)
    tied = config.flag("tie_word_embeddings", default=style.tied)
    build = cache(lambda mixer, feed: block_of(hidden, mixer, feed, style))
    return Blueprint(
        hidden=hidden,
        vocab=vocab_of(config),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(build(mixer, feed) for mixer, feed in zip(mixers, feeds, strict=True)),
        tables=tables_of(
            config, tied=tied, norm_bias=style.norm_bias, head_bias=style.head_bias, final_norm=style.final_norm
        )
        + extra_tables,
        drafts=drafts,
        towers=towers,
        scale_bytes=style.scale_bytes,
    )


def attention_of(config: Config, window: int | None = None) -> Attention:
    """Attention as the common keys describe it."""
    width = head_dim_of(config)
    return Attention(heads_of(config), kv_heads_of(config), width, width, window=window)


def mixers_of(config: Config, period: int = 0) -> tuple[Attention, ...]:
    """Attention of every layer with the window that the config gives it."""
    return tuple(attention_of(config, window) for window in windows_of(config, period))


def uniform(config: Config, style: Style, *, matrices: int = 3, period: int = 0, towers: Weights = ()) -> Blueprint:
    """A model whose layers all have a dense MLP of `intermediate_size`."""
    mlp = Mlp(config.whole("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"), matrices)
    return transformer(config, style, mixers_of(config, period), (mlp,) * layers_of(config), towers=towers)
