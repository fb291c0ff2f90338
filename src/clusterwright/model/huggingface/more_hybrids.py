"""Further models with state layers: Jamba, Granite 4, Bamba, MiniMax-Text-01.

Sources: `modeling_jamba.py`, `modeling_granitemoehybrid.py`, `modeling_bamba.py`, `modeling_minimax.py` of
huggingface/transformers.
"""

from __future__ import annotations

from clusterwright.model.decoders import Experts, Mlp, StateMixer
from clusterwright.model.huggingface.attentions import Extras, grouped
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import Routing, dense, mixture
from clusterwright.model.huggingface.mixtures import experts_of
from clusterwright.model.huggingface.models import context_of, hidden_of, layers_of, norms, tables_of
from clusterwright.model.huggingface.patterns import FULL, layer_types_of, periodic
from clusterwright.model.huggingface.states import Mamba, mamba1, mamba2
from clusterwright.model.huggingface.transformers import attention_of
from clusterwright.model.huggingface.weights import Block, Blueprint, matrix, norm


def jamba(config: Config) -> Blueprint:
    """Jamba: Mamba-1 but for each eighth layer, experts in every other layer."""
    config.ignore("use_mamba_kernels", "num_logits_to_keep", "sliding_window", "calc_logits_for_entire_prompt")
    hidden, count = hidden_of(config), layers_of(config)
    attends = periodic(count, config.whole("attn_layer_period"), offset=config.whole("attn_layer_offset"))
    routed = periodic(count, config.whole("expert_layer_period"), offset=config.whole("expert_layer_offset"))
    experts = config.whole("num_experts")
    inner = int(config.get("mamba_expand") or 2) * hidden
    rank = config.get("mamba_dt_rank")
    state, state_weights = mamba1(
        hidden, inner, config.whole("mamba_d_state"), config.whole("mamba_d_conv"),
        rank if isinstance(rank, int) else -(-hidden // 16), path="mamba.",
        conv_bias=config.flag("mamba_conv_bias", default=True), bias=config.flag("mamba_proj_bias"), inner_norms=True,
    )  # fmt: skip
    attention = attention_of(config)
    width = config.whole("intermediate_size")
    feed = Experts(experts, config.whole("num_experts_per_tok"), width, hidden)
    routing = Routing(router="feed_forward.router", experts="feed_forward.experts")

    def block(attending: bool, sparse: bool) -> Block:
        weights = grouped(hidden, attention) if attending else state_weights
        chosen: Mlp | Experts = feed if sparse and experts > 1 else Mlp(width)
        weights += mixture(hidden, chosen, routing) if isinstance(chosen, Experts) else dense(hidden, chosen)
        return Block(attention if attending else state, chosen, weights + norms(hidden, 2))

    tied = config.flag("tie_word_embeddings")
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(block(*key) for key in zip(attends, routed, strict=True)),
        tables=tables_of(config, tied=tied),
    )


def bamba(config: Config) -> Blueprint:
    """Bamba: Mamba-2 but for the layers of `attn_layer_indices`, an MLP in each."""
    config.ignore("mamba_chunk_size", "mamba_expand", "mamba_d_head", "num_logits_to_keep", "z_loss_coefficient")
    config.ignore("layers_block_type", "time_step_limit", "time_step_max", "time_step_min", "layer_types")
    hidden, count = hidden_of(config), layers_of(config)
    heads = config.whole("mamba_n_heads")
    mamba = Mamba(
        heads=heads, inner=int(config.get("mamba_expand") or 2) * hidden, state=config.whole("mamba_d_state"),
        groups=config.whole("mamba_n_groups"), kernel=config.whole("mamba_d_conv"),
        conv_bias=config.flag("mamba_conv_bias", default=True), bias=config.flag("mamba_proj_bias"),
    )  # fmt: skip
    state, state_weights = mamba2(mamba, hidden, "mamba.")
    attention, mlp = attention_of(config), Mlp(config.whole("intermediate_size"))
    bias = config.flag("attention_bias")
    after = dense(hidden, mlp, path="feed_forward.", bias=config.flag("mlp_bias")) + norms(hidden, 2)
    attending = Block(attention, mlp, grouped(hidden, attention, Extras(qkv_bias=bias, output_bias=bias)) + after)
    holding = Block(state, mlp, state_weights + after)
    chosen = {int(number) for number in config.items("attn_layer_indices")}
    tied = config.flag("tie_word_embeddings")
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(attending if number in chosen else holding for number in range(count)),
        tables=tables_of(config, tied=tied),
    )


def lightning(config: Config) -> Blueprint:
    """MiniMax-Text-01: lightning attention but for the layers that `attn_type_list` marks 1, experts in each."""
    config.ignore(
        "block_size", "postnorm", "shared_moe_mode", "layernorm_full_attention_alpha", "shared_intermediate_size"
    )
    config.ignore(
        "layernorm_full_attention_beta", "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta"
    )
    config.ignore("layernorm_mlp_alpha", "layernorm_mlp_beta", "sliding_window", "rotary_dim")
    hidden, count = hidden_of(config), layers_of(config)
    types = layer_types_of(config)
    full = [t in FULL for t in types] if types else [int(t) == 1 for t in config.items("attn_type_list")[:count]]
    if len(full) != count:
        raise config.refuse(
            "config.json does not say which layers have full attention", "attn_type_list", "layer_types"
        )
    attention = attention_of(config)
    inner = attention.heads * attention.key_dim
    state = StateMixer("lightning", attention.heads, inner * attention.key_dim, 0)
    linear = matrix("self_attn.qkv_proj", 3 * inner, hidden, "state") + norm("self_attn.norm", inner)
    linear += matrix("self_attn.output_gate", inner, hidden, "state")
    linear += matrix("self_attn.out_proj", hidden, inner, "state")
    feed = experts_of(config, width=("intermediate_size",))
    routing = Routing(router="block_sparse_moe.gate", experts="block_sparse_moe.experts", names=("w1", "w3", "w2"))
    after = mixture(hidden, feed, routing) + norms(hidden, 2)
    attending = Block(attention, feed, grouped(hidden, attention) + after)
    holding = Block(state, feed, linear + after)
    tied = config.flag("tie_word_embeddings")
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(attending if f else holding for f in full),
        tables=tables_of(config, tied=tied),
    )


def granite_hybrid(config: Config) -> Blueprint:
    """Granite 4: Mamba-2 and attention layers, each with experts, a shared MLP or both."""
    config.ignore(
        "mamba_chunk_size", "mamba_expand", "position_embedding_type", "init_method", "normalization_function"
    )
    config.ignore("layers_block_type", "time_step_limit", "time_step_max", "time_step_min")
    hidden = hidden_of(config)
    types = layer_types_of(config) or layer_types_of(config, "layers_block_type")
    if not types:
        raise config.refuse("config.json has no layer_types", "layer_types")
    heads = config.whole("mamba_n_heads")
    head = config.get("mamba_d_head")
    inner = int(config.get("mamba_expand") or 2) * hidden
    if isinstance(head, int) and heads * head != inner:
        raise config.refuse("heads of Mamba do not fill its width", "mamba_d_head")
    mamba = Mamba(
        heads=heads, inner=inner, state=config.whole("mamba_d_state"), groups=config.whole("mamba_n_groups"),
        kernel=config.whole("mamba_d_conv"), conv_bias=config.flag("mamba_conv_bias", default=True),
        bias=config.flag("mamba_proj_bias"),
    )  # fmt: skip
    state, state_weights = mamba2(mamba, hidden, "mamba.")
    attention, bias = attention_of(config), config.flag("attention_bias")
    shared, width = config.whole("shared_intermediate_size", default=0), config.whole("intermediate_size")
    experts = config.maybe("num_local_experts")
    config.ignore("num_experts_per_tok")
    feed: Mlp | Experts = Mlp(shared)
    weights = dense(hidden, Mlp(shared), path="shared_mlp.")
    if experts:
        feed = Experts(experts, config.whole("num_experts_per_tok"), width, hidden, shared)
        routing = Routing(router="block_sparse_moe.router.layer", experts="block_sparse_moe", shared="shared_mlp")
        weights = mixture(hidden, feed, routing)
    weights += norms(hidden, 2)
    attending = Block(attention, feed, grouped(hidden, attention, Extras(qkv_bias=bias, output_bias=bias)) + weights)
    holding = Block(state, feed, state_weights + weights)
    tied = config.flag("tie_word_embeddings")
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(attending if t in FULL else holding for t in types),
        tables=tables_of(config, tied=tied),
    )
