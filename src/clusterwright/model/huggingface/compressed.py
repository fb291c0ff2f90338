"""DeepSeek-V4: attention over compressed entries, residual streams mixed by hyper-connections, experts chosen by hash.

Sources: `modeling_deepseek_v4.py` of huggingface/transformers; `vllm/models/deepseek_v4` of vllm-project/vllm (draft
layer; formats: experts in 4 bits with one scale per 32, other matrices in 8-bit blocks of 128 × 128, scales of 1 B).
"""

from __future__ import annotations

from typing import Final

from clusterwright.model.decoders import CompressedAttention, Index
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import Routing, mixture
from clusterwright.model.huggingface.formats import Scheme
from clusterwright.model.huggingface.mixtures import experts_of, with_shared
from clusterwright.model.huggingface.models import context_of, head_dim_of, heads_of, hidden_of, layers_of, tables_of
from clusterwright.model.huggingface.weights import Block, Blueprint, Weight, Weights, matrix, norm, vector

#: Ratio from which entries are few enough to attend to all of them: no indexer (HCA).
_HEAVY: Final = 128
FP4: Final = Scheme("mxfp4", (1, 32), 1)


def deepseek_v4(config: Config) -> Blueprint:
    """DeepSeek-V4: a window in every layer, beside it compressed entries where `compress_ratios` says so."""
    config.ignore("num_key_value_heads", "hc_sinkhorn_iters", "num_hash_layers", "o_groups", "index_topk")
    config.ignore("head_dim", "swiglu_limit", "hc_mult", "expert_dtype")
    hidden, count, vocab = hidden_of(config), layers_of(config), config.whole("vocab_size")
    drafted = config.whole("num_nextn_predict_layers", default=0)
    ratios = tuple(int(r) for r in config.items("compress_ratios"))
    if len(ratios) < count + drafted:
        raise config.refuse(f"compress_ratios has {len(ratios)} entries for {count} layers", "compress_ratios")
    hashed = config.whole("num_hash_layers", default=0)
    keys = [(ratio, number < hashed) for number, ratio in enumerate(ratios[:count])]
    made = {key: _block(config, hidden, vocab, *key) for key in set(keys)}
    tied = config.flag("tie_word_embeddings")
    return Blueprint(
        hidden=hidden,
        vocab=vocab,
        max_context=context_of(config),
        tied=tied,
        blocks=tuple(made[key] for key in keys),
        tables=tables_of(config, tied=tied) + _head_mixing(config, hidden),
        drafts=tuple(_draft(config, hidden, vocab, ratios[count + number]) for number in range(drafted)),
        draft_path="mtp.{number}.",
        scale_bytes=1,
        experts=FP4 if config.text("expert_dtype") == "fp4" else None,
    )


def _block(config: Config, hidden: int, vocab: int, ratio: int, hashed: bool) -> Block:
    mixer = _mixer(config, ratio)
    feed = with_shared(config, experts_of(config))
    routing = Routing(
        router="ffn.gate", correction=not hashed, shared="ffn.shared_experts", experts="ffn.experts",
        names=("w1", "w3", "w2"),
    )  # fmt: skip
    weights = _attention(config, hidden, mixer) + mixture(hidden, feed, routing)
    if hashed:
        table = Weight("ffn.gate.tid2eid", vocab, feed.active, "router", "none", used=0, linear=False, fixed="int64")
        weights += (table,)
    weights += norm("attn_norm", hidden) + norm("ffn_norm", hidden)
    mixing = _mixing(config, hidden, "hc_attn") + _mixing(config, hidden, "hc_ffn")
    return Block(mixer, feed, weights + mixing, config.whole("hc_mult"))


def _mixer(config: Config, ratio: int) -> CompressedAttention:
    index = None
    if ratio and ratio < _HEAVY:
        index = Index(config.whole("index_n_heads"), config.whole("index_head_dim"), config.whole("index_topk"))
    return CompressedAttention(
        heads=heads_of(config),
        head_dim=head_dim_of(config),
        rope_dim=config.whole("qk_rope_head_dim"),
        ratio=ratio,
        window=config.whole("sliding_window"),
        index=index,
    )


def _attention(config: Config, hidden: int, mixer: CompressedAttention) -> Weights:
    rank, inner, out = config.whole("q_lora_rank"), mixer.heads * mixer.head_dim, config.whole("o_lora_rank")
    groups = config.whole("o_groups")
    weights: Weights = (
        vector("attn.attn_sink", mixer.heads, "attention", "tp", fixed="fp32"),
        *matrix("attn.wq_a", rank, hidden, "attention", "none"),
        *norm("attn.q_norm", rank),
        *matrix("attn.wq_b", inner, rank, "attention"),
        *matrix("attn.wkv", mixer.head_dim, hidden, "attention", "none"),
        *norm("attn.kv_norm", mixer.head_dim),
        *matrix("attn.wo_a", groups * out, inner // groups, "attention"),
        *matrix("attn.wo_b", hidden, groups * out, "attention"),
    )
    if mixer.ratio:
        weights += _compressor(hidden, mixer.head_dim, mixer.ratio, "attn.compressor.", mixer.index is not None)
    if mixer.index is not None:
        weights += matrix("attn.indexer.wq_b", mixer.index.heads * mixer.index.dim, rank, "indexer", "none")
        weights += (Weight("attn.indexer.weights_proj", mixer.index.heads, hidden, "indexer", "none", linear=False),)
        weights += _compressor(hidden, mixer.index.dim, mixer.ratio, "attn.indexer.compressor.", True)
    return weights


def _compressor(hidden: int, width: int, ratio: int, path: str, overlapping: bool) -> Weights:
    """Weighs the tokens of one entry; overlapping entries have two sets of keys and gates. Never quantised."""
    wide = width * (2 if overlapping else 1)
    return (
        Weight(f"{path}ape", ratio, wide, "compressor", "none", linear=False, fixed="fp32"),
        Weight(f"{path}wkv", wide, hidden, "compressor", "none", linear=False),
        Weight(f"{path}wgate", wide, hidden, "compressor", "none", linear=False),
        vector(f"{path}norm", width, "compressor"),
    )


def _mixing(config: Config, hidden: int, name: str) -> Weights:
    """Hyper-connection before a block: weights of n streams in, out and among each other (2n + n²)."""
    streams = config.whole("hc_mult")
    outputs = (2 + streams) * streams
    return (
        Weight(f"{name}_fn", outputs, streams * hidden, "other", "none", linear=False, fixed="fp32"),
        vector(f"{name}_base", outputs, "other", fixed="fp32"),
        vector(f"{name}_scale", 3, "other", fixed="fp32"),
    )


def _head_mixing(config: Config, hidden: int) -> Weights:
    streams = config.whole("hc_mult")
    return (
        Weight("hc_head_fn", streams, streams * hidden, "other", "none", linear=False, fixed="fp32"),
        vector("hc_head_base", streams, "other", fixed="fp32"),
        vector("hc_head_scale", 1, "other", fixed="fp32"),
    )


def _draft(config: Config, hidden: int, vocab: int, ratio: int) -> Block:
    block = _block(config, hidden, vocab, ratio, False)
    extra: Weights = (
        *matrix("e_proj", hidden, hidden, "projection", "none"),
        *matrix("h_proj", hidden, hidden, "projection", "none"),
        *norm("enorm", hidden),
        *norm("hnorm", hidden),
        *norm("norm", hidden),
        *_head_mixing(config, hidden),
    )
    return Block(block.mixer, block.feed, block.weights + extra, block.streams)
