"""Gemma's text models: tied, windows in most layers, four norms from Gemma 2 on.

Sources: `modeling_gemma2.py`, `modeling_gemma3.py`, `modeling_gemma4.py` and their configurations in
huggingface/transformers.
"""

from __future__ import annotations

from dataclasses import replace

from clusterwright.model.decoders import Attention, Experts, Mlp
from clusterwright.model.huggingface.attentions import Extras, grouped
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import Routing, dense, mixture
from clusterwright.model.huggingface.models import (
    context_of,
    head_dim_of,
    heads_of,
    hidden_of,
    kv_heads_of,
    layers_of,
    norms,
    tables_of,
)
from clusterwright.model.huggingface.patterns import FULL, layer_types_of, sliding_period_of
from clusterwright.model.huggingface.towers import gemma4_vision, siglip_with_projector
from clusterwright.model.huggingface.transformers import Style, uniform
from clusterwright.model.huggingface.weights import Block, Blueprint, Weights, norm, vector


def gemma(config: Config) -> Blueprint:
    """Gemma 1: two norms, tied."""
    bias = config.flag("attention_bias")
    return uniform(config, Style(Extras(qkv_bias=bias, output_bias=bias), tied=True))


def gemma2(config: Config) -> Blueprint:
    """Gemma 2: four norms, a window in every other layer."""
    config.assume(sliding_window=4096, head_dim=256)
    bias = config.flag("attention_bias")
    return uniform(config, Style(Extras(qkv_bias=bias, output_bias=bias), norms=4, tied=True), period=2)


def gemma3(config: Config) -> Blueprint:
    """Gemma 3: norms of queries and keys, windows in five of six layers, a vision tower but in the smallest."""
    config.assume(
        vocab_size=262208, num_attention_heads=8, num_key_value_heads=4, head_dim=256, sliding_window=4096,
        max_position_embeddings=131072, hidden_size=2304, num_hidden_layers=26, intermediate_size=9216,
    )  # fmt: skip
    bias = config.flag("attention_bias")
    style = Style(Extras(qkv_bias=bias, output_bias=bias, qk_norm="head"), norms=4, tied=True)
    towers = siglip_with_projector(config, hidden_of(config))
    return uniform(config, style, period=sliding_period_of(config, 6), towers=towers)


def gemma4(config: Config) -> Blueprint:
    """Gemma 4: wider heads and values that are the keys in full layers, experts beside the MLP in some."""
    config.ignore("use_bidirectional_attention", "vocab_size_per_layer_input", "expert_intermediate_size")
    hidden, count = hidden_of(config), layers_of(config)
    if config.maybe("hidden_size_per_layer_input"):
        raise config.refuse("per-layer embeddings of Gemma 4 are not known", "hidden_size_per_layer_input")
    if config.maybe("num_kv_shared_layers"):
        raise config.refuse("layers without a cache of Gemma 4 are not known", "num_kv_shared_layers")
    types = layer_types_of(config)
    if not types:
        raise config.refuse("config.json has no layer_types", "layer_types")
    blocks = {kind: _gemma4_block(config, hidden, kind in FULL) for kind in set(types)}
    tied = config.flag("tie_word_embeddings", default=True)
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(blocks[kind] for kind in types[:count]),
        tables=tables_of(config, tied=tied),
        towers=gemma4_vision(config, hidden),
    )


def _gemma4_block(config: Config, hidden: int, full: bool) -> Block:
    bias, same = config.flag("attention_bias"), config.flag("attention_k_eq_v") and full
    width = config.whole("global_head_dim", default=head_dim_of(config)) if full else head_dim_of(config)
    few = config.maybe("num_global_key_value_heads")
    kv_heads = few if same and few else kv_heads_of(config)
    window = None if full else config.whole("sliding_window")
    mixer = Attention(heads_of(config), kv_heads, width, width, window=window)
    extras = Extras(qkv_bias=bias, output_bias=bias, qk_norm="head", value_is_key=same)
    mlp = Mlp(config.whole("intermediate_size"))
    weights: Weights = grouped(hidden, mixer, extras) + dense(hidden, mlp) + norms(hidden, 4)
    weights += (vector("layer_scalar", 1, "other"),)
    if not config.flag("enable_moe_block"):
        config.ignore("num_experts", "top_k_experts", "moe_intermediate_size", "use_double_wide_mlp")
        return Block(mixer, mlp, weights)
    feed = Experts(
        experts=config.whole("num_experts"),
        active=config.whole("top_k_experts"),
        width=config.whole("moe_intermediate_size"),
        hidden=hidden,
    )
    weights += mixture(hidden, feed, Routing(router="router.proj", experts="experts"))
    weights += (vector("router.scale", hidden, "router"), vector("router.per_expert_scale", feed.experts, "router"))
    for name in ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"):
        weights += norm(name, hidden)
    return Block(mixer, replace(feed, shared_width=mlp.width), _as_shared(weights))


def _as_shared(weights: Weights) -> Weights:
    """The MLP beside experts counted as a shared expert: every token uses both."""
    return tuple(replace(w, role="shared") if w.role == "mlp" else w for w in weights)
