"""Transformers of the first years: LayerNorms with biases, MLPs without a gate, learned positions.

Sources: `modeling_gpt2.py`, `modeling_gpt_neox.py`, `modeling_opt.py`, `modeling_bloom.py`, `modeling_falcon.py` of
huggingface/transformers.
"""

from __future__ import annotations

from clusterwright.model.decoders import Attention, Mlp
from clusterwright.model.huggingface.attentions import Extras
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.models import head_dim_of, heads_of, hidden_of, layers_of
from clusterwright.model.huggingface.transformers import Style, attention_of, transformer
from clusterwright.model.huggingface.weights import Blueprint, Weight, Weights, norm

_ALL_BIASES = Extras(qkv_bias=True, output_bias=True)


def gpt2(config: Config) -> Blueprint:
    """GPT-2: learned positions, tied."""
    hidden, count = hidden_of(config), layers_of(config)
    config.ignore("n_ctx")
    config.ignore("summary_type", "summary_use_proj", "summary_proj_to_labels", "summary_activation")
    mlp = Mlp(config.whole("n_inner", default=4 * hidden), 2)
    style = Style(_ALL_BIASES, norm_bias=True, mlp_bias=True, tied=True)
    positions = _positions(config.whole("n_positions"), hidden)
    return transformer(config, style, (attention_of(config),) * count, (mlp,) * count, extra_tables=positions)


def gptj(config: Config) -> Blueprint:
    """GPT-J: attention without biases, one norm, a head with a bias."""
    hidden, count = hidden_of(config), layers_of(config)
    config.ignore("n_positions", "rotary_dim", "n_ctx")
    config.ignore("summary_type", "summary_use_proj", "summary_proj_to_labels", "summary_activation")
    mlp = Mlp(config.whole("n_inner", default=4 * hidden), 2)
    style = Style(norms=1, norm_bias=True, mlp_bias=True, head_bias=True)
    return transformer(config, style, (attention_of(config),) * count, (mlp,) * count)


def gpt_neox(config: Config) -> Blueprint:
    """GPT-NeoX, Pythia: biases everywhere, a head of its own."""
    count = layers_of(config)
    bias = config.flag("attention_bias", default=True)
    style = Style(Extras(qkv_bias=bias, output_bias=bias), norm_bias=True, mlp_bias=True)
    config.ignore("use_parallel_residual")
    mlp = Mlp(config.whole("intermediate_size"), 2)
    return transformer(config, style, (attention_of(config),) * count, (mlp,) * count)


def opt(config: Config) -> Blueprint:
    """OPT: learned positions with an offset of two, tied; 350m's narrower embedding is refused."""
    hidden, count = hidden_of(config), layers_of(config)
    if config.whole("word_embed_proj_dim", default=hidden) != hidden or not config.flag(
        "do_layer_norm_before", default=True
    ):
        raise config.refuse("OPT with an embedding of another width is not known", "word_embed_proj_dim")
    config.ignore("_remove_final_layer_norm", "layerdrop", "layer_norm_elementwise_affine")
    style = Style(_ALL_BIASES, norm_bias=True, mlp_bias=config.flag("enable_bias", default=True), tied=True)
    mlp = Mlp(config.whole("ffn_dim"), 2)
    positions = _positions(config.whole("max_position_embeddings") + 2, hidden)
    return transformer(config, style, (attention_of(config),) * count, (mlp,) * count, extra_tables=positions)


def bloom(config: Config) -> Blueprint:
    """BLOOM: a norm after the embedding, tied."""
    hidden, count = hidden_of(config), layers_of(config)
    config.ignore("apply_residual_connection_post_layernorm", "bias_dropout_fusion", "offset_alibi", "skip_bias_add")
    config.ignore("skip_bias_add_qkv", "masked_softmax_fusion", "unk_token_id", "slow_but_exact")
    style = Style(_ALL_BIASES, norm_bias=True, mlp_bias=True, tied=True)
    mlp = Mlp(4 * hidden, 2)
    extra = norm("word_embeddings_layernorm", hidden, bias=True)
    return transformer(config, style, (attention_of(config),) * count, (mlp,) * count, extra_tables=extra)


def falcon(config: Config) -> Blueprint:
    """Falcon: one or two norms, one, few or all KV heads, tied."""
    hidden, count, heads = hidden_of(config), layers_of(config), heads_of(config)
    new = config.flag("new_decoder_architecture")
    few = config.whole("num_kv_heads", default=heads)
    kv_heads = few if new else (1 if config.flag("multi_query", default=True) else heads)
    bias, parallel = config.flag("bias"), config.flag("parallel_attn", default=True)
    norms = config.whole("num_ln_in_parallel_attn", default=2 if new else 1) if new or parallel else 2
    config.ignore("alibi", "apply_residual_connection_post_layernorm", "num_ln_in_parallel_attn")
    mlp = Mlp(config.whole("ffn_hidden_size", default=4 * hidden), 2)
    width = head_dim_of(config)
    mixer = Attention(heads, kv_heads, width, width)
    style = Style(Extras(qkv_bias=bias, output_bias=bias), norms=norms, norm_bias=True, mlp_bias=bias, tied=True)
    return transformer(config, style, (mixer,) * count, (mlp,) * count)


def _positions(rows: int, hidden: int) -> Weights:
    return (Weight("embed_positions", rows, hidden, "embedding", "none", used=0, linear=False),)
