"""Transformers with a mixture of experts: the names that families give to the same facts.

Sources: `modeling_mixtral.py`, `modeling_qwen2_moe.py`, `modeling_qwen3_moe.py`, `modeling_gpt_oss.py`,
`modeling_minimax_m2.py` of huggingface/transformers.
"""

from __future__ import annotations

from dataclasses import replace

from clusterwright.model.decoders import Experts, Mlp
from clusterwright.model.huggingface.attentions import Extras
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import SIMPLE, Routing
from clusterwright.model.huggingface.models import hidden_of, layers_of
from clusterwright.model.huggingface.patterns import sparse_layers_of
from clusterwright.model.huggingface.transformers import Style, mixers_of, transformer
from clusterwright.model.huggingface.weights import Blueprint, Weights


def experts_of(config: Config, *, width: tuple[str, ...] = ("moe_intermediate_size",)) -> Experts:
    """The routed experts of a layer, without shared ones.

    Args:
        width: keys that hold the width of one expert in this family.
    """
    return Experts(
        experts=config.whole("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
        active=config.whole("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k"),
        width=config.whole(*width),
        hidden=hidden_of(config),
    )


def with_shared(config: Config, feed: Experts) -> Experts:
    """Experts with the shared ones that the config counts (`n_shared_experts`, of an expert's width each)."""
    shared = config.whole("n_shared_experts", "num_shared_experts", default=0)
    return replace(feed, shared_width=shared * feed.width)


def mixture_model(
    config: Config, style: Style, feed: Experts, *, dense: int | None = None, towers: Weights = ()
) -> Blueprint:
    """A model whose sparse layers have these experts and whose other layers an MLP of `dense` width.

    Args:
        dense: width; `intermediate_size` where None.
    """
    sparse = sparse_layers_of(config)
    width = config.whole("intermediate_size", default=0) if dense is None else dense
    if not all(sparse) and not width:
        raise config.refuse("dense layers without a width", "intermediate_size")
    feeds: tuple[Mlp | Experts, ...] = tuple(feed if s else Mlp(width) for s in sparse)
    return transformer(config, style, mixers_of(config), feeds, towers=towers)


def mixtral(config: Config) -> Blueprint:
    """Mixtral: every layer has experts, `intermediate_size` is the width of one."""
    routing = Routing(router="block_sparse_moe.gate", experts="block_sparse_moe.experts", names=("w1", "w3", "w2"))
    feed = experts_of(config, width=("intermediate_size",))
    return mixture_model(config, Style(routing=routing), feed)


def qwen3_moe(config: Config) -> Blueprint:
    """Qwen3-MoE: norms of queries and keys per head."""
    config.ignore("shared_expert_intermediate_size", "use_qk_norm", "qkv_bias")
    if config.maybe("shared_expert_intermediate_size"):
        raise config.refuse("Qwen3-MoE with a shared expert is not known", "shared_expert_intermediate_size")
    bias = config.flag("attention_bias")
    style = Style(Extras(qkv_bias=bias, output_bias=bias, qk_norm="head"), routing=SIMPLE, scale_bytes=2)
    return mixture_model(config, style, experts_of(config))


def qwen2_moe(config: Config) -> Blueprint:
    """Qwen2-MoE: biases of queries, keys and values; a gated shared expert."""
    feed = experts_of(config)
    feed = replace(feed, shared_width=config.whole("shared_expert_intermediate_size", default=0))
    routing = Routing(shared="mlp.shared_expert", shared_gate=True)
    style = Style(Extras(qkv_bias=config.flag("qkv_bias", default=True)), routing=routing)
    return mixture_model(config, style, feed)


def gpt_oss(config: Config) -> Blueprint:
    """gpt-oss: biases everywhere, sinks, windows in every other layer; an expert is `intermediate_size` wide."""
    bias = config.flag("attention_bias", default=True)
    extras = Extras(qkv_bias=bias, output_bias=bias, sinks=True)
    routing = Routing(router="mlp.router", router_bias=True, expert_bias=True)
    feed = experts_of(config, width=("intermediate_size",))
    feeds = (feed,) * layers_of(config)
    return transformer(config, Style(extras, routing=routing), mixers_of(config), feeds)
