"""Further families with experts beside softmax attention: MiniMax, MiMo, GLM-4.5, Step, Llama 4 and others.

Sources: `modeling_minimax_m2.py`, `modeling_minimax_m3_vl.py`, `modeling_mimo_v2_flash.py`, `modeling_glm4_moe.py`,
`modeling_step3p7.py`, `modeling_llama4.py`, `modeling_ernie4_5_moe.py`, `modeling_granitemoe.py` and others of
huggingface/transformers; draft layers by vllm-project/vllm (`step3p5_mtp.py`, `minimax_m3/nvidia/mtp.py`,
`glm4_moe_mtp.py`).
"""

from __future__ import annotations

from dataclasses import replace

from clusterwright.model.decoders import Attention, Experts, Index, Mlp
from clusterwright.model.huggingface.attentions import Extras
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import Routing
from clusterwright.model.huggingface.latents import draft_of
from clusterwright.model.huggingface.mixtures import experts_of, mixture_model, with_shared
from clusterwright.model.huggingface.models import (
    context_of,
    head_dim_of,
    heads_of,
    hidden_of,
    kv_heads_of,
    layers_of,
    tables_of,
)
from clusterwright.model.huggingface.patterns import sparse_layers_of, windows_of
from clusterwright.model.huggingface.towers import llama4_vision, minimax_vision, step_vision
from clusterwright.model.huggingface.transformers import Style, attention_of, block_of, mixers_of, transformer
from clusterwright.model.huggingface.weights import Block, Blueprint, Weight, Weights, matrix, norm


def minimax_m2(config: Config) -> Blueprint:
    """MiniMax-M2: norms of queries and keys over all heads, every layer has experts of `intermediate_size`."""
    config.ignore("qk_norm_type", "use_mtp", "mtp_transformer_layers", "num_mtp_modules", "attn_type_list")
    if config.maybe("shared_intermediate_size"):
        raise config.refuse("MiniMax-M2 with shared experts is not known", "shared_intermediate_size")
    if any(kind != 1 for kind in config.items("attn_type_list")):
        raise config.refuse("MiniMax-M2 with linear attention is not known", "attn_type_list")
    extras = Extras(qk_norm="all" if config.flag("use_qk_norm", default=True) else "")
    config.ignore("use_routing_bias")
    routing = Routing(
        router="block_sparse_moe.gate", experts="block_sparse_moe.experts", names=("w1", "w3", "w2"), correction=True
    )
    feed = experts_of(config, width=("intermediate_size",))
    blueprint = mixture_model(config, Style(extras, routing=routing), feed)
    drafts = "config.json names draft modules; the published checkpoints have none and none are counted"
    return replace(blueprint, notes=(drafts,))


def minimax_m3(config: Config) -> Blueprint:
    """MiniMax-M3: an indexer over blocks of tokens in sparse layers, a shared expert, a vision tower."""
    config.ignore("use_gemma_norm", "attention_output_gate", "num_nextn_predict_layers", "moe_intermediate_size")
    if config.flag("attention_output_gate"):
        raise config.refuse("MiniMax-M3 with an output gate is not known", "attention_output_gate")
    config.ignore("use_qk_norm", "qk_norm_type", "use_routing_bias", "n_shared_experts")
    hidden, count = hidden_of(config), layers_of(config)
    sparse = config.nested("sparse_attention_config")
    on = sparse.items("sparse_attention_freq")[:count] if sparse and sparse.flag("use_sparse_attention") else ()
    plain = attention_of(config)
    indexed = plain
    if sparse is not None and on:
        block, chosen = sparse.whole("sparse_block_size"), sparse.whole("sparse_topk_blocks")
        index = Index(sparse.whole("sparse_num_index_heads"), sparse.whole("sparse_index_dim"), block * chosen)
        indexed = replace(plain, index=index)
    feed = experts_of(config, width=("intermediate_size",))
    feed = replace(feed, shared_width=config.whole("shared_intermediate_size", default=0))
    routing = Routing(
        router="block_sparse_moe.gate", experts="block_sparse_moe.experts", names=("w1", "w3", "w2"),
        correction=True, shared="block_sparse_moe.shared_experts",
    )  # fmt: skip
    style = Style(Extras(qk_norm="head"), routing=routing)
    wide = Mlp(config.whole("dense_intermediate_size", default=feed.width))

    def block_at(number: int, *, last: bool = False) -> Block:
        mixer = indexed if last or (on and on[number]) else plain
        block = block_of(hidden, mixer, feed if last or moe[number] else wide, style)
        return replace(block, weights=block.weights + _block_index(hidden, mixer))

    moe = sparse_layers_of(config)
    drafted = block_at(0, last=True)
    extra: Weights = matrix("eh_proj", hidden, 2 * hidden, "projection", "none")
    for name in ("enorm", "hnorm", "final_layernorm"):
        extra += norm(name, hidden)
    tied = config.flag("tie_word_embeddings")
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(block_at(number) for number in range(count)),
        tables=tables_of(config, tied=tied),
        drafts=(replace(drafted, weights=drafted.weights + extra),) * config.whole("num_mtp_modules", default=0),
        draft_path="mtp.layers.{number}.",
        towers=minimax_vision(config, hidden),
    )


def _block_index(hidden: int, mixer: Attention) -> Weights:
    """MiniMax-M3's indexer: queries of its heads, one key, a norm of each."""
    if mixer.index is None:
        return ()
    return (
        *matrix("self_attn.index_q_proj", mixer.index.heads * mixer.index.dim, hidden, "indexer", "none"),
        *matrix("self_attn.index_k_proj", mixer.index.dim, hidden, "indexer", "none"),
        *norm("self_attn.index_q_norm", mixer.index.dim),
        *norm("self_attn.index_k_norm", mixer.index.dim),
    )


def mimo_v2(config: Config) -> Blueprint:
    """MiMo-V2: windowed layers with their own heads and sinks, keys wider than values."""
    config.ignore("attention_chunk_size", "sliding_window_size", "attention_value_scale", "swa_rope_theta")
    hidden, count = hidden_of(config), layers_of(config)
    pattern, moe = config.items("hybrid_layer_pattern")[:count], sparse_layers_of(config)
    if len(pattern) < count:
        raise config.refuse("hybrid_layer_pattern is shorter than the model", "hybrid_layer_pattern")
    full = Attention(heads_of(config), kv_heads_of(config), head_dim_of(config), config.whole("v_head_dim"))
    near = Attention(
        config.whole("swa_num_attention_heads"), config.whole("swa_num_key_value_heads"),
        config.whole("swa_head_dim"), config.whole("swa_v_head_dim"), window=config.whole("sliding_window"),
    )  # fmt: skip
    bias = config.flag("attention_bias")
    sinks = config.flag("add_swa_attention_sink_bias"), config.flag("add_full_attention_sink_bias")
    feed, mlp = with_shared(config, experts_of(config)), Mlp(config.whole("intermediate_size"))

    def block(windowed: bool, routed: bool) -> Block:
        style = Style(Extras(qkv_bias=bias, sinks=sinks[0] if windowed else sinks[1]), routing=Routing(correction=True))
        return block_of(hidden, near if windowed else full, feed if routed else mlp, style)

    made = {(bool(p), m): block(bool(p), m) for p, m in zip(pattern, moe, strict=True)}
    tied = config.flag("tie_word_embeddings")
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(made[bool(p), m] for p, m in zip(pattern, moe, strict=True)),
        tables=tables_of(config, tied=tied),
        notes=("draft layers are in the checkpoint but not in config.json: not counted",),
    )


def glm4_moe(config: Config) -> Blueprint:
    """GLM-4.5, 4.6, 4.7: norms of queries and keys where the config says so, a draft layer with its own tables."""
    bias = config.flag("attention_bias")
    extras = Extras(qkv_bias=bias, qk_norm="head" if config.flag("use_qk_norm") else "")
    style = Style(extras, routing=Routing(correction=True))
    feed = with_shared(config, experts_of(config))
    blueprint = mixture_model(config, style, feed)
    block = block_of(blueprint.hidden, attention_of(config), feed, style)
    drafts = config.whole("num_nextn_predict_layers", default=0)
    return replace(blueprint, drafts=(draft_of(config, block, own_tables=True),) * drafts)


def dots(config: Config) -> Blueprint:
    """dots.llm1, EXAONE-MoE: norms of queries and keys, routing with a correction, shared experts."""
    bias = config.flag("attention_bias")
    style = Style(Extras(qkv_bias=bias, output_bias=bias, qk_norm="head"), routing=Routing(correction=True))
    config.ignore("sliding_window_pattern")
    return mixture_model(config, style, with_shared(config, experts_of(config)))


def step3(config: Config) -> Blueprint:
    """Step-3.5 and 3.7: windowed layers with more heads, a gate per head, a shared expert, dense draft layers.

    Raises:
        UnknownArchitecture: there are windowed layers but nothing says how many heads they have.
    """
    config.ignore("use_head_wise_attn_gate", "use_moe_router_bias", "use_moe", "n_shared_experts", "moe_every_n_layer")
    config.ignore("num_attention_groups", "use_qk_norm", "share_q_dim", "sink", "att_impl_type", "max_seq_len")
    config.ignore(
        "partial_rotary_factors", "yarn_only_types", "use_rope_layers", "norm_expert_weight", "need_fp32_gate"
    )
    hidden, count = hidden_of(config), layers_of(config)
    groups, width = config.whole("num_key_value_heads", "num_attention_groups"), head_dim_of(config)
    other = config.nested("attention_other_setting")
    heads = other.whole("num_attention_heads") if other else config.maybe("num_sliding_attention_heads")
    windows = windows_of(config)
    if any(windows) and heads is None:
        reason = (
            "windowed layers of Step-3.5 and 3.7 have a number of heads of their own, and config.json does not say it"
        )
        raise config.refuse(reason, "attention_other_setting", "num_sliding_attention_heads")
    extras = Extras(qk_norm="head", gate="head")
    full = Attention(heads_of(config), groups, width, width)
    near = Attention(heads or heads_of(config), groups, width, width, window=config.maybe("sliding_window"))
    listed = config.text("moe_layers_enum")
    moe = sparse_layers_of(config)
    if listed:
        chosen = {int(n) for n in listed.split(",")}
        moe = tuple(number in chosen for number in range(count))
    feed = Experts(
        config.whole("num_experts", "n_routed_experts", "moe_num_experts"),
        config.whole("num_experts_per_tok", "moe_top_k"),
        config.whole("moe_intermediate_size"), hidden, config.whole("share_expert_dim", "share_expert_dims"),
    )  # fmt: skip
    style = Style(extras, routing=Routing(correction=True, router="moe.gate", shared="share_expert", experts="moe"))
    mlp = Mlp(config.whole("intermediate_size"))
    types = tuple(str(t) for t in config.items("layer_types"))
    drafts = tuple(
        _step_draft(
            config,
            block_of(hidden, near if "sliding_attention" in types[count + n : count + n + 1] else full, mlp, style),
        )
        for n in range(config.whole("num_nextn_predict_layers", default=0))
    )
    mixers = tuple(near if window else full for window in windows)
    feeds = tuple(feed if m else mlp for m in moe)
    return transformer(config, style, mixers, feeds, drafts, step_vision(config, hidden))


def _step_draft(config: Config, block: Block) -> Block:
    hidden, vocab = hidden_of(config), config.whole("vocab_size")
    extra: Weights = (*matrix("eh_proj", hidden, 2 * hidden, "projection", "none"),)
    for name in ("enorm", "hnorm", "shared_head.norm"):
        extra += norm(name, hidden)
    return replace(
        block, weights=block.weights + extra + (Weight("shared_head.head", vocab, hidden, "head", "tp", linear=False),)
    )


def llama4(config: Config) -> Blueprint:
    """Llama 4: attention within chunks but for each fourth layer, experts in each `interleave_moe_layer_step`th."""
    config.assume(interleave_moe_layer_step=1, attention_chunk_size=8192)
    config.ignore("use_qk_norm", "for_llm_compressor", "nope_layers", "attn_temperature_tuning", "floor_scale")
    hidden, count, width = hidden_of(config), layers_of(config), head_dim_of(config)
    chunked = _chunked_layers(config, count)
    chunk = config.whole("attention_chunk_size")
    mixers = tuple(
        Attention(heads_of(config), kv_heads_of(config), width, width, chunk=chunk if c else None) for c in chunked
    )
    listed = config.items("moe_layers")
    step = config.whole("interleave_moe_layer_step")
    moe = [n in listed if listed else (n + 1) % step == 0 for n in range(count)]
    expert = config.whole("intermediate_size")
    feed = Experts(config.whole("num_local_experts"), config.whole("num_experts_per_tok"), expert, hidden, expert)
    mlp = Mlp(config.whole("intermediate_size_mlp"))
    routing = Routing(router="feed_forward.router", shared="feed_forward.shared_expert", experts="feed_forward.experts")
    bias = config.flag("attention_bias")
    style = Style(Extras(qkv_bias=bias, output_bias=bias), routing=routing)
    feeds = tuple(feed if m else mlp for m in moe)
    towers = llama4_vision(config, hidden)
    blueprint = transformer(config, style, mixers, feeds, towers=towers)
    note = "config.json has no vision_config: the vision tower is not counted"
    return blueprint if towers or "text_config" not in config.outer else replace(blueprint, notes=(note,))


def _chunked_layers(config: Config, count: int) -> list[bool]:
    types, rotary = config.items("layer_types"), config.items("no_rope_layers")
    period = config.whole("no_rope_layer_interval", default=4)
    if types:
        return [types[number] == "chunked_attention" for number in range(count)]
    if len(rotary) == count:
        return [bool(with_rope) for with_rope in rotary]
    return [(number + 1) % period != 0 for number in range(count)]


def ernie_moe(config: Config) -> Blueprint:
    """ERNIE 4.5 with experts: shared experts, layers chosen by start, end and interval."""
    config.assume(moe_layer_start_index=1, moe_layer_interval=1, tie_word_embeddings=True, use_bias=False)
    count = layers_of(config)
    start, step = config.whole("moe_layer_start_index"), config.whole("moe_layer_interval")
    last = config.whole("moe_layer_end_index", default=count - 1)
    last = count - 1 if last < 0 else last
    config.ignore("moe_capacity", "moe_gate", "moe_use_aux_free", "num_nextn_predict_layers", "moe_group")
    feed = experts_of(config)
    feed = replace(feed, shared_width=config.whole("moe_num_shared_experts", default=0) * feed.width)
    bias = config.flag("use_bias")
    style = Style(Extras(qkv_bias=bias, output_bias=bias), mlp_bias=bias, routing=Routing(correction=True))
    mlp = Mlp(config.whole("intermediate_size"))
    feeds = tuple(feed if n >= start and n <= last and (n + 1) % step == 0 else mlp for n in range(count))
    return transformer(config, style, mixers_of(config), feeds)


def hunyuan_moe(config: Config) -> Blueprint:
    """Hunyuan with experts: norms of queries and keys, one shared expert of `intermediate_size`."""
    config.ignore("use_cla", "cla_share_factor", "use_mixed_mlp_moe", "moe_layer_num_skipped", "moe_drop_tokens")
    config.ignore(
        "num_shared_expert", "moe_topk", "class_num", "pool_type", "mask_init_id", "moe_random_routing_dropped_token"
    )
    if config.flag("use_cla"):
        raise config.refuse("Hunyuan with attention shared between layers is not known", "use_cla")

    def one(key: str, default: int) -> int:
        value = config.get(key)
        values = set(value) if isinstance(value, list) else {value if value is not None else default}
        if len(values) != 1:
            raise config.refuse(f"{key} differs between layers", key)
        return int(values.pop())

    bias = config.flag("attention_bias")
    width = one("moe_intermediate_size", config.whole("intermediate_size"))
    feed = Experts(config.whole("num_experts"), one("moe_topk", 1), width, hidden_of(config))
    feed = replace(feed, shared_width=one("num_shared_expert", 1) * config.whole("intermediate_size"))
    extras = Extras(qkv_bias=bias, output_bias=bias, qk_norm="head" if config.flag("use_qk_norm", default=True) else "")
    style = Style(extras, routing=Routing(router="mlp.gate.wg", shared="mlp.shared_mlp"))
    return transformer(config, style, mixers_of(config), (feed,) * layers_of(config))


def granite_moe(config: Config) -> Blueprint:
    """Granite with experts of `intermediate_size`, a shared one in some."""
    bias = config.flag("attention_bias")
    feed = experts_of(config, width=("intermediate_size",))
    feed = replace(feed, shared_width=config.whole("shared_intermediate_size", default=0))
    routing = Routing(router="block_sparse_moe.router.layer", experts="block_sparse_moe", shared="shared_mlp")
    style = Style(Extras(qkv_bias=bias, output_bias=bias), routing=routing, tied=True)
    return mixture_model(config, style, feed)


def olmoe(config: Config) -> Blueprint:
    """OLMoE: norms of queries and keys over all heads, experts of `intermediate_size`."""
    bias = config.flag("attention_bias")
    style = Style(Extras(qkv_bias=bias, output_bias=bias, qk_norm="all"))
    return mixture_model(config, style, experts_of(config, width=("intermediate_size",)))


def phi_moe(config: Config) -> Blueprint:
    """Phi-3.5-MoE: LayerNorms, biases of attention and head as the config says."""
    bias = config.flag("attention_bias")
    routing = Routing(router="block_sparse_moe.gate", experts="block_sparse_moe.experts", names=("w1", "w3", "w2"))
    style = Style(
        Extras(qkv_bias=bias, output_bias=bias), norm_bias=True, head_bias=config.flag("lm_head_bias"), routing=routing
    )
    return mixture_model(config, style, experts_of(config, width=("intermediate_size",)))
