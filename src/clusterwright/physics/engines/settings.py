"""What a user sets of an inference engine, as far as memory depends on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from clusterwright.model.decoders import Attention, CompressedAttention, Decoder, LatentAttention, StateMixer
from clusterwright.physics.caches_by_layer import StateFormats
from clusterwright.physics.layouts import Layout


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that every engine has; None takes the engine's own default.

    Args:
        version: (major, minor) of the engine.
        memory_share: vLLM `gpu_memory_utilization`, SGLang `mem_fraction_static`, TensorRT-LLM
            `free_gpu_memory_fraction`: each a share of something else.
        max_model_len: longest sequence wanted; None: what the model's config allows.
        kv_format: of the cache, apart from that of the weights; auto: what the engine takes.
        max_num_seqs: sequences in one step. max_num_batched_tokens: tokens in one step (SGLang chunked prefill size).
        block_tokens: tokens of one block or page.
        eager: no captured graphs.
        speculative_tokens: drafted per step by the model's own draft layers; 0 without speculation.
        prefix_caching: whether finished prefixes are kept; matters to recurrent states.
        model: name or path for the command line.
    """

    version: tuple[int, int]
    memory_share: float | None = None
    max_model_len: int | None = None
    kv_format: str = "auto"
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_tokens: int | None = None
    eager: bool = False
    speculative_tokens: int = 0
    prefix_caching: bool | None = None
    states: StateFormats = field(default_factory=StateFormats)
    model: str = ""


#: Quantisers whose declared format of the KV cache an engine takes where nothing is asked for → first release that
#: does. vLLM: pull requests 30785 (December 2025, after 0.13) and 30141 (January 2026). SGLang:
#: `configure_kv_cache_dtype` reads `kv_cache_quant_algo`, which its compressed-tensors config lacks. TensorRT-LLM:
#: `validate_and_set_kv_cache_quant`.
_HEEDED: Final[dict[str, dict[str, tuple[int, int]]]] = {
    "vllm": {"modelopt": (0, 14), "compressed-tensors": (0, 15)},
    "sglang": {"modelopt": (0, 5)},
    "tensorrt-llm": {"modelopt": (1, 0)},
}


def heeds(engine: str, version: tuple[int, int], quantiser: str) -> bool:
    """Whether an engine takes the format of the KV cache that a checkpoint of that quantiser declares."""
    since = _HEEDED[engine].get(quantiser)
    return since is not None and version >= since


def cache_format(decoder: Decoder, kv_format: str, engine: str, version: tuple[int, int]) -> str:
    """Name of the cache's format under an engine.

    fp8 means entries with their own scales where attention is sparse or compressed; auto means what the checkpoint
    declares where the engine heeds it, else 16 bit, except there.
    """
    if kv_format == "auto" and decoder.kv_format and heeds(engine, version, decoder.kv_declared_by):
        kv_format = decoder.kv_format
    # What vLLM takes for sparse attention (DSA) when nothing is asked for.
    sparse_default = "fp8_ds_mla" if engine == "vllm" else "bf16"
    mixers = [layer.mixer for layer, _ in decoder.groups]
    sparse = any(isinstance(m, LatentAttention) and m.index is not None for m in mixers)
    if any(isinstance(m, CompressedAttention) for m in mixers):
        return "fp8" if kv_format == "auto" else kv_format
    if kv_format == "auto":
        return sparse_default if sparse else "bf16"
    return "fp8_ds_mla" if sparse and kv_format == "fp8" else kv_format


def layout_refusal(decoder: Decoder, layout: Layout, *, without: tuple[str, ...]) -> tuple[str, ...]:
    """Why an engine refuses the layout: a kind of parallelism that it lacks, or heads that do not divide.

    Args:
        without: parallel sizes that must be 1.
    """
    lacking = [f"{name} = {getattr(layout, name)}" for name in without if getattr(layout, name) > 1]
    if lacking:
        return (f"the engine has no {' and no '.join(lacking)}",)
    tp = layout.attention_tp
    for mixer in (layer.mixer for layer, _ in decoder.groups):
        if not isinstance(mixer, Attention | LatentAttention | CompressedAttention):
            continue
        if mixer.heads % tp:
            return (f"{mixer.heads} attention heads do not divide over {tp} ranks",)
        if isinstance(mixer, Attention) and mixer.kv_heads % tp and tp % mixer.kv_heads:
            return (f"{mixer.kv_heads} KV heads neither divide over {tp} ranks nor are copied evenly to them",)
    return ()


def has_states(decoder: Decoder) -> bool:
    """Whether any layer keeps a recurrent state."""
    return bool(state_mixers(decoder))


def state_mixers(decoder: Decoder) -> tuple[StateMixer, ...]:
    """Different mixers that keep a recurrent state."""
    return tuple(layer.mixer for layer, _ in decoder.groups if isinstance(layer.mixer, StateMixer))


def asked_state(decoder: Decoder) -> str:
    """Format that the model's config asks recurrent states to be kept in, "" where it says nothing."""
    return next((m.asked for m in state_mixers(decoder) if m.asked and m.kind != "kimi-delta"), "")


def declared_note(decoder: Decoder, settings: Settings, engine: str) -> tuple[str, ...]:
    """That the cache is in what the checkpoint declares, where nobody asked for it."""
    if settings.kv_format != "auto" or not decoder.kv_format:
        return ()
    if heeds(engine, settings.version, decoder.kv_declared_by):
        return (f"KV cache in {decoder.kv_format}, since the checkpoint declares it (--kv bf16 for 16 bit)",)
    return (f"the checkpoint declares a KV cache in {decoder.kv_format}, which this release does not take by itself",)
