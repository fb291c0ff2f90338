"""Attention layers: what is cached and which matrices there are.

Sources: `modeling_llama.py`, `modeling_qwen3.py`, `modeling_gpt_oss.py`, `modeling_deepseek_v3.py` of
huggingface/transformers; `inference/model.py` of DeepSeek-V3.2 (indexer).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clusterwright.model.decoders import Attention, Index, LatentAttention
from clusterwright.model.huggingface.weights import Weight, Weights, kv_matrix, matrix, norm, vector


@dataclass(frozen=True, slots=True)
class Extras:
    """Small weights that families add to plain attention.

    Args:
        qkv_bias, output_bias: of the projections.
        qk_norm: norms of queries and keys: one per head width ("head"), or over all heads together ("all").
        sinks: one learned logit per head.
        gate: of the output, by element (within q_proj: "double"; own matrix: "element") or by head ("head").
        value_is_key: no value projection: values are the keys' projection.
        fused: q, k and v are one matrix in the checkpoint, named so.
    """

    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: Literal["", "head", "all", "head_bias"] = ""
    sinks: bool = False
    gate: Literal["", "double", "element", "head"] = ""
    value_is_key: bool = False
    owns_cache: bool = True


PLAIN = Extras()


def grouped(hidden: int, mixer: Attention, extras: Extras = PLAIN, *, path: str = "self_attn.") -> Weights:
    """Weights of softmax attention with its own keys and values."""
    inner, keys, values = mixer.heads * mixer.key_dim, mixer.kv_heads * mixer.key_dim, mixer.kv_heads * _value(mixer)
    doubled = inner * (2 if extras.gate == "double" else 1)
    weights = matrix(f"{path}q_proj", doubled, hidden, "attention", bias=extras.qkv_bias)
    if mixer.owns_cache:
        weights += kv_matrix(f"{path}k_proj", keys, hidden, mixer.kv_heads, bias=extras.qkv_bias)
        if not extras.value_is_key:
            weights += kv_matrix(f"{path}v_proj", values, hidden, mixer.kv_heads, bias=extras.qkv_bias)
    outputs = mixer.heads * _value(mixer)
    weights += matrix(f"{path}o_proj", hidden, outputs, "attention", bias=extras.output_bias)
    if extras.gate == "element":
        weights += matrix(f"{path}gate_proj", outputs, hidden, "attention")
    elif extras.gate == "head":
        weights += matrix(f"{path}g_proj", mixer.heads, hidden, "attention")
    if extras.sinks:
        weights += (vector(f"{path}sinks", mixer.heads, "attention", "tp"),)
    return weights + _qk_norms(mixer, extras, path)


def _value(mixer: Attention) -> int:
    return mixer.value_dim or mixer.key_dim


def _qk_norms(mixer: Attention, extras: Extras, path: str) -> Weights:
    if not extras.qk_norm:
        return ()
    if extras.qk_norm == "all":
        return (
            *norm(f"{path}q_norm", mixer.heads * mixer.key_dim),
            *norm(f"{path}k_norm", mixer.kv_heads * mixer.key_dim),
        )
    bias = extras.qk_norm == "head_bias"
    queries = norm(f"{path}q_norm", mixer.key_dim, bias=bias)
    return queries + (norm(f"{path}k_norm", mixer.key_dim, bias=bias) if mixer.owns_cache else ())


def latent(
    hidden: int, mixer: LatentAttention, *, path: str = "self_attn.", bias: bool = False, gate: bool = False
) -> Weights:
    """Weights of multi-head latent attention, with its indexer if this layer has its own."""
    width = mixer.nope_dim + mixer.rope_dim
    weights: Weights = ()
    if mixer.q_rank is None:
        weights += matrix(f"{path}q_proj", mixer.heads * width, hidden, "attention")
    else:
        weights += matrix(f"{path}q_a_proj", mixer.q_rank, hidden, "attention", "none", bias=bias)
        weights += norm(f"{path}q_a_layernorm", mixer.q_rank)
        weights += matrix(f"{path}q_b_proj", mixer.heads * width, mixer.q_rank, "attention")
    weights += matrix(
        f"{path}kv_a_proj_with_mqa", mixer.kv_rank + mixer.rope_dim, hidden, "attention", "none", bias=bias
    )
    weights += norm(f"{path}kv_a_layernorm", mixer.kv_rank)
    up = mixer.heads * (mixer.nope_dim + mixer.value_dim)
    weights += matrix(f"{path}kv_b_proj", up, mixer.kv_rank, "attention")
    weights += matrix(f"{path}o_proj", hidden, mixer.heads * mixer.value_dim, "attention", bias=bias)
    if gate:
        weights += matrix(f"{path}g_proj", mixer.heads * mixer.value_dim, hidden, "attention")
    if mixer.index is not None and mixer.index.owns_cache:
        weights += indexer(hidden, mixer.index, mixer.q_rank or hidden, f"{path}indexer.")
    return weights


def indexer(hidden: int, index: Index, query_rank: int, path: str) -> Weights:
    """Weights of DeepSeek sparse attention's indexer: queries per head, one key with a LayerNorm, weights of heads.

    The weights of heads are never quantised (`modules_to_not_convert` of zai-org/GLM-5-FP8).
    """
    return (
        *matrix(f"{path}wq_b", index.heads * index.dim, query_rank, "indexer", "none"),
        *matrix(f"{path}wk", index.dim, hidden, "indexer", "none"),
        vector(f"{path}k_norm", 2 * index.dim, "indexer"),
        Weight(f"{path}weights_proj", index.heads, hidden, "indexer", "none", linear=False),
    )
