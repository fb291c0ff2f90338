"""Dense transformers family by family: which biases and norms each adds to Llama's matrices.

Sources: the families' `modeling_*.py` in huggingface/transformers; InternLM2, ChatGLM and Baichuan by the code of
their own repositories.
"""

from __future__ import annotations

from clusterwright.model.decoders import Attention, Mlp
from clusterwright.model.huggingface.attentions import Extras, grouped
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.feeds import dense
from clusterwright.model.huggingface.models import head_dim_of, heads_of, hidden_of, layers_of, norms
from clusterwright.model.huggingface.patterns import sliding_period_of
from clusterwright.model.huggingface.transformers import Style, attention_of, mixers_of, transformer, uniform
from clusterwright.model.huggingface.weights import Block, Blueprint, Weights, matrix, norm


def llama(config: Config) -> Blueprint:
    """Llama, Mistral, Granite, SmolLM3 and others of this form: biases as the config says, two norms."""
    bias = config.flag("attention_bias", "bias", "use_bias")
    extras = Extras(qkv_bias=bias, output_bias=bias)
    return uniform(config, Style(extras, mlp_bias=config.flag("mlp_bias", "use_bias")))


def llama_tied(config: Config) -> Blueprint:
    """The same with a head tied to the embedding where the config does not say otherwise."""
    config.assume(tie_word_embeddings=True)
    return llama(config)


def qwen2(config: Config) -> Blueprint:
    """Qwen2, Qwen2.5: biases of queries, keys and values."""
    return uniform(config, Style(Extras(qkv_bias=config.flag("attention_bias", "qkv_bias", default=True))))


def qwen3(config: Config) -> Blueprint:
    """Qwen3: norms of queries and keys per head."""
    bias = config.flag("attention_bias")
    return uniform(config, Style(Extras(qkv_bias=bias, output_bias=bias, qk_norm="head"), scale_bytes=2))


def seed_oss(config: Config) -> Blueprint:
    """Seed-OSS: biases of queries, keys and values; the output's has its own key."""
    extras = Extras(qkv_bias=config.flag("attention_bias", default=True), output_bias=config.flag("attention_out_bias"))
    return uniform(config, Style(extras, mlp_bias=config.flag("mlp_bias")))


def mimo(config: Config) -> Blueprint:
    """MiMo-7B: Qwen2's layers and draft layers with four norms and a projection, their tables shared."""
    style = Style(Extras(qkv_bias=config.flag("attention_bias", default=True)))
    hidden, mixer = hidden_of(config), attention_of(config)
    mlp = Mlp(config.whole("intermediate_size"))
    weights: Weights = grouped(hidden, mixer, style.extras) + dense(hidden, mlp) + norms(hidden, 2)
    weights += matrix("input_proj", hidden, 2 * hidden, "projection", "none")
    for name in ("token_layernorm", "hidden_layernorm", "final_layernorm"):
        weights += norm(name, hidden)
    drafts = (Block(mixer, mlp, weights),) * config.whole("num_nextn_predict_layers", default=0)
    return transformer(config, style, mixers_of(config), (mlp,) * layers_of(config), drafts)


def sandwiched(config: Config) -> Blueprint:
    """GLM-4-0414: four norms, biases of queries, keys and values."""
    return uniform(config, Style(Extras(qkv_bias=config.flag("attention_bias")), norms=4))


def glm(config: Config) -> Blueprint:
    """GLM-4-9B in its transformers form: biases of queries, keys and values."""
    return uniform(config, Style(Extras(qkv_bias=config.flag("attention_bias", default=True))))


def olmo(config: Config) -> Blueprint:
    """OLMo: norms without weights."""
    bias = config.flag("attention_bias")
    return uniform(config, Style(Extras(qkv_bias=bias, output_bias=bias), norms=0, final_norm=False))


def olmo2(config: Config) -> Blueprint:
    """OLMo 2 and 3: norms of queries and keys over all heads."""
    bias = config.flag("attention_bias")
    return uniform(config, Style(Extras(qkv_bias=bias, output_bias=bias, qk_norm="all")))


def exaone4(config: Config) -> Blueprint:
    """EXAONE 4: norms of queries and keys per head, windows in three of four layers."""
    period = sliding_period_of(config, 0) if config.get("sliding_window") else 0
    return uniform(config, Style(Extras(qk_norm="head")), period=period)


def cohere(config: Config) -> Blueprint:
    """Command R: one norm for attention and MLP together, tied; R+ has norms of queries and keys over all heads."""
    bias = config.flag("attention_bias")
    extras = Extras(qkv_bias=bias, output_bias=bias, qk_norm="all" if config.flag("use_qk_norm") else "")
    config.ignore("use_parallel_block", "use_embedding_sharing", "use_gated_activation", "layer_switch")
    return uniform(config, Style(extras, norms=1, tied=True))


def cohere2(config: Config) -> Blueprint:
    """Command R7B, Command A: windows in all but each fourth layer."""
    config.ignore("use_parallel_block", "use_embedding_sharing", "use_gated_activation", "layer_switch")
    bias = config.flag("attention_bias")
    style = Style(Extras(qkv_bias=bias, output_bias=bias), norms=1, tied=True)
    return uniform(config, style, period=sliding_period_of(config, 4))


def nemotron(config: Config) -> Blueprint:
    """Nemotron-4, Minitron: norms with biases, an MLP without a gate."""
    bias = config.flag("attention_bias")
    style = Style(Extras(qkv_bias=bias, output_bias=bias), norm_bias=True, mlp_bias=config.flag("mlp_bias"))
    return uniform(config, style, matrices=2)


def arcee(config: Config) -> Blueprint:
    """AFM-4.5B: an MLP without a gate."""
    bias = config.flag("attention_bias")
    style = Style(Extras(qkv_bias=bias, output_bias=bias), mlp_bias=config.flag("mlp_bias"))
    return uniform(config, style, matrices=2)


def phi(config: Config) -> Blueprint:
    """Phi-1, Phi-2: biases everywhere, one norm, an MLP without a gate."""
    qk = "head_bias" if config.flag("qk_layernorm") else ""
    extras = Extras(qkv_bias=True, output_bias=True, qk_norm=qk)  # type: ignore[arg-type]
    style = Style(extras, norms=1, norm_bias=True, mlp_bias=True, head_bias=True)
    return uniform(config, style, matrices=2)


def starcoder2(config: Config) -> Blueprint:
    """StarCoder2: biases everywhere, an MLP without a gate, tied."""
    bias = config.flag("use_bias", default=True)
    style = Style(Extras(qkv_bias=bias, output_bias=bias), norm_bias=True, mlp_bias=bias, tied=True)
    config.ignore("norm_type", "mlp_type")
    return uniform(config, style, matrices=2)


def stablelm(config: Config) -> Blueprint:
    """StableLM: norms with biases."""
    if config.flag("qk_layernorm") or config.flag("use_parallel_residual"):
        raise config.refuse("StableLM with norms of queries or a parallel residual is not known", "qk_layernorm")
    return uniform(config, Style(Extras(qkv_bias=config.flag("use_qkv_bias")), norm_bias=True))


def hunyuan(config: Config) -> Blueprint:
    """Hunyuan dense: norms of queries and keys per head."""
    config.ignore("use_cla", "cla_share_factor", "num_experts", "num_shared_expert", "moe_topk", "use_mixed_mlp_moe")
    if config.flag("use_cla"):
        raise config.refuse("Hunyuan with attention shared between layers is not known", "use_cla")
    bias = config.flag("attention_bias")
    qk = "head" if config.flag("use_qk_norm", default=True) else ""
    extras = Extras(qkv_bias=bias, output_bias=bias, qk_norm=qk)  # type: ignore[arg-type]
    return uniform(config, Style(extras, mlp_bias=config.flag("mlp_bias")))


def internlm2(config: Config) -> Blueprint:
    """InternLM2: Llama's shape, `bias` for all of attention."""
    bias = config.flag("bias")
    config.ignore("attn_implementation")
    return uniform(config, Style(Extras(qkv_bias=bias, output_bias=bias)))


def internlm3(config: Config) -> Blueprint:
    """InternLM3: separate keys for biases of queries, keys and values."""
    bias = config.flag("bias")
    style = Style(Extras(qkv_bias=config.flag("qkv_bias"), output_bias=bias), mlp_bias=bias)
    return uniform(config, style)


def baichuan(config: Config) -> Blueprint:
    """Baichuan2: Llama's shape with as many KV heads as heads."""
    config.ignore("z_loss_weight")
    return uniform(config, Style())


def chatglm(config: Config) -> Blueprint:
    """ChatGLM2, ChatGLM3, GLM-4-9B by their own code: grouped queries with their own keys."""
    hidden, count = hidden_of(config), layers_of(config)
    heads, width = heads_of(config), config.whole("kv_channels", default=head_dim_of(config))
    multi = config.flag("multi_query_attention")
    groups = config.whole("multi_query_group_num") if multi else heads
    config.ignore(
        "original_rope", "interleaved_qkv", "post_layer_norm", "rmsnorm", "apply_residual_connection_post_layernorm"
    )
    config.ignore("bias_dropout_fusion", "hidden_dropout", "pre_seq_len", "prefix_projection", "multi_query_group_num")
    both = config.flag("add_bias_linear")
    extras = Extras(qkv_bias=config.flag("add_qkv_bias") or both, output_bias=both)
    mixer, mlp = Attention(heads, groups, width, width), Mlp(config.whole("ffn_hidden_size"))
    if hidden != heads * width:
        raise config.refuse("heads do not fill the hidden width", "kv_channels")
    return transformer(config, Style(extras, mlp_bias=both), (mixer,) * count, (mlp,) * count)
