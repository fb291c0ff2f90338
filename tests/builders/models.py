"""Models as their config.json has them, built by hand."""

import datetime

from clusterwright.catalogue.building import build
from clusterwright.model.language_models import LanguageModel, Moe


def language_model(name: str, **fields: object) -> LanguageModel:
    base = {
        "name": name,
        "source": "config.json of the repository",
        "date": datetime.date(2026, 1, 1),
        "family": "test",
        "attention": "gqa",
        "tied_embeddings": False,
        "max_context": 131072,
    }
    return build(LanguageModel, base | fields)


LLAMA_8B = language_model(
    "meta-llama/Llama-3.1-8B",
    layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, intermediate=14336, vocab=128256,
)  # fmt: skip
LLAMA_70B = language_model(
    "meta-llama/Llama-3.3-70B-Instruct",
    layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128, intermediate=28672, vocab=128256,
)  # fmt: skip
LLAMA_405B = language_model(
    "meta-llama/Llama-3.1-405B",
    layers=126, hidden=16384, heads=128, kv_heads=8, head_dim=128, intermediate=53248, vocab=128256,
)  # fmt: skip
QWEN3_235B = language_model(
    "Qwen/Qwen3-235B-A22B",
    layers=94, hidden=4096, heads=64, kv_heads=4, head_dim=128, vocab=151936, qk_norm=True,
    moe=Moe(experts=128, active=8, intermediate=1536),
)  # fmt: skip
MIXTRAL = language_model(
    "mistralai/Mixtral-8x7B-v0.1",
    layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, vocab=32000,
    moe=Moe(experts=8, active=2, intermediate=14336),
)  # fmt: skip
QWEN25_7B = language_model(
    "Qwen/Qwen2.5-7B",
    layers=28, hidden=3584, heads=28, kv_heads=4, head_dim=128, intermediate=18944, vocab=152064, qkv_bias=True,
)  # fmt: skip
DEEPSEEK = language_model(
    "deepseek-ai/DeepSeek-V3",
    attention="mla", layers=61, hidden=7168, heads=128, vocab=129280, intermediate=18432,
    latent={"kv_rank": 512, "q_rank": 1536, "rope_dim": 64, "nope_dim": 128, "value_dim": 128},
    moe={"experts": 256, "active": 8, "intermediate": 2048, "shared_experts": 1, "shared_intermediate": 2048,
         "dense_layers": 3},
)  # fmt: skip
