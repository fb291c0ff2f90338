"""Kimi models: K2.5 with its tower; Kimi Linear and K3 (delta and latent attention, narrow experts).

Sources: `modeling_kimi_k25.py`, `modeling_kimi_linear.py` of huggingface/transformers; `vllm/models/kimi_k3/nvidia` of
vllm-project/vllm (K3: residual attention over blocks of layers, a full-rank gate, experts in a narrower space).
"""

from __future__ import annotations

from dataclasses import replace

from clusterwright.model.decoders import Experts, LatentAttention, Mlp, StateMixer
from clusterwright.model.huggingface.attentions import latent
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import Routing, dense, mixture
from clusterwright.model.huggingface.latents import deepseek, latent_of
from clusterwright.model.huggingface.mixtures import experts_of, with_shared
from clusterwright.model.huggingface.models import context_of, hidden_of, layers_of, norms, tables_of
from clusterwright.model.huggingface.patterns import sparse_layers_of
from clusterwright.model.huggingface.states import kimi_delta
from clusterwright.model.huggingface.towers import moon_vision
from clusterwright.model.huggingface.weights import Block, Blueprint, Weight, Weights, matrix, norm


def kimi_k25(config: Config) -> Blueprint:
    """Kimi-K2.5, K2.6, K2.7: the text model of DeepSeek-V3's form and a vision tower."""
    return replace(deepseek(config), towers=moon_vision(config, hidden_of(config)))


def kimi_linear(config: Config) -> Blueprint:
    """Kimi Linear, Kimi-K3: delta attention, but in `full_attn_layers` (counted from 1) latent attention."""
    config.ignore("mla_use_nope", "use_grouped_topk", "num_expert_group", "moe_renormalize", "latent_moe_use_norm")
    hidden, count = hidden_of(config), layers_of(config)
    linear = config.nested("linear_attn_config")
    if linear is None:
        raise config.refuse("config.json has no linear_attn_config", "linear_attn_config")
    state, state_weights = kimi_delta(
        hidden, linear.whole("num_heads"), linear.whole("head_dim"), linear.whole("short_conv_kernel_size"),
        full_gate=linear.flag("use_full_rank_gate"),
    )  # fmt: skip
    mixer = latent_of(config)
    attention = latent(hidden, mixer, gate=config.flag("mla_use_output_gate"))
    attending = {int(number) for number in linear.items("full_attn_layers")}
    sparse = sparse_layers_of(config)
    feed, routed = _experts(config, hidden)
    mlp = Mlp(config.whole("intermediate_size"))
    residual = _residual_attention(config, hidden)

    def block(latent_layer: bool, moe: bool) -> Block:
        mixed: tuple[LatentAttention | StateMixer, Weights] = (
            (mixer, attention) if latent_layer else (state, state_weights)
        )
        weights = mixed[1] + (routed if moe else dense(hidden, mlp)) + norms(hidden, 2) + residual
        return Block(mixed[0], feed if moe else mlp, weights)

    tied = config.flag("tie_word_embeddings")
    last: Weights = ()
    if residual:
        last = (*norm("output_attn_res_norm", hidden), *matrix("output_attn_res_proj", 1, hidden, "other", "none"))
    keys = [(number + 1 in attending, moe) for number, moe in enumerate(sparse)]
    made = {key: block(*key) for key in set(keys)}
    if config.maybe("num_nextn_predict_layers"):
        raise config.refuse("draft layers of Kimi Linear are not known", "num_nextn_predict_layers")
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config) or config.whole("model_max_length", default=0),
        tied=tied,
        blocks=tuple(made[key] for key in keys[:count]),
        tables=tables_of(config, tied=tied) + last,
        towers=moon_vision(config, hidden),
    )


def _experts(config: Config, hidden: int) -> tuple[Experts, Weights]:
    """Experts with their router; K3's work in a narrower space, its projections and norm are never quantised."""
    narrow = config.maybe("routed_expert_hidden_size")
    feed = with_shared(config, experts_of(config))
    feed = replace(feed, hidden=narrow or hidden)
    routing = Routing(
        router="block_sparse_moe.gate", correction=True, shared="block_sparse_moe.shared_experts",
        experts="block_sparse_moe.experts", names=("w1", "w3", "w2"),
    )  # fmt: skip
    weights = mixture(hidden, feed, routing)
    if narrow:
        weights += (
            Weight("block_sparse_moe.routed_expert_down_proj", narrow, hidden, "projection", "none", linear=False),
            Weight("block_sparse_moe.routed_expert_up_proj", hidden, narrow, "projection", "none", linear=False),
        )
        if config.flag("latent_moe_use_norm"):
            weights += norm("block_sparse_moe.routed_expert_norm", narrow)
    return feed, weights


def _residual_attention(config: Config, hidden: int) -> Weights:
    """Norms and scores that mix the residuals of blocks of layers before attention and before the MLP (K3)."""
    if config.get("attn_res_block_size") is None:
        return ()
    weights: Weights = ()
    for name in ("self_attention_res", "mlp_res"):
        weights += norm(f"{name}_norm", hidden)
        weights += (Weight(f"{name}_proj", 1, hidden, "other", "none", linear=False),)
    return weights
