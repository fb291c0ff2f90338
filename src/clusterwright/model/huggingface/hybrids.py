"""Models that mix attention layers with layers of a fixed state: gated delta nets, Mamba, Kimi delta attention.

Sources: `modeling_qwen3_next.py`, `modeling_qwen3_5.py`, `modeling_nemotron_h.py`, `modeling_jamba.py`,
`modeling_granitemoehybrid.py`, `modeling_bamba.py`, `modeling_falcon_h1.py`, `modeling_kimi_linear.py`,
`modeling_mamba2.py` of huggingface/transformers; draft layers by vllm-project/vllm (`qwen3_next_mtp.py`,
`nemotron_h_mtp.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from clusterwright.model.decoders import Experts, Mlp
from clusterwright.model.huggingface.attentions import Extras, grouped
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import Routing, dense, mixture
from clusterwright.model.huggingface.mixtures import experts_of
from clusterwright.model.huggingface.models import (
    context_of,
    hidden_of,
    layers_of,
    norms,
    tables_of,
)
from clusterwright.model.huggingface.patterns import FULL, layer_types_of, periodic, sparse_layers_of
from clusterwright.model.huggingface.states import Mamba, delta_net, mamba1, mamba2
from clusterwright.model.huggingface.towers import qwen_vision
from clusterwright.model.huggingface.transformers import attention_of
from clusterwright.model.huggingface.weights import Block, Blueprint, Weights, matrix, norm


def qwen_hybrid(config: Config) -> Blueprint:
    """Qwen3-Next, Qwen3.5, Qwen3.6: gated delta nets, each fourth layer gated attention, a draft layer."""
    config.ignore("attn_output_gate", "output_gate_type", "mtp_use_dedicated_embeddings", "mtp_num_hidden_layers")
    if config.flag("mtp_use_dedicated_embeddings"):
        raise config.refuse("draft layers with their own embedding are not known", "mtp_use_dedicated_embeddings")
    hidden, count = hidden_of(config), layers_of(config)
    types = layer_types_of(config)
    period = config.whole("full_attention_interval", default=4)
    full = [t in FULL for t in types] if types else list(periodic(count, period, offset=period - 1))
    moe = sparse_layers_of(config) if config.get("num_experts") else (False,) * count
    routing = Routing(shared="mlp.shared_expert", shared_gate=True)
    shared = config.whole("shared_expert_intermediate_size", default=0)
    feed = replace(experts_of(config), shared_width=shared) if any(moe) else None
    mlp = None if all(moe) else Mlp(config.whole("intermediate_size"))
    config.ignore("intermediate_size")
    bias, gated = config.flag("attention_bias"), config.flag("attn_output_gate", default=True)
    extras = Extras(qkv_bias=bias, output_bias=bias, qk_norm="head", gate="double" if gated else "")
    mixer = attention_of(config)
    state, state_weights = delta_net(config, hidden)

    def block(attends: bool, routed: bool) -> Block:
        weights = grouped(hidden, mixer, extras) if attends else state_weights
        chosen = feed if routed else mlp
        if chosen is None:
            raise config.refuse("a layer has no feed-forward width", "intermediate_size", "num_experts")
        weights += mixture(hidden, chosen, routing) if isinstance(chosen, Experts) else dense(hidden, chosen)
        return Block(mixer if attends else state, chosen, weights + norms(hidden, 2))

    made = {key: block(*key) for key in set(zip(full, moe, strict=True))}
    tied = config.flag("tie_word_embeddings")
    drafted = config.whole("mtp_num_hidden_layers", default=0)
    last = block(True, feed is not None) if drafted else None
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(made[key] for key in zip(full, moe, strict=True)),
        tables=tables_of(config, tied=tied),
        drafts=(_qwen_draft(hidden, last),) * drafted if last else (),
        draft_path="mtp.layers.{number}.",
        towers=qwen_vision(config, hidden),
        scale_bytes=2,
    )


def _qwen_draft(hidden: int, block: Block) -> Block:
    extra: Weights = matrix("fc", hidden, 2 * hidden, "projection", "none")
    for name in ("pre_fc_norm_hidden", "pre_fc_norm_embedding", "norm"):
        extra += norm(name, hidden)
    return replace(block, weights=block.weights + extra)


#: Letters of `hybrid_override_pattern` and words of `layers_block_type`.
_LETTERS: Final[Mapping[str, str]] = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}


def nemotron_h(config: Config) -> Blueprint:
    """Nemotron-H, Nemotron 3: layers of one thing each: Mamba, attention, an MLP or experts."""
    config.ignore("rescale_prenorm_residual", "residual_in_fp32", "time_step_floor", "time_step_limit", "time_step_max")
    config.ignore("time_step_min", "time_step_rank", "moe_shared_expert_overlap", "chunk_size", "num_logits_to_keep")
    config.ignore("use_mamba_kernels", "n_shared_experts", "sliding_window", "mamba_ssm_cache_dtype", "expand")
    config.ignore("mamba_hidden_act", "mlp_hidden_act", "intermediate_size", "norm_eps", "layer_norm_epsilon")
    config.ignore("mtp_hybrid_override_pattern", "mtp_layers_block_type", "num_nextn_predict_layers")
    pattern = _pattern(config, "hybrid_override_pattern", "layers_block_type")
    config.assume(num_hidden_layers=len(pattern))
    hidden, count = hidden_of(config), layers_of(config)
    if len(pattern) != count:
        raise config.refuse(f"the pattern has {len(pattern)} layers of {count}", "hybrid_override_pattern")
    made = {letter: _nemotron_block(config, hidden, letter) for letter in set(pattern)}
    tied = config.flag("tie_word_embeddings")
    drafted = config.whole("num_nextn_predict_layers", default=0)
    draft = _pattern(config, "mtp_hybrid_override_pattern", "mtp_layers_block_type") if drafted else ""
    if drafted and not draft:
        raise config.refuse("draft layers without their pattern", "mtp_hybrid_override_pattern")
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(made[letter] for letter in pattern),
        tables=tables_of(config, tied=tied),
        drafts=_nemotron_drafts(config, hidden, draft) * drafted,
        draft_path="mtp.layers.{number}.",
    )


def _pattern(config: Config, letters: str, words: str) -> str:
    written = config.get(letters)
    if isinstance(written, str):
        pattern = written
    else:
        pattern = "".join(_LETTERS.get(str(word), "?") for word in config.items(words))
    unknown = sorted(set(pattern) - set(_LETTERS.values()))
    if unknown:
        raise config.refuse(f"layers '{''.join(unknown)}' of the pattern are not known", letters, words)
    return pattern


def _nemotron_block(config: Config, hidden: int, letter: str) -> Block:
    bias, mlp_bias = config.flag("attention_bias"), config.flag("mlp_bias")
    before = norm("norm", hidden)
    if letter == "M":
        mixer, weights = mamba2(_nemotron_mamba(config), hidden, "mixer.")
        return Block(mixer, None, weights + before)
    if letter == "*":
        attention = attention_of(config)
        extras = Extras(qkv_bias=bias, output_bias=bias)
        return Block(attention, None, grouped(hidden, attention, extras, path="mixer.") + before)
    if letter == "-":
        mlp = Mlp(config.whole("intermediate_size"), 2)
        return Block(None, mlp, dense(hidden, mlp, path="mixer.", bias=mlp_bias) + before)
    narrow = config.maybe("moe_latent_size")
    feed = replace(
        experts_of(config), hidden=narrow or hidden, matrices=2,
        shared_width=config.whole("n_shared_experts", default=0) * config.whole("moe_shared_expert_intermediate_size"),
    )  # fmt: skip
    routing = Routing(router="mixer.gate", correction=True, shared="mixer.shared_experts", experts="mixer.experts")
    weights = mixture(hidden, feed, routing)
    if narrow:
        weights += matrix("mixer.fc1_latent_proj", narrow, hidden, "projection", "none")
        weights += matrix("mixer.fc2_latent_proj", hidden, narrow, "projection", "none")
    return Block(None, feed, weights + before)


def _nemotron_drafts(config: Config, hidden: int, pattern: str) -> tuple[Block, ...]:
    """One step of drafting: its first layer joins embedding and state, its last one has a norm more."""
    blocks = [_nemotron_block(config, hidden, letter) for letter in pattern]
    if not blocks:
        return ()
    start: Weights = (*norm("enorm", hidden), *norm("hnorm", hidden))
    start += matrix("eh_proj", hidden, 2 * hidden, "projection", "none")
    blocks[0] = replace(blocks[0], weights=blocks[0].weights + start)
    blocks[-1] = replace(blocks[-1], weights=blocks[-1].weights + norm("final_layernorm", hidden))
    return tuple(blocks)


def _nemotron_mamba(config: Config) -> Mamba:
    heads = config.whole("mamba_num_heads")
    return Mamba(
        heads=heads,
        inner=heads * config.whole("mamba_head_dim"),
        state=config.whole("ssm_state_size"),
        groups=config.whole("n_groups"),
        kernel=config.whole("conv_kernel"),
        conv_bias=config.flag("use_conv_bias", default=True),
        bias=config.flag("use_bias") or config.flag("mamba_proj_bias"),
    )


def mamba2_model(config: Config) -> Blueprint:
    """Mamba-2 alone, in its transformers form."""
    hidden, count = hidden_of(config), layers_of(config)
    config.ignore("chunk_size", "rms_norm", "residual_in_fp32", "time_step_rank", "time_step_limit", "expand")
    inner = int(config.get("expand") or 2) * hidden
    heads = config.whole("num_heads")
    config.ignore(
        "head_dim", "norm_before_gate", "rescale_prenorm_residual", "time_step_floor", "time_step_init_scheme"
    )
    mixer, weights = mamba2(
        Mamba(
            heads=heads, inner=inner, state=config.whole("state_size"), groups=config.whole("n_groups"),
            kernel=config.whole("conv_kernel"), conv_bias=config.flag("use_conv_bias", default=True),
            bias=config.flag("use_bias"),
        ), hidden, "mixer.",
    )  # fmt: skip
    return _alone(config, Block(mixer, None, weights + norm("norm", hidden)), count)


def mamba1_model(config: Config) -> Blueprint:
    """Mamba-1 alone, in its transformers form."""
    hidden, count = hidden_of(config), layers_of(config)
    config.ignore("time_step_scale", "time_step_floor", "time_step_init_scheme", "residual_in_fp32", "expand")
    config.ignore("rescale_prenorm_residual", "use_mambapy")
    inner = config.whole("intermediate_size", default=int(config.get("expand") or 2) * hidden)
    rank = config.get("time_step_rank")
    mixer, weights = mamba1(
        hidden, inner, config.whole("state_size"), config.whole("conv_kernel"),
        rank if isinstance(rank, int) else -(-hidden // 16), path="mixer.",
        conv_bias=config.flag("use_conv_bias", default=True), bias=config.flag("use_bias"),
    )  # fmt: skip
    config.assume(tie_word_embeddings=True)
    return _alone(config, Block(mixer, None, weights + norm("norm", hidden)), count)


def _alone(config: Config, block: Block, count: int) -> Blueprint:
    tied = config.flag("tie_word_embeddings")
    return Blueprint(
        hidden=hidden_of(config),
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=(block,) * count,
        tables=tables_of(config, tied=tied),
    )
