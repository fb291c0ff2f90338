"""Models with multi-head latent attention, dense (DeepSeek-V2, V3, Kimi-K2) or over an index (V3.2, GLM-5).

Sources: `modeling_deepseek_v3.py` of huggingface/transformers; README_WEIGHTS.md and `inference/model.py` of
DeepSeek-V3 and V3.2 (draft layer: two norms, a projection of twice the hidden width, own embedding and head).
"""

from __future__ import annotations

from functools import cache

from clusterwright.model.decoders import Experts, Index, LatentAttention, Mlp
from clusterwright.model.huggingface.attentions import latent
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import Routing, dense, mixture
from clusterwright.model.huggingface.mixtures import experts_of, with_shared
from clusterwright.model.huggingface.models import context_of, heads_of, hidden_of, layers_of, norms, tables_of
from clusterwright.model.huggingface.patterns import layer_types_of, sparse_layers_of
from clusterwright.model.huggingface.weights import Block, Blueprint, Weight, Weights, norm


def latent_of(config: Config, index: Index | None = None) -> LatentAttention:
    """Latent attention as DeepSeek's keys describe it; `head_dim` does not count here."""
    config.ignore("head_dim", "qk_head_dim", "num_key_value_heads")
    return LatentAttention(
        heads=heads_of(config),
        q_rank=config.maybe("q_lora_rank"),
        kv_rank=config.whole("kv_lora_rank"),
        rope_dim=config.whole("qk_rope_head_dim"),
        nope_dim=config.whole("qk_nope_head_dim"),
        value_dim=config.whole("v_head_dim"),
        index=index,
    )


def deepseek(config: Config) -> Blueprint:
    """DeepSeek-V2, V3, R1, Kimi-K2: latent attention without an index."""
    return _model(config, (latent_of(config),) * layers_of(config))


def glm_lite(config: Config) -> Blueprint:
    """GLM-4.7-Flash: DeepSeek-V3's layers; its configuration class has the way of choosing experts as a default."""
    config.assume(topk_method="noaux_tc")
    return deepseek(config)


def deepseek_sparse(config: Config, *, own_tables: bool = True) -> Blueprint:
    """DeepSeek-V3.2: latent attention over an index; some layers use an earlier layer's index."""
    config.ignore("indexer_rope_interleave", "index_topk_freq", "index_topk_pattern", "index_skip_topk_offset")
    config.ignore("index_share_for_mtp_iteration", "layer_types", "num_experts")
    heads, dim, top = config.whole("index_n_heads"), config.whole("index_head_dim"), config.whole("index_topk")
    words = layer_types_of(config, "indexer_types") or ("full",) * layers_of(config)
    unknown = sorted(set(words) - {"full", "shared"})
    if unknown:
        raise config.refuse(f"indexer types {', '.join(unknown)} are not known", "indexer_types")
    mixers = tuple(latent_of(config, Index(heads, dim, top, word == "full")) for word in words)
    return _model(config, mixers, own_tables=own_tables)


def glm_sparse(config: Config) -> Blueprint:
    """GLM-5: the same over an index, its draft layer shares the model's embedding and head."""
    return deepseek_sparse(config, own_tables=False)


def _model(config: Config, mixers: tuple[LatentAttention, ...], *, own_tables: bool = True) -> Blueprint:
    hidden = hidden_of(config)
    bias, mlp_bias = config.flag("attention_bias"), config.flag("mlp_bias")
    correction = config.text("topk_method") == "noaux_tc"
    routing = Routing(correction=correction)
    sparse = sparse_layers_of(config)
    if not any(sparse):
        config.ignore("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts")
    feed = with_shared(config, experts_of(config)) if any(sparse) else None
    width = config.whole("intermediate_size", default=0)

    @cache
    def block(mixer: LatentAttention, experts: Experts | None) -> Block:
        weights = latent(hidden, mixer, bias=bias)
        mlp = experts or Mlp(width)
        weights += dense(hidden, mlp, bias=mlp_bias) if isinstance(mlp, Mlp) else mixture(hidden, mlp, routing)
        return Block(mixer, mlp, weights + norms(hidden, 2))

    blocks = tuple(block(mixer, feed if s else None) for mixer, s in zip(mixers, sparse, strict=True))
    tied = config.flag("tie_word_embeddings")
    drafted = config.whole("num_nextn_predict_layers", default=0)
    return Blueprint(
        hidden=hidden,
        vocab=config.whole("vocab_size"),
        max_context=context_of(config),
        tied=tied,
        blocks=blocks,
        tables=tables_of(config, tied=tied),
        drafts=(draft_of(config, block(mixers[0], feed), own_tables=own_tables),) * drafted,
    )


def draft_of(config: Config, block: Block, *, own_tables: bool) -> Block:
    """A layer for multi-token prediction; DeepSeek stores it with its own embedding and head."""
    hidden, vocab = hidden_of(config), config.whole("vocab_size")
    extra: Weights = (
        Weight("eh_proj", hidden, 2 * hidden, "projection", "none", linear=False),
        *norm("enorm", hidden),
        *norm("hnorm", hidden),
        *norm("shared_head.norm", hidden),
    )
    if own_tables:
        extra += (
            Weight("embed_tokens", vocab, hidden, "embedding", "tp", used=0, linear=False),
            Weight("shared_head.head", vocab, hidden, "head", "tp", linear=False),
        )
    return Block(block.mixer, block.feed, block.weights + extra)
