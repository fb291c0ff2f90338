"""Which reader counts which architecture: the one list of what is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from clusterwright.model.huggingface import latents, mixtures
from clusterwright.model.huggingface.attentions import Extras
from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.transformers import Style, uniform
from clusterwright.model.huggingface.weights import Blueprint

Family = Callable[[Config], Blueprint]


def llama(config: Config) -> Blueprint:
    """Llama, Mistral and others of this form: biases as the config says, two norms."""
    bias = config.flag("attention_bias", "bias")
    extras = Extras(qkv_bias=bias, output_bias=bias)
    return uniform(config, Style(extras, mlp_bias=config.flag("mlp_bias")))


def qwen2(config: Config) -> Blueprint:
    """Qwen2, Qwen2.5: biases of queries, keys and values."""
    return uniform(config, Style(Extras(qkv_bias=config.flag("attention_bias", "qkv_bias", default=True))))


def qwen3(config: Config) -> Blueprint:
    """Qwen3: norms of queries and keys per head."""
    bias = config.flag("attention_bias")
    return uniform(config, Style(Extras(qkv_bias=bias, output_bias=bias, qk_norm="head"), scale_bytes=2))


FAMILIES: Final[Mapping[str, Family]] = {
    "LlamaForCausalLM": llama,
    "Qwen2ForCausalLM": qwen2,
    "Qwen2MoeForCausalLM": mixtures.qwen2_moe,
    "Qwen3ForCausalLM": qwen3,
    "Qwen3MoeForCausalLM": mixtures.qwen3_moe,
    "MixtralForCausalLM": mixtures.mixtral,
    "GptOssForCausalLM": mixtures.gpt_oss,
    "DeepseekV3ForCausalLM": latents.deepseek,
    "DeepseekV32ForCausalLM": latents.deepseek_sparse,
}

#: Architectures that are counted as another.
SAME_ARCHITECTURE: Final[Mapping[str, str]] = {
    "MistralForCausalLM": "LlamaForCausalLM",
    "DeepseekV2ForCausalLM": "DeepseekV3ForCausalLM",
    "GlmMoeDsaForCausalLM": "DeepseekV32ForCausalLM",
}
