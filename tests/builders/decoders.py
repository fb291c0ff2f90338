"""Decoders built from a few facts of config.json; every fact can be changed by its own key."""

from __future__ import annotations

from typing import Any

from clusterwright.model.decoders import Decoder
from clusterwright.model.huggingface import parse_config

#: Facts of config.json of meta-llama/Meta-Llama-3.1-8B.
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
    "max_position_embeddings": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
#: Facts of config.json of Qwen/Qwen3-235B-A22B.
QWEN3_MOE: dict[str, Any] = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_hidden_layers": 94, "hidden_size": 4096,
    "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 12288,
    "moe_intermediate_size": 1536, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}  # fmt: skip
#: Facts of config.json of mistralai/Mixtral-8x7B-v0.1.
MIXTRAL: dict[str, Any] = {
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "num_local_experts": 8,
    "num_experts_per_tok": 2, "vocab_size": 32000, "max_position_embeddings": 32768, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}  # fmt: skip
FP8_BLOCKS: dict[str, Any] = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}
#: Facts of config.json of deepseek-ai/DeepSeek-V3.
DEEPSEEK_V3: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "num_hidden_layers": 61,
    "hidden_size": 7168, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1, "topk_method": "noaux_tc",
    "num_nextn_predict_layers": 1, "vocab_size": 129280, "max_position_embeddings": 163840,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "quantization_config": FP8_BLOCKS,
}  # fmt: skip
#: Facts of config.json of openai/gpt-oss-120b; the mixture of layers is added for the number of layers.
GPT_OSS: dict[str, Any] = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880,
    "num_local_experts": 128, "num_experts_per_tok": 4, "sliding_window": 128, "attention_bias": True,
    "vocab_size": 201088, "max_position_embeddings": 131072, "tie_word_embeddings": False,
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head",
        ],
    },
}  # fmt: skip


def decoder(facts: dict[str, Any], name: str = "", **changed: Any) -> Decoder:
    """A decoder of these facts with some of them changed; None removes a fact."""
    merged = {key: value for key, value in {**facts, **changed}.items() if value is not None}
    return parse_config(merged, name=name)


def llama(**changed: Any) -> Decoder:
    """Llama-3.1-8B: dense, grouped-query attention, bf16."""
    return decoder(LLAMA, "llama", **changed)


def llama_70b(**changed: Any) -> Decoder:
    """Llama-3.1-70B."""
    sizes = {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 28672}
    return decoder(LLAMA, "llama-70b", **(sizes | changed))


def llama_405b(**changed: Any) -> Decoder:
    """Llama-3.1-405B."""
    sizes = {"num_hidden_layers": 126, "hidden_size": 16384, "num_attention_heads": 128, "intermediate_size": 53248}
    return decoder(LLAMA, "llama-405b", **(sizes | changed))


def windowed(window: int = 4096, **changed: Any) -> Decoder:
    """Llama-3.1-8B's sizes with every layer windowed but each sixth."""
    count = int(changed.get("num_hidden_layers", 32))
    types = ["full_attention" if number % 6 == 5 else "sliding_attention" for number in range(count)]
    return decoder(LLAMA, "windowed", sliding_window=window, layer_types=types, **changed)


def qwen3_moe(**changed: Any) -> Decoder:
    """Qwen3-235B-A22B: mixture of experts, four KV heads, norms of queries and keys, bf16."""
    return decoder(QWEN3_MOE, "qwen3-moe", **changed)


def mixtral(**changed: Any) -> Decoder:
    """Mixtral-8x7B: eight wide experts, bf16."""
    return decoder(MIXTRAL, "mixtral", **changed)


def deepseek_v3(**changed: Any) -> Decoder:
    """DeepSeek-V3: latent attention, 256 experts, a draft layer, fp8 blocks."""
    return decoder(DEEPSEEK_V3, "deepseek-v3", **changed)


def deepseek_sparse(**changed: Any) -> Decoder:
    """DeepSeek-V3.2: the same over an index of 2,048 tokens."""
    index = {
        "architectures": ["DeepseekV32ForCausalLM"],
        "index_n_heads": 64,
        "index_head_dim": 128,
        "index_topk": 2048,
    }
    return decoder(DEEPSEEK_V3, "deepseek-v3.2", **(index | changed))


def gpt_oss(**changed: Any) -> Decoder:
    """gpt-oss-120b: windows of 128 in every other layer, mxfp4 experts."""
    count = int(changed.get("num_hidden_layers", 36))
    types = ["full_attention" if number % 2 else "sliding_attention" for number in range(count)]
    return decoder(GPT_OSS, "gpt-oss", layer_types=types, **changed)
