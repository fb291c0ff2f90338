"""Which reader counts which architecture: the one list of what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.models import hidden_of
from clusterwright.model.huggingface.weights import Blueprint

Family = Callable[[Config], Blueprint]

#: Architecture → module of this package and its function that counts the text model.
_READERS: Final[Mapping[str, str]] = {
    "LlamaForCausalLM": "dense_models.llama",
    "GraniteForCausalLM": "dense_models.llama_tied",
    "SmolLM3ForCausalLM": "dense_models.llama_tied",
    "Qwen2ForCausalLM": "dense_models.qwen2",
    "Qwen3ForCausalLM": "dense_models.qwen3",
    "SeedOssForCausalLM": "dense_models.seed_oss",
    "MiMoForCausalLM": "dense_models.mimo",
    "Glm4ForCausalLM": "dense_models.sandwiched",
    "GlmForCausalLM": "dense_models.glm",
    "OlmoForCausalLM": "dense_models.olmo",
    "Olmo2ForCausalLM": "dense_models.olmo2",
    "Exaone4ForCausalLM": "dense_models.exaone4",
    "CohereForCausalLM": "dense_models.cohere",
    "Cohere2ForCausalLM": "dense_models.cohere2",
    "NemotronForCausalLM": "dense_models.nemotron",
    "ArceeForCausalLM": "dense_models.arcee",
    "PhiForCausalLM": "dense_models.phi",
    "Starcoder2ForCausalLM": "dense_models.starcoder2",
    "StableLmForCausalLM": "dense_models.stablelm",
    "HunYuanDenseV1ForCausalLM": "dense_models.hunyuan",
    "InternLM2ForCausalLM": "dense_models.internlm2",
    "InternLM3ForCausalLM": "dense_models.internlm3",
    "BaichuanForCausalLM": "dense_models.baichuan",
    "ChatGLMModel": "dense_models.chatglm",
    "GPT2LMHeadModel": "first_models.gpt2",
    "GPTJForCausalLM": "first_models.gptj",
    "GPTNeoXForCausalLM": "first_models.gpt_neox",
    "OPTForCausalLM": "first_models.opt",
    "BloomForCausalLM": "first_models.bloom",
    "FalconForCausalLM": "first_models.falcon",
    "GemmaForCausalLM": "gemmas.gemma",
    "Gemma2ForCausalLM": "gemmas.gemma2",
    "Gemma3ForCausalLM": "gemmas.gemma3",
    "Gemma4ForConditionalGeneration": "gemmas.gemma4",
    "MixtralForCausalLM": "mixtures.mixtral",
    "Qwen2MoeForCausalLM": "mixtures.qwen2_moe",
    "Qwen3MoeForCausalLM": "mixtures.qwen3_moe",
    "GptOssForCausalLM": "mixtures.gpt_oss",
    "MiniMaxM2ForCausalLM": "more_mixtures.minimax_m2",
    "MiniMaxM3ForCausalLM": "more_mixtures.minimax_m3",
    "MiMoV2FlashForCausalLM": "more_mixtures.mimo_v2",
    "Glm4MoeForCausalLM": "more_mixtures.glm4_moe",
    "Dots1ForCausalLM": "more_mixtures.dots",
    "Step3p5ForCausalLM": "more_mixtures.step3",
    "Llama4ForConditionalGeneration": "more_mixtures.llama4",
    "Ernie4_5_MoeForCausalLM": "more_mixtures.ernie_moe",
    "HunYuanMoEV1ForCausalLM": "more_mixtures.hunyuan_moe",
    "GraniteMoeForCausalLM": "more_mixtures.granite_moe",
    "OlmoeForCausalLM": "more_mixtures.olmoe",
    "PhimoeForCausalLM": "more_mixtures.phi_moe",
    "DeepseekV3ForCausalLM": "latents.deepseek",
    "DeepseekV32ForCausalLM": "latents.deepseek_sparse",
    "GlmMoeDsaForCausalLM": "latents.glm_sparse",
    "DeepseekV4ForCausalLM": "compressed.deepseek_v4",
    "KimiK25ForConditionalGeneration": "kimis.kimi_k25",
    "KimiLinearForCausalLM": "kimis.kimi_linear",
    "DeciLMForCausalLM": "searched.nemotron_nas",
    "Qwen3NextForCausalLM": "hybrids.qwen_hybrid",
    "NemotronHForCausalLM": "hybrids.nemotron_h",
    "JambaForCausalLM": "more_hybrids.jamba",
    "BambaForCausalLM": "more_hybrids.bamba",
    "MiniMaxForCausalLM": "more_hybrids.lightning",
    "Glm4MoeLiteForCausalLM": "latents.glm_lite",
    "GraniteMoeHybridForCausalLM": "more_hybrids.granite_hybrid",
    "Mamba2ForCausalLM": "hybrids.mamba2_model",
    "MambaForCausalLM": "hybrids.mamba1_model",
    "Qwen2_5_VLForConditionalGeneration": "dense_models.qwen2",
    "Qwen3VLForConditionalGeneration": "dense_models.qwen3",
    "Qwen3VLMoeForConditionalGeneration": "mixtures.qwen3_moe",
    "Mistral3ForConditionalGeneration": "dense_models.llama",
}
#: Those with a vision tower beside it → function of `towers`.
_TOWERS: Final[Mapping[str, str]] = {
    "Qwen2_5_VLForConditionalGeneration": "qwen25_vision",
    "Qwen3VLForConditionalGeneration": "qwen_vision",
    "Qwen3VLMoeForConditionalGeneration": "qwen_vision",
    "Mistral3ForConditionalGeneration": "pixtral_vision",
}


class _Families(Mapping[str, Family]):
    """What counts an architecture. A module is imported when one of its own is looked up: most questions name one."""

    def __getitem__(self, architecture: str) -> Family:
        family = _imported(_READERS[architecture])
        tower = _TOWERS.get(architecture)
        return family if tower is None else _with_tower(family, _imported(f"towers.{tower}"))

    def __iter__(self) -> Iterator[str]:
        return iter(_READERS)

    def __len__(self) -> int:
        return len(_READERS)


def _imported(name: str) -> Any:
    module, _, function = name.partition(".")
    return getattr(import_module(f"clusterwright.model.huggingface.{module}"), function)


def _with_tower(family: Family, tower: Callable[[Config, int], Any]) -> Family:
    """A text family with a vision tower beside it."""

    def read(config: Config) -> Blueprint:
        return replace(family(config), towers=tower(config, hidden_of(config)))

    return read


FAMILIES: Final[Mapping[str, Family]] = _Families()

#: Architectures that are counted as another.
SAME_ARCHITECTURE: Final[Mapping[str, str]] = {
    "MistralForCausalLM": "LlamaForCausalLM",
    "MinistralForCausalLM": "LlamaForCausalLM",
    "Phi3ForCausalLM": "LlamaForCausalLM",
    "ExaoneForCausalLM": "LlamaForCausalLM",
    "Ernie4_5_ForCausalLM": "SmolLM3ForCausalLM",
    "Ernie4_5ForCausalLM": "SmolLM3ForCausalLM",
    "Olmo3ForCausalLM": "Olmo2ForCausalLM",
    "ChatGLMForConditionalGeneration": "ChatGLMModel",
    "RWForCausalLM": "FalconForCausalLM",
    "Gemma3ForConditionalGeneration": "Gemma3ForCausalLM",
    "Gemma4ForCausalLM": "Gemma4ForConditionalGeneration",
    "DeepseekV2ForCausalLM": "DeepseekV3ForCausalLM",
    "Mistral4ForCausalLM": "DeepseekV3ForCausalLM",
    "MiniMaxText01ForCausalLM": "MiniMaxForCausalLM",
    "MiniMaxM1ForCausalLM": "MiniMaxForCausalLM",
    "Llama4ForCausalLM": "Llama4ForConditionalGeneration",
    "Ministral3ForCausalLM": "LlamaForCausalLM",
    "MiniMaxM3SparseForConditionalGeneration": "MiniMaxM3ForCausalLM",
    "MiMoV2ForCausalLM": "MiMoV2FlashForCausalLM",
    "ExaoneMoEForCausalLM": "Dots1ForCausalLM",
    "ExaoneMoeForCausalLM": "Dots1ForCausalLM",
    "GraniteMoeSharedForCausalLM": "GraniteMoeForCausalLM",
    "PhiMoEForCausalLM": "PhimoeForCausalLM",
    "KimiK3ForConditionalGeneration": "KimiLinearForCausalLM",
    "Step3p7FlashForCausalLM": "Step3p5ForCausalLM",
    "Step3p7ForConditionalGeneration": "Step3p5ForCausalLM",
    "Qwen3_5ForConditionalGeneration": "Qwen3NextForCausalLM",
    "Qwen3_5MoeForConditionalGeneration": "Qwen3NextForCausalLM",
    "Qwen3_5ForCausalLM": "Qwen3NextForCausalLM",
    "Qwen3_5MoeForCausalLM": "Qwen3NextForCausalLM",
}
