"""TensorRT-LLM's memory budget per GPU.

The cache gets a fraction of what is free once weights are loaded and one step of the largest batch has run, in whole
blocks. Windowed layers are counted as if they kept every token: an upper bound unless `max_attention_window` is set.

Source: TensorRT-LLM `kvCacheManager` (KvCacheConfig, freeGpuMemoryFraction), `_torch/pyexecutor/_util.py`
(KvCacheCreator: peak of a dry run), documentation "Memory Usage of TensorRT-LLM".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from clusterwright.lib.scales import GIB
from clusterwright.model.decoders import Decoder
from clusterwright.physics.caches_by_layer import Kept, StateFormats, kept_on_stages
from clusterwright.physics.engines.activations import captured_sizes, forward_gib, graphs_gib, sampler_gib
from clusterwright.physics.engines.advice import Case, ranked_changes
from clusterwright.physics.engines.flags import trtllm_flags, trtllm_yaml
from clusterwright.physics.engines.releases import NEWEST, Release
from clusterwright.physics.engines.results import Band, ByRanks, EngineMemory, Gpu, bar, by_ranks, whole
from clusterwright.physics.engines.settings import Settings, cache_format, declared_note, layout_refusal
from clusterwright.physics.layouts import Layout
from clusterwright.physics.loading import Loading, load_weights

#: First release whose default backend is PyTorch.
_PYTORCH_SINCE = (1, 0)

#: Parallel sizes that the engine does not have; copies of a whole replica are planned one by one.
_LACKS: Final = ("dp", "dcp", "cp", "vp", "etp")


@dataclass(frozen=True, slots=True)
class TrtllmConstants:
    """Constants.

    Args:
        fraction: default `free_gpu_memory_fraction` (KvCacheConfig).
        runtime_gib: context, NCCL, workspaces by ranks; from the documentation's example (1 rank) and logs.
        sampler_copies: fp32 logits of the sampler of the PyTorch backend; the C++ runtime has none.
        graph_mib: MiB per graph and layer.
        batch: default `max_batch_size`. tokens: default `max_num_tokens`. block: default `tokens_per_block`, of the
            C++ runtime and of PyTorch.
    """

    fraction: float = 0.9
    runtime_gib: ByRanks = ((1, 1.0), (2, 1.3), (4, 1.8), (8, 2.5))
    sampler_copies: float = 3.5
    graph_mib: float = 0.25
    batch: int = 2048
    tokens: int = 8192
    block: tuple[int, int] = (64, 32)

    def runtime(self, ranks: int) -> float:
        """GiB outside weights and activations."""
        return by_ranks(self.runtime_gib, ranks)


@dataclass(frozen=True, slots=True)
class TrtllmSettings(Settings):
    """TensorRT-LLM's settings.

    Args:
        max_tokens: upper limit of the pool, None without.
        constants: defaults and measured constants.
    """

    version: Release = NEWEST["tensorrt-llm"]
    max_tokens: int | None = None
    states: StateFormats = field(default_factory=lambda: StateFormats(unasked="bf16"))
    constants: TrtllmConstants = field(default_factory=TrtllmConstants)


def plan_memory(
    decoder: Decoder,
    layout: Layout,
    gpu: Gpu,
    settings: TrtllmSettings = TrtllmSettings(),
    *,
    free_after_load_gib: float | None = None,
    larger: Sequence[Gpu] = (),
    advise: bool = True,
) -> EngineMemory:
    """Memory of the GPU that binds, and what the pool of one replica holds.

    Args:
        free_after_load_gib: from a log ("available"), instead of the estimate.
        larger: GPUs to try when it does not fit.
        advise: whether changes are tried when it does not fit.
    """
    case = Case(decoder, layout, gpu, settings)
    now = _plan(case, free_after_load_gib)
    if now.fits or not advise:
        return now
    return replace(now, advice=ranked_changes(case, now, lambda other: _plan(other, None), larger))


def _settings(case: Case) -> TrtllmSettings:
    assert isinstance(case.settings, TrtllmSettings)
    return case.settings


def activation_gib(case: Case) -> float:
    """Peak of a step of the largest batch."""
    settings = _settings(case)
    c = settings.constants
    forward = forward_gib(case.decoder, case.layout, settings.max_num_batched_tokens or c.tokens)
    if settings.version < _PYTORCH_SINCE:
        return forward
    return max(forward, sampler_gib(settings.max_num_seqs or c.batch, case.decoder.vocab, c.sampler_copies))


def _plan(case: Case, free: float | None) -> EngineMemory:
    settings, gpu, layout = _settings(case), case.gpu, case.layout
    c = settings.constants
    fraction = settings.memory_share or c.fraction
    length = settings.max_model_len or case.decoder.max_context
    block = settings.block_tokens or c.block[settings.version >= _PYTORCH_SINCE]
    form = cache_format(case.decoder, settings.kv_format, "tensorrt-llm", settings.version)
    loading = Loading(drafts=settings.speculative_tokens > 0)
    weights = load_weights(case.decoder, layout, loading)
    activation, runtime = activation_gib(case), c.runtime(layout.tp)
    found = []
    drafting = case.decoder.drafts if loading.drafts else ()
    for index, kept in enumerate(kept_on_stages(case.decoder, layout, form, settings.states, drafting)):
        own = weights.stage_bytes(index) / GIB
        left = gpu.reported_gib - own - activation - runtime if free is None else free
        per_token, fixed = held(kept, length)
        blocks = int(max(0.0, left) * fraction * GIB // (per_token * block)) if per_token else 0
        found.append((blocks, left, own, per_token, fixed))
    blocks, left, own, per_token, fixed = min(found)
    tokens = blocks * block
    if settings.max_tokens is not None:
        tokens = min(tokens, settings.max_tokens // block * block)
    sequences = settings.max_num_seqs or c.batch
    graphs = (
        0.0 if settings.eager else graphs_gib(case.decoder, layout, captured_sizes(min(sequences, 128)), c.graph_mib)
    )
    per_request = -(-length // block) * block + fixed / per_token if per_token else 1.0
    terms = (
        ("weights", own),
        ("activations", activation if free is None else gpu.reported_gib - free - own - runtime),
        ("runtime", runtime),
        ("KV cache", tokens * per_token / GIB),
        ("CUDA graphs", graphs),
    )
    return EngineMemory(
        engine=f"TensorRT-LLM {settings.version[0]}.{settings.version[1]}",
        terms=bar(terms, gpu.reported_gib),
        reported_gib=whole(gpu.reported_gib),
        memory_share=fraction,
        kv_pool_gib=left * fraction,
        kv_bytes_per_token=per_token,
        kv_tokens=tokens * layout.attention_dp,
        max_concurrency=min(tokens / per_request, sequences) * layout.attention_dp,
        max_context=min(tokens, case.decoder.max_context),
        why=layout_refusal(case.decoder, case.layout, without=_LACKS)
        + _reasons(left, tokens, settings.max_model_len, graphs - (left - tokens * per_token / GIB)),
        band=Band(0.25, "few public logs of TensorRT-LLM; the pool is exact where free memory after loading is known"),
        flags=trtllm_flags(case, length, sequences, settings.max_num_batched_tokens or c.tokens),
        extra_config=trtllm_yaml(case, fraction, block),
        notes=declared_note(case.decoder, settings, "tensorrt-llm"),
    )


def held(kept: Sequence[Kept], length: int) -> tuple[float, int]:
    """(B per token, B per request); windows beside compressed entries are per request, others count as whole."""
    compressed = any(k.ratio > 1 for k in kept)
    once = [k for k in kept if k.kind == "state" or (compressed and k.kind == "window")]
    per_token = sum(k.entry_bytes / k.ratio for k in kept if k not in once)
    return per_token, sum(k.bytes_of(length) for k in once)


def _reasons(left: float, tokens: int, wanted: int | None, over: float) -> tuple[str, ...]:
    if left <= 0:
        return (f"weights, activations and runtime exceed the GPU by {-left:.2f} GiB",)
    if tokens == 0 or (wanted is not None and tokens < wanted):
        return (f"the pool holds {tokens:,} tokens, one sequence of the wanted length has {wanted or 1:,}",)
    if over > 0:
        return (f"CUDA graphs take {over:.2f} GiB more than the cache leaves of the GPU",)
    return ()
