"""Questions of placement searches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from builders.decoders import DEEPSEEK_V3, LLAMA, decoder
from clusterwright.files.catalogue import load_catalogue
from clusterwright.model.decoders import Decoder
from clusterwright.physics.engines.results import EngineMemory
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.recipes import Recipe
from clusterwright.plan.searching import memories
from clusterwright.plan.searching.questions import Lengths, Pool, ServingQuestion, TrainingQuestion

LLAMA_70B: dict[str, Any] = LLAMA | {
    "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 28672,
}  # fmt: skip
LLAMA_405B: dict[str, Any] = LLAMA | {
    "num_hidden_layers": 126, "hidden_size": 16384, "num_attention_heads": 128, "intermediate_size": 53248,
}  # fmt: skip


def pool(gpu: str = "h200-sxm-141", **changed: Any) -> Pool:
    """16 nodes of eight GPUs with 400 Gb/s each, unless changed."""
    facts: dict[str, Any] = {
        "gpus_per_node": 8, "domain_gpus": 8, "nodes": 16, "nic_gbytes_s": 50.0, "price_per_gpu_h": 3.5,
    }  # fmt: skip
    return Pool(load_catalogue().gpu(gpu), **{**facts, **changed})


def serving(model: Decoder | None = None, where: Pool | None = None, **changed: Any) -> ServingQuestion:
    """DeepSeek-V3 on H200 for chat with targets, unless changed."""
    facts: dict[str, Any] = {
        "lengths": Lengths(2000, 500, 6000, 1200), "rate": 5.0, "ttft_s": 2.0, "tpot_s": 0.05, "quantile": 0.95,
    }  # fmt: skip
    return ServingQuestion(model or decoder(DEEPSEEK_V3, "deepseek-v3"), where or pool(), **{**facts, **changed})


def training(model: Decoder | None = None, where: Pool | None = None, **changed: Any) -> TrainingQuestion:
    """Llama 70B in bf16 on 64 H100, unless changed; `recipe` changes single fields of the recipe."""
    recipe = Recipe(sequence=8192, global_batch=256, logits="fused", expandable=True)
    recipe = replace(recipe, **changed.pop("recipe", {}))
    return TrainingQuestion(
        model or decoder(LLAMA_70B, "llama-70b"), where or pool("h100-sxm-80"), recipe, **{"gpus": 64, **changed}
    )


def full_plan(question: ServingQuestion, layout: Layout) -> EngineMemory:
    """The memory of a layout by the engine's own estimator, without the search."""
    decoder, length = memories.served(question), memories.longest_sequence(question)
    return memories.plan(question, decoder, layout, length, advise=True)
