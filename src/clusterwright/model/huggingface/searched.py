"""Models found by architecture search: every layer has its own sizes, or leaves attention or the MLP out.

Source: `modeling_decilm.py` of nvidia/Llama-3_3-Nemotron-Super-49B-v1 (`block_configs`; an MLP's width is
2 × ffn_mult × hidden ÷ 3, rounded up to 256).
"""

from __future__ import annotations

from typing import Any

from clusterwright.model.decoders import Attention, Mlp
from clusterwright.model.huggingface.attentions import Extras, grouped
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import dense
from clusterwright.model.huggingface.models import context_of, head_dim_of, heads_of, hidden_of, layers_of, tables_of
from clusterwright.model.huggingface.weights import Block, Blueprint, Weights, matrix, norm


def nemotron_nas(config: Config) -> Blueprint:
    """Llama-Nemotron Super and Ultra: `block_configs` says what each layer keeps."""
    config.ignore("num_key_value_heads", "intermediate_size", "num_key_value_heads_per_layer")
    hidden, count = hidden_of(config), layers_of(config)
    listed = config.items("block_configs")
    if len(listed) < count:
        raise config.refuse(f"block_configs has {len(listed)} entries for {count} layers", "block_configs")
    tied = config.flag("tie_word_embeddings")
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(_block(config, hidden, facts) for facts in listed[:count]),
        tables=tables_of(config, tied=tied),
    )


def _block(config: Config, hidden: int, facts: Any) -> Block:
    attention, feed = facts["attention"], facts["ffn"]
    weights: Weights = ()
    mixer = _attention(config, attention)
    if mixer is not None:
        bias = config.flag("attention_bias")
        weights += grouped(hidden, mixer, Extras(qkv_bias=bias, output_bias=bias)) + norm("input_layernorm", hidden)
    elif attention.get("replace_with_linear"):
        weights += matrix("self_attn.linear_attn", hidden, hidden, "attention") + norm("input_layernorm", hidden)
    mlp = None
    if feed.get("replace_with_linear"):
        weights += matrix("mlp.linear_mlp", hidden, hidden, "mlp") + norm("post_attention_layernorm", hidden)
    elif not feed.get("no_op"):
        mlp = Mlp(_width(config, hidden, feed))
        weights += dense(hidden, mlp, bias=config.flag("mlp_bias")) + norm("post_attention_layernorm", hidden)
    return Block(mixer, mlp, weights)


def _attention(config: Config, facts: Any) -> Attention | None:
    if facts.get("no_op") or facts.get("replace_with_linear"):
        return None
    group, heads, width = facts.get("n_heads_in_group"), heads_of(config), head_dim_of(config)
    if not group or heads % group:
        raise config.refuse("a layer of block_configs has no n_heads_in_group that divides the heads", "block_configs")
    return Attention(heads, heads // group, width, width, window=facts.get("window_length"))


def _width(config: Config, hidden: int, facts: Any) -> int:
    written = facts.get("intermediate_size")
    if written:
        return int(written)
    multiple = facts.get("ffn_mult")
    if not multiple:
        raise config.refuse("a layer of block_configs has no ffn_mult", "block_configs")
    return -(-int(2 * multiple * hidden / 3) // 256) * 256
